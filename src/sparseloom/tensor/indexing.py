"""Selecting and rearranging parts of a storage: ``A[0]``, ``A[1:3]``, ``A[:, 2]``, ``A.T``.

Dense storage is sliced as NumPy slices. Sparse storage goes through its coordinates, except that a range of the outermost mode
of a CSR-like format is cut out without looking at the rest.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.errors import NotationError
from sparseloom.formats.format import Format
from sparseloom.formats.level import Level, LevelData
from sparseloom.formats.levels.compressed import Compressed
from sparseloom.formats.levels.dense import Dense
from sparseloom.formats.named import coo
from sparseloom.formats.pack import pack, unpack
from sparseloom.formats.storage import Storage, derived, sealed
from sparseloom.tensor.interop.numpy import dense_storage, from_numpy, to_numpy

Selector = int | slice | NDArray[np.int64]


def select(storage: Storage, key: Any) -> Storage:
    """The part of a tensor that a key of integers, slices, ``...`` and at most one array of positions asks for."""
    selectors = _selectors(key, storage.shape)
    if storage.format.is_dense and not storage.format.blocks:
        part = from_numpy(to_numpy(storage)[tuple(selectors)]).storage
        return replace(part, fill=storage.fill)
    match storage.format.levels, selectors:
        case (Dense(), Compressed(ordered=True, unique=True)), [int(), int()]:
            return dense_storage(np.asarray(_entry(storage, selectors)))
        case (Dense(), Compressed(ordered=True, unique=True)), [_, _] if _is_row(storage.format, selectors):
            return _row(storage, selectors)
    storage, selectors = _narrow_outermost(storage, selectors)
    return _select_entries(storage, selectors)


def _is_row(format: Format, selectors: Sequence[Selector]) -> bool:
    """Whether one whole row of a CSR-like storage is wanted."""
    outer, inner = (selectors[mode] for mode in format.modes)
    return isinstance(outer, int) and isinstance(inner, slice) and inner == slice(None)


def _row(storage: Storage, selectors: Sequence[Any]) -> Storage:
    """One row of a CSR-like storage, with arrays of its own."""
    outer, inner = storage.format.modes
    pos, crd = storage.levels[1].arrays["pos"], storage.levels[1].arrays["crd"]
    begin, end = int(pos[selectors[outer]]), int(pos[selectors[outer] + 1])
    entries = LevelData({"pos": np.array((0, end - begin), pos.dtype), "crd": crd[begin:end].copy()})
    format, shape = _format_of(storage.format, [inner]), (storage.shape[inner],)
    return sealed(Storage(format, shape, (entries,), storage.values[begin:end].copy(), storage.fill))


def _entry(storage: Storage, place: Sequence[Any]) -> Any:
    """One value of a CSR-like storage, found by bisection."""
    row, coordinate = (place[mode] for mode in storage.format.modes)
    pos, crd = storage.levels[1].arrays["pos"], storage.levels[1].arrays["crd"]
    begin, end = int(pos[row]), int(pos[row + 1])
    at = begin + int(crd[begin:end].searchsorted(coordinate))
    return storage.values[at] if at < end and crd[at] == coordinate else storage.dtype.type(storage.fill)


def transposed(storage: Storage, axes: tuple[int, ...]) -> Storage:
    """The modes in another order: the arrays stay, only the format's mode order changes."""
    shape = tuple(storage.shape[old] for old in axes)
    return Storage(_transposed(storage.format, axes), shape, storage.levels, storage.values, storage.fill, storage.seal)


@lru_cache(maxsize=256)
def _transposed(format: Format, axes: tuple[int, ...]) -> Format:
    new_place = {old: new for new, old in enumerate(axes)}
    modes = tuple(new_place[mode] for mode in format.modes)
    return Format(format.levels, modes, tuple(format.blocks[old] for old in axes) if format.blocks else ())


