"""Bound: a variable whose limits are promised.

    bound(i, ib, 16, MaxExact)        ib runs over i, which ends at 16: the loops may be made for that
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from sparseloom.core.trees import node
from sparseloom.notation.nodes import IndexVar
from sparseloom.relations.alias import Alias
from sparseloom.relations.relation import Ranges, V


class BoundType(Enum):
    """What a bound promises about the limits of a variable."""

    MinExact = "MinExact"
    MinConstraint = "MinConstraint"
    MaxExact = "MaxExact"
    MaxConstraint = "MaxConstraint"


@node
class BoundRelation(Alias):
    """``child`` is ``parent`` with a limit that is promised."""

    parent: IndexVar
    child: IndexVar
    value: int
    kind: BoundType

    word: ClassVar[str] = "bound"

    @property
    def label(self) -> str:
        return f"bound({self.value},{self.kind.name})"

    def range_of(self, var: IndexVar, ranges: Ranges[V]) -> tuple[V, V]:
        low, high = ranges.range_of(self.parent)
        match self.kind:
            case BoundType.MinExact:
                return ranges.arithmetic.number(self.value), high
            case BoundType.MaxExact:
                return low, ranges.arithmetic.number(self.value)
        return low, high

    def broken(self, ranges: Ranges[V]) -> tuple[str, V, V]:
        """What must not hold of the limits: the name of a comparison, and what it compares."""
        low, high = ranges.range_of(self.parent)
        promised = ranges.arithmetic.number(self.value)
        match self.kind:
            case BoundType.MinExact:
                return "not_equal", low, promised
            case BoundType.MaxExact:
                return "not_equal", high, promised
            case BoundType.MinConstraint:
                return "less", low, promised
            case BoundType.MaxConstraint:
                return "greater", high, promised

    def __str__(self) -> str:
        return f"{self.child} = {self.parent} with {self.kind.value} {self.value}"
