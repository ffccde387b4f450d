"""Two studies of the paper: what tiling does for locality, and what cutting entries instead of rows does for load balance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from benchmarks.outcome import Line, Study
from benchmarks.stand_ins import numbers, skewed, uniform
from benchmarks.threads import use_threads
from benchmarks.timing import OWN, WALL, race
from sparseloom.calls.evaluation import program
from sparseloom.core.errors import CompilerBug
from sparseloom.tensor.tensor import Tensor

ROWS = "split(i,i0,i1,64) parallelize(i0,CPUThread,NoRaces)"
STATIC = "parallelize(i,CPUThread,NoRaces)"
WEIGHTED = "divide(i,i0,i1,64,A(i,j)) parallelize(i0,CPUThread,NoRaces)"
POSITIONS = "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,65536) parallelize(p0,CPUThread,Atomics)"
CARRIED = "fuse(i,j,f) pos(f,p,A(i,j)) divide(p,p0,p1,64) parallelize(p0,CPUThread,Temporary)"
TILED = (
    "split(i,i0,i1,64) pos(j,p,A(i,j)) split(p,p0,p1,8) reorder(i0,i1,p0,k,p1) "
    "parallelize(i0,CPUThread,NoRaces) parallelize(k,CPUVector,IgnoreRaces)"
)
UNTILED = f"{ROWS} parallelize(k,CPUVector,IgnoreRaces)"
SPMV, SPMM = "y(i) = A(i,j) * x(j)", "C(i,k) = A(i,j) * B(j,k)"
NOT_SCHEDULED: dict[str, str | None] = {"planned": None}
WIDTH = 32
LENGTHS = (10.0, 30.0, 100.0, 300.0)
BASES = (1.0, 1.0002, 1.0005, 1.001, 1.002)


def studies(threads: int, seconds: float, scale: float) -> Iterator[Study]:
    """Both studies on so many threads; ``scale`` is how large the operands are, 1 for the usual size."""
    for study in (_locality, _balance):
        use_threads(threads)
        yield study(threads, seconds, scale)


def _locality(threads: int, seconds: float, scale: float) -> Study:
    rows, columns = max(64, int(10_000 * scale)), max(512, int(100_000 * scale))
    schedules = {"untiled": UNTILED, "tiled": TILED, **NOT_SCHEDULED}

    def make(length: float) -> Tensor:
        return uniform(rows, columns, int(rows * length))

    note = f"SpMM, {rows:,} rows, {columns:,} columns, {WIDTH} columns in the dense operand. Tiled as in the paper: 64 rows, 8 entries."
    lines = _lines(SPMM, schedules, make, LENGTHS, WIDTH, threads, seconds)
    return Study("locality", "Locality: tiled and untiled SpMM", note, "entries in a row", LENGTHS, threads, lines)


def _balance(threads: int, seconds: float, scale: float) -> Study:
    rows, entries = max(64, int(20_000 * scale)), max(1_000, int(2_000_000 * scale))
    bases = tuple(base ** (1 / scale) for base in BASES)
    by_position = {"positions, atomics": POSITIONS, "positions, carries": CARRIED}
    schedules = {"rows": STATIC, "rows of equal entries": WEIGHTED, **by_position, **NOT_SCHEDULED}

    def make(base: float) -> Tensor:
        return skewed(rows, entries, base)

    note = f"SpMV, {rows:,} rows, about {entries:,} entries; the lengths of rows grow as powers of the base, and rows are shuffled."
    lines = _lines(SPMV, schedules, make, bases, 0, threads, seconds)
    return Study("balance", "Load balance: rows and positions in SpMV", note, "base of the lengths of rows", bases, threads, lines)


def _lines(
    statement: str, schedules: dict[str, str | None], make: Callable[[float], Tensor],
    places: tuple[float, ...], width: int, threads: int, seconds: float,
) -> tuple[Line, ...]:  # fmt: skip
    """The seconds of every schedule at every place."""
    found: dict[str, list[float]] = {name: [] for name in schedules}
    for place in places:
        A = make(place)
        shape = (A.shape[1], width) if width else (A.shape[1],)
        runs = _checked(statement, schedules, A, numbers("B", *shape))
        timed = race(runs, seconds, OWN if threads == 1 else WALL)
        for name, line in found.items():
            line.append(timed.seconds(name))
    return tuple(Line(name, tuple(line)) for name, line in found.items())


def _checked(statement: str, schedules: dict[str, str | None], A: Tensor, B: np.ndarray) -> dict[str, Callable[[], object]]:
    """Bound kernels that give what SciPy gives."""
    expected = A.to_scipy() @ B
    runs: dict[str, Callable[[], object]] = {}
    for name, schedule in schedules.items():
        run = program(statement, {"A": "csr"}, schedule).bind(A, B)
        if not np.allclose(run().to_numpy(), expected):
            raise CompilerBug(f"{statement} under {schedule}", "a schedule should not change the result")
        runs[name] = partial(run.start)
    return runs
