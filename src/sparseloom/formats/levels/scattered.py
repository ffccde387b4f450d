"""Scattered: a row under construction, which takes entries in any order. Only the compiler uses it, for workspaces.

row being built: 4 -> a, 1 -> b

crd     4 1                 coordinates in the order they were met; sorted before they are read, where that is asked for
values  . b . . a .         by coordinate, beside a set of the coordinates that were met;
        a b                 or beside their coordinates, where these are found through a hash table
"""

from __future__ import annotations

from typing import ClassVar

from sparseloom.core.trees import node
from sparseloom.formats.level import Collector, Level, LevelView, load_index
from sparseloom.loops.nodes import ZERO, Expr


@node
class Scattered(Level):
    """A list of coordinates, each of them once."""

    ordered: bool = True  # whether the coordinates are sorted before they are read
    hashed: bool = False  # whether values stand beside their coordinates, not at them

    array_names: ClassVar[tuple[str, ...]] = ("crd",)
    coordinate_array: ClassVar[str | None] = "crd"
    scalar_names: ClassVar[tuple[str, ...]] = ("count",)

    @property
    def letter(self) -> str:
        return "h" if self.hashed else "w"

    @property
    def collector(self) -> Collector | None:
        return Collector.HASH if self.hashed else Collector.ROW

    def bounds(self, view: LevelView, parent: Expr) -> tuple[Expr, Expr]:
        return ZERO, view.scalars["count"]

    def slot(self, view: LevelView, parent: Expr, position: Expr) -> Expr:
        return position if self.hashed else load_index(view.arrays["crd"], position)
