"""Pos: the positions at which an operand stores coordinates.

    coordinate    1 4 6           crd of A below the current parent
    position      7 8 9           coordinate = crd[position]

Where several levels are walked, the last one's positions are counted, and the coordinates above advance with them.
"""

from __future__ import annotations

from typing import ClassVar

from sparseloom.core.trees import node
from sparseloom.notation.nodes import Access, IndexVar
from sparseloom.relations.relation import Positions


@node
class PosRelation(Positions):
    """``position`` runs over the positions at which ``access`` stores coordinates of ``coordinate``."""

    coordinate: IndexVar
    position: IndexVar
    access: Access

    word: ClassVar[str] = "pos"

    @property
    def label(self) -> str:
        return f"pos({self.access.tensor})"

    @property
    def recovery(self) -> str:
        return f"{self.coordinate} = crd({self.access.tensor})[{self.position}]"

    @property
    def derivation(self) -> str:
        return f"{self.position} = search of {self.coordinate} in {self.access.tensor}"

    def __str__(self) -> str:
        inside = ",".join(map(str, self.access.indices))
        return f"{self.coordinate} = coordinate of {self.access.tensor}({inside}) at {self.position}"