def _selectors(key: Any, shape: tuple[int, ...]) -> list[Selector]:
    """One selector per mode: in-range integers, slices, and arrays of in-range positions."""
    keys = list(key) if isinstance(key, tuple) else [key]
    ellipses = [place for place, part in enumerate(keys) if part is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError("an index can have only one ellipsis ('...')")
    named = len(keys) - len(ellipses)
    if named > len(shape):
        raise IndexError(f"the tensor has {len(shape)} modes, but {named} were indexed")
    place = ellipses[0] if ellipses else len(keys)
    keys[place : place + 1] = [slice(None)] * (len(shape) - named)
    selectors = [_selector(part, mode, size) for mode, (part, size) in enumerate(zip(keys, shape, strict=True))]
    arrays = sum(isinstance(part, np.ndarray) for part in selectors)
    if arrays > 1:
        raise NotationError("a tensor can be indexed by an array in one mode at a time; index twice, as in A[rows][:, columns]")
    if arrays and any(isinstance(part, int) for part in selectors):
        raise NotationError("an array and an integer cannot index together; index twice, as in A[rows][:, 0]")
    return selectors


def _selector(part: Any, mode: int, size: int) -> Selector:
    if isinstance(part, slice):
        return part
    if part is None:
        raise NotationError("a tensor cannot get a new mode by indexing with None; use to_numpy(), or index notation")
    if isinstance(part, (list, np.ndarray)):
        array = np.asarray(part)
        if array.ndim != 1:
            raise NotationError(f"an array that indexes must have one dimension, not {array.ndim}; for a mask of all modes use sl.where")
        return _positions(array, mode, size)
    if isinstance(part, (bool, np.bool_)):
        raise NotationError("a truth value cannot index a tensor; use sl.where")
    try:
        position = operator.index(part)
    except TypeError:
        raise NotationError(
            f"{type(part).__name__} cannot index a tensor; use integers, slices, '...', an array of positions, or index variables"
        ) from None
    if not -size <= position < size:
        raise IndexError(f"position {position} is outside mode {mode}, which has size {size}")
    return position % size


def _positions(array: NDArray[Any], mode: int, size: int) -> NDArray[np.int64]:
    """An array of positions or a mask, as positions from 0."""
    if array.dtype == np.bool_:
        if len(array) != size:
            raise IndexError(f"a mask of length {len(array)} cannot select from mode {mode}, which has size {size}")
        return np.flatnonzero(array)
    if array.size and array.dtype.kind not in "iu":
        raise NotationError(f"an array of {array.dtype} cannot index a tensor; positions are integers")
    positions = array.astype(np.int64)
    outside = (positions < -size) | (positions >= size)
    if outside.any():
        raise IndexError(f"position {positions[outside][0]} is outside mode {mode}, which has size {size}")
    return np.where(positions < 0, positions + size, positions)


def _narrow_outermost(storage: Storage, selectors: list[Selector]) -> tuple[Storage, list[Selector]]:
    """Cut the wanted range of rows out of a CSR-like storage, as views."""
    match storage.format.levels:
        case (Dense(), Compressed()):
            mode = storage.format.modes[0]
        case _:
            return storage, selectors
    wanted = selectors[mode]
    rows = slice(wanted, wanted + 1) if isinstance(wanted, int) else wanted
    begin, end, step = rows.indices(storage.shape[mode]) if isinstance(rows, slice) else (0, 0, 0)
    if step != 1:
        return storage, selectors
    rest: Selector = 0 if isinstance(wanted, int) else slice(None)
    end = max(begin, end)
    pos, crd = storage.levels[1].arrays["pos"], storage.levels[1].arrays["crd"]
    first, last = int(pos[begin]), int(pos[end])
    shape = tuple(end - begin if m == mode else size for m, size in enumerate(storage.shape))
    segments = pos[begin : end + 1] - pos[begin] if first else pos[begin : end + 1]
    levels = (storage.levels[0], LevelData({"pos": segments, "crd": crd[first:last]}))
    narrow = Storage(storage.format, shape, levels, storage.values[first:last], storage.fill)
    return derived(narrow, storage), [rest if m == mode else part for m, part in enumerate(selectors)]


def _select_entries(storage: Storage, selectors: list[Selector]) -> Storage:
    """Keep the entries that every selector wants, with their new coordinates."""
    if all(isinstance(part, slice) and part == slice(None) for part in selectors):
        return storage
    coordinates, values = unpack(storage)
    kept: list[NDArray[np.int64]] = []
    entries = np.arange(len(values))
    shape: list[int] = []
    modes: list[int] = []
    for mode, part in enumerate(selectors):
        chosen, new, size = _select_mode(coordinates[mode][entries], part, storage.shape[mode])
        entries = entries[chosen]
        kept = [column[chosen] for column in kept]
        if not isinstance(part, int):
            kept.append(new)
            shape.append(size)
            modes.append(mode)
    stacked = np.stack(kept) if kept else np.empty((0, len(entries)), np.int64)
    return sealed(pack(_format_of(storage.format, modes), shape, stacked, values[entries], storage.fill))


def _select_mode(column: NDArray[np.int64], part: Selector, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Which entries a selector wants, their new coordinates, and the new size of the mode."""
    match part:
        case int():
            chosen = np.flatnonzero(column == part)
            return chosen, column[chosen], 1
        case slice():
            wanted = range(size)[part]
            offset = column - wanted.start
            places = offset // wanted.step
            chosen = np.flatnonzero((offset % wanted.step == 0) & (places >= 0) & (places < len(wanted)))
            return chosen, places[chosen], len(wanted)
    # A position may be wanted several times: each entry is repeated once per place that wants its coordinate.
    order = np.argsort(part, kind="stable")
    begin, end = np.searchsorted(part, column, "left", order), np.searchsorted(part, column, "right", order)
    often = end - begin
    chosen = np.repeat(np.arange(len(column)), often)
    within = np.arange(len(chosen)) - np.repeat(np.cumsum(often) - often, often)
    return chosen, order[np.repeat(begin, often) + within], len(part)


def _format_of(format: Format, kept: list[int]) -> Format:
    """The same kind of format for the modes that are kept."""
    if len(kept) == format.order:
        return format
    order = [mode for mode in dict.fromkeys(format.modes) if mode in kept]
    modes = tuple(kept.index(mode) for mode in order)
    if any(level.branchless for level in format.levels):
        return Format(coo(len(kept)).levels, modes)
    first_level = {mode: format.levels[k] for k, mode in reversed(list(enumerate(format.modes)))}
    levels: list[Level] = [first_level[mode] if isinstance(first_level[mode], Dense) else Compressed() for mode in order]
    if levels and all(level.full for level in levels):
        levels[-1] = Compressed()
    return Format(tuple(levels), modes)
