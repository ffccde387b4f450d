"""Parts of sparse tensors that arrays, masks and ``None`` ask for: entries are joined with the positions that are wanted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.formats.format import Format
from sparseloom.formats.levels.compressed import Compressed
from sparseloom.formats.levels.dense import Dense
from sparseloom.formats.levels.singleton import Singleton
from sparseloom.formats.named import coo, entries
from sparseloom.formats.pack import unpack
from sparseloom.formats.storage import Storage
from sparseloom.iteration.layout import plain
from sparseloom.programs.conversion import store
from sparseloom.tensor.keys import Part, Picked, Together, indexes_mode, picked, run_of

Index = NDArray[np.int64]
_LOOKED_UP = 4  # a table of all coordinates may have so many times as many places as there are numbers to find in it


def pick(storage: Storage, parts: Sequence[Part], like: Format | None = None) -> Storage:
    """The part of a sparse tensor for a key with arrays or new modes."""
    coordinates, values = unpack(storage)
    chosen = np.arange(len(values))
    arrays = picked(parts) if any(isinstance(part, np.ndarray) for part in parts) else None
    columns: list[tuple[Index | None, int]] = []  # of the result: the coordinates of entries, or None for a new mode; and its size
    places: list[Index] = []
    if arrays is not None:
        chosen, places = _chosen(coordinates, arrays)
    mode, at = 0, 0
    for k, part in enumerate(parts):
        at = len(columns) if arrays is not None and k == arrays.at else at
        if not indexes_mode(part):
            columns += [(None, 1)] if part is None else []
            continue
        if not isinstance(part, np.ndarray) and not (isinstance(part, int) and arrays is not None):
            kept, new, size = select_mode(coordinates[mode][chosen], part, storage.shape[mode])
            chosen = chosen[kept]
            columns = [(None if old is None else old[kept], n) for old, n in columns]
            places = [old[kept] for old in places]
            columns += [] if isinstance(part, int) else [(new, size)]
        mode += 1
    if arrays is not None:
        columns[at:at] = list(zip(places, arrays.shape, strict=True))
    shape = tuple(size for _, size in columns)
    made = [np.zeros(len(chosen), np.int64) if column is None else column for column, _ in columns]
    stacked = np.stack(made) if made else np.empty((0, len(chosen)), np.int64)
    form = picked_format(storage.format, len(shape)) if like is None else like
    return store(form, shape, stacked, values[chosen], storage.fill)


def picked_format(format: Format, order: int) -> Format:
    """The same format where the order is the same and it is a usual one; a list for lists, else csr or csf."""
    form = plain(format)
    usual = all(type(level) in (Dense, Compressed, Singleton) for level in form.levels) and not form.levels[-1].full
    if form.order == order and usual:
        return form
    return coo(order) if any(level.branchless for level in form.levels) else entries(order)


def _chosen(coordinates: Index, arrays: Picked) -> tuple[Index, list[Index]]:
    """Which entries arrays pick, and the coordinates of each along every axis of the arrays."""
    chosen = np.arange(coordinates.shape[1])
    places = {axis: np.zeros(len(chosen), np.int64) for axis in range(len(arrays.shape))}
    for group in arrays.groups:
        kept, place = _join(coordinates[:, chosen], group)
        chosen = chosen[kept]
        own = _unraveled(place, [arrays.shape[axis] for axis in group.axes])
        places = {axis: column[kept] for axis, column in places.items()} | dict(zip(group.axes, own, strict=True))
    return chosen, list(places.values())


def _join(coordinates: Index, arrays: Together) -> tuple[Index, Index]:
    """Which entries arrays pick that run together, and the number of the position that picks each."""
    wanted, stored = arrays.positions[0], coordinates[arrays.modes[0]]
    for positions, mode in zip(arrays.positions[1:], arrays.modes[1:], strict=True):
        # Numbers of distinct positions are few enough that 64 bits hold every pair.
        outer, inner = _numbered(wanted, stored), _numbered(positions, coordinates[mode])
        pairs = outer * (inner.max(initial=0) + 1) + inner
        wanted, stored = pairs[: len(positions)], pairs[len(positions) :]
    return joined(stored, wanted)


def _numbered(some: Index, others: Index) -> Index:
    """Equal positions as equal numbers from 0."""
    return np.unique(np.concatenate((some, others)), return_inverse=True)[1]


def joined(column: Index, wanted: Index) -> tuple[Index, Index]:
    """Pairs of equal numbers: which of the column, and which of the wanted. One may be wanted several times."""
    order = np.argsort(wanted, kind="stable")
    begin, often = _found(column, wanted, order)
    if often.max(initial=0) <= 1:
        chosen = np.flatnonzero(often)
        return chosen, order[begin[chosen]]
    chosen = np.repeat(np.arange(len(column)), often)
    within = np.arange(len(chosen)) - np.repeat(np.cumsum(often) - often, often)
    return chosen, order[np.repeat(begin, often) + within]


def _found(column: Index, wanted: Index, order: Index) -> tuple[Index, Index]:
    """Where in ``order`` the wanted that equal each number of the column begin, and how many they are."""
    size = max(int(column.max(initial=-1)), int(wanted.max(initial=-1))) + 1
    if size > _LOOKED_UP * (len(column) + len(wanted)):
        begin = np.searchsorted(wanted, column, "left", order)
        return begin, np.searchsorted(wanted, column, "right", order) - begin
    often = np.bincount(wanted, minlength=size)
    return (np.cumsum(often) - often)[column], often[column]


def select_mode(column: Index, part: Any, size: int) -> tuple[Index, Index, int]:
    """Which entries an integer or a slice wants, their new coordinates, and the new size of the mode."""
    if isinstance(part, int):
        chosen = np.flatnonzero(column == part)
        return chosen, column[chosen], 1
    wanted = run_of(part, size)
    offset = column - wanted.start
    places = offset // wanted.step
    chosen = np.flatnonzero((offset % wanted.step == 0) & (places >= 0) & (places < len(wanted)))
    return chosen, places[chosen], len(wanted)


def _unraveled(place: Index, shape: Sequence[int]) -> list[Index]:
    return list(np.unravel_index(place, shape)) if len(shape) and len(place) else [np.empty(0, np.int64)] * len(shape)
