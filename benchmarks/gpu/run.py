"""A whole run on a GPU: who is there, how fast memory is, every kernel on every operand, the studies, and what calls cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from benchmarks.gpu.calls import calls
from benchmarks.gpu.clock import Clock, copy_bandwidth, race
from benchmarks.gpu.operands import DATA_TENSORS, TENSORS, Sets
from benchmarks.gpu.outcome import Outcome, Report
from benchmarks.gpu.studies import balance, findings
from benchmarks.gpu.tasks import CONTESTS, TOLERANCE, Case, Contest, Peers, everybody, task_of
from benchmarks.machine import machine, version_of
from benchmarks.peers import cupy, torch_cuda
from benchmarks.peers.registry import failure_of
from sparseloom.core.errors import DeviceError
from sparseloom.programs.cuda import nvrtc
from sparseloom.programs.cuda.device import device

STUDIES, CALLS = "studies", "calls"
OVER = "the time is over"
PARTS = (STUDIES, CALLS)
DTYPES = {"f32": "float32", "f64": "float64"}
LIBRARIES = {"CuPy": cupy, "PyTorch": torch_cuda}
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Wish:
    """What is to be measured, and for how long: ``seconds`` for each kernel on each operand, ``deadline`` for all of them."""

    sets: Sets
    kernels: tuple[str, ...]
    parts: tuple[str, ...]
    dtypes: tuple[str, ...]
    seconds: float
    deadline: float | None = None
    unread: tuple[str, ...] = ()  # files that are not measured, and why
    part: int = 1  # studies are on operands that are so many times smaller
    copied: int = 512 << 20  # bytes, to see how fast memory is
    began: float = field(default_factory=time.perf_counter)

    def is_over(self) -> bool:
        """Whether the time for all is used up."""
        return self.deadline is not None and time.perf_counter() - self.began > self.deadline


@dataclass(frozen=True)
class Step:
    """One kernel on one operand in one dtype."""

    contest: Contest
    width: int
    case: str
    dtype: str

    def __str__(self) -> str:
        return f"{self.contest.named(self.width)} on {self.case}, {self.dtype}"


def require_device() -> str:
    """What the device is called; one line says so if there is none."""
    try:
        return str(device().title)
    except DeviceError as missing:
        raise DeviceError(f"bench gpu needs a GPU: {str(missing).splitlines()[0]}") from None


def find_libraries() -> tuple[dict[str, Any], dict[str, str]]:
    """CuPy and PyTorch, as far as they are at hand, and why one is not."""
    failures = {name: failure_of(library.load) for name, library in LIBRARIES.items()}
    found = {name: LIBRARIES[name] for name, failure in failures.items() if failure is None}
    return found, {name: failure for name, failure in failures.items() if failure is not None}


def find_clock(libraries: Mapping[str, Any]) -> Clock:
    """The clock of the first library that is there."""
    if not libraries:
        raise DeviceError("bench gpu needs CuPy or PyTorch to take times\n  help: pip install cupy-cuda12x")
    library = next(iter(libraries.values()))
    clock: Clock = library.Clock(library.load())
    return clock


def steps_of(wish: Wish, group: str, case: str, modes: int | None = None) -> list[Step]:
    """What is measured on one case, dtype by dtype; without knowing its modes, as the set says."""
    modes = modes if modes is not None else 3 if group in (TENSORS, DATA_TENSORS) else 2
    contests = [CONTESTS[name] for name in wish.kernels if CONTESTS[name].modes == modes]
    return [Step(contest, width, case, DTYPES[dtype]) for dtype in wish.dtypes for contest in contests for width in contest.widths]


def count_steps(wish: Wish) -> int:
    """How often ``run`` will tell that something is done."""
    return len(wish.parts) + sum(len(steps_of(wish, group, case)) for group, makes in wish.sets.items() for case in makes)


def run(wish: Wish, title: str, tell: Tell) -> Report:
    """Measure everything; ``tell`` hears a line for each step that is done."""
    peers, gaps = find_libraries()
    clock = find_clock(peers)
    bandwidth = copy_bandwidth(clock, wish.copied)
    report = Report(_described(title, clock), _settings(wish), bandwidth, gaps, list(wish.unread))
    for group, makes in wish.sets.items():
        for name, make in makes.items():
            if not steps_of(wish, group, name):
                continue
            if wish.is_over():
                _leave_out(report, steps_of(wish, group, name), OVER, tell)
                continue
            for outcome in _on_case(wish, Case(name, group, make()), clock, peers, report, tell):
                report.outcomes.append(outcome)
                tell(told(outcome))
    _beside(wish, clock, report, tell)
    return report


def _leave_out(report: Report, steps: list[Step], why: str, tell: Tell) -> None:
    for step in steps:
        report.left_out.append(f"{step}: {why}")
        tell(f"{step}: {why}")


def _on_case(wish: Wish, case: Case, clock: Clock, peers: Peers, report: Report, tell: Tell) -> Iterator[Outcome]:
    """Every kernel on a case, in every dtype."""
    for dtype in TOLERANCE:
        steps = [step for step in steps_of(wish, case.group, case.name, case.tensor.ndim) if step.dtype == dtype]
        if not steps or wish.is_over():
            _leave_out(report, steps, OVER, tell)
            continue
        there = case.tensor.astype(dtype, copy=False).to_device()
        for step in steps:
            if wish.is_over():
                _leave_out(report, [step], OVER, tell)
                continue
            found: list[Outcome] = []
            given = (step, case, there, clock, peers, wish.seconds, report.bandwidth)
            failure = failure_of(lambda found=found, given=given: found.append(measured(*given)))  # type: ignore[misc]
            yield from found
            if failure is not None:  # perhaps there is no room for its operands; what was measured is not lost
                _leave_out(report, [step], f"failed: {failure}", tell)
            clock.let_go()


def measured(step: Step, case: Case, there: Any, clock: Clock, peers: Peers, seconds: float, bandwidth: float) -> Outcome:
    """One step: everybody whose result is right, timed in turn."""
    task = task_of(step.contest, step.width, case, step.dtype, there, clock)
    found = everybody(task, clock, peers)
    timed = race(clock, {name: entrant.run for name, entrant in found.entrants.items()}, seconds)
    described = (step.contest.name, step.width, case.name, case.group, there.shape, there.nnz, step.dtype)
    return Outcome(*described, timed, found.absent, task.bytes_moved / bandwidth, found.schedule)


def told(outcome: Outcome) -> str:
    """An outcome in a line."""
    if outcome.best is None:
        return f"{outcome.step}: nothing of ours ran"
    best, planned = (f"{gain:.2f}x" if gain is not None else "not compared" for gain in (outcome.best_gain, outcome.planned_gain))
    wrong = [name for name, why in outcome.absent.items() if why.startswith("WRONG")]
    return f"{outcome.step}: {best} by {outcome.best}, planned {planned}" + (f"; WRONG: {', '.join(wrong)}" if wrong else "")


def _beside(wish: Wish, clock: Clock, report: Report, tell: Tell) -> None:
    """The studies, and what calls cost."""
    for part in wish.parts:
        failure = OVER if wish.is_over() else failure_of(partial(_measure_part, part, wish, clock, report))
        if failure is not None:
            report.left_out.append(f"{part}: {failure}")
        tell(part)


def _measure_part(part: str, wish: Wish, clock: Clock, report: Report) -> None:
    if part == CALLS:
        report.calls.extend(calls(clock))
    else:
        report.findings.extend(findings(clock, wish.seconds, wish.part))
        report.studies.append(balance(clock, wish.seconds, wish.part))


def _described(title: str, clock: Clock) -> dict[str, Any]:
    versions = {"CuPy": version_of("cupy-cuda12x") or version_of("cupy-cuda13x") or version_of("cupy"), "PyTorch": version_of("torch")}
    known = {name: found for name, found in versions.items() if found is not None}
    return {**machine(), "gpu": title, "nvrtc": ".".join(map(str, nvrtc.version())), "clock": clock.name, "peers": known}


def _settings(wish: Wish) -> dict[str, Any]:
    return {"seconds": wish.seconds, "dtypes": list(wish.dtypes)}
