"""Values in order: sorted, the largest few, the different ones; and where they are."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.errors import DTypeError, ShapeError
from sparseloom.formats.room import require_array
from sparseloom.surface.entries import (
    Index,
    along,
    are_dense,
    array_of,
    by_numpy,
    dense_tensor,
    entries_of,
    linear,
    mode_of,
    tensor_of,
)
from sparseloom.surface.groups import Groups, filled, grouped, spread, without_fill
from sparseloom.surface.ranks import ranked
from sparseloom.surface.shape import ravel
from sparseloom.tensor.table import offered
from sparseloom.tensor.tensor import Tensor


@offered("order", numpy="sort", standard="")
def sort(
    x: Any, /, axis: int | None = -1, kind: str | None = None, order: None = None, *, stable: bool | None = None, descending: bool = False
) -> Tensor:
    """The values along a mode in ascending order, absent ones between the smaller and the larger; without an axis, all of them.

    >>> sl.sort([3, 1, 2]).to_numpy()
    array([1, 2, 3])
    """
    tensor = tensor_of(x) if axis is not None else ravel(x)
    mode = mode_of(-1 if axis is None else axis, tensor.ndim)
    if are_dense(tensor):
        made = by_numpy(np.sort, tensor, mode)
    else:
        groups = without_fill(grouped(tensor, (mode,), "sort"))
        ordered = groups.sorted_by(ranked(groups.values, groups.starts))
        behind = ~_precedes(ordered.values, ordered.fill)
        places = ordered.ranks + np.where(behind, ordered.extent - np.repeat(ordered.counts, ordered.counts), 0)
        made = spread(ordered, mode, places, ordered.values, tensor.shape, tensor.fill)
    return made[(slice(None),) * mode + (slice(None, None, -1),)] if descending else made  # type: ignore[no-any-return]


def _precedes(values: NDArray[Any], fill: Any) -> NDArray[np.bool_]:
    """Which values stand before the fill when sorted; NaN comes last, and complex numbers go by their real parts first."""
    if values.dtype.kind == "c":
        order = ranked(np.append(values, values.dtype.type(fill)), np.zeros(1, np.int64))
        before = np.zeros(len(values), np.bool_)
        before[order[: int(np.flatnonzero(order == len(values))[0])]] = True
        return before
    return np.asarray((values < fill) | ((values == values) & bool(fill != fill)))


@offered("order", numpy="argsort", standard="")
def argsort(
    x: Any, /, axis: int | None = -1, kind: str | None = None, order: None = None, *, stable: bool | None = None, descending: bool = False
) -> Tensor:
    """The places along a mode that sort it, equal values in their order. Every place has one, so the result is dense.

    >>> sl.argsort([3, 1, 2]).to_numpy()
    array([1, 2, 0])
    """
    tensor, mode = along(tensor_of(x), axis) if axis is not None else (ravel(x), 0)
    require_array(tensor.shape, 8)
    if not descending:
        return by_numpy(np.argsort, tensor, mode, "stable")  # type: ignore[no-any-return]
    turned = np.flip(array_of(tensor), mode)
    return dense_tensor(tensor.shape[mode] - 1 - np.flip(np.argsort(turned, mode, "stable"), mode))


class TopK(NamedTuple):
    """The largest values along a mode, and where they are."""

    values: Tensor
    indices: Tensor


@offered("order", numpy=None)
def topk(x: Any, /, k: int, axis: int = -1, largest: bool = True) -> TopK:
    """The ``k`` largest values along a mode in descending order and their places, or the smallest; of equal ones the first.

    >>> values, places = sl.topk([3, 1, 2], 2)
    >>> values.to_numpy(), places.to_numpy()
    (array([3, 2]), array([0, 2]))
    """
    tensor = tensor_of(x)
    mode = mode_of(axis, tensor.ndim)
    if not 0 <= k <= tensor.shape[mode]:
        raise ShapeError(f"topk cannot take {k} of the {tensor.shape[mode]} values along mode {mode}")
    if tensor.dtype.kind == "c":
        raise DTypeError("complex numbers have no order, so there is no largest or smallest one")
    sparse = tensor if not are_dense(tensor) else tensor.to("s" * tensor.ndim)
    groups = without_fill(grouped(sparse, (mode,), "topk"))
    values, places = _best(groups.sorted_by(ranked(groups.values, groups.starts, descending=largest)), groups, k, largest)
    kept = (*groups.shape, k)
    require_array(kept, 8)
    made = []
    for part, rest in ((values, groups.fill), (places, np.arange(k))):
        rows = np.full((math.prod(groups.shape), k), rest, part.dtype)
        rows[groups.keys] = part
        made.append(dense_tensor(np.moveaxis(rows.reshape(kept), -1, mode)))
    return TopK(*made)


def _best(ordered: Groups, groups: Groups, k: int, largest: bool) -> tuple[NDArray[Any], Index]:
    """The first ``k`` of each group: better entries, then absent places from the first on, then worse entries."""
    count = len(groups.starts)
    values, places = np.full((count, k), groups.fill, groups.values.dtype), np.empty((count, k), np.int64)
    better = ~_precedes(ordered.values, ordered.fill) if largest else _precedes(ordered.values, ordered.fill)
    ahead = ordered.reduced(np.add, better.astype(np.int64))
    absent = ordered.extent - ordered.counts
    # The t-th absent place is t plus the number of entries that stand before it.
    stored, wanted = groups.places - groups.ranks, np.arange(k)
    keys = groups.numbers * (groups.extent + 1) + stored
    rows = np.arange(count)[:, None]
    before = np.searchsorted(keys, rows * (groups.extent + 1) + wanted, "right") - groups.starts[:, None]
    slots = ahead[:, None] + wanted
    fits = (slots < k) & (wanted < absent[:, None])
    places[np.nonzero(fits)[0], slots[fits]] = (wanted + before)[fits]
    target = ordered.ranks + np.where(better, 0, absent[ordered.numbers])
    chosen = target < k
    values[ordered.numbers[chosen], target[chosen]] = ordered.values[chosen]
    places[ordered.numbers[chosen], target[chosen]] = ordered.places[chosen]
    return values, places


class Unique(NamedTuple):
    """The different values of a tensor: where each is first met, which of them every value is, and how often each comes."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The different values of a tensor, and how often each comes."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The different values of a tensor, and which of them every value is."""

    values: Tensor
    inverse_indices: Tensor


def _different(x: Any, equal_nan: bool) -> NDArray[Any]:
    """The different values alone, for which no place needs to be known."""
    tensor = tensor_of(x)
    values = array_of(tensor) if are_dense(tensor) else entries_of(tensor).values
    absent = tensor.size - values.size
    count = absent if tensor.fill != tensor.fill and not equal_nan else min(absent, 1)  # no NaN is equal to another
    require_array((count,), values.dtype.itemsize)
    rest = np.full(count, tensor.fill, values.dtype)
    return np.unique(np.append(np.unique(values, equal_nan=equal_nan), rest), equal_nan=equal_nan)


def _unique(x: Any, equal_nan: bool, inverse: bool) -> tuple[NDArray[Any], Index, Index | None, Index]:
    """The different values, where each is first met, which of them every value is if that is asked for, and their numbers."""
    tensor = tensor_of(x)
    if are_dense(tensor):
        made = np.unique(array_of(tensor), True, True, True, equal_nan=equal_nan)
        return made[0], made[1], made[2].reshape(tensor.shape), made[3]
    entries = entries_of(tensor, range(tensor.ndim))
    keys, stored = linear(entries.coordinates, tensor.shape, "unique"), entries.values
    absent = tensor.size - len(keys)
    if absent > 1 and tensor.fill != tensor.fill and not equal_nan:
        require_array(tensor.shape, tensor.dtype.itemsize)
        return _unique(tensor.to("dense"), equal_nan, inverse)  # no NaN is equal to another, so each absent one is a value of its own
    # The fill stands behind the entries, where the first absent place is.
    misses = np.flatnonzero(keys != np.arange(len(keys)))
    gap = np.array([misses[0] if len(misses) else len(keys)], np.int64) if absent else np.empty(0, np.int64)
    given = np.append(stored, stored.dtype.type(tensor.fill)) if absent else stored
    places = np.concatenate((keys, gap))
    sequence = np.argsort(places, kind="stable")
    values, first, numbers, counts = np.unique(given[sequence], True, True, True, equal_nan=equal_nan)
    back = np.empty(len(given), np.int64)
    back[sequence] = numbers
    if absent:
        counts[back[-1]] += absent - 1
    whole = filled(tensor.shape, keys, back[: len(keys)], back[-1] if absent else 0) if inverse else None
    return values, places[sequence][first], whole, counts


@offered("order", methods=None)
def unique(
    x: Any, /, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, *, equal_nan: bool = True
) -> Any:
    """The different values in ascending order, absent ones among them; with places, inverse and numbers as NumPy gives them.

    >>> sl.unique([2, 1, 2]).to_numpy()
    array([1, 2])
    """
    if not (return_index or return_inverse or return_counts):
        return dense_tensor(_different(x, equal_nan))
    values, first, inverse, counts = _unique(x, equal_nan, return_inverse)
    asked = ((first, return_index), (inverse, return_inverse), (counts, return_counts))
    return dense_tensor(values), *(dense_tensor(np.asarray(part)) for part, wanted in asked if wanted)


@offered("order", methods=None, standard="")
def unique_values(x: Any, /) -> Tensor:
    """The different values.

    >>> sl.unique_values([2, 1, 2]).to_numpy()
    array([1, 2])
    """
    return dense_tensor(_different(x, False))


@offered("order", methods=None, standard="")
def unique_counts(x: Any, /) -> UniqueCounts:
    """The different values, and how often each comes.

    >>> sl.unique_counts([2, 1, 2]).counts.to_numpy()
    array([1, 2])
    """
    values, _, _, counts = _unique(x, False, False)
    return UniqueCounts(dense_tensor(values), dense_tensor(counts))


@offered("order", methods=None, standard="")
def unique_inverse(x: Any, /) -> UniqueInverse:
    """The different values, and which of them every value is.

    >>> sl.unique_inverse([2, 1, 2]).inverse_indices.to_numpy()
    array([1, 0, 1])
    """
    values, _, inverse, _ = _unique(x, False, True)
    return UniqueInverse(dense_tensor(values), dense_tensor(np.asarray(inverse)))


@offered("order", methods=None, standard="")
def unique_all(x: Any, /) -> Unique:
    """The different values, where each is first met, which of them every value is, and how often each comes.

    >>> sl.unique_all([2, 1, 2]).indices.to_numpy()
    array([1, 0])
    """
    values, first, inverse, counts = _unique(x, False, True)
    return Unique(*map(dense_tensor, (values, first, np.asarray(inverse), counts)))


@offered("order", methods=None)
def nonzero(x: Any, /) -> tuple[NDArray[np.int64], ...]:
    """The coordinates of the values that are not zero, one array per mode.

    >>> sl.nonzero(sl.eye(2))
    (array([0, 1]), array([0, 1]))
    """
    return tensor_of(x).nonzero()


@offered("order", methods=None)
def argwhere(x: Any, /) -> NDArray[np.int64]:
    """The coordinates of the values that are not zero, one row each.

    >>> sl.argwhere(sl.eye(2))
    array([[0, 0],
           [1, 1]])
    """
    return np.stack(tensor_of(x).nonzero(), axis=-1) if tensor_of(x).ndim else np.empty((int(bool(x)), 0), np.int64)


@offered("order", methods=None)
def flatnonzero(x: Any, /) -> NDArray[np.int64]:
    """Which values in order are not zero.

    >>> sl.flatnonzero([0, 5, 0, 7])
    array([1, 3])
    """
    return ravel(x).nonzero()[0]


@offered("order", standard="")
def take(x: Any, indices: Any, /, axis: int | None = None, out: Any = None, mode: str = "raise") -> Any:
    """The parts at some positions of a mode; without an axis, of all values in order.

    >>> sl.take([10, 20, 30], [2, 0]).to_numpy()
    array([30, 10])
    """
    tensor = tensor_of(x) if axis is not None else ravel(x)
    tensor, place = along(tensor, 0 if axis is None else axis)
    wanted = array_of(tensor_of(indices))
    if mode != "raise":
        size = tensor.shape[place]
        wanted = wanted % size if mode == "wrap" else np.clip(wanted, 0, size - 1)
    return tensor[(slice(None),) * place + (wanted if wanted.ndim else int(wanted),)]


@offered("order", methods=None, standard="")
def take_along_axis(x: Any, indices: Any, /, axis: int = -1) -> Tensor:
    """One position along a mode for each of the others, as ``argsort`` gives them.

    >>> sl.take_along_axis(np.array([[3, 1]]), np.array([[1, 0]]), axis=1).to_numpy()
    array([[1, 3]])
    """
    tensor, wanted = tensor_of(x), array_of(tensor_of(indices))
    mode = mode_of(axis, tensor.ndim)
    if wanted.ndim != tensor.ndim:
        raise ShapeError(f"take_along_axis needs as many modes for positions as the tensor has: {tensor.ndim}, not {wanted.ndim}")
    others = [np.arange(size).reshape((-1,) + (1,) * (tensor.ndim - place - 1)) for place, size in enumerate(tensor.shape)]
    return tensor[tuple(wanted if place == mode else other for place, other in enumerate(others))]  # type: ignore[no-any-return]


@offered("order", methods=None, standard="")
def searchsorted(x: Any, v: Any, /, side: Any = "left", sorter: Any = None) -> Tensor:
    """Where values belong in a sorted vector, which is dense.

    >>> sl.searchsorted([1, 3, 5], [2, 5]).to_numpy()
    array([1, 2])
    """
    if not are_dense(tensor_of(x)):
        raise DTypeError("searchsorted needs a dense vector; write x.to('dense')")
    order = None if sorter is None else array_of(tensor_of(sorter))
    return dense_tensor(np.asarray(np.searchsorted(array_of(tensor_of(x)), array_of(tensor_of(v)), side, order)))
