"""The table at the end of a run: how many random statements were compared, and what was refused."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from fuzz.runner import Tally

PROPERTY = "random cases"


def packed(tally: Tally) -> str:
    """What one test found, as text that travels in its report."""
    return json.dumps({"compared": tally.compared, "invalid": tally.invalid, "widened": tally.widened, "refused": tally.refused})


def summary(reports: Iterable[tuple[str, str]]) -> list[str]:
    """The lines of the table, from the properties of all reports."""
    found = [json.loads(value) for name, value in reports if name == PROPERTY]
    if not found:
        return []
    refused: Counter[str] = Counter()
    for part in found:
        refused.update(part["refused"])
    compared = sum(part["compared"] for part in found)
    lost = sum(refused.values())
    share = compared / max(compared + lost, 1)
    lines = [f"{compared} random cases compared, {lost} refused: {share:.1%} of the valid statements were accepted"]
    widened, invalid = (sum(part[kind] for part in found) for kind in ("widened", "invalid"))
    lines.append(f"{widened} outgrew int32 positions, {invalid} were not valid")
    return lines + [f"{count:7d}  {kind}" for kind, count in refused.most_common()]
