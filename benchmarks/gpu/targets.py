"""What we want to reach on a GPU, and whether a report says that we did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.gpu.operands import AFTERWARDS, SIX, TENSORS
from benchmarks.gpu.outcome import Outcome, Report
from benchmarks.gpu.tasks import CONTESTS
from benchmarks.keeping import said_of
from benchmarks.outcome import mean
from benchmarks.report import duration, times

ROUNDING = 0.005  # of a ratio as it is printed
BEST, PLANNED = "best schedule", "planned"


@dataclass(frozen=True)
class Target:
    """How many times our time the rival should take: in the geometric mean, and at least everywhere. ``None`` asks for nothing."""

    kernel: str
    width: int
    dtype: str
    way: str
    mean: float
    least: float | None = None


@dataclass(frozen=True)
class Verdict:
    """What came of a target; ``met`` is ``None`` where nothing was measured."""

    what: str
    dtype: str
    group: str
    wanted: str
    found: str
    worst: str
    met: bool | None

    @property
    def said(self) -> str:
        """Met, missed, or not measured."""
        return said_of(self.met)


def _both(kernel: str, width: int, best: dict[str, float], planned: dict[str, float], least: tuple[float, float]) -> list[Target]:
    made = [Target(kernel, width, dtype, BEST, wanted, least[0]) for dtype, wanted in best.items()]
    return made + [Target(kernel, width, dtype, PLANNED, wanted, least[1]) for dtype, wanted in planned.items()]


TARGETS = (
    *_both("spmv", 0, {"float32": 1.10, "float64": 1.06}, {"float32": 1.05, "float64": 1.02}, (0.93, 0.85)),
    *_both("spmm", 32, {"float32": 1.45, "float64": 1.45}, {"float32": 1.35, "float64": 1.35}, (0.93, 0.9)),
    *_both("spmm", 128, {"float32": 1.25, "float64": 1.1}, {"float32": 1.15, "float64": 1.05}, (0.93, 0.85)),
    *(Target("mttkrp", 32, dtype, BEST, 2.3, 0.95) for dtype in ("float32", "float64")),
    *(Target("sddmm", width, dtype, BEST, 1.2) for width in (32, 128) for dtype in ("float32", "float64")),
)


def verdicts(report: Report) -> list[Verdict]:
    """Every target on the operands it is for, on those chosen afterwards if they were measured, and every target of calls."""
    return [*_of_kernels(report), *_of_calls(report)]


def _of_kernels(report: Report) -> Iterator[Verdict]:
    for target in TARGETS:
        for group in (TENSORS,) if target.kernel == "mttkrp" else (SIX, AFTERWARDS):
            found = report.of(target.kernel, target.width, target.dtype, group)
            if found or group != AFTERWARDS:
                yield _verdict(target, group, found)


def gains(outcomes: list[Outcome], way: str) -> list[float]:
    """The rival's time over ours, wherever both ran."""
    found = [o.best_gain if way == BEST else o.planned_gain for o in outcomes]
    return [gain for gain in found if gain is not None]


def _verdict(target: Target, group: str, outcomes: list[Outcome]) -> Verdict:
    found = gains(outcomes, target.way)
    average, worst = mean(found), min(found, default=None)
    met = None if average is None or worst is None else _is_met(target, average, worst)
    wanted = f"≥ {times(target.mean)}" + (f", never below {times(target.least)}" if target.least else "")
    what = f"{CONTESTS[target.kernel].named(target.width)}, {target.way}"
    return Verdict(what, target.dtype, group, wanted, _told(average), _told(worst), met)


def _is_met(target: Target, average: float, worst: float) -> bool:
    return average >= target.mean - ROUNDING and (target.least is None or worst >= target.least - ROUNDING)


def _of_calls(report: Report) -> Iterator[Verdict]:
    for call in report.calls:
        if call.target is not None:
            yield Verdict(call.name, "", "", f"≤ {duration(call.target)}", duration(call.seconds), "", call.seconds <= call.target)


def _told(ratio: float | None) -> str:
    return "" if ratio is None else times(ratio)
