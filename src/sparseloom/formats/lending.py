"""Results that take over the structure of an operand, or its first levels: dense levels may stand below those.

    A(i,j,r) = B(i,j,k) * C(k,r)      B: sss   A: ssd      the first two levels are B's, with a row of values for each of their positions
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from sparseloom.core.algebra import Scalar
from sparseloom.formats.format import Format
from sparseloom.formats.level import LevelData
from sparseloom.formats.pack import position_counts
from sparseloom.formats.storage import Storage, lend


def lent_room(source: Storage, depth: int, form: Format, shape: tuple[int, ...]) -> int:
    """How many values a result has that takes over the first levels of a storage."""
    positions = len(source.values) if depth == len(source.levels) else position_counts(source)[depth]
    return positions * math.prod(form.level_sizes(shape)[depth:])


def built_on(source: Storage, depth: int, form: Format, shape: tuple[int, ...], values: NDArray[Any], fill: Scalar) -> Storage:
    """Values as a tensor with the first levels of a storage, in arrays that nobody else can change."""
    lender = lend(source if depth == len(source.levels) else replace(source, levels=source.levels[:depth]))
    return built_beside(lender, depth, form, shape, values, fill)


def built_beside(source: Storage, depth: int, form: Format, shape: tuple[int, ...], values: NDArray[Any], fill: Scalar) -> Storage:
    """Values as a tensor that has the arrays of a storage for its first levels."""
    levels = (*source.levels[:depth], *(LevelData() for _ in form.levels[depth:]))
    return Storage(form, shape, levels, values, fill, source.seal)
