"""What can be told of a schedule without running it: how often its loops run, which bytes it must move, how even its parts are."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.compiler import lower_plainly
from sparseloom.core.settings import settings
from sparseloom.core.trees import walk
from sparseloom.explorer.subject import Subject
from sparseloom.formats.pack import passed_counts, unpack
from sparseloom.formats.storage import Storage
from sparseloom.iteration.foralls import Path, paths, reads
from sparseloom.loops import nodes as ir
from sparseloom.lower.kernel import Lowered
from sparseloom.lower.trips import trips
from sparseloom.notation.nodes import Access, Forall, Stmt, Unit
from sparseloom.schedule.schedule import Schedule
from sparseloom.show.iteration_space import IterationSpace
from sparseloom.toolchain.teams import get_threads

_MULTIPROCESSORS = 132  # of an H200
_MOST_POINTS = 100_000
_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "maximum": max, "minimum": min,
}  # fmt: skip


def predicted(subject: Subject, schedule: Schedule) -> dict[str, Any]:
    """Trips, bytes and balance under a schedule; None where the data do not tell."""
    lowered = lower_plainly(schedule.concrete, settings.int32_limit, target=subject.target)
    trips = _trips(lowered, schedule.stmt, subject)
    return {"trips": trips, "bytes": moved_bytes(lowered, subject), "balance": balance(schedule.stmt, subject.operands)}


def cost(told: Mapping[str, Any], stmt: Stmt) -> float:
    """A rough time, in nanoseconds, to put schedules in order: one for each trip, shared among units, and the bytes at 10 GB/s."""
    trips, moved = float(told["trips"] or 0), float(told["bytes"])
    return 1 + trips / _units(stmt, told["balance"]) + moved / 10


def _units(stmt: Stmt, balance: float | None) -> float:
    """How many times as fast parallel units are. Those inside other loops are started again and again, and are not counted."""
    loop = next((path.loops[0] for path in paths(stmt) if path.loops), None)
    match loop.tag.unit if loop is not None else None:
        case Unit.CPUThread:
            return max(1.0, get_threads() * (balance or 1.0))
        case Unit.GPUBlock:
            return max(1.0, _MULTIPROCESSORS * (balance or 1.0))
    return 1.0


def _trips(lowered: Lowered, stmt: Stmt, subject: Subject) -> int | None:
    """How often the loop runs at most that runs most often."""
    stored = {name: passed_counts(storage) for name, storage in subject.operands.items() if not storage.format.is_dense}
    counts = [found.most for found in trips(stmt, lowered.remarks, subject.sizes, stored) if found is not None]
    return max(counts, default=None)


def moved_bytes(lowered: Lowered, subject: Subject) -> int:
    """What must be read and written at least: every operand, the result as far as it is known, and workspaces."""
    read = sum(_bytes(storage) for storage in subject.operands.values())
    return read + _result_bytes(lowered, subject) + sum(_allocated(lowered, subject.sizes))


def _bytes(storage: Storage) -> int:
    arrays = (array for data in storage.levels for array in data.arrays.values())
    return int(storage.values.nbytes + sum(array.nbytes for array in arrays))


def _result_bytes(lowered: Lowered, subject: Subject) -> int:
    """A dense result is written whole, and one with the structure of an operand has as many values; of others nothing is known."""
    tensor, lender = lowered.result.tensor, lowered.shared
    if tensor.format.is_dense:
        return prod(subject.special.problem.shape) * tensor.stored_dtype.itemsize
    return len(subject.operands[lender.name].values) * tensor.stored_dtype.itemsize if lender is not None else 0


def _allocated(lowered: Lowered, sizes: Mapping[str, int]) -> Iterator[int]:
    """The bytes of the workspaces whose sizes follow from extents."""
    params = zip(lowered.function.params, lowered.slots, strict=True)
    known = {param.target.name: sizes.get(slot.part, 0) for param, slot in params}
    for found in walk(lowered.function.body):
        if isinstance(found, ir.Allocate) and (size := _number(found.size, known)) is not None:
            yield size * found.array.dtype.itemsize


def _number(expr: ir.Expr, known: Mapping[str, int]) -> int | None:
    match expr:
        case ir.Literal(value):
            return int(value.real)
        case ir.Var(name):
            return known.get(name)
        case ir.Op(name, (left, right)) if name in _OPERATIONS:
            first, second = _number(left, known), _number(right, known)
            return None if first is None or second is None else _OPERATIONS[name](first, second)
    return None


def balance(stmt: Stmt, operands: Mapping[str, Storage]) -> float | None:
    """The mean load of the parallel units as a share of the largest one, if each takes the next iteration when it is free.

    It is told by how many entries of the operand with the most of them each iteration of the outermost parallel loop visits.
    """
    for path in paths(stmt):
        loop = next((found for found in path.loops if found.tag.unit in (Unit.CPUThread, Unit.GPUBlock)), None)
        work = None if loop is None else _work(stmt, path, loop, operands)
        if loop is not None and work is not None:
            units = get_threads() if loop.tag.unit is Unit.CPUThread else _MULTIPROCESSORS
            share = float(work.sum()) / units
            return share / max(share, float(work.max(initial=0)), 1e-9)
    return None


def _work(stmt: Stmt, path: Path, loop: Forall, operands: Mapping[str, Storage]) -> NDArray[np.int64] | None:
    """How many entries every iteration of a loop visits; None if nothing tells."""
    found = [a for a in reads(path.assign) if a.tensor.name in operands and len(set(a.indices)) == len(a.indices) > 0]
    access = max(found, key=lambda a: (not a.tensor.format.is_dense, len(operands[a.tensor.name].values)), default=None)
    if access is None or len(operands[access.tensor.name].values) > _MOST_POINTS:
        return None
    space = space_of(stmt, access, operands[access.tensor.name])
    return np.unique(space.value(loop.var), return_counts=True)[1]


def space_of(stmt: Stmt, access: Access, storage: Storage) -> IterationSpace:
    """The iteration space of the entries of an operand."""
    return IterationSpace(stmt, access, storage.shape, np.ascontiguousarray(unpack(storage)[0].T))
