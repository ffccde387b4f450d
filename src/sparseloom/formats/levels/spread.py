"""Spread: a row of an operand that was set out by coordinate, so that its entries are found at once. Only the compiler uses it.

row: 4 -> a, 1 -> b

set     . 1 . . 1 .         which coordinates there are
values  . b . . a .         by coordinate
crd     1 4                 the coordinates, by which all is cleared
"""

from __future__ import annotations

from typing import ClassVar

from sparseloom.core.trees import node
from sparseloom.formats.level import Collector, LevelView
from sparseloom.formats.levels.scattered import Scattered
from sparseloom.loops.nodes import Expr, Load


@node
class Spread(Scattered):
    """A list of coordinates, each of them once, and a place for every coordinate."""

    array_names: ClassVar[tuple[str, ...]] = ("crd", "set")
    truth_names: ClassVar[tuple[str, ...]] = ("set",)
    can_locate: ClassVar[bool] = True

    @property
    def collector(self) -> Collector | None:
        return Collector.SPREAD

    def locate(self, view: LevelView, parent: Expr, coordinate: Expr) -> tuple[Expr, Expr]:
        return coordinate, Load(view.arrays["set"], coordinate)
