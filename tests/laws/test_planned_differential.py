"""What the planner chooses for random statements keeps their results: the dense oracle, the loop interpreter and compiled C agree."""

from __future__ import annotations

import pytest
from fuzz.planned import planned_steps
from fuzz.reproducer import report
from fuzz.scheduled_runner import compare
from fuzz.schedules import schedulable

CHUNKS = 6


@pytest.fixture(autouse=True)
def two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two are enough to disagree."""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_planned_schedule_keeps_the_result(chunk: int, seed: int, case_count: int) -> None:
    share = -(-max(case_count // 10, 120) // CHUNKS)
    tally = compare(schedulable(seed, 5000 + chunk), share, choose=planned_steps)
    assert not tally.failures, report(tally.failures)
    assert tally.compared >= share
