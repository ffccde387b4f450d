"""Tensors in blocks: joined along a mode, and summed over pairs of modes, as Dask and opt_einsum ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparseloom.conversion import store
from sparseloom.core.errors import ShapeError, StorageError
from sparseloom.formats.named import dense, entries
from sparseloom.formats.pack import unpack
from sparseloom.formats.storage import Storage, sealed
from sparseloom.notation.nodes import Apply, Reduce
from sparseloom.tensor.interop.numpy import dense_storage, to_numpy
from sparseloom.tensor.operators import Statement, variables


def joined(parts: Sequence[Storage], axis: int) -> Storage:
    """Parts one after another along a mode: dense if all of them are, else stored as the first of them that is not."""
    if all(part.format.is_dense for part in parts):
        return dense_storage(np.ascontiguousarray(np.concatenate([to_numpy(part) for part in parts], axis)))
    first, order = parts[0], len(parts[0].shape)
    mode = axis % order if -order <= axis < order else order
    if any(len(p.shape) != order or _without(p.shape, mode) != _without(first.shape, mode) for p in parts) or mode == order:
        raise ShapeError(f"the shapes {', '.join(str(part.shape) for part in parts)} cannot be joined along mode {axis}")
    if any(part.fill != first.fill and part.fill == part.fill for part in parts):
        raise StorageError("tensors whose absent entries differ cannot be joined")
    stored = [unpack(part) for part in parts]
    begins = np.cumsum([0, *(part.shape[mode] for part in parts)])
    for (coordinates, _), begin in zip(stored, begins, strict=False):
        coordinates[mode] += begin
    shape = (*first.shape[:mode], int(begins[-1]), *first.shape[mode + 1 :])
    like = next(part.format for part in parts if not part.format.is_dense)
    wanted = entries(order) if like.blocks else like
    values = np.concatenate([values for _, values in stored])
    return sealed(store(wanted, shape, np.hstack([coordinates for coordinates, _ in stored]), values, first.fill))


def _without(shape: tuple[int, ...], mode: int) -> tuple[int, ...]:
    return shape[:mode] + shape[mode + 1 :]


def tensordot(left: Storage, right: Storage, axes: Any = 2) -> Storage:
    """NumPy's tensordot: the sum over pairs of modes, the other modes of the left before those of the right."""
    ours, theirs = _pairs(len(left.shape), axes)
    ours, theirs = [mode % len(left.shape) for mode in ours], [mode % len(right.shape) for mode in theirs]
    if len(ours) != len(theirs) or any(left.shape[one] != right.shape[other] for one, other in zip(ours, theirs, strict=True)):
        raise ShapeError(f"tensordot of {left.shape} and {right.shape} over {axes}: the modes that are summed over differ in size")
    loops = list(variables(len(left.shape) + len(right.shape) - len(ours)))
    first, rest = loops[: len(left.shape)], loops[len(left.shape) :]
    second = [first[ours[theirs.index(mode)]] if mode in theirs else rest.pop(0) for mode in range(len(right.shape))]
    kept = [var for mode, var in enumerate(first) if mode not in ours] + [v for mode, v in enumerate(second) if mode not in theirs]
    statement = Statement()
    product = Apply("multiply", (statement.access(left, first), statement.access(right, second)))
    sizes = dict(zip(first + second, left.shape + right.shape, strict=True))
    summed = tuple(first[mode] for mode in ours)
    is_full = left.format.is_dense or right.format.is_dense
    rhs = Reduce("add", summed, product) if summed else product
    return statement.run(kept, rhs, [sizes[var] for var in kept], dense(len(kept)) if is_full else None)


def _pairs(order: int, axes: Any) -> tuple[list[int], list[int]]:
    """The modes that are summed over, of the left and of the right."""
    if isinstance(axes, (int, np.integer)):
        count = int(axes)
        return list(range(order - count, order)), list(range(count))
    ours, theirs = ([int(one)] if np.ndim(one) == 0 else [int(each) for each in one] for one in axes)
    return ours, theirs
