"""The table at the end of a run: how many scheduled statements were compared, and which steps were refused, by code."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from fuzz.scheduled_runner import Tally

PROPERTY = "random schedules"
COUNTS = ("compared", "in_c", "broken", "changing", "threaded")


def packed(tally: Tally) -> str:
    """What one test found, as text that travels in its report."""
    counts = {name: getattr(tally, name) for name in COUNTS}
    return json.dumps({**counts, "taken": tally.drawn.taken, "refused": tally.drawn.refused})


def summary(reports: Iterable[tuple[str, str]]) -> list[str]:
    """The lines of the table, from the properties of all reports."""
    found = [json.loads(value) for name, value in reports if name == PROPERTY]
    if not found:
        return []
    taken: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for part in found:
        taken.update(part["taken"])
        refused.update(part["refused"])
    compared, in_c, broken, changing, threaded = (sum(part[name] for part in found) for name in COUNTS)
    share, drawn = changing / max(compared, 1), taken.total() + refused.total()
    lines = [
        f"{compared} scheduled cases compared, {in_c} of them also in C, {threaded} with threads; {broken} rightly found a bound wrong",
        f"{share:.0%} use pos, fuse or precompute; {taken.total() / max(drawn, 1):.0%} of {drawn} drawn steps were taken; refused were",
    ]
    return lines + [f"  {count:5} {what}" for what, count in refused.most_common()]
