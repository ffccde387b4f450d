"""The studies of the paper's sections 8.3 to 8.5 on a GPU: schedules of SpMV on operands that favour one or the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.gpu.clock import Clock, race
from benchmarks.gpu.operands import SIX, study_even, study_skew, study_wide
from benchmarks.gpu.outcome import Finding
from benchmarks.gpu.schedules import PAPER, PLAIN_POSITIONS, PLANNED, THREAD, WARP, schedules_of
from benchmarks.gpu.tasks import CONTESTS, Case, everybody, task_of
from benchmarks.outcome import Line, Study
from benchmarks.report import times
from sparseloom.tensor.tensor import Tensor

DTYPE = "float32"
BASES = (1.0, 1.0002, 1.0005, 1.001, 1.0015, 1.002, 1.00256, 1.004)
CROSSING = 1.00256
STAGED = "tiles of 2048, 8 lanes per row"
SHOWN = (WARP, PAPER, STAGED, PLANNED)


def findings(clock: Clock, seconds: float, part: int) -> Iterator[Finding]:
    """Studies that end in one number; ``part`` makes operands smaller."""
    even = timed("even", study_even(part), clock, seconds)
    what = "8.3: the CPU's schedule (a thread per row) against a warp per row, 4M entries"
    yield _finding(what, "6.9x slower", even, THREAD, WARP, "slower")
    what = "8.3: positions with precompute and unroll against the same without, 4M entries"
    yield _finding(what, "1.36x faster", even, PLAIN_POSITIONS, PAPER, "faster")
    wide = timed("wide", study_wide(part), clock, seconds)
    yield _finding("8.5: positions against a warp per row, 100 rows of 10,000 entries", "4.5x faster", wide, WARP, PAPER, "faster")
    yield _finding("8.5: the planner's choice against a warp per row, the same", "not in the paper", wide, WARP, PLANNED, "faster")


def _finding(what: str, paper: str, seconds: Mapping[str, float], slow: str, quick: str, word: str) -> Finding:
    if slow not in seconds or quick not in seconds:
        return Finding(what, paper, "not measured", dict(seconds))
    return Finding(what, paper, f"{times(seconds[slow] / seconds[quick])} {word}", {name: seconds[name] for name in (slow, quick)})


def balance(clock: Clock, seconds: float, part: int) -> Study:
    """Rows against positions as rows get more skewed, and where they cross."""
    bases = tuple(base**part if part < 100 else 1 + 0.05 * number for number, base in enumerate(BASES))
    found = [timed("skew", study_skew(base, part), clock, seconds) for base in bases]
    lines = tuple(Line(name, tuple(one[name] for one in found)) for name in SHOWN if all(name in one for one in found))
    return Study("gpu_balance", "8.4: load balance, rows and positions in SpMV", _note(bases, lines, part), "base", bases, 0, lines)


def _note(bases: Sequence[float], lines: Sequence[Line], part: int) -> str:
    by_name = {line.name: line.seconds for line in lines}
    about = f"{DTYPE}; lengths of rows grow as powers of the base, and rows are shuffled."
    paper = f"{about} In the paper a warp per row and positions cross just before {CROSSING:g}."
    if part > 1:
        paper += f" This matrix is smaller, so bases are larger: {CROSSING:g} stands for {CROSSING**part:.4g}."
    told = [f"{name}: {crossing(bases, by_name[WARP], by_name[name])}." for name in SHOWN[1:] if name in by_name and WARP in by_name]
    return " ".join([paper, *(["Here a warp per row is overtaken by", *told] if told else [])])


def crossing(bases: Sequence[float], rows: Sequence[float], positions: Sequence[float]) -> str:
    """Where one line falls below another for good, between two places."""
    below = [p < r for r, p in zip(rows, positions, strict=True)]
    if not below[-1]:
        return "nowhere"
    first = len(below) - next((k for k, is_below in enumerate(reversed(below)) if not is_below), len(below))
    if first == 0:
        return "everywhere"
    before, after = (rows[k] - positions[k] for k in (first - 1, first))
    share = -before / (after - before) if after > before else 1.0
    return f"at about {bases[first - 1] + share * (bases[first] - bases[first - 1]):.4f}"


def timed(name: str, matrix: Tensor, clock: Clock, seconds: float) -> dict[str, float]:
    """The seconds of our schedules of SpMV on a matrix; those that are refused or wrong have none."""
    case, there = Case(name, SIX, matrix), matrix.astype(DTYPE).to_device()
    field = everybody(task_of(CONTESTS["spmv"], 0, case, DTYPE, there, clock), clock, {})
    ours = {one: field.entrants[one].run for one in schedules_of("spmv", 0) if one in field.entrants}
    return race(clock, ours, seconds)
