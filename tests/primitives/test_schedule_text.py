"""Schedules as text and as JSON: both read back what was written, and say where they cannot be read."""

from __future__ import annotations

import json

import pytest
from primitives.golden import GOLDEN, read_cases
from primitives.statements import SPMV, concrete, schedule

from sparseloom.core.errors import ScheduleError
from sparseloom.explorer.paper import PAPER
from sparseloom.schedule.schedule import Schedule

NESTS = [heading for file in sorted((GOLDEN / "nests").glob("*.txt")) if file.stem != "paper" for heading in read_cases(file)]


WORDS = "assemble, bound, coord, divide, fuse, mergeby, parallelize, pos, precompute, prefetch, reorder, split, unroll"


@pytest.mark.parametrize("heading", [*NESTS, *(" | ".join(paper[1:]) for paper in PAPER)])
def test_text_and_json_read_back(heading: str) -> None:
    statement, formats, steps = (part.strip() for part in heading.split("|"))
    start = concrete(statement, formats)
    made = Schedule.from_text(start, steps)
    assert Schedule.from_text(start, made.text).trace == made.trace
    assert Schedule.from_json(start, made.to_json()).trace == made.trace
    assert Schedule(start).then(*made.trace).stmt == made.stmt


def test_steps_may_stand_in_any_layout() -> None:
    spread = """
        # half of the rows each
        split( i , i0,i1 , 2 );
        reorder({i0, i1, j}),   parallelize(i0, CPUThread, NoRaces)  # and no races
        """
    assert schedule(*SPMV, spread).text == "split(i, i0, i1, 2)\nreorder(i0, i1, j)\nparallelize(i0, CPUThread, NoRaces)"


def test_no_steps_are_a_schedule() -> None:
    assert schedule(*SPMV, "  # nothing\n").trace == ()


def test_the_line_with_the_fault_is_shown() -> None:
    with pytest.raises(ScheduleError) as caught:
        schedule(*SPMV, "split(i,i0,i1,2)\n  parallelise(i0,CPUThread,NoRaces)")
    assert str(caught.value) == (
        "[S002] cannot read the schedule: there is no step 'parallelise'\n"
        "    parallelise(i0,CPUThread,NoRaces)\n"
        "    ^\n"
        f"  help: did you mean parallelize? There are {WORDS}"
    )


def test_json_is_a_list_of_steps_with_named_arguments() -> None:
    made = schedule(*SPMV, "precompute(x(j),{i,j},{iw,jw},w) parallelize(iw,CPUThread,NoRaces)")
    assert json.loads(made.to_json()) == [
        {"step": "precompute", "e": "x(j)", "i": ["i", "j"], "iw": ["iw", "jw"], "w": "w"},
        {"step": "parallelize", "i": "iw", "unit": "CPUThread", "races": "NoRaces"},
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[", "[S008] cannot read the schedule: it is not JSON: Expecting value: line 1 column 2 (char 1)"),
        (
            '[{"step": "tile"}]',
            f'[S009] cannot read the schedule: {{"step": "tile"}} is not a step\n  help: its keys must be step, one of {WORDS}',
        ),
        (
            '{"step": "unroll", "i": "j"}',
            '[S009] cannot read the schedule: {"step": "unroll", "i": "j"} is not a step\n  help: its keys must be step, i, factor',
        ),
        (
            '[{"step": ["unroll"]}]',
            f'[S009] cannot read the schedule: {{"step": ["unroll"]}} is not a step\n  help: its keys must be step, one of {WORDS}',
        ),
        ("3", f"[S009] cannot read the schedule: 3 is not a step\n  help: its keys must be step, one of {WORDS}"),
    ],
)
def test_json_that_is_no_schedule(text: str, complaint: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        Schedule.from_json(concrete(*SPMV), text)
    assert str(caught.value) == complaint
