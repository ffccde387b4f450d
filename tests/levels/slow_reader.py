"""What sound storage holds, read one position at a time. Shares no code with ``formats.pack``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sparseloom.formats.storage import Storage


def entries_of(storage: Storage) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Coordinates and value of every entry, in the order of their positions; outside the shape where blocks reach over the edge."""
    form = storage.format
    sizes = form.level_sizes(storage.shape)

    def below(level: int, position: int, path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Any]]:
        if level == len(form.levels):
            yield _place(storage, path), storage.values[position]
            return
        for p, coordinate in _children(storage, level, position, sizes[level]):
            yield from below(level + 1, p, (*path, coordinate))

    return below(0, 0, ())


def _children(storage: Storage, level: int, parent: int, size: int) -> Iterator[tuple[int, int]]:
    """The positions below one parent, and their coordinates."""
    data = storage.levels[level]
    match sorted((*data.arrays, *data.scalars)):
        case []:
            yield from ((parent * size + c, c) for c in range(size))
        case ["crd"]:
            yield parent, int(data.arrays["crd"][parent])
        case ["crd", "len", "width"]:
            begin = parent * data.scalars["width"]
            yield from ((p, int(data.arrays["crd"][p])) for p in range(begin, begin + int(data.arrays["len"][parent])))
        case ["present"]:
            yield from ((parent * size + c, c) for c in range(size) if data.arrays["present"][parent * size + c])
        case ["diagonals", "offsets", "width"]:
            width = data.scalars["width"]
            columns = ((k, parent + int(offset)) for k, offset in enumerate(data.arrays["offsets"]))
            yield from ((k * width + column, column) for k, column in columns if 0 <= column < min(size, width))
        case _:
            pos, crd = data.arrays["pos"], data.arrays["crd"]
            yield from ((p, int(crd[p])) for p in range(int(pos[parent]), int(pos[parent + 1])))


def _place(storage: Storage, path: tuple[int, ...]) -> tuple[int, ...]:
    """One coordinate per mode from one per level: a second level of a mode stands inside the block of the first."""
    place: list[int | None] = [None] * len(storage.shape)
    for mode, coordinate in zip(storage.format.modes, path, strict=True):
        before = place[mode]
        if before is not None:
            place[mode] = before + coordinate
        else:
            place[mode] = coordinate * (storage.format.blocks[mode] if storage.format.blocks else 1)
    return tuple(c or 0 for c in place)


def read_slowly(storage: Storage) -> np.ndarray:
    """The whole tensor as an array: repeated entries are summed, absent ones are the fill."""
    dense = np.full(storage.shape, storage.fill, storage.values.dtype)
    stored: set[tuple[int, ...]] = set()
    for place, value in entries_of(storage):
        if all(c < size for c, size in zip(place, storage.shape, strict=True)):
            dense[place] = dense[place] + value if place in stored else value
            stored.add(place)
    return dense
