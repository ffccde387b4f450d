"""How long the explorer takes from an edit to all its columns: what the server does, without the way through the browser.

Every round changes the size of the first split, so that nothing behind it is known, as when somebody types.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.overheads import Overhead
from sparseloom.explorer import explore
from sparseloom.explorer.examples import example_state
from sparseloom.explorer.paper import PAPER
from sparseloom.explorer.state import State, Step

SHORT, LONG = 0.120, 0.250  # seconds


def measure(rounds: int) -> Iterator[Overhead]:
    """Look at SpMV in threads, and at the longest schedule of the paper."""
    by_name = {one.name: example_state(one) for one in PAPER}
    longest = max(by_name.values(), key=lambda state: len(state.steps))
    yield Overhead("explorer: an edit of SpMV in threads", SHORT, _samples(by_name["spmv_cpu"], rounds))
    yield Overhead(f"explorer: an edit of the paper's longest schedule, {len(longest.steps)} steps", LONG, _samples(longest, rounds))


def _samples(state: State, rounds: int) -> tuple[float, ...]:
    explore({"ask": "look", "state": state.as_json()})
    return tuple(_timed(_edited(state, number)) for number in range(rounds))


def _timed(state: State) -> float:
    request = {"ask": "look", "state": state.as_json()}
    before = time.perf_counter()
    found = explore(request)
    seconds = time.perf_counter() - before
    if not found["ok"] or any(step["status"] != "legal" for step in found["steps"]):
        raise RuntimeError(f"the explorer refuses what it is measured with: {state}")
    return seconds


def _edited(state: State, number: int) -> State:
    """The state with another block size in its first split."""
    place = next(k for k, step in enumerate(state.steps) if step.text.startswith("split"))
    head, _, _ = state.steps[place].text.rpartition(",")
    changed = Step(f"{head},{32 + 16 * (number % 14)})")
    return replace(state, steps=(*state.steps[:place], changed, *state.steps[place + 1 :]))
