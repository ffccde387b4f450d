"""Tuning: the planner's first choices measured on the user's data, side by side; the quickest is kept."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from sparseloom.core.errors import NotationError, ScheduleError
from sparseloom.core.signs import printable
from sparseloom.formats.storage import Storage
from sparseloom.plan.plan import Plan, plan_variants, problem_text
from sparseloom.programs.binding import Call
from sparseloom.programs.chain import Chain, temporary
from sparseloom.programs.conversion import with_indices_as
from sparseloom.programs.cuda.binding import awaited
from sparseloom.programs.execution import Specialization
from sparseloom.targets.target import Calling
from sparseloom.toolchain.tuned import keep_schedule
from sparseloom.toolchain.worth import machine_here

LEAST_ROUNDS = 3
WIDTH = 40


@dataclass(frozen=True)
class Timing:
    """A schedule, and the median of the seconds that it took."""

    schedule: str
    seconds: float


@dataclass(frozen=True)
class Tuned:
    """What was measured for one statement, the quickest first. ``planned`` is what the planner had chosen."""

    statement: str
    timings: tuple[Timing, ...]
    planned: str

    @property
    def best(self) -> str:
        """The schedule that is kept."""
        return self.timings[0].schedule

    @property
    def gain(self) -> float:
        """How many times as long the planner's choice takes."""
        return next(one.seconds for one in self.timings if one.schedule == self.planned) / self.timings[0].seconds

    def __str__(self) -> str:
        rows = [f"{one.seconds * 1e6:12,.1f} us  {one.schedule.replace(chr(10), ' ') or 'plain loops'}" for one in self.timings]
        return printable("\n".join([f"{self.statement}: {self.gain:.2f} times as fast as planned", *rows]))


def tune(
    made: Specialization | Chain, operands: Mapping[str, Storage], seconds: float, progress: bool | None, keep: bool
) -> tuple[Tuned, ...]:
    """Measure candidates for every statement, and keep the best of each if that is wanted."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < 86_400:
        raise NotationError(f"tuning cannot take {seconds!r} seconds\n  help: pass a number such as seconds=2")
    links = made.links if isinstance(made, Chain) else (made,)
    storages, found = dict(operands), []
    with _bar(seconds, progress) as advance:
        for link in links:
            found.append(_tuned(link, storages, seconds / len(links), advance))
            if keep:
                keep_schedule(problem_text(link.problem, link.statistics), found[-1].best)
            if link is not links[-1]:
                tensor = temporary(link.problem)
                storages[tensor.name] = replace(with_indices_as(link.run(storages), tensor.index_dtype), fill=tensor.fill)
    return tuple(found)


def _tuned(link: Specialization, storages: Mapping[str, Storage], seconds: float, advance: Any) -> Tuned:
    if link.problem.schedule is not None:
        raise ScheduleError("there is nothing to tune: the schedule is the user's own\n  help: leave schedule= away")
    plans = plan_variants(link.problem, link.statistics, machine_here())
    calls = {plan.schedule: _bound(link, plan, storages) for plan in plans}
    samples: dict[str, list[float]] = {schedule: [] for schedule in calls}
    end, rounds = perf_counter() + seconds, 0
    while perf_counter() < end or rounds < LEAST_ROUNDS:
        for schedule, call in calls.items():
            call.start()  # warm
            start = perf_counter()
            call.start()
            samples[schedule].append(perf_counter() - start)
        calls = _promising(calls, samples) if rounds == LEAST_ROUNDS else calls
        rounds += 1
        advance(min(seconds, seconds - (end - perf_counter())))
    timings = sorted((Timing(schedule, float(np.median(samples[schedule]))) for schedule in calls), key=lambda one: one.seconds)
    planned = plans[0].schedule if plans[0].schedule in calls else timings[0].schedule
    return Tuned(link.stages.show("notation"), tuple(timings), planned)


def _promising(calls: Mapping[str, Call], samples: Mapping[str, list[float]]) -> dict[str, Call]:
    """Those that may still be the quickest: within half as much again of the best so far, and the planner's own."""
    best = min(float(np.median(samples[schedule])) for schedule in calls)
    own = next(iter(calls))
    return {schedule: call for schedule, call in calls.items() if schedule == own or float(np.median(samples[schedule])) <= 1.5 * best}


def _bound(link: Specialization, plan: Plan, storages: Mapping[str, Storage]) -> Call:
    call = Specialization(link.problem, link.statistics, pinned=plan).bind(storages)
    return awaited(call) if link.problem.target.calling is Calling.LAUNCHED else call


@contextmanager
def _bar(seconds: float, wanted: bool | None) -> Iterator[Any]:
    """A bar on the terminal that time fills; by default where somebody looks."""
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield lambda done: None
        return
    try:
        yield lambda done: print(f"\r{_drawn(done / seconds)}", end="", file=sys.stderr, flush=True)
    finally:
        print(f"\r{' ' * len(_drawn(1))}\r", end="", file=sys.stderr, flush=True)


def _drawn(share: float) -> str:
    done = round(WIDTH * min(max(share, 0), 1))
    return f"measuring schedules [{'#' * done}{' ' * (WIDTH - done)}] {share:4.0%}"
