"""Conversion between formats that differ in one level: that level is packed anew, and everything else moves along.

    bcsr -> blocked ELL      the segments of blocks become padded rows, and each block of values is copied whole
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from sparseloom.core.dtypes import INT64
from sparseloom.formats.format import Format
from sparseloom.formats.pack import position_counts
from sparseloom.formats.room import require_places
from sparseloom.formats.storage import Storage


def with_one_level_changed(storage: Storage, format: Format) -> Storage | None:
    """The same tensor in a format that differs in one level; None if more differs, or entries would have to be put in order."""
    k = _changed_level(storage.format, format)
    if k is None:
        return None
    sizes, counts = format.level_sizes(storage.shape), position_counts(storage)
    parents, coordinates = storage.format.levels[k].unpack(storage.levels[k], sizes[k], counts[k])
    width = storage.index_dtype or INT64
    require_places(format, sizes[:k], counts[k] * (INT64.itemsize + width.itemsize))
    data, positions, count = format.levels[k].pack(parents.astype(np.int64), coordinates, sizes[k], counts[k], width)
    block = math.prod(sizes[k + 1 :])
    require_places(format, sizes, count * block * storage.dtype.itemsize)
    values = np.full((count, block), storage.fill, storage.dtype)
    values[positions] = storage.values[: len(parents) * block].reshape(len(parents), block)
    levels = (*storage.levels[:k], data, *storage.levels[k + 1 :])
    return replace(storage, format=format, levels=levels, values=values.reshape(-1), seal=None, owner=None)


def _changed_level(given: Format, wanted: Format) -> int | None:
    """The only level in which two formats differ, if it alone must be packed anew: full levels stand below it, if any do."""
    if (given.modes, given.blocks) != (wanted.modes, wanted.blocks):
        return None
    changed = [k for k, (old, new) in enumerate(zip(given.levels, wanted.levels, strict=True)) if old != new]
    if len(changed) != 1 or not all(level.full for level in wanted.levels[changed[0] + 1 :]):
        return None
    old, new = given.levels[changed[0]], wanted.levels[changed[0]]
    is_listed = old.compact and old.ordered and given.is_unique and not (old.full or old.branchless or old.shares_values)
    return changed[0] if is_listed and not (new.full or new.branchless or new.shares_values) else None
