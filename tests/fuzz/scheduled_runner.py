"""Comparing scheduled statements: the dense oracle, the loop interpreter with its races and bounds, and compiled C."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from fuzz.drawing import Case
from fuzz.runner import BATCH, FAULTS, Disagreement, Job, contents, examine, prepare_unscheduled
from fuzz.runner import Tally as Statements
from fuzz.schedules import Drawn, Scheduled, draw_steps
from fuzz.shrink import simpler

from sparseloom.compiler import load_together, lower_concrete
from sparseloom.core.errors import ScheduleError, ShapeError, SparseloomError
from sparseloom.core.trees import walk
from sparseloom.formats.storage import Storage
from sparseloom.loops.nodes import For, LoopKind
from sparseloom.loops.verify import verify
from sparseloom.schedule.primitive import Primitive
from sparseloom.schedule.schedule import Schedule
from sparseloom.toolchain import teams

MOST_ATTEMPTS = 150
THREADS, REPEATS = (2, 3, 8), 7
Choose = Callable[[Job, Drawn], tuple[Primitive, ...]]


@dataclass
class Tally:
    """What became of the scheduled cases.

    ``broken`` counts those whose bounds were wrong, which every target must report; ``threaded`` those in C of which threads run a loop.
    """

    compared: int = 0
    in_c: int = 0
    broken: int = 0
    changing: int = 0
    threaded: int = 0
    drawn: Drawn = field(default_factory=Drawn)
    statements: Statements = field(default_factory=Statements)
    failures: list[tuple[Scheduled, str]] = field(default_factory=list)
    lengths: Counter[int] = field(default_factory=Counter)


@dataclass
class ScheduledJob:
    """A case on its way through the targets."""

    scheduled: Scheduled
    job: Job

    @property
    def uses_gpu(self) -> bool:
        """Whether a loop runs on a GPU, which C has none of."""
        return self.job.prepared.stages.gpu_unit is not None

    @property
    def has_threads(self) -> bool:
        """Whether threads run a loop."""
        function = self.job.prepared.stages.lowered.function
        return any(isinstance(n, For) and n.kind is LoopKind.THREADS for n in walk(function))


def compare(
    cases: Iterator[Case], wanted: int, targets: Sequence[str] = ("interpret", "c"), choose: Choose | None = None, repeats: int = REPEATS
) -> Tally:
    """Draw, schedule and compare until ``wanted`` cases were compared.

    Steps are random unless ``choose`` is given. A kernel with threads is called ``repeats`` times on each number of threads.
    """
    tally = Tally()
    while tally.compared < wanted and len(tally.failures) < 5:
        _run_batch(list(islice(cases, min(BATCH, wanted - tally.compared))), tally, targets, choose or _at_random, repeats)
    return tally


def _at_random(job: Job, drawn: Drawn) -> tuple[Primitive, ...]:
    return draw_steps(job.case, job.prepared.unscheduled(), drawn)


def _run_batch(batch: Sequence[Case], tally: Tally, targets: Sequence[str], choose: Choose, repeats: int) -> None:
    jobs = [job for case in batch if (job := _scheduled(case, tally, choose)) is not None]
    if "c" in targets:
        _load([job for job in jobs if not job.uses_gpu], tally)
    for job in jobs:
        if any(job.scheduled is failed for failed, _ in tally.failures):
            continue
        outcome = _guarded(tally, job.scheduled, lambda job=job: _agree(job, targets, repeats))
        if outcome is None:
            continue
        tally.compared += 1
        tally.broken += outcome == "broken"
        tally.in_c += "c" in targets and not job.uses_gpu
        tally.changing += job.scheduled.changes_space
        tally.threaded += "c" in targets and job.has_threads
        tally.lengths[len(job.scheduled.steps)] += 1


def _scheduled(case: Case, tally: Tally, choose: Choose) -> ScheduledJob | None:
    """Choose a schedule for a case and lower it."""
    unscheduled = Scheduled(case, ())
    job = _guarded(tally, unscheduled, lambda: prepare_unscheduled(case, tally.statements))
    if job is None:
        return None
    steps = _guarded(tally, unscheduled, lambda: choose(job, tally.drawn))
    if not steps:
        return None
    scheduled = Scheduled(case, steps)
    return _guarded(tally, scheduled, lambda: lowered(scheduled, job))


def lowered(scheduled: Scheduled, job: Job) -> ScheduledJob:
    """The job with its loops scheduled."""
    concrete = Schedule(job.prepared.unscheduled()).then(*scheduled.steps).concrete
    stages = lower_concrete(job.assign, concrete, scheduled.case.int32_limit)
    verify(stages.lowered.function)
    job.prepared.__dict__["stages"] = stages  # where cached_property keeps it
    return ScheduledJob(scheduled, job)


def scheduled_job(scheduled: Scheduled) -> Job | None:
    """A scheduled case, ready to run; None if its statement is rejected."""
    job = prepare_unscheduled(scheduled.case, Statements())
    return None if job is None else lowered(scheduled, job).job


def _load(jobs: list[ScheduledJob], tally: Tally) -> None:
    """Compile the jobs together; if that fails, one by one, to find out which of them is to blame."""
    try:
        load_together([job.job.prepared.stages for job in jobs])
    except SparseloomError:
        for job in jobs:
            _guarded(tally, job.scheduled, lambda job=job: load_together([job.job.prepared.stages]))


def _guarded(tally: Tally, scheduled: Scheduled, step: Callable[[], Any]) -> Any:
    """Run one step; whatever goes wrong is a failure of this case, and the others go on."""
    try:
        return step()
    except FAULTS:
        tally.failures.append((scheduled, traceback.format_exc(limit=-4)))
        return None


def _agree(scheduled: ScheduledJob, targets: Sequence[str], repeats: int = REPEATS) -> str:
    """Run every target: all agree with the dense oracle, or all say that a bound is wrong."""
    job = scheduled.job
    results: dict[str, Storage | None] = {}
    for target in targets:
        if target == "c" and scheduled.uses_gpu:
            continue
        call = job.prepared.bind(job.storages, target)
        try:
            results[target] = call.run()
        except ShapeError as wrong:
            if "bound" not in str(wrong):
                raise
            results[target] = None
    if contents(job.storages) != job.before:
        raise Disagreement("an operand was modified")
    if None in results.values():
        if any(result is not None for result in results.values()):
            raise Disagreement("only some targets find that a bound is wrong")
        return "broken"
    for target, result in results.items():
        if result is not None:
            examine(job, target, result)
            if target == "c" and scheduled.has_threads:
                _again(job, result, repeats)
    return "agree"


def _again(job: Job, first: Storage, repeats: int) -> None:
    """Run a kernel with threads again and again, with more of them than there are cores."""
    for threads in THREADS:
        with teams.threads(threads):
            for _ in range(repeats):
                made = job.prepared.bind(job.storages, "c").run()  # anew: what accumulates goes on where a call has ended
                if contents({"": made}) != contents({"": first}):  # in another order, or wrong
                    examine(job, f"c, again on {threads} threads", made)


def attempt(scheduled: Scheduled, targets: Sequence[str] = ("interpret", "c")) -> str | None:
    """What goes wrong with one scheduled case, or None."""
    tally = Tally()
    job = _guarded(tally, scheduled, lambda: prepare_unscheduled(scheduled.case, tally.statements))
    if job is None:
        return None
    try:
        made = lowered(scheduled, job)
        if "c" in targets and not made.uses_gpu:
            _load([made], tally)
        _agree(made, targets)
    except ScheduleError:
        return None
    except FAULTS:
        return traceback.format_exc(limit=-4)
    return tally.failures[0][1] if tally.failures else None


def shrink(scheduled: Scheduled, fails: Callable[[Scheduled], bool] | None = None) -> Scheduled:
    """The smallest scheduled case found that still fails: fewer steps first, then simpler statements, formats and sizes."""
    still_fails = fails or (lambda candidate: attempt(candidate) is not None)
    attempts, improved = 0, True
    while improved:
        improved = False
        for candidate in _simpler(scheduled):
            attempts += 1
            if attempts > MOST_ATTEMPTS:
                return scheduled
            if reread(candidate) is not None and still_fails(candidate):
                scheduled, improved = candidate, True
                break
    return scheduled


def _simpler(scheduled: Scheduled) -> Iterator[Scheduled]:
    steps: tuple[Primitive, ...] = scheduled.steps
    for k in reversed(range(len(steps))):
        yield replace(scheduled, steps=steps[:k] + steps[k + 1 :])
    for case in simpler(scheduled.case):
        again = reread(Scheduled(case, steps))
        if again is not None:
            yield again


def reread(scheduled: Scheduled) -> Scheduled | None:
    """The same steps on another case, read from their text; None if the statement or a step is refused there."""
    try:
        job = prepare_unscheduled(scheduled.case, Statements())
        if job is None:
            return None
        made = Schedule.from_text(job.prepared.unscheduled(), " ".join(map(str, scheduled.steps)))
    except SparseloomError:
        return None
    return Scheduled(scheduled.case, made.trace)
