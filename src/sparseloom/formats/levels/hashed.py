"""Hashed: a row under construction whose coordinates are found through a hash table. Only the compiler uses it, for workspaces.

    row being built: 4 -> a, 1 -> b

    table   . 1 . 0             which entry stands behind a hash; twice as long as the list, or more
    crd     4 1                 in the order they were met; sorted before they are read, where that is asked for
    values  a b                 beside their coordinates
"""

from __future__ import annotations

from typing import ClassVar

from sparseloom.core.trees import node
from sparseloom.formats.level import Level, LevelView, load_index
from sparseloom.loops.nodes import ZERO, Expr


@node
class Hashed(Level):
    """A list of coordinates, each of them once."""

    ordered: bool = True  # whether the coordinates are sorted before they are read

    array_names: ClassVar[tuple[str, ...]] = ("crd",)
    scalar_names: ClassVar[tuple[str, ...]] = ("count",)

    @property
    def letter(self) -> str:
        return "h"

    @property
    def unique(self) -> bool:
        return True

    def bounds(self, view: LevelView, parent: Expr) -> tuple[Expr, Expr]:
        return ZERO, view.scalars["count"]

    def coordinate(self, view: LevelView, parent: Expr, position: Expr) -> Expr:
        return load_index(view.arrays["crd"], position)
