"""Other shapes of the same values: reshaped, turned around and moved. Entries move; no value changes."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sparseloom.core.errors import ShapeError
from sparseloom.formats.room import require_array
from sparseloom.surface import structure
from sparseloom.surface.entries import (
    Entries,
    are_dense,
    by_numpy,
    entries_of,
    linear,
    mode_of,
    modes_of,
    on_host,
    reduced_modes,
    tensor_of,
    unraveled,
)  # fmt: skip
from sparseloom.tensor.operators import broadcast_shape
from sparseloom.tensor.rows import has_rows
from sparseloom.tensor.table import offered
from sparseloom.tensor.tensor import Tensor


@offered("shape", standard="")
def reshape(x: Any, /, shape: Any, *more: int, order: str | None = "C", copy: bool | None = None) -> Tensor:
    """The same values in another shape; one size may be -1.

    >>> sl.reshape([1, 2, 3, 4], (2, -1)).to_numpy().tolist()
    [[1, 2], [3, 4]]
    """
    tensor = tensor_of(x)
    sizes = _sizes(tensor.size, shape if not more else (shape, *more))
    if order not in (None, "C", "F", "A"):
        raise ShapeError(f"the order of a new shape is 'C' or 'F', not {order!r}")
    if order == "F":
        return reshape(tensor.T, sizes[::-1]).T
    if are_dense(tensor):
        made = by_numpy(np.reshape, tensor, sizes)
        return made.copy() if copy else made  # type: ignore[no-any-return]
    if (merged := structure.merged(on_host(tensor), sizes)) is not None:
        return Tensor(merged)
    entries = entries_of(tensor)
    return entries.moved(sizes, unraveled(linear(entries.coordinates, tensor.shape, "reshape"), sizes)).tensor()


def _sizes(size: int, shape: Any) -> tuple[int, ...]:
    """The sizes of a new shape for so many values."""
    try:
        sizes = [operator.index(n) for n in (shape if isinstance(shape, (tuple, list)) else (shape,))]
    except TypeError:
        raise ShapeError(f"a shape is an integer or a tuple of integers, not {shape!r}") from None
    known = math.prod(n for n in sizes if n != -1)
    if sizes.count(-1) == 1 and known and size % known == 0:
        sizes[sizes.index(-1)] = size // known
    if any(n < 0 for n in sizes) or math.prod(sizes) != size:
        raise ShapeError(f"{size} values cannot have the shape {tuple(sizes)}")
    return tuple(sizes)


@offered("shape")
def ravel(x: Any, /, order: str | None = "C") -> Tensor:
    """All values in one mode, the last mode fastest.

    >>> sl.ravel([[1, 2], [3, 4]]).to_numpy()
    array([1, 2, 3, 4])
    """
    return reshape(x, -1, order=order)


@offered("shape", numpy=None)
def flatten(x: Any, /, order: str | None = "C") -> Tensor:
    """As ``ravel``, in memory of its own.

    >>> sl.flatten([[1, 2], [3, 4]]).to_numpy()
    array([1, 2, 3, 4])
    """
    return ravel(x, order).copy()


@offered("shape", methods=None, standard="")
def expand_dims(x: Any, /, axis: Any) -> Tensor:
    """New modes of size 1 at the places of ``axis``.

    >>> sl.expand_dims([1, 2, 3], axis=0).shape
    (1, 3)
    """
    tensor = tensor_of(x)
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    if axis == 0 and (made := structure.below_first(on_host(tensor))) is not None:
        return Tensor(made)
    places = modes_of(axis, tensor.ndim + count)
    rest = iter(tensor.shape)
    return reshape(tensor, [1 if place in places else next(rest) for place in range(tensor.ndim + count)])


@offered("shape", standard="")
def squeeze(x: Any, /, axis: Any = None) -> Tensor:
    """Without modes of size 1: all of them, or those of ``axis``.

    >>> sl.squeeze(np.ones((1, 3, 1))).shape
    (3,)
    """
    tensor = tensor_of(x)
    gone = [m for m, size in enumerate(tensor.shape) if size == 1] if axis is None else reduced_modes(axis, tensor.ndim)
    if wrong := [mode for mode in gone if tensor.shape[mode] != 1]:
        raise ShapeError(f"mode {wrong[0]} of shape {tensor.shape} cannot be squeezed: its size is not 1")
    return reshape(tensor, [size for mode, size in enumerate(tensor.shape) if mode not in gone])


@offered("shape", methods=None, standard="")
def broadcast_to(x: Any, /, shape: Any) -> Tensor:
    """Stretched to a shape as NumPy broadcasts; entries are repeated.

    >>> sl.broadcast_to([1, 2], (2, 2)).to_numpy().tolist()
    [[1, 2], [1, 2]]
    """
    tensor = tensor_of(x)
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if broadcast_shape("broadcast_to", [tensor.shape, sizes]) != sizes:
        raise ShapeError(f"a tensor of shape {tensor.shape} cannot be stretched to {sizes}")
    if are_dense(tensor):
        return by_numpy(np.broadcast_to, tensor, sizes)  # type: ignore[no-any-return]
    return stretched(entries_of(tensor), sizes).tensor()


def stretched(entries: Entries, shape: Sequence[int]) -> Entries:
    """Entries repeated along modes that are new, or of size 1 before."""
    lead = len(shape) - len(entries.shape)
    old = (1,) * lead + entries.shape
    columns = [np.zeros(entries.count, np.int64)] * lead + list(entries.coordinates)
    grown = [mode for mode, size in enumerate(shape) if size != old[mode]]
    often = math.prod(shape[mode] for mode in grown)
    require_array((len(shape) + 1, often * entries.count), 8)
    repeated = [np.repeat(column, often) for column in columns]
    within = np.tile(np.arange(often), entries.count)
    for mode, column in zip(grown, unraveled(within, [shape[mode] for mode in grown]), strict=True):
        repeated[mode] = column
    return replace(entries, values=np.repeat(entries.values, often)).moved(shape, repeated)


@offered("shape", methods=None, standard="")
def broadcast_arrays(*tensors: Any) -> list[Tensor]:
    """All of them stretched to their common shape.

    >>> [x.shape for x in sl.broadcast_arrays([1, 2], [[3], [4], [5]])]
    [(3, 2), (3, 2)]
    """
    given = [tensor_of(x) for x in tensors]
    shape = broadcast_shape("broadcast_arrays", [x.shape for x in given])
    return [broadcast_to(x, shape) for x in given]


@offered("shape", methods=None, numpy="permute_dims", standard="")
def permute_dims(x: Any, /, axes: Any = None) -> Tensor:
    """The modes in another order; nothing is sorted.

    >>> sl.permute_dims(np.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return tensor_of(x).transpose() if axes is None else tensor_of(x).transpose(tuple(axes))


@offered("shape", methods=None)
def transpose(x: Any, /, axes: Any = None) -> Tensor:
    """The modes in another order, reversed if none is given; nothing is sorted.

    >>> sl.transpose([[1, 2], [3, 4]]).to_numpy().tolist()
    [[1, 3], [2, 4]]
    """
    return permute_dims(x, axes)


@offered("shape", methods=None, standard="")
def matrix_transpose(x: Any, /) -> Tensor:
    """The last two modes exchanged; nothing is sorted.

    >>> sl.matrix_transpose(np.ones((5, 2, 3))).shape
    (5, 3, 2)
    """
    tensor = tensor_of(x)
    if tensor.ndim < 2:
        raise ShapeError(f"a tensor of shape {tensor.shape} has no two modes to exchange")
    return swapaxes(tensor, -1, -2)


@offered("shape")
def swapaxes(x: Any, /, axis1: int, axis2: int) -> Tensor:
    """Two modes exchanged; nothing is sorted.

    >>> sl.swapaxes(np.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    tensor = tensor_of(x)
    one, other = mode_of(axis1, tensor.ndim), mode_of(axis2, tensor.ndim)
    order = list(range(tensor.ndim))
    order[one], order[other] = other, one
    return tensor.transpose(tuple(order))


@offered("shape", methods=None, standard="")
def moveaxis(x: Any, /, source: Any, destination: Any) -> Tensor:
    """Modes at other places; the others keep their order, and nothing is sorted.

    >>> sl.moveaxis(np.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    tensor = tensor_of(x)
    moved, places = modes_of(source, tensor.ndim), modes_of(destination, tensor.ndim)
    if len(moved) != len(places):
        raise ShapeError(f"moveaxis moves {len(moved)} modes to {len(places)} places")
    order = [mode for mode in range(tensor.ndim) if mode not in moved]
    for place, mode in sorted(zip(places, moved, strict=True)):
        order.insert(place, mode)
    return tensor.transpose(tuple(order))


@offered("shape", methods=None, standard="")
def flip(x: Any, /, axis: Any = None) -> Tensor:
    """The order of coordinates reversed, along all modes or those of ``axis``.

    >>> sl.flip([1, 2, 3]).to_numpy()
    array([3, 2, 1])
    """
    tensor = tensor_of(x)
    modes = modes_of(axis, tensor.ndim)
    if are_dense(tensor):
        return by_numpy(np.flip, tensor, modes)  # type: ignore[no-any-return]
    if (turned := _turned(tensor, modes)) is not None:
        return turned
    entries = entries_of(tensor)
    sizes = zip(entries.coordinates, tensor.shape, strict=True)
    return entries.moved(tensor.shape, [size - 1 - c if mode in modes else c for mode, (c, size) in enumerate(sizes)]).tensor()


def _turned(tensor: Tensor, modes: Sequence[int]) -> Tensor | None:
    """A matrix that is stored by rows or by columns, with modes reversed: rows are copied, all arrays are read backwards, or both."""
    both = structure.reversed_both(on_host(tensor)) if tensor.ndim == 2 and tensor.format.modes[1] in modes else None
    if tensor.format.modes[:1] == tuple(modes) and has_rows(tensor.format):
        return _rows_turned(tensor)
    if both is None:
        return None
    return Tensor(both) if len(set(modes)) == 2 else _rows_turned(Tensor(both))


def _rows_turned(tensor: Tensor) -> Tensor:
    """The coordinates of the outermost mode reversed."""
    key: Any = (slice(None),) * tensor.format.modes[0] + (slice(None, None, -1),)
    return tensor[key]  # type: ignore[no-any-return]


@offered("shape", methods=None)
def fliplr(x: Any, /) -> Tensor:
    """Reversed along the second mode.

    >>> sl.fliplr([[1, 2], [3, 4]]).to_numpy().tolist()
    [[2, 1], [4, 3]]
    """
    return flip(x, 1)


@offered("shape", methods=None)
def flipud(x: Any, /) -> Tensor:
    """Reversed along the first mode.

    >>> sl.flipud([[1, 2], [3, 4]]).to_numpy().tolist()
    [[3, 4], [1, 2]]
    """
    return flip(x, 0)


@offered("shape", methods=None, standard="")
def roll(x: Any, /, shift: Any, axis: Any = None) -> Tensor:
    """Coordinates moved on by ``shift``, from the end to the beginning; without an axis, over all values in order.

    >>> sl.roll([1, 2, 3], 1).to_numpy()
    array([3, 1, 2])
    """
    tensor = tensor_of(x)
    if axis is None:
        return reshape(roll(reshape(tensor, -1), shift, 0), tensor.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(axes) == 1:
        axes = axes * len(shifts)
    if len(axes) != len(shifts):
        raise ShapeError(f"roll has {len(shifts)} shifts for {len(axes)} modes")
    moves = [(operator.index(by), mode_of(one, tensor.ndim)) for by, one in zip(shifts, axes, strict=True)]
    if len(moves) == 1 and (rolled := structure.rolled(on_host(tensor), *moves[0])) is not None:
        return Tensor(rolled)
    entries = entries_of(tensor)
    columns = list(entries.coordinates)
    for by, mode in moves:
        columns[mode] = (columns[mode] + by) % max(tensor.shape[mode], 1)
    made = entries.moved(tensor.shape, columns).tensor()
    return made.to(tensor.format) if are_dense(tensor) else made
