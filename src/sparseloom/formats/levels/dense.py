"""Dense: every coordinate is stored, so nothing but the values needs room.

size 4 below two parents

position    0 1 2 3   4 5 6 7
coordinate  0 1 2 3   0 1 2 3        position = parent * size + coordinate
parent      0         1
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sparseloom.core.dtypes import DType
from sparseloom.core.errors import FormatError
from sparseloom.core.trees import node
from sparseloom.formats.level import Checked, Fault, Index, Level, LevelData, LevelView, Outline
from sparseloom.loops.nodes import ZERO, Expr, Op, add, multiply


class Placed(Level):
    """A place for every coordinate from 0 to the size, below each parent."""

    __slots__ = ()
    can_locate: ClassVar[bool] = True

    def pack(self, parents: Index, coordinates: Index, size: int, parent_count: int, index_dtype: DType) -> tuple[LevelData, Index, int]:
        count = parent_count * size
        if count > np.iinfo(np.int64).max:
            name = type(self).__name__.lower()
            raise FormatError(f"a {name} level of size {size} below {parent_count} positions is too large; use a compressed level")
        return LevelData(), parents * size + coordinates, count

    def unpack(self, data: LevelData, size: int, parent_count: int) -> tuple[Index, Index]:
        return np.repeat(np.arange(parent_count), size), np.tile(np.arange(size), parent_count)

    def count(self, data: LevelData, size: int, parent_count: int) -> int:
        return parent_count * size

    def least(self, size: int, parent_count: int, entries: int, width: int) -> tuple[int, int]:
        return parent_count * size * len(self.truth_names), parent_count * size

    def made(self, size: int, parent_count: int, counted: int) -> tuple[int, dict[str, int]]:
        return parent_count * size, dict.fromkeys(self.array_names, parent_count * size)

    def check(self, data: LevelData, size: int, above: Checked) -> Fault | Checked:
        return Checked(above.positions * size)

    def outline(self, data: LevelData, size: int, parent_count: int) -> Outline | None:
        return Outline(parent_count * size, self.array_names)

    def bounds(self, view: LevelView, parent: Expr) -> tuple[Expr, Expr]:
        begin = multiply(parent, view.size)
        return begin, add(begin, view.size)

    def coordinate(self, view: LevelView, parent: Expr, position: Expr) -> Expr:
        begin = multiply(parent, view.size)
        return position if begin == ZERO else Op("subtract", (position, begin))

    def search(self, view: LevelView, parent: Expr, begin: Expr, end: Expr, coordinate: Expr) -> Expr:
        return Op("maximum", (begin, Op("minimum", (end, add(multiply(parent, view.size), coordinate)))))

    def parent(self, view: LevelView, position: Expr, begin: Expr, end: Expr) -> Expr:
        return Op("floor_divide", (position, view.size))

    def locate(self, view: LevelView, parent: Expr, coordinate: Expr) -> tuple[Expr, Expr]:
        position = add(multiply(parent, view.size), coordinate)
        return position, self.used(view, parent, position)


@node
class Dense(Placed):
    """Stores every coordinate."""

    full: ClassVar[bool] = True

    letter = "d"
