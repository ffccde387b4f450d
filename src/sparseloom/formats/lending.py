"""Results that take over the structure of an operand, or its first levels: dense levels may stand below those.

A(i,j,r) = B(i,j,k) * C(k,r)      B: sss   A: ssd      the first two levels are B's, with a row of values for each of their positions
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.algebra import Scalar
from sparseloom.formats.format import Format
from sparseloom.formats.level import LevelData, Mask
from sparseloom.formats.pack import pack, position_counts, unpack
from sparseloom.formats.storage import Copy, Owner, Storage, copy_of, lend, lend_levels, sealed


def lent_room(source: Storage, depth: int, form: Format, shape: tuple[int, ...]) -> int:
    """How many values a result has that takes over the first levels of a storage."""
    positions = len(source.values) if depth == len(source.levels) else position_counts(source)[depth]
    return positions if depth == len(form.levels) else positions * math.prod(form.level_sizes(shape)[depth:])


def built_on(
    source: Storage, depth: int, form: Format, shape: tuple[int, ...], values: NDArray[Any], fill: Scalar, copy: Copy = copy_of
) -> Storage:
    """Values as a tensor with the first levels of a storage, in arrays that nobody else can change.

    What has no entries below it, which only arrays of a caller's do, has none of the result's either.
    """
    if depth == len(source.levels) == len(form.levels):
        levels, seal = lend_levels(source, copy)
        return Storage(form, shape, levels, values, fill, seal, Owner())
    lender = lend(replace(source, levels=source.levels[:depth]), copy)
    made = built_beside(lender, depth, form, shape, values, fill)
    return made if is_filled_below(source, depth) else _taking(made, _used(source, depth))


def built_beside(source: Storage, depth: int, form: Format, shape: tuple[int, ...], values: NDArray[Any], fill: Scalar) -> Storage:
    """Values as a tensor that has the arrays of a storage for its first levels."""
    levels = (*source.levels[:depth], *(LevelData() for _ in form.levels[depth:]))
    return Storage(form, shape, levels, values, fill, source.seal, Owner())


_filled: WeakKeyDictionary[Storage, dict[int, bool]] = WeakKeyDictionary()


def is_filled_below(source: Storage, depth: int) -> bool:
    """Whether every position of the first levels has an entry below it. It is known from then on, unless a caller can change the arrays."""
    if depth == len(source.levels):
        return True
    if not source.is_sealed:
        return _has_no_gaps(source, depth)
    known = _filled.setdefault(source, {})
    if depth not in known:
        known[depth] = _has_no_gaps(source, depth)
    return known[depth]


def _has_no_gaps(source: Storage, depth: int) -> bool:
    """Whether no row below the first levels is empty, which their ends tell; else it takes a look at every entry."""
    sizes, counts = source.format.level_sizes(source.shape), position_counts(source)
    for level, data, size, count in list(zip(source.format.levels, source.levels, sizes, counts, strict=False))[depth:]:
        ends: Any = data.arrays.get("pos")
        if ends is not None and ends.device != "cpu":
            ends = ends.to_host()
        rows = None if ends is None else ends[: count + 1]
        if not (level.branchless or (level.full and size) or (rows is not None and level.compact and bool((rows[1:] > rows[:-1]).all()))):
            return bool(_used(source, depth).all())
    return True


def _used(source: Storage, depth: int) -> Mask:
    """Which positions of the first levels have entries below them."""
    sizes, counts = source.format.level_sizes(source.shape), position_counts(source)
    used: Mask | None = None
    for k in reversed(range(depth, len(source.levels))):
        parents, _ = source.format.levels[k].unpack(source.levels[k], sizes[k], counts[k])
        used = np.ones(len(parents), np.bool_) if used is None else used
        above = np.zeros(counts[k], np.bool_)
        above[parents[used & (parents >= 0)]] = True
        used = above
    return np.ones(counts[depth], np.bool_) if used is None else used


def _taking(made: Storage, used: Mask) -> Storage:
    """The same tensor with the entries of some positions only."""
    coordinates, values = unpack(made)
    kept = np.repeat(used, len(values) // max(len(used), 1))
    return sealed(pack(made.format, made.shape, coordinates[:, kept], values[kept], made.fill, index_dtype=made.index_dtype))
