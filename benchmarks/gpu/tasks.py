"""The kernels on a GPU: operands on the device, the true answer, and everybody who computes it.

Dense factors are outer products, B(j,k) = b(j) u(k), and are made on the device. So the true answer needs one sum over the entries in
double precision, whatever the width: C(i,k) = (A b)(i) u(k). Every number of a result is compared by itself, and may be off by a share of
the sum of its terms without their signs: where terms cancel, as they do in real data, no more can be asked of anybody. Of a wide result the
first column, the last and a weighted sum of all are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.entrants import Entrant
from benchmarks.gpu.clock import Clock
from benchmarks.gpu.schedules import PLANNED, schedules_of
from benchmarks.kernels import entries_of
from benchmarks.peers.registry import failure_of
from benchmarks.stand_ins import numbers
from benchmarks.task import chosen_schedule, stored_bytes
from sparseloom.calls.evaluation import program
from sparseloom.calls.kernel import Kernel
from sparseloom.core.errors import SparseloomError
from sparseloom.core.once import cached_property
from sparseloom.tensor.tensor import Tensor

TARGET = "cuda"
TOLERANCE = {"float32": 1e-3, "float64": 1e-9}  # of each number of the answer, or what it could be without signs
TINY = 256  # smallest numbers that a sum may leave out
WRONG = "WRONG"
Array = NDArray[Any]
Peers = Mapping[str, Any]


@dataclass(frozen=True)
class Contest:
    """A kernel: its statement, the formats of its sparse operand and result, and on tensors of how many modes it runs."""

    name: str
    title: str
    statement: str
    formats: Mapping[str, str]
    modes: int
    widths: tuple[int, ...] = (0,)

    def named(self, width: int) -> str:
        """The title with a width."""
        return f"{self.title}, {width} columns" if width else self.title


CONTESTS = {
    contest.name: contest
    for contest in (
        Contest("spmv", "SpMV", "y(i) = A(i,j) * x(j)", {"A": "csr"}, 2),
        Contest("spmm", "SpMM", "C(i,k) = A(i,j) * B(j,k)", {"A": "csr"}, 2, (32, 128)),
        Contest("sddmm", "SDDMM", "Y(i,j) = S(i,j) * C(i,k) * D(j,k)", {"S": "csr", "Y": "csr"}, 2, (32, 128)),
        Contest("mttkrp", "MTTKRP", "A(i,j) = B(i,k,l) * C(k,j) * D(l,j)", {"B": "csf"}, 3, (32,)),
    )
}


@dataclass(frozen=True)
class Case:
    """A matrix or tensor in double precision, in main memory, and sums over its entries, each worked out once."""

    name: str
    group: str
    tensor: Tensor

    def along(self, mode: int) -> Array:
        """A number for every coordinate of a mode."""
        return numbers(f"along {mode}", self.tensor.shape[mode])

    @cached_property
    def sums(self) -> Array:
        """Entries times the numbers along all modes but the first, added up for every coordinate of the first."""
        return self._added(entries_of(self.tensor)[1])

    @cached_property
    def sizes(self) -> Array:
        """The same without signs: how large a sum could be."""
        return self._added(np.abs(entries_of(self.tensor)[1]))

    def _added(self, vals: Array) -> Array:
        coordinates, terms = entries_of(self.tensor)[0], vals.copy()
        for mode in range(1, self.tensor.ndim):
            terms *= self.along(mode)[coordinates[mode]]
        return np.bincount(coordinates[0], terms, self.tensor.shape[0])

    @cached_property
    def scaled(self) -> Array:
        """Every entry of a matrix times the numbers of its row and column."""
        (rows, columns), vals = entries_of(self.tensor)
        return np.asarray(vals * self.along(0)[rows] * self.along(1)[columns])


@dataclass(frozen=True)
class Answer:
    """The true numbers, and how large each could be if nothing cancelled."""

    numbers: Array
    sizes: Array


@dataclass(frozen=True)
class Task:
    """A statement on operands on the device. ``look`` brings a result to main memory as it is compared with ``expected``."""

    contest: Contest
    width: int
    dtype: str
    operands: tuple[Any, ...]
    out: Any  # an array that everybody fills; None if values are made every time
    expected: Callable[[], Answer]
    look: Callable[[Any], Array]
    bytes_moved: int


def task_of(contest: Contest, width: int, case: Case, dtype: str, there: Tensor, clock: Clock) -> Task:
    """A kernel on a case; ``there`` is its tensor on the device, in this dtype."""
    return {"spmv": _spmv, "spmm": _spmm, "sddmm": _sddmm, "mttkrp": _mttkrp}[contest.name](contest, width, case, dtype, there, clock)


def _spmv(contest: Contest, width: int, case: Case, dtype: str, there: Tensor, clock: Clock) -> Task:
    rows, columns = there.shape
    x, y = clock.array(case.along(1).astype(dtype)), clock.empty(rows, dtype=dtype)
    moved = stored_bytes(there) + (rows + columns) * there.dtype.itemsize
    return Task(contest, width, dtype, (there, x), y, lambda: Answer(case.sums, case.sizes), clock.seen, moved)


def _spmm(contest: Contest, width: int, case: Case, dtype: str, there: Tensor, clock: Clock) -> Task:
    rows, columns = there.shape
    across, onto = numbers("across", width), _onto(width)
    B, C = _factor(clock, case, 1, across, dtype), clock.empty(rows, width, dtype=dtype)
    moved = stored_bytes(there) + (rows + columns) * width * there.dtype.itemsize
    return Task(contest, width, dtype, (there, B), C, lambda: _outer(case, across @ onto), lambda a: clock.seen(a, onto), moved)


def _sddmm(contest: Contest, width: int, case: Case, dtype: str, there: Tensor, clock: Clock) -> Task:
    left, right = numbers("across", width), numbers("too", width)
    factors = _factor(clock, case, 0, left, dtype), _factor(clock, case, 1, right, dtype)
    moved = stored_bytes(there) + (sum(there.shape) * width + there.nnz) * there.dtype.itemsize
    return Task(contest, width, dtype, (there, *factors), None, lambda: _sampled(case, left @ right), clock.seen, moved)


def _mttkrp(contest: Contest, width: int, case: Case, dtype: str, there: Tensor, clock: Clock) -> Task:
    left, right, onto = numbers("across", width), numbers("too", width), _onto(width)
    factors = _factor(clock, case, 1, left, dtype), _factor(clock, case, 2, right, dtype)
    A = clock.empty(there.shape[0], width, dtype=dtype)
    moved = stored_bytes(there) + sum(there.shape) * width * there.dtype.itemsize
    expected = (left * right) @ onto
    return Task(contest, width, dtype, (there, *factors), A, lambda: _outer(case, expected), lambda a: clock.seen(a, onto), moved)


def _outer(case: Case, across: Array) -> Answer:
    return Answer(np.outer(case.sums, across), np.outer(case.sizes, across))


def _sampled(case: Case, across: float) -> Answer:
    return Answer(case.scaled * across, np.abs(case.scaled) * across)


def _factor(clock: Clock, case: Case, mode: int, across: Array, dtype: str) -> Any:
    return clock.outer(case.along(mode).astype(dtype), across.astype(dtype))


def _onto(width: int) -> Array:
    """What a row of results is multiplied with: it gives the first, the last, and a weighted sum of all."""
    return np.stack([np.eye(width)[0], np.eye(width)[-1], numbers("weights", width)], axis=1)


@dataclass
class Field:
    """Who computes a task rightly, and why others do not: one word comes first, ``WRONG`` if a result is wrong."""

    entrants: dict[str, Entrant] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    schedule: str = ""  # what our planner chose


def everybody(task: Task, clock: Clock, peers: Peers) -> Field:
    """All who can do a task, after one run each whose result was compared."""
    found, expected = Field(), task.expected()
    for name, schedule in schedules_of(task.contest.name, task.width).items():
        _enter_ours(found, task, clock, expected, name, schedule)
    for name, prepare in _theirs(task, peers):
        _enter_theirs(found, task, expected, name, prepare)
    return found


def _enter_ours(found: Field, task: Task, clock: Clock, expected: Answer, name: str, schedule: str | None) -> None:
    """Bind one of our schedules, run it, and compare."""
    try:
        kernel = program(task.contest.statement, task.contest.formats, schedule, target=TARGET)
        entrant = bound(kernel, task, clock)
        fault = fault_of(task.look(entrant.answer()), expected, task.dtype)
    except SparseloomError as refusal:
        found.absent[name] = f"refused: {str(refusal).splitlines()[0].rstrip('.')}"
        return
    if name == PLANNED:
        found.schedule = chosen_schedule(kernel)
    _take(found, name, entrant, fault)


def bound(kernel: Kernel, task: Task, clock: Clock) -> Entrant:
    """A kernel bound to the operands of a task; what it fills is spoilt before it is looked at."""
    if task.out is None:
        run = kernel.bind(*task.operands)
        return Entrant(run.start, lambda: clock.values(run()))
    run = kernel.bind(*task.operands, out=task.out)

    def answer() -> Any:
        clock.spoil(task.out)
        run.start()
        return task.out

    return Entrant(run.start, answer)


def _theirs(task: Task, peers: Peers) -> Iterable[tuple[str, Callable[[], Entrant]]]:
    given = task.operands if task.out is None else (*task.operands, task.out)
    for peer in peers.values():
        if hasattr(peer, task.contest.name):
            yield from getattr(peer, task.contest.name)(*given).items()


def _enter_theirs(found: Field, task: Task, expected: Answer, name: str, prepare: Callable[[], Entrant]) -> None:
    made: list[tuple[Entrant, str]] = []

    def step() -> None:
        entrant = prepare()
        made.append((entrant, fault_of(task.look(entrant.answer()), expected, task.dtype)))

    failure = failure_of(step)
    if failure is not None:
        found.absent[name] = f"failed: {failure}"
    else:
        _take(found, name, *made[0])


def _take(found: Field, name: str, entrant: Entrant, fault: str) -> None:
    """Let somebody take part whose result is right."""
    if fault:
        found.absent[name] = fault
    else:
        found.entrants[name] = entrant


def fault_of(found: Array, expected: Answer, dtype: str) -> str:
    """What is wrong with a result, if anything is: every number counts by itself. Those that are next to nothing may be nothing."""
    if prod(found.shape) != prod(expected.numbers.shape):
        return f"{WRONG}: {prod(found.shape):,} numbers instead of {prod(expected.numbers.shape):,}"
    off = np.abs(found.reshape(expected.numbers.shape).astype(np.float64) - expected.numbers)
    wrong = ~(off <= TOLERANCE[dtype] * expected.sizes + TINY * float(np.finfo(dtype).tiny))  # also where it is no number
    if not wrong.any():
        return ""
    return f"{WRONG}: {int(wrong.sum()):,} of {wrong.size:,} numbers, one of them by {float(off[wrong].max()):.1e}"
