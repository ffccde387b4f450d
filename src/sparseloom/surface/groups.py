"""Entries that a reduction brings together: sorted by the modes that are kept, then by their place along those that are not.

shape (2, 4), axis 1                 kept   place   value
row 0:  .  5  .  2                    0       1       5       group 0: entries 0 and 1, two of four places are absent
row 1:  .  .  .  .                    0       3       2       row 1 has no group: all of its places are absent
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.algebra import Scalar
from sparseloom.formats.room import require_array
from sparseloom.surface.entries import Entries, Index, dense_tensor, entries_of, linear, stacked, unraveled
from sparseloom.tensor.tensor import Tensor


@dataclass(frozen=True)
class Groups:
    """The sorted entries of a tensor, and where each group of them begins."""

    kept_modes: tuple[int, ...]
    shape: tuple[int, ...]  # of the modes that are kept
    extent: int  # how many places a group has, stored or not
    keys: Index  # of the groups, ascending
    starts: Index
    places: Index
    values: NDArray[Any]
    fill: Any
    entries: Entries

    @property
    def counts(self) -> Index:
        """How many entries each group has."""
        return np.diff(np.append(self.starts, len(self.values)))

    @property
    def numbers(self) -> Index:
        """The group of every entry."""
        return np.repeat(np.arange(len(self.starts)), self.counts)

    @property
    def ranks(self) -> Index:
        """Which entry of its group each one is."""
        return np.arange(len(self.values)) - np.repeat(self.starts, self.counts)

    @property
    def is_partial(self) -> NDArray[np.bool_]:
        """Which groups have absent places."""
        return self.counts < self.extent

    def reduced(self, ufunc: Any, values: NDArray[Any] | None = None) -> NDArray[Any]:
        """What a ufunc makes of the entries of each group."""
        given = self.values if values is None else values
        made: NDArray[Any] = ufunc.reduceat(given, self.starts) if len(self.starts) else np.empty(0, given.dtype)
        return made

    def with_values(self, values: NDArray[Any], fill: Any) -> Groups:
        """The same groups of other values."""
        return replace(self, values=values, fill=fill)

    def result(self, values: NDArray[Any], absent: Any, axes: Sequence[int] = (), keepdims: bool = False) -> Any:
        """The tensor of one value per group, and ``absent`` elsewhere: dense if it has one mode or none, or if that is not 0."""
        shape, columns = list(self.shape), list(unraveled(self.keys, self.shape))
        if keepdims:
            for mode in sorted(axes):
                shape.insert(mode, 1)
                columns.insert(mode, np.zeros(len(self.keys), np.int64))
        if len(self.shape) > 1 and bool(np.asarray(absent) == 0):
            return replace(self.entries, values=values, fill=values.dtype.type(0).item()).moved(shape, columns).tensor()
        return dense_tensor(filled(shape, self.keys, values, absent))

    def first_absent(self) -> Index:
        """The first place of each group that is not stored; of a full one, its extent."""
        misses = np.where(self.places != self.ranks, self.ranks, np.repeat(self.counts, self.counts))
        return self.reduced(np.minimum, misses)

    def sorted_by(self, order: Index) -> Groups:
        """The same groups with their entries in another order, which keeps them apart."""
        return replace(self, places=self.places[order], values=self.values[order])


def filled(shape: Sequence[int], keys: Index, values: NDArray[Any], absent: Any) -> NDArray[Any]:
    """A dense array with values at some numbers of coordinates."""
    require_array(tuple(shape), values.dtype.itemsize)
    array = np.full(math.prod(shape), absent, values.dtype)
    array[keys] = values
    return array.reshape(shape)


def grouped(x: Tensor, axes: Sequence[int], what: str) -> Groups:
    """The entries of a sparse tensor, by the modes that are not among ``axes``."""
    kept = tuple(mode for mode in range(x.ndim) if mode not in axes)
    entries = entries_of(x, (*kept, *sorted(axes)))
    shape, along = tuple(x.shape[mode] for mode in kept), tuple(x.shape[mode] for mode in sorted(axes))
    keys = linear(entries.coordinates[list(kept)], shape, what)
    places = linear(entries.coordinates[sorted(axes)], along, what)
    values = entries.values
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else np.empty(0, np.int64)
    return Groups(kept, shape, math.prod(along), keys[starts], starts, places, values, values.dtype.type(entries.fill), entries)


def without_fill(groups: Groups) -> Groups:
    """The groups without entries that are worth what absent ones are."""
    same = _equal(groups.values, groups.fill)
    kept = ~same
    numbers = groups.numbers[kept]
    starts = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1])) if len(numbers) else np.empty(0, np.int64)
    return replace(groups, keys=groups.keys[numbers[starts]], starts=starts, places=groups.places[kept], values=groups.values[kept])


def _equal(values: NDArray[Any], fill: Any) -> NDArray[np.bool_]:
    """Which values are the fill; NaN is NaN, in each part of complex numbers."""
    if values.dtype.kind == "c":
        return _equal(values.real, fill.real) & _equal(values.imag, fill.imag)
    return np.isnan(values) if fill != fill else np.asarray(values == fill)


def spread(groups: Groups, mode: int, positions: Index, values: NDArray[Any], shape: Sequence[int], fill: Scalar) -> Tensor:
    """A tensor of entries that belong to groups, one place along ``mode`` each."""
    columns = unraveled(groups.keys[groups.numbers], groups.shape)
    columns.insert(mode, positions)
    made = replace(groups.entries, shape=tuple(shape), coordinates=stacked(columns, len(values)), values=values, fill=fill)
    return made.tensor()
