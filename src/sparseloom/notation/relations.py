"""Relations between index variables: how variables of a statement stand for others.

Each relation is made by one primitive of the scheduling language, or by a blocked format. A variable is *known* when
its own loop is open, or when a relation recovers it from variables that are known.
"""

from __future__ import annotations

from enum import Enum

from sparseloom.core.trees import node
from sparseloom.notation.nodes import Access, IndexVar, Relation


class BoundType(Enum):
    """What a bound promises about the limits of a variable."""

    MinExact = "MinExact"
    MinConstraint = "MinConstraint"
    MaxExact = "MaxExact"
    MaxConstraint = "MaxConstraint"


@node
class SplitRelation(Relation):
    """``parent = lo + outer * size + inner``, with ``inner`` in ``[0, size)``."""

    parent: IndexVar
    outer: IndexVar
    inner: IndexVar
    size: int

    def __str__(self) -> str:
        return f"{self.parent} = {self.outer} * {self.size} + {self.inner}"


@node
class BlockRelation(SplitRelation):
    """A split that blocked formats make of a variable: ``outer`` counts its blocks, and ``inner`` the places in one.

    Levels are walked, or appended to, block by block, so the halves stay apart even where they are fused again.
    """


@node
class DivideRelation(Relation):
    """``parent = lo + outer * m + inner``, with ``outer`` in ``[0, count)`` and ``m = max(1, ceil(extent / count))``."""

    parent: IndexVar
    outer: IndexVar
    inner: IndexVar
    count: int

    def __str__(self) -> str:
        return f"{self.parent} = {self.outer} * |{self.parent}|/{self.count} + {self.inner}"


@node
class FuseRelation(Relation):
    """``fused = (outer - lo_outer) * |inner| + (inner - lo_inner)``."""

    outer: IndexVar
    inner: IndexVar
    fused: IndexVar

    def __str__(self) -> str:
        return f"{self.fused} = {self.outer} * |{self.inner}| + {self.inner}"


@node
class PosRelation(Relation):
    """``position`` runs over the positions at which ``access`` stores coordinates of ``coordinate``."""

    coordinate: IndexVar
    position: IndexVar
    access: Access

    def __str__(self) -> str:
        inside = ",".join(map(str, self.access.indices))
        return f"{self.coordinate} = coordinate of {self.access.tensor}({inside}) at {self.position}"


@node
class CoordRelation(Relation):
    """``coordinate`` runs over the coordinates of the positions that ``position`` would run over."""

    position: IndexVar
    coordinate: IndexVar

    def __str__(self) -> str:
        return f"{self.position} = position of {self.coordinate}"


@node
class BoundRelation(Relation):
    """``bounded`` is ``parent`` with a limit that is promised."""

    parent: IndexVar
    bounded: IndexVar
    value: int
    kind: BoundType

    def __str__(self) -> str:
        return f"{self.bounded} = {self.parent} with {self.kind.value} {self.value}"


@node
class RenameRelation(Relation):
    """``renamed`` stands for ``original`` in the producer of a temporary."""

    original: IndexVar
    renamed: IndexVar

    def __str__(self) -> str:
        return f"{self.renamed} stands for {self.original}"
