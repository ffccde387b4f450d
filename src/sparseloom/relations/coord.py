"""Coord: the coordinates of a block of positions, found again.

position      7 8 9
coordinate    1 . . 4 . 6       from the first to the last of the block; operands are merged as over coordinates
"""

from __future__ import annotations

from typing import ClassVar

from sparseloom.core.trees import node
from sparseloom.notation.nodes import IndexVar
from sparseloom.relations.relation import FoundAgain


@node
class CoordRelation(FoundAgain):
    """``coordinate`` runs over the coordinates of the positions that ``position`` would run over."""

    position: IndexVar
    coordinate: IndexVar

    word: ClassVar[str] = "coord"

    @property
    def recovery(self) -> str:
        return f"{self.position} = position of {self.coordinate}"

    @property
    def derivation(self) -> str:
        return f"{self.coordinate} = coordinate at {self.position}"
