"""Listed: the first level of a list of entries, sorted once all of them are there. Only the compiler uses it, for workspaces.

    entries as they come: (4,0) -> a, (1,2) -> b, (4,0) -> c

    crd     1 4                 sorted, and equal entries combined, before they are read
    values  b a+c               by position

Further coordinates of an entry stand in singleton levels below, as in COO.
"""

from __future__ import annotations

from typing import ClassVar

from sparseloom.core.trees import node
from sparseloom.formats.level import Collector, Level, LevelView
from sparseloom.loops.nodes import ZERO, Expr


@node
class Listed(Level):
    """Coordinates of all entries, and how many there are."""

    unique: bool = True

    array_names: ClassVar[tuple[str, ...]] = ("crd",)
    coordinate_array: ClassVar[str | None] = "crd"
    scalar_names: ClassVar[tuple[str, ...]] = ("count",)

    letter = "l"

    @property
    def collector(self) -> Collector | None:
        return Collector.LIST

    def bounds(self, view: LevelView, parent: Expr) -> tuple[Expr, Expr]:
        return ZERO, view.scalars["count"]
