"""A whole run on the CPU: who is there, how fast memory is, all kernels, the studies, random statements and doors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any

from benchmarks.doors import doors
from benchmarks.exploring import measure as exploring
from benchmarks.hand import MEMORY_COUNT, read_bandwidth
from benchmarks.machine import machine, version_of
from benchmarks.measure import LeftOut, Wish, measured, steps
from benchmarks.outcome import Door, Report
from benchmarks.overheads import measure as overheads
from benchmarks.peers.registry import find_peers
from benchmarks.planning import measure as planning
from benchmarks.random_statements import trials
from benchmarks.studies import studies
from benchmarks.threads import use_threads, wait_quietly

PACKAGES = {"SciPy": "scipy", "torch": "torch", "MKL": "mkl", "Numba": "numba", "GraphBLAS": "python-graphblas",
            "PyData/Sparse": "sparse", "finch-tensor": "finch-tensor"}  # fmt: skip
STUDIES, RANDOM, DOORS = "studies", "random", "doors"
PARTS = (STUDIES, RANDOM, DOORS)
PLANNED = 30  # times
EDITED = 9  # edits of the explorer
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Extent:
    """How much is done beside the kernels: which parts, how many random statements, and how large operands are."""

    parts: tuple[str, ...] = PARTS
    statements: int = 200
    scale: float = 1.0
    processes: int = 5  # fresh ones, to see what importing and compiling take
    memory: int = MEMORY_COUNT


def count_steps(wish: Wish, extent: Extent) -> int:
    """How often ``run`` will tell that something is done."""
    beside = {STUDIES: 2, RANDOM: extent.statements, DOORS: 1}
    return len(steps(wish)) + sum(beside[part] for part in extent.parts)


def run(wish: Wish, extent: Extent, tell: Tell) -> Report:
    """Measure everything; ``tell`` hears a line for each step that is done."""
    wait_quietly()
    peers, gaps = find_peers()
    most = max(wish.threads)
    bandwidth = {count: read_bandwidth(extent.memory, 10, count) for count in wish.threads}
    report = Report(_described(peers), _settings(wish), {str(count): speed for count, speed in bandwidth.items()}, gaps, list(wish.unread))
    for found in measured(wish, peers, bandwidth):
        match found:
            case LeftOut(step, why):
                report.left_out.append(f"{step}: {why}")
                tell(f"{step}: {why}")
            case outcomes:
                report.outcomes.extend(outcomes)
                last = outcomes[-1]
                tell(f"{last.kernel} {last.width or ''} on {last.case}, {last.dtype}: {last.of_best:.2f} of the best, which is {last.best}")
    _beside(wish, extent, report, most, tell)
    return report


def _beside(wish: Wish, extent: Extent, report: Report, threads: int, tell: Tell) -> None:
    """The parts beside the kernels."""
    for part in extent.parts:
        if wish.is_over:
            report.left_out.append(f"{part}: the time is over")
            continue
        match part:
            case "studies":
                for study in studies(threads, wish.seconds, extent.scale):
                    report.studies.append(study)
                    tell(study.title)
            case "random":
                _random(wish, extent, report, threads, tell)
            case _:
                use_threads(1)
                report.doors.extend(doors(wish.seconds))
                sizes = int(extent.scale * 10**5), int(extent.scale * 10**6)
                waits = chain(overheads(extent.processes), planning(PLANNED, *sizes), exploring(EDITED))
                report.doors.extend(Door(wait.what, wait.seconds, None, wait.target) for wait in waits)
                tell("doors")


def _random(wish: Wish, extent: Extent, report: Report, threads: int, tell: Tell) -> None:
    for trial in trials(extent.statements, threads, min(wish.seconds, 0.1), extent.scale):
        report.trials.append(trial)
        tell(f"{trial.statement}: planned is {trial.gain:.2f} times as fast as plain")
        if wish.is_over:
            report.left_out.append(f"random statements after {len(report.trials)} of {extent.statements}: the time is over")
            return


def _described(peers: dict[str, Any]) -> dict[str, Any]:
    return {**machine(), "peers": {name: version_of(PACKAGES[name]) or "of unknown version" for name in peers}}


def _settings(wish: Wish) -> dict[str, Any]:
    return {"seconds": wish.seconds, "threads": list(wish.threads), "dtypes": list(wish.dtypes)}
