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
from sparseloom.core.room import require_room
from sparseloom.core.trees import node
from sparseloom.formats.level import Checked, Fault, Index, LevelData, LevelView
from sparseloom.formats.levels.dense import Placed
from sparseloom.loops.nodes import TRUE, Expr, Load, Stmt, Store


@node
class Bitmap(Placed):
    """Stores for every coordinate whether it is there."""

    array_names: ClassVar[tuple[str, ...]] = ("present",)
    truth_names: ClassVar[tuple[str, ...]] = ("present",)
    compact: ClassVar[bool] = False
    has_holes: ClassVar[bool] = True
    can_insert: ClassVar[bool] = True

    letter = "b"

    def pack(self, parents: Index, coordinates: Index, size: int, parent_count: int, index_dtype: DType) -> tuple[LevelData, Index, int]:
        _, positions, count = Placed.pack(self, parents, coordinates, size, parent_count, index_dtype)
        require_room(count, f"the places of a bitmap level of size {size}", "use a compressed level")
        present = np.zeros(count, BOOL)
        present[positions] = True
        return LevelData({"present": present}), positions, count

    def unpack(self, data: LevelData, size: int, parent_count: int) -> tuple[Index, Index]:
        parents, coordinates = Placed.unpack(self, data, size, parent_count)
        return np.where(data.arrays["present"][: parent_count * size], parents, -1), coordinates

    def check(self, data: LevelData, size: int, above: Checked) -> Fault | Checked:
        return _fault(data.arrays.get("present"), above.positions * size) or Checked(above.positions * size)

    def used(self, view: LevelView, parent: Expr, position: Expr) -> Expr:
        return Load(view.arrays["present"], position)

    def insert(self, view: LevelView, position: Expr, coordinate: Expr) -> Stmt:
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
