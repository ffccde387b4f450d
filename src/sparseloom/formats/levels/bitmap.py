"""Bitmap: a place for every coordinate, and a truth value that says whether something is stored there.

    size 4; parent 0 holds 1 and 3, parent 1 holds 0

    position    0 1 2 3   4 5 6 7
    coordinate  0 1 2 3   0 1 2 3        position = parent * size + coordinate
    present     . x . x   x . . .        one byte each

Any coordinate is found at once, and entries may be put in in any order. Values have a place for every coordinate; those at places where
nothing is stored mean nothing.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from sparseloom.core.dtypes import BOOL, DType
from sparseloom.core.errors import FormatError
from sparseloom.core.room import require_room
from sparseloom.core.trees import node
from sparseloom.formats.level import Checked, Fault, Index, Level, LevelData, LevelView, Outline
from sparseloom.loops.nodes import TRUE, ZERO, Expr, Load, Op, Stmt, Store, add, multiply


@node
class Bitmap(Level):
    """Stores for every coordinate whether it is there."""

    array_names: ClassVar[tuple[str, ...]] = ("present",)
    truth_names: ClassVar[tuple[str, ...]] = ("present",)
    compact: ClassVar[bool] = False
    has_holes: ClassVar[bool] = True
    can_locate: ClassVar[bool] = True
    can_insert: ClassVar[bool] = True

    @property
    def letter(self) -> str:
        return "b"

    def pack(self, parents: Index, coordinates: Index, size: int, parent_count: int, index_dtype: DType) -> tuple[LevelData, Index, int]:
        count = parent_count * size
        if count > np.iinfo(np.int64).max:
            raise FormatError(f"a bitmap level of size {size} below {parent_count} positions is too large; use a compressed level")
        require_room(count, f"the places of a bitmap level of size {size}", "use a compressed level")
        positions = parents * size + coordinates
        present = np.zeros(count, BOOL)
        present[positions] = True
        return LevelData({"present": present}), positions, count

    def unpack(self, data: LevelData, size: int, parent_count: int) -> tuple[Index, Index]:
        present = data.arrays["present"][: parent_count * size]
        parents, coordinates = np.repeat(np.arange(parent_count), size), np.tile(np.arange(size), parent_count)
        return np.where(present, parents, -1), coordinates

    def count(self, data: LevelData, size: int, parent_count: int) -> int:
        return parent_count * size

    def made(self, size: int, parent_count: int, counted: int) -> tuple[int, dict[str, int]]:
        return parent_count * size, {"present": parent_count * size}

    def least(self, size: int, parent_count: int, entries: int, width: int) -> tuple[int, int]:
        return parent_count * size, parent_count * size

    def check(self, data: LevelData, size: int, above: Checked) -> Fault | Checked:
        fault = _fault(data.arrays.get("present"), above.positions * size)
        return fault or Checked(above.positions * size)

    def outline(self, data: LevelData, size: int, parent_count: int) -> Outline | None:
        return Outline(parent_count * size, ("present",))

    def bounds(self, view: LevelView, parent: Expr) -> tuple[Expr, Expr]:
        begin = multiply(parent, view.size)
        return begin, add(begin, view.size)

    def coordinate(self, view: LevelView, parent: Expr, position: Expr) -> Expr:
        begin = multiply(parent, view.size)
        return position if begin == ZERO else Op("subtract", (position, begin))

    def search(self, view: LevelView, parent: Expr, begin: Expr, end: Expr, coordinate: Expr) -> Expr:
        return Op("maximum", (begin, Op("minimum", (end, add(multiply(parent, view.size), coordinate)))))

    def used(self, view: LevelView, parent: Expr, position: Expr) -> Expr:
        return Load(view.arrays["present"], position)

    def parent(self, view: LevelView, position: Expr, begin: Expr, end: Expr) -> Expr:
        return Op("floor_divide", (position, view.size))

    def locate(self, view: LevelView, parent: Expr, coordinate: Expr) -> tuple[Expr, Expr]:
        position = add(multiply(parent, view.size), coordinate)
        return position, Load(view.arrays["present"], position)

    def insert(self, view: LevelView, position: Expr) -> Stmt:
        return Store(view.arrays["present"], position, TRUE)


def _fault(present: Any, places: int) -> Fault | None:
    """What is wrong with an array of truth values, which other code may have made of any bytes."""
    if isinstance(present, np.ma.MaskedArray):
        return Fault("present", None, "is a masked array; what it hides is no truth value")
    if not isinstance(present, np.ndarray):
        return Fault("present", None, f"is missing: a NumPy array of bool belongs here, not {type(present).__name__}")
    if present.dtype != BOOL or present.ndim != 1:
        return Fault("present", None, f"has dtype {present.dtype} and {present.ndim} dimensions; it must be bool and have one")
    if not present.flags.c_contiguous:
        return Fault("present", None, "is not contiguous; copy it with np.ascontiguousarray")
    if len(present) != places:
        return Fault("present", None, f"has {len(present)} elements; the positions above have {places} coordinates")
    wrong = present.view(np.uint8) > 1
    if wrong.any():
        place = int(wrong.argmax())
        return Fault("present", place, f"is the byte {int(present.view(np.uint8)[place])}; a truth value is 0 or 1")
    return None
