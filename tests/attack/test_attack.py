"""A short form of every part of the hostile campaign: no signal, no hang, nothing silently wrong, every refusal a SparseloomError."""

from __future__ import annotations

import pytest
from attack.campaign import in_short, parts_present
from attack.pool import run


@pytest.mark.parametrize("part", parts_present())
def test_nothing_crashes_hangs_or_is_silently_wrong(part: str, seed: int) -> None:
    count = in_short(part)
    report = run(part, seed, range(count), count)
    assert not report.faults, "\n\n".join(f"{fault.kind}: {fault.repeat}\n{fault.text}" for fault in report.faults)
    assert report.done == count
