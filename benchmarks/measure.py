"""Run what was asked for: one kernel after the other, on every operand, in every dtype, on each number of threads."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from benchmarks import stand_ins
from benchmarks.contests import CONTESTS, Contest, Sets
from benchmarks.outcome import Outcome
from benchmarks.peers.registry import Peers
from benchmarks.stand_ins import Make
from benchmarks.task import OURS, PLAIN, TOLERANCE, Field, Task, everybody, faults
from benchmarks.threads import use_threads
from benchmarks.timing import OWN, WALL, race
from sparseloom.core.errors import CompilerBug, SparseloomError
from sparseloom.core.system import usable_cores
from sparseloom.tensor.tensor import Tensor

DTYPES = {"f64": "float64", "f32": "float32"}
SET_OF_ORDER = {2: "matrices", 3: "tensors", 4: "tensors of four"}


@dataclass(frozen=True)
class Wish:
    """What is to be measured, and for how long: ``seconds`` for each kernel on each operand, ``deadline`` for all of them."""

    sets: Sets
    kernels: tuple[str, ...]
    threads: tuple[int, ...]
    dtypes: tuple[str, ...]
    seconds: float
    deadline: float | None = None
    unread: tuple[str, ...] = ()  # files that are not measured, and why
    began: float = field(default_factory=time.perf_counter)

    @property
    def is_over(self) -> bool:
        """Whether the time for all is used up."""
        return self.deadline is not None and time.perf_counter() - self.began > self.deadline


@dataclass(frozen=True)
class Step:
    """One kernel on one operand in one dtype: it is measured on each number of threads."""

    contest: Contest
    width: int
    case: str
    dtype: str

    def __str__(self) -> str:
        return f"{self.contest.named(self.width)} on {self.case}, {self.dtype}"


@dataclass(frozen=True)
class LeftOut:
    """A step that was not measured, and why."""

    step: Step
    why: str


def steps(wish: Wish) -> list[Step]:
    """Everything that will be measured, in order."""
    chosen = [CONTESTS[name] for name in wish.kernels]
    return [
        Step(contest, width, case, DTYPES[dtype])
        for contest in chosen
        for width in contest.widths
        for case in wish.sets[contest.operands]
        for dtype in wish.dtypes
    ]


def measured(wish: Wish, peers: Peers, bandwidth: dict[int, float]) -> Iterator[list[Outcome] | LeftOut]:
    """The outcomes of every step, in order: one for each number of threads."""
    made = _made_once(wish.sets)
    for step in steps(wish):
        if wish.is_over:
            yield LeftOut(step, "the time is over")
            continue
        tensor = made[step.contest.operands][step.case]()
        if not step.contest.fits(tensor, step.width):
            yield LeftOut(step, "its dense operands are too large")
            continue
        task = step.contest.task(tensor.astype(step.dtype, copy=False), step.width)
        task = replace(task, reference=cache(task.reference))
        try:
            yield [_outcome(wish, step, task, tensor, count, peers, bandwidth[count]) for count in wish.threads]
        except Refused as refusal:
            yield LeftOut(step, f"Sparseloom {refusal}")


class Refused(Exception):
    """Why we could not compute something."""


def _made_once(sets: Sets) -> Sets:
    return {name: {case: cache(make) for case, make in makes.items()} for name, makes in sets.items()}


def _outcome(wish: Wish, step: Step, task: Task, tensor: Tensor, threads: int, peers: Peers, bandwidth: float) -> Outcome:
    use_threads(threads, peers.values())
    field = _checked(step, everybody(task, peers))
    found = race({name: entrant.run for name, entrant in field.entrants.items()}, wish.seconds, OWN if threads == 1 else WALL)
    seconds = {name: found.seconds(name) for name in found.samples}
    ratios = {name: found.ratio(name, OURS) for name in found.samples}
    described = (step.contest.name, step.width, step.case, tensor.shape, tensor.nnz, step.dtype, threads)
    return Outcome(*described, seconds, ratios, dict(field.absent), field.bytes_moved / bandwidth, field.schedule)


def _checked(step: Step, field: Field) -> Field:
    """The field without those whose answers are wrong. It must not be us."""
    wrong = faults(field, TOLERANCE[step.dtype])
    for name in (OURS, PLAIN):
        if name in wrong:
            raise CompilerBug(str(step), f"the answer should be right, but {wrong[name]}")
    if OURS not in field.entrants:
        raise Refused(field.absent[OURS])
    right = {name: entrant for name, entrant in field.entrants.items() if name not in wrong}
    return replace(field, entrants=right, absent={**field.absent, **wrong})


def thread_counts() -> tuple[int, ...]:
    """One, two, and all that this process may use."""
    cores = usable_cores()
    return tuple(sorted({1, min(2, cores), cores}))


def sets_from(folder: Path, instead: Sets) -> tuple[Sets, tuple[str, ...]]:
    """The matrices and tensors of a folder, in place of the generated ones, and a line for each file that cannot be taken.

    Chains keep their operands. Products of a matrix with itself want square ones that are not too large.
    """
    loaded, unread = _loaded(folder)
    by_order = {named: {n: _known(t) for n, t in loaded.items() if t.ndim == order} for order, named in SET_OF_ORDER.items()}
    squares = {name: _known(tensor) for name, tensor in loaded.items() if _squares(tensor)}
    found = {**{name: makes for name, makes in by_order.items() if makes}, **({"squares": squares} if squares else {})}
    return {**instead, **found}, tuple(unread)


def _loaded(folder: Path) -> tuple[dict[str, Tensor], list[str]]:
    """What the files of a folder hold, and why some are not taken."""
    loaded, unread = {}, []
    files = stand_ins.files_in(folder, (*stand_ins.MATRIX_FILES, *stand_ins.TENSOR_FILES))
    for file in files:
        [(name, make)] = stand_ins.real(folder, [file]).items()
        try:
            tensor = make()
        except (SparseloomError, TypeError) as why:
            unread.append(f"{file}: {str(why).splitlines()[0]}")
            continue
        if tensor.ndim in SET_OF_ORDER:
            loaded[name] = tensor
        else:
            unread.append(f"{file}: it has {tensor.ndim} modes, and no kernel takes it")
    return loaded, unread


def _known(tensor: Tensor) -> Make:
    return lambda: tensor


def _squares(tensor: Tensor) -> bool:
    """Whether a matrix is square and takes at most a hundred million multiplications with itself."""
    if tensor.ndim != 2 or tensor.shape[0] != tensor.shape[1]:
        return False
    matrix = tensor.to_scipy().tocsr()
    lengths = matrix.indptr[1:] - matrix.indptr[:-1]
    return int(lengths[matrix.indices].sum()) <= 100_000_000
