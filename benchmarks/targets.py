"""What we want to reach, and whether a report says that we did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchmarks.contests import CONTESTS, UNNAMED
from benchmarks.keeping import said_of
from benchmarks.outcome import Report, mean
from benchmarks.report import duration, times
from benchmarks.task import HAND, OURS, PLAIN, SAME

LIBRARIES = ("SciPy", "torch", "MKL")
NUMBA, SCIPY = ("Numba",), ("SciPy",)
CHAINS = ("low_rank", "powers", "gcn", "gcn_wide", "two_matrices", "scaled", "more_powers", "scaled_twice")  # in the best order by hand
ENOUGH = 1e-3  # seconds of work from which a random statement should gain by a plan
ROUNDING = 0.005  # of a ratio as it is printed


@dataclass(frozen=True)
class Target:
    """How many times our time the quickest of some peers should take, in the geometric mean over operands.

    ``wanted`` is by number of threads: the entry with the most threads that there are counts.
    """

    kernel: str
    peers: tuple[str, ...]
    wanted: Mapping[int, float]
    way: str = OURS

    def at(self, threads: int) -> float:
        """What is wanted on so many threads."""
        return self.wanted[max(count for count in self.wanted if count <= threads)]

    @property
    def named(self) -> str:
        """The target in words."""
        whose = "" if self.way == OURS else f" {self.way.removeprefix(f'{OURS}, ')},"
        against = self.peers[0] if len(self.peers) == 1 else f"the best of {', '.join(self.peers)}"
        return f"{CONTESTS[self.kernel].title},{whose} against {against}"


@dataclass(frozen=True)
class Verdict:
    """What came of a target: what was found, and whether it is enough; ``None`` where nothing was measured."""

    what: str
    threads: int | None
    wanted: str
    found: str
    worst: str
    met: bool | None

    @property
    def said(self) -> str:
        """Met, missed, or not measured."""
        return said_of(self.met)


TARGETS = (
    Target("spmv", LIBRARIES, {1: 1.0, 2: 1.1}),
    Target("spmm", LIBRARIES, {1: 1.4, 2: 1.6, 16: 4.0}),
    Target("sddmm", NUMBA, {1: 1.3}),
    Target("mttkrp", NUMBA, {1: 1.7}),
    Target("ttm", NUMBA, {1: 1.7}),
    Target("spgemm", ("torch", "MKL"), {1: 1.0, 16: 4.0}),
    Target("add", SCIPY, {1: 1.0, 16: 4.0}),
    Target("masked", SCIPY, {1: 2.0}),
    *(Target(kernel, SCIPY, {1: 0.5}) for kernel in CHAINS),
    *(Target(kernel, (HAND,), {1: 0.9, 16: 0.85}) for kernel in ("spmv", "spmm", "sddmm", "mttkrp", "ttv", "ttm", "inner")),
    *(Target(kernel, (HAND,), {1: 1 / 1.2}) for kernel in UNNAMED),
    *(Target(kernel, (SAME,), {1: 1 / 1.05}, PLAIN) for kernel in ("spmv", "spmm", "mttkrp")),
)
LEAST_GAIN, MEAN_GAIN = 0.8, 1.2  # of a plan over none, for random statements


def verdicts(report: Report) -> list[Verdict]:
    """Every target, and what the report says about it."""
    return [*_of_kernels(report), *_of_trials(report), *_of_doors(report)]


def _of_kernels(report: Report) -> Iterator[Verdict]:
    for target in TARGETS:
        for threads in [1] if target.way == PLAIN else report.thread_counts or [1]:
            gains = [o.gain(target.peers, target.way) for o in report.of(target.kernel, threads=threads)]
            found = mean(gains)
            worst = min((gain for gain in gains if gain is not None), default=None)
            yield _verdict(target.named, threads, target.at(threads), found, worst)


def _verdict(what: str, threads: int, wanted: float, found: float | None, worst: float | None) -> Verdict:
    met = None if found is None else found >= wanted - ROUNDING
    return Verdict(what, threads, f"≥ {times(wanted)}", _told(found), _told(worst), met)


def _of_trials(report: Report) -> Iterator[Verdict]:
    gains = [trial.gain for trial in report.trials]
    enough = [trial.gain for trial in report.trials if trial.plain >= ENOUGH]
    threads = max((trial.threads for trial in report.trials), default=2)
    least = min(gains, default=None)
    yield _verdict(f"{len(gains)} random statements, planned against plain: the least", threads, LEAST_GAIN, least, least)
    what = f"{len(enough)} random statements with a millisecond of work, planned against plain: the mean"
    yield _verdict(what, threads, MEAN_GAIN, mean(enough), min(enough, default=None))


def _of_doors(report: Report) -> Iterator[Verdict]:
    for door in report.doors:
        if door.target is not None:
            yield Verdict(door.name, None, f"≤ {duration(door.target)}", duration(door.seconds), "", door.seconds <= door.target)


def _told(ratio: float | None) -> str:
    return "" if ratio is None else times(ratio)
