"""Tensors put together and repeated: concatenate, stack, block, tile, pad, and taken apart again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparseloom.core.algebra import same_value
from sparseloom.core.dtypes import promoted, value_dtype
from sparseloom.core.errors import DTypeError, ShapeError
from sparseloom.formats.format import Format
from sparseloom.formats.room import require_array
from sparseloom.formats.storage import apart
from sparseloom.interop.arrays import plain_array
from sparseloom.surface import structure
from sparseloom.surface.entries import (
    Entries,
    along,
    are_dense,
    array_of,
    by_numpy,
    common_fill,
    entries_of,
    in_format,
    mode_of,
    on_host,
    tensor_of,
)  # fmt: skip
from sparseloom.surface.shape import expand_dims, ravel, reshape
from sparseloom.tensor.table import offered
from sparseloom.tensor.tensor import Tensor


def _joined(tensors: Sequence[Tensor], axis: int, what: str) -> Tensor:
    """Tensors one behind the other along a mode."""
    first, *others = [tensor.shape for tensor in tensors]
    if any(len(shape) != len(first) or _without(shape, axis) != _without(first, axis) for shape in others):
        raise ShapeError(f"{what} cannot join the shapes {', '.join(map(str, (first, *others)))}: only mode {axis} may differ")
    fill = common_fill(tensors, what)
    if (made := structure.joined_along([on_host(tensor) for tensor in tensors], axis, _common(tensors))) is not None:
        return Tensor(made)
    parts = [entries_of(tensor) for tensor in tensors]
    ends = np.cumsum([0, *(shape[axis] for shape in (first, *others))])
    coordinates = np.concatenate([part.coordinates for part in parts], axis=1)
    coordinates[axis] += np.repeat(ends[:-1], [part.count for part in parts])
    like = next(part.like for part, tensor in zip(parts, tensors, strict=True) if not tensor.format.is_dense)
    values = np.concatenate([part.values.astype(_common(tensors), copy=False) for part in parts])
    shape = tuple(int(ends[-1]) if mode == axis else size for mode, size in enumerate(first))
    return Entries(shape, coordinates, values, fill, like).tensor()


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def _common(tensors: Sequence[Tensor]) -> Any:
    return value_dtype(promoted([tensor.dtype for tensor in tensors]))


@offered("shape", methods=None, numpy="concatenate concat", standard="concat")
def concatenate(tensors: Any, /, axis: int | None = 0, out: Any = None, *, dtype: Any = None) -> Tensor:
    """Tensors one behind the other along a mode; without an axis, all of their values in one.

    >>> sl.concatenate([[1, 2], [3]]).to_numpy()
    array([1, 2, 3])
    """
    given = [tensor_of(x) for x in tensors]
    if not given:
        raise ShapeError("concatenate needs at least one tensor")
    if axis is None:
        given, axis = [ravel(x) for x in given], 0
    mode = mode_of(axis, given[0].ndim)
    if are_dense(*given):
        made: Tensor = by_numpy(np.concatenate, [x.astype(_common(given), copy=False) for x in given], mode)
    else:
        made = _joined(given, mode, "concatenate")
    return made if dtype is None else made.astype(dtype, copy=False)


@offered("shape", methods=None, numpy=None)
def concat(tensors: Any, /, axis: int | None = 0) -> Tensor:
    """``concatenate``, as the array API calls it.

    >>> sl.concat([[1, 2], [3]]).to_numpy()
    array([1, 2, 3])
    """
    return concatenate(tensors, axis)


@offered("shape", methods=None, standard="")
def stack(tensors: Any, /, axis: int = 0, out: Any = None, *, dtype: Any = None) -> Tensor:
    """Tensors of one shape along a new mode.

    >>> sl.stack([[1, 2], [3, 4]], axis=1).to_numpy().tolist()
    [[1, 3], [2, 4]]
    """
    given = [tensor_of(x) for x in tensors]
    if len({x.shape for x in given}) != 1:
        raise ShapeError(f"stack needs tensors of one shape, not {', '.join(str(x.shape) for x in given) or 'none'}")
    return concatenate([expand_dims(x, axis) for x in given], mode_of(axis, given[0].ndim + 1), dtype=dtype)


@offered("shape", methods=None)
def vstack(tensors: Any, /, format: Format | str | None = None, dtype: Any = None) -> Tensor:
    """One below the other; vectors are rows.

    >>> sl.vstack([[1, 2], [3, 4]]).to_numpy().tolist()
    [[1, 2], [3, 4]]
    """
    return in_format(concatenate([_at_least(tensor_of(x), 2) for x in tensors], 0, dtype=dtype), format)


@offered("shape", methods=None)
def hstack(tensors: Any, /, format: Format | str | None = None, dtype: Any = None) -> Tensor:
    """Side by side; vectors one behind the other.

    >>> sl.hstack([sl.eye(2), sl.eye(2)]).to_numpy().tolist()
    [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]]
    """
    given = [_at_least(tensor_of(x), 1) for x in tensors]
    return in_format(concatenate(given, 0 if given and given[0].ndim == 1 else 1, dtype=dtype), format)


def _at_least(x: Tensor, order: int) -> Tensor:
    return reshape(x, (1,) * (order - x.ndim) + x.shape) if x.ndim < order else x


@offered("shape", methods=None)
def block(blocks: Any, /) -> Tensor:
    """One tensor of nested lists of blocks: the innermost lists are joined along the last mode.

    >>> sl.block([[sl.eye(1), np.zeros((1, 2))], [np.zeros((2, 1)), 5 * np.eye(2)]]).to_numpy().tolist()
    [[1.0, 0.0, 0.0], [0.0, 5.0, 0.0], [0.0, 0.0, 5.0]]
    """
    depth = _depth(blocks)
    order = max(depth, _highest(blocks))
    return _blocked(blocks, depth, order)


def _depth(blocks: Any) -> int:
    if not isinstance(blocks, list):
        return 0
    if not blocks:
        raise ShapeError("block has an empty list")
    depths = {_depth(part) for part in blocks}
    if len(depths) > 1:
        raise ShapeError("the lists of block must all be nested equally deep")
    return 1 + depths.pop()


def _highest(blocks: Any) -> int:
    return max(map(_highest, blocks)) if isinstance(blocks, list) else tensor_of(blocks).ndim


def _blocked(blocks: Any, depth: int, order: int) -> Tensor:
    if not depth:
        return _at_least(tensor_of(blocks), order)
    return concatenate([_blocked(part, depth - 1, order) for part in blocks], -depth)


@offered("shape", methods="", standard="")
def repeat(x: Any, /, repeats: Any, axis: int | None = None) -> Tensor:
    """Every coordinate of a mode so many times, one number for all or one for each; without an axis, of all values in order.

    >>> sl.repeat([1, 2], 2).to_numpy()
    array([1, 1, 2, 2])
    """
    tensor = tensor_of(x)
    if axis is None:
        return repeat(ravel(tensor), repeats, 0)
    tensor, mode = along(tensor, axis)
    counts = array_of(tensor_of(repeats)) if not isinstance(repeats, int) else repeats
    counts = counts if np.size(counts) else np.empty(0, np.int64)  # [] is of float64
    places = np.repeat(np.arange(tensor.shape[mode]), counts)
    return tensor[(slice(None),) * mode + (places,)]  # type: ignore[no-any-return]


@offered("shape", methods=None, standard="")
def tile(x: Any, /, reps: Any) -> Tensor:
    """So many copies along every mode.

    >>> sl.tile([1, 2], 2).to_numpy()
    array([1, 2, 1, 2])
    """
    tensor = tensor_of(x)
    often = tuple(reps) if isinstance(reps, (tuple, list)) else (reps,)
    order = max(len(often), tensor.ndim)
    often, made = (1,) * (order - len(often)) + often, _at_least(tensor, order)
    for mode, count in enumerate(often):
        if count != 1:
            made = made[(slice(None),) * mode + (np.tile(np.arange(made.shape[mode]), count),)]
    return made if made is not tensor else Tensor(apart(tensor.storage, tensor.storage))


@offered("shape", methods=None)
def pad(x: Any, /, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Tensor:
    """More coordinates before and behind those of every mode, all of one value; sparse where absent entries have that value.

    >>> sl.pad([1, 2], (1, 2)).to_numpy()
    array([0, 1, 2, 0, 0])
    """
    tensor = tensor_of(x)
    if mode != "constant" or np.ndim(constant_values):
        raise ShapeError(f"pad adds one constant, not {mode!r} with {constant_values!r}\n  help: use np.pad(x.to_numpy(), ...)")
    widths = _widths(pad_width, tensor.ndim)
    shape = tuple(size + before + behind for size, (before, behind) in zip(tensor.shape, widths, strict=True))
    with np.errstate(all="ignore"):
        constant = np.asarray(constant_values).astype(tensor.dtype)  # whole numbers wrap, as where an array is assigned to another
    if not tensor.ndim:
        return +tensor
    if are_dense(tensor) or not same_value(constant.item(), tensor.fill):
        require_array(shape, tensor.dtype.itemsize)
        return by_numpy(np.pad, tensor, widths, constant_values=constant)  # type: ignore[no-any-return]
    entries = entries_of(tensor)
    return entries.moved(shape, [column + before for column, (before, _) in zip(entries.coordinates, widths, strict=True)]).tensor()


def _widths(pad_width: Any, order: int) -> list[tuple[int, int]]:
    """How much is added before and behind each mode, out of what ``np.pad`` takes."""
    if isinstance(pad_width, dict):
        for mode in pad_width:
            mode_of(mode, order)
        pad_width = [pad_width.get(mode, pad_width.get(mode - order, 0)) for mode in range(order)]
        pad_width = [(width, width) if isinstance(width, int) else width for width in pad_width] or 0
    given = plain_array(pad_width)
    if given.dtype.kind not in "iu":
        raise DTypeError(f"the widths of pad are whole numbers from 0 on, not {pad_width!r}")
    if (given < 0).any():
        raise ShapeError(f"the widths of pad are whole numbers from 0 on, not {pad_width!r}")
    try:
        widths = np.broadcast_to(given, (order, 2)).tolist()
    except ValueError:
        raise ShapeError(f"pad has the widths {pad_width!r} for {order} modes\n  help: give a pair (before, behind) for each") from None
    return [(before, behind) for before, behind in widths]


@offered("shape", methods=None, standard="")
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts of a tensor along a mode.

    >>> [x.to_numpy() for x in sl.unstack([[1, 2], [3, 4]])]
    [array([1, 2]), array([3, 4])]
    """
    tensor = tensor_of(x)
    mode = mode_of(axis, tensor.ndim)
    parts = (tensor[(slice(None),) * mode + (k,)] for k in range(tensor.shape[mode]))
    return tuple(part if isinstance(part, Tensor) else tensor_of(part) for part in parts)
