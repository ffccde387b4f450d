"""Every refusal of the scheduling language, with its whole text: ``tests/golden/refusals`` has one file per primitive."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from primitives.golden import GOLDEN, WRITES, read_cases, write_cases
from primitives.statements import schedule

from sparseloom.core.errors import ScheduleError

FILES = sorted((GOLDEN / "refusals").glob("*.txt"))
OF_JSON = {"S008", "S009"}  # shown in test_schedule_text
SOURCES = Path(__file__).resolve().parents[2] / "src" / "sparseloom" / "schedule"


def refusal(heading: str) -> str:
    """What the last step of ``statement | formats | steps`` is refused with; a dtype may stand behind."""
    statement, formats, steps, *dtype = (part.strip() for part in heading.split("|"))
    with pytest.raises(ScheduleError) as caught:
        schedule(statement, formats, steps, np.dtype(*dtype) if dtype else None)
    return str(caught.value)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_refusal_says_what_why_where_and_what_to_do(file: Path) -> None:
    cases = read_cases(file)
    found = {heading: refusal(heading) for heading in cases}
    if WRITES:
        write_cases(file, found)
    assert found == read_cases(file)


def test_every_code_has_a_case() -> None:
    written = {code for file in SOURCES.rglob("*.py") for code in re.findall(r"\b(S\d{3,4})\b", file.read_text())}
    shown = {code for file in FILES for text in read_cases(file).values() for code in re.findall(r"^\[(S\d+)\]", text)}
    assert len(shown) >= 40
    assert written == shown | OF_JSON
