"""Selecting and rearranging parts of a storage: ``A[0]``, ``A[1:3]``, ``A[:, 2]``, ``A.T``.

Dense storage is sliced as NumPy slices. Sparse storage goes through its coordinates, except that a range of the outermost mode
of a CSR-like format is cut out without looking at the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.settings import settings
from sparseloom.formats.format import Format
from sparseloom.formats.level import Level, LevelData
from sparseloom.formats.levels.compressed import Compressed
from sparseloom.formats.levels.dense import Dense
from sparseloom.formats.named import coo, csc, csr
from sparseloom.formats.pack import pack, unpack
from sparseloom.formats.parts import Window, is_tree, within, without_levels
from sparseloom.formats.storage import Storage, derived, sealed
from sparseloom.interop.numpy import dense_storage, from_numpy, to_numpy
from sparseloom.programs.conversion import convert
from sparseloom.tensor.keys import Part, parts_of, run_of
from sparseloom.tensor.picking import pick, select_mode
from sparseloom.tensor.rows import column_of, has_rows, of_columns, pick_rows


def select(storage: Storage, key: Any) -> Storage:
    """The part of a tensor that a key of integers, slices, ``...``, None, arrays of positions and masks asks for."""
    parts = parts_of(key, storage.shape)
    if storage.format.is_dense and not storage.format.blocks:
        part = from_numpy(np.asarray(to_numpy(storage)[tuple(parts)])).storage
        return replace(part, fill=storage.fill)
    selectors: list[int | slice] = [part for part in parts if isinstance(part, (int, slice))]
    if len(selectors) < len(parts):
        return _pick_modes(storage, parts)
    match storage.format.levels, selectors:
        case (Dense(), Compressed(ordered=True, unique=True)), [int(), int()]:
            return dense_storage(np.asarray(_entry(storage, selectors)))
        case (Dense(), Compressed(ordered=True, unique=True)), [_, _] if _is_row(storage.format, selectors):
            return _row(storage, selectors)
    if has_rows(storage.format):
        outer, inner = (selectors[mode] for mode in storage.format.modes)
        if outer == slice(None) and isinstance(inner, int):
            return _column(storage, selectors)
        if isinstance(outer, slice) and outer.step not in (None, 1):
            storage, selectors = _rows_in_steps(storage, selectors)
    if (made := _within(storage, selectors)) is not None:
        return made
    return _select_entries(storage, selectors)


def _within(storage: Storage, selectors: Sequence[int | slice]) -> Storage | None:
    """The part that integers and ascending slices ask for, level by level; None of a storage whose levels are no tree."""
    windows: list[Window] = [_window(part, size) for part, size in zip(selectors, storage.shape, strict=True)]
    if not is_tree(storage.format) or not storage.format.is_unique or any(window is not None and window.step < 1 for window in windows):
        return None
    modes = storage.format.modes
    part = within(storage, [windows[mode] for mode in modes])
    kept = [mode for mode, selector in enumerate(selectors) if not isinstance(selector, int)]
    if not kept:
        return dense_storage(np.asarray(part.values[0] if len(part.values) else storage.dtype.type(storage.fill)))
    if len(kept) < len(selectors):
        shape, dropped = tuple(part.shape[mode] for mode in kept), [k for k, mode in enumerate(modes) if mode not in kept]
        fewer = without_levels(part, _format_of(storage.format, kept), shape, dropped)
        if fewer is None:
            return None
        part = fewer
    return derived(part, storage)


def _window(part: int | slice, size: int) -> Window:
    """The coordinates that an integer or a slice wants; None for all."""
    if isinstance(part, int):
        return range(part, part + 1)
    return None if part == slice(None) else run_of(part, size)


def _is_row(format: Format, selectors: Sequence[int | slice]) -> bool:
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


def _column(storage: Storage, selectors: Sequence[Any]) -> Storage:
    """One column of a CSR-like storage."""
    outer, inner = storage.format.modes
    rows, values = column_of(storage, selectors[inner])
    return sealed(pack(_format_of(storage.format, [outer]), (storage.shape[outer],), rows[None, :], values, storage.fill))


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
    return Storage(_transposed(storage.format, axes), shape, storage.levels, storage.values, storage.fill, storage.seal, storage.owner)


def by_rows(storage: Storage) -> Storage:
    """A csc matrix as csr. A small one is sorted here: that is quicker than to ask how."""
    if storage.format != csc:
        return storage
    count = len(storage.values)
    if count >= settings.small_conversion:
        return convert(storage, csr)
    pos, crd = storage.levels[1].arrays["pos"], storage.levels[1].arrays["crd"]
    bits = count.bit_length()
    order = np.sort((crd.astype(np.int64) << bits) | np.arange(count)) & ((1 << bits) - 1)
    rows = np.zeros(storage.shape[0] + 1, pos.dtype)
    np.cumsum(np.bincount(crd, minlength=storage.shape[0]), out=rows[1:])
    columns = np.repeat(np.arange(storage.shape[1], dtype=crd.dtype), np.diff(pos))[order]
    levels = (storage.levels[0], LevelData({"pos": rows, "crd": columns}))
    return sealed(Storage(csr, storage.shape, levels, storage.values[order], storage.fill))


@lru_cache(maxsize=256)
def _transposed(format: Format, axes: tuple[int, ...]) -> Format:
    new_place = {old: new for new, old in enumerate(axes)}
    modes = tuple(new_place[mode] for mode in format.modes)
    return Format(format.levels, modes, tuple(format.blocks[old] for old in axes) if format.blocks else ())


def _pick_modes(storage: Storage, parts: Sequence[Part]) -> Storage:
    """As ``pick``, in the same format where one array picks positions of one mode and every mode is kept."""
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    slices = [part for part in parts if isinstance(part, slice)]
    if not storage.format.is_unique:
        storage = convert(storage, coo(len(storage.shape)))
    stays = len(arrays) == 1 and arrays[0].ndim == 1 and len(slices) + 1 == len(parts)
    if stays and has_rows(storage.format):
        storage, parts = pick_rows(storage, parts)
        if (made := of_columns(storage, parts)) is not None:
            return made
        if all(isinstance(part, slice) for part in parts):
            return _select_entries(storage, [part for part in parts if isinstance(part, slice)])
    return pick(storage, parts, storage.format if stays else None)


def _rows_in_steps(storage: Storage, selectors: list[int | slice]) -> tuple[Storage, list[int | slice]]:
    """The rows of a CSR-like storage that a slice of them wants in any steps, run by run, and what is wanted of these."""
    picked, left = pick_rows(storage, selectors)
    return picked, [part for part in left if isinstance(part, (int, slice))]


def _select_entries(storage: Storage, selectors: list[int | slice]) -> Storage:
    """Keep the entries that every selector wants, with their new coordinates."""
    if all(isinstance(part, slice) and part == slice(None) for part in selectors):
        return storage
    if has_rows(storage.format) and (made := of_columns(storage, selectors)) is not None:
        return made
    coordinates, values = unpack(storage)
    kept: list[NDArray[np.int64]] = []
    entries = np.arange(len(values))
    shape: list[int] = []
    modes: list[int] = []
    for mode, part in enumerate(selectors):
        chosen, new, size = select_mode(coordinates[mode][entries], part, storage.shape[mode])
        entries = entries[chosen]
        kept = [column[chosen] for column in kept]
        if not isinstance(part, int):
            kept.append(new)
            shape.append(size)
            modes.append(mode)
    stacked = np.stack(kept) if kept else np.empty((0, len(entries)), np.int64)
    return sealed(pack(_format_of(storage.format, modes), shape, stacked, values[entries], storage.fill))


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
