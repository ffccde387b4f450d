"""What stands between the brackets of ``A[...]``, checked against a shape: one selector per mode, and where new modes come in."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.errors import NotationError

Selector = int | slice | NDArray[np.int64]
Part = Selector | EllipsisType | None
"""A selector, None for a new mode, or an ellipsis that stands for no mode but keeps arrays apart."""


@dataclass(frozen=True)
class Mask:
    """A mask over several modes: its shape, and where it is true."""

    shape: tuple[int, ...]
    places: tuple[NDArray[np.int64], ...]


def parts_of(key: Any, shape: tuple[int, ...]) -> list[Part]:
    """The parts of a key: in-range integers, slices, arrays of in-range positions, and None for new modes."""
    keys = [_known(part) for part in (key if isinstance(key, tuple) else (key,))]
    ellipses = [place for place, part in enumerate(keys) if part is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError("an index can have only one ellipsis ('...')")
    named = sum(len(part.shape) if isinstance(part, Mask) else part is not None and part is not Ellipsis for part in keys)
    if named > len(shape):
        raise IndexError(f"the tensor has {len(shape)} modes, but {named} were indexed")
    place = ellipses[0] if ellipses else len(keys)
    stands_for: list[Any] = [slice(None)] * (len(shape) - named)
    keys[place : place + 1] = stands_for or ([Ellipsis] if _keeps_apart(keys[:place], keys[place + 1 :]) else [])
    parts: list[Part] = []
    mode = 0
    for part in keys:
        made = _checked(part, mode, shape)
        parts += made
        mode += sum(indexes_mode(each) for each in made)
    return parts


def _keeps_apart(before: Sequence[Any], behind: Sequence[Any]) -> bool:
    """Whether an ellipsis stands between arrays, or between an array and integers, which pick as if something were between them."""
    picks = [[part for part in some if isinstance(part, (int, np.ndarray, Mask))] for some in (before, behind)]
    return all(picks) and any(not isinstance(part, int) for some in picks for part in some)


def indexes_mode(part: Part) -> bool:
    """Whether a part of a key stands for a mode of what is indexed."""
    return part is not None and part is not Ellipsis


def _known(part: Any) -> Any:
    """A part of a key as one of the things that it may be."""
    if part is None or part is Ellipsis or isinstance(part, (slice, Mask)):
        return part
    if isinstance(part, (bool, np.bool_)):
        raise NotationError("a truth value cannot index a tensor; use sl.where")
    if isinstance(part, (list, tuple, np.ndarray)) or hasattr(part, "__array__"):
        array = np.asarray(part)
        if array.dtype == np.bool_ and array.ndim:
            return Mask(array.shape, tuple(np.nonzero(array)))
        if array.size and array.dtype.kind not in "iu":
            raise NotationError(f"an array of {array.dtype} cannot index a tensor; positions are integers")
        return array.astype(np.int64) if array.ndim else int(array)
    try:
        return operator.index(part)
    except TypeError:
        raise NotationError(
            f"{type(part).__name__} cannot index a tensor; use integers, slices, '...', arrays of positions, masks, or index variables"
        ) from None


def _checked(part: Any, mode: int, shape: tuple[int, ...]) -> list[Part]:
    """A part of a key, if it is within the modes that it indexes; a mask as one array for each of them."""
    match part:
        case None | slice() | EllipsisType():
            return [part]
        case Mask(sizes, places):
            for k, size in enumerate(sizes):
                if size != shape[mode + k]:
                    raise IndexError(f"a mask of length {size} cannot select from mode {mode + k}, which has size {shape[mode + k]}")
            return list(places)
        case np.ndarray():
            return [_positions(part, mode, shape[mode])]
    size = shape[mode]
    if not -size <= part < size:
        raise IndexError(f"position {part} is outside mode {mode}, which has size {size}")
    return [part % size]


def _positions(positions: NDArray[np.int64], mode: int, size: int) -> NDArray[np.int64]:
    """Positions from 0."""
    outside = (positions < -size) | (positions >= size)
    if outside.any():
        raise IndexError(f"position {positions[outside][0]} is outside mode {mode}, which has size {size}")
    return np.where(positions < 0, positions + size, positions)


def run_of(part: slice, size: int) -> range:
    """The positions that a slice wants. A step beyond the only one says nothing, and may be more than 64 bits hold."""
    wanted = range(size)[part]
    return wanted if len(wanted) > 1 else range(wanted.start, wanted.start + len(wanted))


@dataclass(frozen=True)
class Together:
    """Arrays that run along the same axes: the modes that they index, their positions one by one, and these axes."""

    modes: tuple[int, ...]
    positions: tuple[NDArray[np.int64], ...]
    axes: tuple[int, ...]


@dataclass(frozen=True)
class Picked:
    """Arrays that pick: those that run along the same axes together, and those along others apart, as ``np.ix_`` makes them.

    ``shape`` is that of the modes of the result that they make, all axes together, and ``at`` where these stand among the other parts:
    where the arrays are, or first if something stands between them.
    """

    groups: tuple[Together, ...]
    shape: tuple[int, ...]
    at: int


def picked(parts: Sequence[Part]) -> Picked:
    """What arrays and the integers beside them pick, as NumPy broadcasts them."""
    places = [k for k, part in enumerate(parts) if isinstance(part, (int, np.ndarray))]
    arrays = [np.asarray(parts[k]) for k in places]
    try:
        shape = np.broadcast_shapes(*(array.shape for array in arrays))
    except ValueError:
        raise IndexError(f"arrays of the shapes {', '.join(str(array.shape) for array in arrays)} cannot index together") from None
    modes = tuple(sum(map(indexes_mode, parts[:k])) for k in places)
    together = places == list(range(places[0], places[0] + len(places)))
    return Picked(tuple(_groups(modes, arrays, len(shape))), shape, places[0] if together else 0)


def _groups(modes: Sequence[int], arrays: Sequence[NDArray[np.int64]], order: int) -> Iterator[Together]:
    """Arrays by the axes that they have in common. Those that have none need not be broadcast, which may take more room than there is."""
    whole = [array.reshape((1,) * (order - array.ndim) + array.shape) for array in arrays]
    groups: list[tuple[set[int], list[int]]] = []
    for number, array in enumerate(whole):
        axes, members = {axis for axis, size in enumerate(array.shape) if size != 1}, [number]
        for group in [group for group in groups if group[0] & axes]:
            groups.remove(group)
            axes, members = axes | group[0], group[1] + members
        groups.append((axes, members))
    for axes, members in groups:
        kept = tuple(sorted(axes))
        narrow = np.broadcast_arrays(*(whole[k].reshape([whole[k].shape[axis] for axis in kept]) for k in members))
        yield Together(tuple(modes[k] for k in members), tuple(array.reshape(array.size) for array in narrow), kept)
