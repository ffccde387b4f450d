"""Offset: bands. Every row has the same diagonals, each so many places to the right of the row's own number.

    1 2 . .        offsets   -1      0      1              diagonals 3, width 4
    3 4 5 .        values    3 6 . . 1 4 7 . . 2 5 8       diagonal k, column j: at k*width + j
    . 6 7 8

    row 1: columns 1 + offsets[k] = 0 1 2                  position = row*diagonals + k
    row 0:         0 + offsets[k] = . 0 1                  those in [0, size) are a run of positions, for offsets ascend

Values stand as in SciPy's DIA. What stands there outside of the matrix (drawn as dots) means nothing, so the level is not compact. A
``width`` below the size leaves out the columns behind it.

Arrays know a position by its value's place; loops know it by row and diagonal, and ``slot`` leads from these to the values.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sparseloom.core.dtypes import DType
from sparseloom.core.errors import FormatError
from sparseloom.core.trees import node
from sparseloom.formats.level import Checked, Fault, Index, Level, LevelData, LevelView, Outline, array_fault, load_index
from sparseloom.loops.nodes import ZERO, Expr, Op, Search, add, both, compare, multiply

FURTHEST = 2**62  # an offset and a row can be added in 64 bits
_LARGEST = 2**63 - 1


@node
class Offset(Level):
    """Stores diagonals: the distance of each from the main one."""

    array_names: ClassVar[tuple[str, ...]] = ("offsets",)
    scalar_names: ClassVar[tuple[str, ...]] = ("diagonals", "width")
    compact: ClassVar[bool] = False
    padded: ClassVar[bool] = True

    letter = "o"

    def misplaced(self, levels: tuple[Level, ...], place: int) -> str | None:
        if place == 1 and len(levels) == 2 and levels[0].full:
            return None
        return "an offset level stands below one dense level and nothing else: diagonals are counted from its rows; write do or do:1,0"

    def pack(self, parents: Index, coordinates: Index, size: int, parent_count: int, index_dtype: DType) -> tuple[LevelData, Index, int]:
        offsets, diagonal = np.unique(coordinates.astype(np.int64) - parents, return_inverse=True)
        count = len(offsets) * size
        if max(count, len(offsets) * parent_count) > _LARGEST:
            raise FormatError(f"{len(offsets)} diagonals of {parent_count} x {size} are too large; use a compressed level")
        data = LevelData({"offsets": offsets.astype(index_dtype)}, {"diagonals": len(offsets), "width": size})
        return data, diagonal.reshape(-1) * size + coordinates, count

    def unpack(self, data: LevelData, size: int, parent_count: int) -> tuple[Index, Index]:
        columns = np.arange(data.scalars["width"])
        rows = columns - data.arrays["offsets"].astype(np.int64)[:, None]
        inside = (rows >= 0) & (rows < parent_count) & (columns < size)
        return np.where(inside, rows, -1).ravel(), np.tile(columns, data.scalars["diagonals"])

    def count(self, data: LevelData, size: int, parent_count: int) -> int:
        return data.scalars["diagonals"] * data.scalars["width"]

    def passed(self, data: LevelData, size: int, parent_count: int) -> int:
        return max(self.count(data, size, parent_count), parent_count * data.scalars["diagonals"])

    def least(self, size: int, parent_count: int, entries: int, width: int) -> tuple[int, int]:
        return width, size if entries else 0

    def check(self, data: LevelData, size: int, above: Checked) -> Fault | Checked:
        diagonals, width = (data.scalars.get(name) for name in self.scalar_names)
        for name, number in (("diagonals", diagonals), ("width", width)):
            if type(number) is not int or not 0 <= number <= _LARGEST:
                return Fault(name, None, f"must be a number of places, at least 0, not {number!r}")
        fault = array_fault(data, "offsets", 0)
        if fault is not None or type(diagonals) is not int or type(width) is not int:
            return fault or Checked(0)
        offsets = data.arrays["offsets"]
        if len(offsets) != diagonals:
            return Fault("offsets", None, f"has {len(offsets)} elements; there are {diagonals} diagonals")
        if max(diagonals * width, diagonals * above.positions) > _LARGEST or above.positions > FURTHEST:
            return Fault("diagonals", None, f"= {diagonals} of width {width} below {above.positions} rows are more than 64 bits count")
        return _order_fault(offsets) or Checked(diagonals * width)

    def outline(self, data: LevelData, size: int, parent_count: int) -> Outline | None:
        return Outline(self.count(data, size, parent_count), ("offsets",))

    def begin(self, view: LevelView, parent: Expr) -> Expr:
        return multiply(parent, view.scalars["diagonals"])

    def bounds(self, view: LevelView, parent: Expr) -> tuple[Expr, Expr]:
        first, every = self.begin(view, parent), (ZERO, view.scalars["diagonals"])
        low, high = _less(ZERO, parent), _less(_limit(view), parent)
        return add(first, Search(view.arrays["offsets"], *every, low)), add(first, Search(view.arrays["offsets"], *every, high))

    def coordinate(self, view: LevelView, parent: Expr, position: Expr) -> Expr:
        return add(parent, load_index(view.arrays["offsets"], _less(position, self.begin(view, parent))))

    def search(self, view: LevelView, parent: Expr, begin: Expr, end: Expr, coordinate: Expr) -> Expr:
        first = self.begin(view, parent)
        return add(first, Search(view.arrays["offsets"], _less(begin, first), _less(end, first), _less(coordinate, parent)))

    def used(self, view: LevelView, parent: Expr, position: Expr) -> Expr:
        column = self.coordinate(view, parent, position)
        return both(compare("less_equal", ZERO, column), compare("less", column, _limit(view)))

    def parent(self, view: LevelView, position: Expr, begin: Expr, end: Expr) -> Expr:
        return Op("floor_divide", (position, view.scalars["diagonals"]))

    def slot(self, view: LevelView, parent: Expr, position: Expr) -> Expr:
        diagonal = _less(position, self.begin(view, parent))
        return add(multiply(diagonal, view.scalars["width"]), self.coordinate(view, parent, position))


def _limit(view: LevelView) -> Expr:
    """The first column that is not stored."""
    return Op("minimum", (view.size, view.scalars["width"]))


def _less(left: Expr, right: Expr) -> Expr:
    """The difference of two numbers."""
    return left if right == ZERO else Op("subtract", (left, right))


def _order_fault(offsets: Index) -> Fault | None:
    """The first diagonal that is too far away, or does not stand to the right of the one before."""
    far = (offsets < -FURTHEST) | (offsets > FURTHEST)
    if far.any():
        place = int(far.argmax())
        return Fault("offsets", place, f"= {offsets[place]} is further than 2**62 away")
    wrong = offsets[1:] <= offsets[:-1]
    if not wrong.any():
        return None
    place = int(wrong.argmax()) + 1
    left, right = int(offsets[place - 1]), int(offsets[place])
    if left == right:
        return Fault("offsets", place, f"= {right} repeats offsets[{place - 1}]; diagonals must differ")
    return Fault("offsets", place, f"= {right} is less than offsets[{place - 1}] = {left}; diagonals must ascend")
