"""An independent reading of what each level promises, one element at a time. Shares no code with ``formats.validate``."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from sparseloom.formats.storage import Storage


def keeps_its_promises(storage: Storage) -> bool:
    """Whether every array of the storage holds what its level promises."""
    paths: list[tuple[Any, ...] | None] = [()]  # per position: the path of the chain it is in; None at unused places
    for level, data, size in zip(storage.format.levels, storage.levels, storage.format.level_sizes(storage.shape), strict=True):
        arrays = {}
        for name in level.array_names:
            array = data.arrays.get(name)
            kinds = ("|b1",) if name == "present" else ("<i4", "<i8")
            if not isinstance(array, np.ndarray) or array.dtype.str not in kinds or array.ndim != 1:
                return False
            if array.strides != (array.itemsize,) and len(array) > 1:
                return False
            arrays[name] = array.tolist()
        nodes = _NODES[type(level).__name__](arrays, data.scalars, size, len(paths))
        if nodes is None or not all(0 <= c < size for node in nodes if node is not None for c in node[1:]):
            return False
        below: list[tuple[Any, ...] | None] = []
        for node in nodes:
            if node is None:
                below.append(None)
                continue
            parent, coordinate = node
            above = paths[parent]
            # Branchless levels lengthen the chain's path; other levels begin a new one below their parent.
            start = above if level.branchless and above is not None else (parent,)
            below.append((*start, coordinate))
        if not _ordered_and_unique(below, level.ordered, level.unique):
            return False
        paths = below
    enough = len(storage.values) >= len(paths)
    return enough and (not storage.format.is_dense or len(storage.values) == len(paths))


def _ordered_and_unique(paths: list[tuple[Any, ...] | None], ordered: bool, unique: bool) -> bool:
    used = [path for path in paths if path is not None]
    if unique and len(set(used)) != len(used):
        return False
    return not ordered or all(a[:-1] != b[:-1] or a[-1] <= b[-1] for a, b in pairwise(used))


def _dense(arrays: Any, scalars: Any, size: int, parents: int) -> list[Any]:
    return [(parent, c) for parent in range(parents) for c in range(size)]


def _compressed(arrays: Any, scalars: Any, size: int, parents: int) -> list[Any] | None:
    pos, crd = arrays["pos"], arrays["crd"]
    if len(pos) != parents + 1 or pos[0] != 0 or any(a > b for a, b in pairwise(pos)) or pos[-1] > len(crd):
        return None
    return [(parent, crd[p]) for parent in range(parents) for p in range(pos[parent], pos[parent + 1])]


def _singleton(arrays: Any, scalars: Any, size: int, parents: int) -> list[Any] | None:
    crd = arrays["crd"]
    return None if len(crd) < parents else [(parent, crd[parent]) for parent in range(parents)]


def _padded(arrays: Any, scalars: Any, size: int, parents: int) -> list[Any] | None:
    lengths, crd, width = arrays["len"], arrays["crd"], scalars.get("width")
    if type(width) is not int or width < 0 or len(lengths) != parents or len(crd) < parents * width:
        return None
    if any(not 0 <= length <= width for length in lengths):
        return None
    nodes: list[Any] = []
    for parent in range(parents):
        for place in range(width):
            is_used = place < lengths[parent]
            if not is_used and crd[parent * width + place] != 0:
                return None
            nodes.append((parent, crd[parent * width + place]) if is_used else None)
    return nodes


def _bitmap(arrays: Any, scalars: Any, size: int, parents: int) -> list[Any] | None:
    present = arrays["present"]
    if len(present) != parents * size:
        return None
    return [(parent, c) if present[parent * size + c] else None for parent in range(parents) for c in range(size)]


def _offset(arrays: Any, scalars: Any, size: int, parents: int) -> list[Any] | None:
    offsets, diagonals, width = arrays["offsets"], scalars.get("diagonals"), scalars.get("width")
    if any(type(number) is not int or number < 0 for number in (diagonals, width)) or len(offsets) != diagonals:
        return None
    if any(a >= b for a, b in pairwise(offsets)) or any(abs(offset) > 2**62 for offset in offsets):
        return None
    places = [(column - offset, column) for offset in offsets for column in range(width)]
    return [place if 0 <= place[0] < parents and place[1] < size else None for place in places]


_NODES = {"Dense": _dense, "Compressed": _compressed, "Singleton": _singleton, "Padded": _padded, "Bitmap": _bitmap, "Offset": _offset}
