"""Random schedules of random statements: the dense oracle, the loop interpreter and compiled C must agree."""

from __future__ import annotations

from itertools import islice

import pytest
from fuzz.drawing import draw
from fuzz.reproducer import report
from fuzz.runner import Job, prepare_unscheduled
from fuzz.runner import Tally as Statements
from fuzz.scheduled_runner import compare, shrink
from fuzz.scheduled_tally import PROPERTY, packed
from fuzz.schedules import Drawn, Scheduled, draw_steps, finite, schedulable, threaded_steps

from sparseloom.schedule.primitive import Primitive

CHUNKS = 15
THREADED_CHUNKS = 6
THREADED_REPEATS = 20


@pytest.fixture(autouse=True)
def two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two are enough to disagree."""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")  # threads that spin would keep other tests waiting


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_schedule_never_changes_the_result(chunk: int, seed: int, case_count: int, record_property: object) -> None:
    share = -(-max(case_count // 2, 560) // CHUNKS)
    tally = compare(schedulable(seed, 2000 + chunk), share)
    record_property(PROPERTY, packed(tally))  # type: ignore[operator]
    assert not tally.failures, report(tally.failures)
    assert tally.compared >= share
    assert tally.changing >= tally.compared / 2
    assert tally.in_c >= tally.compared / 2


def in_threads(job: Job, drawn: Drawn) -> tuple[Primitive, ...]:
    """Steps of which some are run by threads."""
    return threaded_steps(job.case, job.prepared.unscheduled(), drawn)


@pytest.mark.parametrize("chunk", range(THREADED_CHUNKS))
def test_threads_give_the_same_in_every_call(chunk: int, seed: int, case_count: int, record_property: object) -> None:
    """Tiny data, so that all threads are at work at once; 2, 3 and 8 threads, which may be more than there are cores."""
    share = -(-max(case_count // 2, 60) // THREADED_CHUNKS)
    tally = compare(schedulable(seed, 6000 + chunk), share, choose=in_threads, repeats=THREADED_REPEATS)
    record_property(PROPERTY, packed(tally))  # type: ignore[operator]
    assert not tally.failures, report(tally.failures)
    assert tally.threaded >= share * 0.8


def test_most_drawn_steps_are_taken(seed: int) -> None:
    drawn = Drawn()
    for case in islice(schedulable(seed, 3000), 300):
        job = prepare_unscheduled(case, Statements())
        if job is not None:
            draw_steps(case, job.prepared.unscheduled(), drawn)
    assert drawn.accepted >= 0.7, drawn.refused


def test_a_schedule_follows_from_its_numbers_alone() -> None:
    case = finite(draw(1, 2))
    job = prepare_unscheduled(case, Statements())
    assert job is not None
    first, second = (draw_steps(case, job.prepared.unscheduled(), Drawn()) for _ in range(2))
    assert first == second


def test_shrinking_a_scheduled_case_keeps_what_fails() -> None:
    """A case counts as failing here while its schedule still splits."""

    def splits(scheduled: Scheduled) -> bool:
        return any(step.word() == "split" for step in scheduled.steps)

    for case in schedulable(5, 0):
        job = prepare_unscheduled(case, Statements())
        large = Scheduled(case, draw_steps(case, job.prepared.unscheduled(), Drawn())) if job is not None else Scheduled(case, ())
        if splits(large) and len(large.steps) > 3:
            break
    small = shrink(large, splits)
    assert splits(small)
    assert len(small.steps) < len(large.steps)
    assert len(str(small.case)) <= len(str(large.case))
