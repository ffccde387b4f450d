"""Scattered: a row under construction, which takes entries in any order. Only the compiler uses it, for workspaces.

    row being built: 4 -> a, 1 -> b

    set     . 1 . . 1 .         which coordinates were met
    crd     4 1                 in the order they were met; sorted before they are read
    values  . b . . a .         by coordinate
"""

from __future__ import annotations

from typing import ClassVar

from sparseloom.core.trees import node
from sparseloom.formats.level import Level, LevelView, load_index
from sparseloom.loops.nodes import ZERO, Expr


@node
class Scattered(Level):
    """A list of coordinates, beside values that stand at their coordinate."""

    ordered: bool = True  # whether the coordinates are sorted before they are read

    array_names: ClassVar[tuple[str, ...]] = ("crd",)
    scalar_names: ClassVar[tuple[str, ...]] = ("count",)

    @property
    def letter(self) -> str:
        return "w"

    @property
    def unique(self) -> bool:
        return True

    def bounds(self, view: LevelView, parent: Expr) -> tuple[Expr, Expr]:
        return ZERO, view.scalars["count"]

    def coordinate(self, view: LevelView, parent: Expr, position: Expr) -> Expr:
        return load_index(view.arrays["crd"], position)

    def slot(self, view: LevelView, position: Expr) -> Expr:
        return load_index(view.arrays["crd"], position)
