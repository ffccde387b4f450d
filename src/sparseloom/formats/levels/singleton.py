"""Singleton: exactly one coordinate below each parent position.

    coo of (0,1) (0,4) (2,0) (2,2)

    level 0  compressed, not unique   crd   0 0 2 2
                                            | | | |
    level 1  singleton                crd   1 4 0 2        position = parent

In COO of three or more modes every singleton level but the last is not unique: its coordinates repeat, but the
last one makes each tuple different.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sparseloom.core.dtypes import DType
from sparseloom.core.errors import FormatError
from sparseloom.core.trees import node
from sparseloom.formats.level import Checked, Fault, Index, Level, LevelData, LevelView, Outline, array_fault, crd_fault
from sparseloom.loops.nodes import ONE, Expr, add


@node
class Singleton(Level):
    """Stores one coordinate per parent."""

    ordered: bool = True
    unique: bool = True

    array_names: ClassVar[tuple[str, ...]] = ("crd",)
    coordinate_array: ClassVar[str | None] = "crd"
    branchless: ClassVar[bool] = True
    can_append: ClassVar[bool] = True

    letter = "q"

    def misplaced(self, levels: tuple[Level, ...], place: int) -> str | None:
        return None if place else "a singleton level needs a level above it: its entries stand one below each parent"

    def pack(self, parents: Index, coordinates: Index, size: int, parent_count: int, index_dtype: DType) -> tuple[LevelData, Index, int]:
        wrong = np.flatnonzero(np.bincount(parents, minlength=parent_count) != 1)
        if len(wrong):
            raise FormatError(
                f"a singleton level stores exactly one coordinate below each position above it; here {len(wrong)} of {parent_count} "
                f"positions have none or several, the first is {wrong[0]}; use a compressed level (s) instead of q"
            )
        return LevelData({"crd": np.require(coordinates, index_dtype, ("C", "A"))}), parents, parent_count

    def unpack(self, data: LevelData, size: int, parent_count: int) -> tuple[Index, Index]:
        return np.arange(parent_count), data.arrays["crd"][:parent_count]

    def count(self, data: LevelData, size: int, parent_count: int) -> int:
        return parent_count

    def made(self, size: int, parent_count: int, counted: int) -> tuple[int, dict[str, int]]:
        return parent_count, {"crd": parent_count}

    def check(self, data: LevelData, size: int, above: Checked) -> Fault | Checked:
        fault = array_fault(data, "crd", above.positions)
        if fault is not None:
            return fault
        crd = data.arrays["crd"][: above.positions]
        ties = None if above.ties is None else above.ties[1:]
        fault = crd_fault(crd, size, ties, self.ordered, self.unique)
        if fault is not None or above.ties is None or self.unique:
            return fault or Checked(above.positions)
        still_tied = above.ties.copy()
        still_tied[1:] &= crd[1:] == crd[:-1]
        return Checked(above.positions, still_tied)

    def outline(self, data: LevelData, size: int, parent_count: int) -> Outline | None:
        return Outline(parent_count)

    def bounds(self, view: LevelView, parent: Expr) -> tuple[Expr, Expr]:
        return parent, add(parent, ONE)

    def parent(self, view: LevelView, position: Expr, begin: Expr, end: Expr) -> Expr:
        return position
