"""Parts of a tensor, level by level: ranges of coordinates, and entries that a mask keeps. Nothing is listed that is not in the part.

    within(T, (range(2, 3), None, None))      T: sss      the segment of coordinate 2, then those of its children: views of the arrays
    where(T, mask)                                        the entries that stay; coordinates with nothing left below them go, too

All coordinates below one parent are neighbours. So a range of the first level is a range of every level below it, and what is cut further
down is found by one look at the coordinates of that level. Dense levels must stand first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import INT32
from sparseloom.formats.format import Format
from sparseloom.formats.level import Index, LevelData, Mask
from sparseloom.formats.levels import Compressed, Dense, Singleton
from sparseloom.formats.pack import position_counts
from sparseloom.formats.storage import Storage

Window = range | None
"""The coordinates of one level that stay, in ascending order and counted anew from 0; None for all of them."""


@lru_cache(maxsize=256)
def is_tree(format: Format) -> bool:
    """Whether a storage has the parts of this module: dense levels, and then segments of coordinates."""
    first = next((k for k, level in enumerate(format.levels) if not isinstance(level, Dense)), None)
    if first is None or format.blocks:
        return False
    return all(isinstance(level, Compressed | Singleton) for level in format.levels[first:])


def is_list(format: Format) -> bool:
    """Whether it is a list of entries, with a column of coordinates for each level, as coo is."""
    return is_tree(format) and isinstance(format.levels[0], Compressed) and all(isinstance(k, Singleton) for k in format.levels[1:])


def below_one(storage: Storage, format: Format) -> Storage:
    """A tree below a compressed level of one coordinate, for a new first mode of size 1."""
    modes, width = tuple(mode + 1 for mode in storage.format.modes), storage.index_dtype or INT32
    count = int(len(storage.values) > 0)
    first = LevelData({"pos": np.array((0, count), width), "crd": np.zeros(count, width)})
    return replace(storage, format=Format(format.levels, (0, *modes)), shape=(1, *storage.shape), levels=(first, *storage.levels))


def within(storage: Storage, windows: Sequence[Window]) -> Storage:
    """The part of a tree at some ranges of coordinates, one for each level. Arrays that are only cut at their ends are shared."""
    cut, sizes = _Cut(storage), storage.format.level_sizes(storage.shape)
    for k, (size, window) in enumerate(zip(sizes, windows, strict=True)):
        match storage.format.levels[k]:
            case Dense():
                cut.locate(size, window)
            case Compressed():
                cut.descend(storage.levels[k])
                cut.confine(k, window)
            case _:
                cut.levels.append(LevelData({"crd": cut.taken(storage.levels[k].arrays["crd"])}))
                cut.confine(k, window)
    shape = list(storage.shape)
    for mode, window in zip(storage.format.modes, windows, strict=True):
        shape[mode] = storage.shape[mode] if window is None else len(window)
    return cut.pruned(cut.taken(storage.values), tuple(shape))


def where(storage: Storage, mask: Mask) -> Storage:
    """The entries that a mask over the values keeps."""
    cut = _Cut(storage)
    cut.levels = list(storage.levels)
    count = position_counts(storage)[-1]
    return cut.pruned(storage.values.take(cut.keep(len(cut.levels) - 1, mask[:count])), storage.shape)


def joined(storages: Sequence[Storage], dtype: np.dtype[np.generic], width: np.dtype[np.signedinteger]) -> Storage:
    """Trees of one format behind each other along the mode of their first level, with indices of a given width."""
    form, mode = storages[0].format, storages[0].format.modes[0]
    counts = [position_counts(storage) for storage in storages]
    ends = _ends(np.array([storage.shape[mode] for storage in storages]), width)
    levels: list[LevelData] = []
    for k, level in enumerate(form.levels):
        if level.full:
            levels.append(LevelData())
            continue
        data = [storage.levels[k].arrays for storage in storages]
        before = _ends(np.array([count[k + 1] for count in counts]), width)
        crds = [arrays["crd"][: count[k + 1]] for arrays, count in zip(data, counts, strict=True)]
        crd = np.concatenate(crds, dtype=width)
        if k == 0:
            for begin, end, offset in zip(before[:-1], before[1:], ends[:-1], strict=True):
                crd[begin:end] += offset
        if "pos" not in data[0]:
            levels.append(LevelData({"crd": crd}))
        elif k == 0:
            levels.append(LevelData({"pos": np.array((0, before[-1]), width), "crd": crd}))
        else:
            segments = [arrays["pos"][1:] + offset for arrays, offset in zip(data, before[:-1], strict=True)]
            levels.append(LevelData({"pos": np.concatenate((np.zeros(1, width), *segments), dtype=width), "crd": crd}))
    stored = [storage.values[: count[-1]] for storage, count in zip(storages, counts, strict=True)]
    values = np.concatenate([each.astype(dtype, copy=False) for each in stored])
    shape = tuple(int(ends[-1]) if m == mode else size for m, size in enumerate(storages[0].shape))
    return Storage(form, shape, tuple(levels), values, storages[0].fill)


def without_levels(storage: Storage, format: Format, shape: tuple[int, ...], dropped: Sequence[int]) -> Storage | None:
    """The tensor without levels that have one coordinate, in the format of those that are left; None where more must be changed."""
    kept = [k for k in range(len(storage.levels)) if k not in dropped]
    if is_list(storage.format):
        crds = [storage.levels[k].arrays["crd"] for k in kept]
        pos = storage.levels[0].arrays["pos"]
        levels = (LevelData({"pos": pos, "crd": crds[0]}), *(LevelData({"crd": crd}) for crd in crds[1:]))
        return replace(storage, format=format, shape=shape, levels=levels)
    if [type(storage.format.levels[k]) for k in kept] != [type(level) for level in format.levels] or format.levels[-1].full:
        return None
    levels_left = list(storage.levels)
    for k in reversed(dropped):
        below = levels_left[k + 1].arrays if k + 1 < len(levels_left) else None
        if isinstance(storage.format.levels[k], Compressed) and below is not None:
            if "pos" not in below:
                return None
            levels_left[k + 1] = LevelData({**below, "pos": below["pos"][levels_left[k].arrays["pos"]]})
        elif not isinstance(storage.format.levels[k], Dense | Compressed) or (below is None and k and storage.format.levels[k - 1].full):
            return None
        del levels_left[k]
    return replace(storage, format=format, shape=shape, levels=tuple(levels_left))


def coordinates_of(storage: Storage, level: int) -> Index:
    """The coordinate at one level of every value of a tree."""
    form, sizes = storage.format, storage.format.level_sizes(storage.shape)
    if form.levels[level].full:
        found: Index = np.arange(sizes[level], dtype=storage.index_dtype)
        above = 1
        for size in sizes[:level]:
            above *= size
        found = np.tile(found, above) if above != 1 else found
    else:
        found = storage.levels[level].arrays["crd"]
    for k in range(level + 1, len(form.levels)):
        match form.levels[k]:
            case Dense():
                found = np.repeat(found, sizes[k])
            case Compressed():
                pos = storage.levels[k].arrays["pos"]
                found = np.repeat(found[: len(pos) - 1], np.diff(pos))
    return found[: len(storage.values)]


class _Cut:
    """A part under construction: the levels so far, and which positions of the level above stay, as a slice or one by one."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.levels: list[LevelData] = []
        self.at: slice | NDArray[np.int64] = slice(0, 1)

    def taken(self, array: Index) -> Index:
        """What an array has at the positions that stay."""
        return array[self.at] if isinstance(self.at, slice) else array.take(self.at)

    def locate(self, size: int, window: Window) -> None:
        """A dense level: positions are computed."""
        self.levels.append(LevelData())
        rows, at = window if window is not None else range(size), self.at
        if isinstance(at, slice) and len(rows) == size:
            self.at = slice(at.start * size, at.stop * size)
        elif isinstance(at, slice) and at.stop - at.start == 1 and rows.step == 1:
            self.at = slice(at.start * size + rows.start, at.start * size + rows.stop)
        else:
            above = np.arange(at.start, at.stop) if isinstance(at, slice) else at
            self.at = (above[:, None] * size + np.asarray(rows, np.int64)).ravel()

    def descend(self, data: LevelData) -> None:
        """A compressed level: from the positions of parents to those of their segments."""
        pos, crd, at = data.arrays["pos"], data.arrays["crd"], self.at
        if isinstance(at, slice):
            starts = pos[at.start : at.stop + 1]
            begin, end = int(starts[0]), int(starts[-1])
            self.at = slice(begin, end)
            self.levels.append(LevelData({"pos": starts - starts[0] if begin else starts, "crd": crd[begin:end]}))
            return
        starts = pos.take(at)
        counts = pos.take(at + 1) - starts
        ends = _ends(counts, pos.dtype)
        self.at = np.repeat(starts - ends[:-1], counts) + np.arange(ends[-1])
        self.levels.append(LevelData({"pos": ends, "crd": crd.take(self.at)}))

    def confine(self, k: int, window: Window) -> None:
        """Keep the coordinates of level ``k`` that lie in a window."""
        if window is None:
            return
        arrays, at = self.levels[k].arrays, self.at
        crd, pos = arrays["crd"], arrays.get("pos")
        if isinstance(at, slice) and pos is not None and len(pos) == 2 and window.step == 1 and self.storage.format.levels[k].ordered:
            begin, end = _place(crd, window.start), _place(crd, window.stop)
            self.at = slice(at.start + begin, at.start + end)
            arrays = {"pos": np.array([0, end - begin], pos.dtype), "crd": crd[begin:end]}
        else:
            mask = (crd >= window.start) & (crd < window.stop)
            if window.step > 1:
                mask &= (crd - window.start) % window.step == 0
            chosen = self.keep(k, mask)
            self.at = chosen + at.start if isinstance(at, slice) else at.take(chosen)
            arrays = self.levels[k].arrays
        crd = arrays["crd"]
        if len(crd) and (window.start or window.step > 1):
            self.levels[k] = LevelData({**arrays, "crd": (crd - window.start) // window.step if window.step > 1 else crd - window.start})
        else:
            self.levels[k] = LevelData(arrays)

    def keep(self, k: int, mask: Mask) -> NDArray[np.int64]:
        """Keep some positions of level ``k``, which are also those of the levels of a list above it. Says which they are."""
        chosen = np.flatnonzero(mask)
        while True:
            arrays = self.levels[k].arrays
            made = {"crd": arrays["crd"].take(chosen)}
            if "pos" in arrays:
                before = np.zeros(len(mask) + 1, arrays["pos"].dtype)
                np.cumsum(mask, out=before[1:])
                self.levels[k] = LevelData({"pos": before.take(arrays["pos"]), **made})
                return chosen
            self.levels[k] = LevelData(made)
            k -= 1

    def pruned(self, values: NDArray[np.generic], shape: tuple[int, ...]) -> Storage:
        """The part, without coordinates that have nothing left below them."""
        form = self.storage.format
        for k in range(len(form.levels) - 1, 0, -1):
            if not isinstance(form.levels[k], Compressed) or form.levels[k - 1].full:
                continue
            pos = self.levels[k].arrays["pos"]
            filled = pos[1:] > pos[:-1]
            if not filled.all():
                self.levels[k] = LevelData({**self.levels[k].arrays, "pos": np.append(pos[:-1][filled], pos[-1])})
                self.keep(k - 1, filled)
        return Storage(form, shape, tuple(self.levels), values, self.storage.fill)


def _place(crd: Index, coordinate: int) -> int:
    """Where a coordinate stands, or would stand, in a segment; it may be more than the array's type holds."""
    return len(crd) if coordinate > np.iinfo(crd.dtype).max else int(np.searchsorted(crd, crd.dtype.type(coordinate)))


def _ends(counts: Index, dtype: np.dtype[np.generic]) -> Index:
    """Where segments of so many entries begin and end."""
    ends: Index = np.zeros(len(counts) + 1, dtype)
    np.cumsum(counts, out=ends[1:])
    return ends
