"""The loops that each primitive makes, and those of the paper's schedules: ``tests/golden/nests``."""

from __future__ import annotations

from pathlib import Path

import pytest
from primitives.golden import GOLDEN, WRITES, read_cases, write_cases
from primitives.statements import schedule

from sparseloom.explorer.paper import PAPER, PaperSchedule
from sparseloom.notation.verify import verify
from sparseloom.schedule.primitive import PRIMITIVES
from sparseloom.schedule.races import ignored

FOLDER = GOLDEN / "nests"


def nest(heading: str) -> str:
    """The loops after the steps of ``statement | formats | steps``."""
    made = schedule(*(part.strip() for part in heading.split("|")))
    verify(made.stmt)
    return str(made)


@pytest.mark.parametrize("word", sorted(PRIMITIVES))
def test_a_primitive_makes_these_loops(word: str) -> None:
    check(FOLDER / f"{word}.txt", {heading: nest(heading) for heading in read_cases(FOLDER / f"{word}.txt")})


def test_the_schedules_of_the_paper_make_these_loops() -> None:
    made = {paper.name: schedule(paper.statement, paper.formats, paper.steps) for paper in PAPER}
    check(FOLDER / "paper.txt", {name: f"{found.text}\n\n{found}".strip() for name, found in made.items()})


@pytest.mark.parametrize("paper", PAPER, ids=lambda paper: paper.name)
def test_no_schedule_of_the_paper_leaves_a_race(paper: PaperSchedule) -> None:
    made = schedule(paper.statement, paper.formats, paper.steps)
    verify(made.stmt)
    assert ignored(made.stmt) == []
    assert all(conflict.resolved is not None for conflict in made.conflicts)


def check(file: Path, found: dict[str, str]) -> None:
    """Compare with a file, or write it."""
    if WRITES:
        write_cases(file, found)
    assert found == read_cases(file)
