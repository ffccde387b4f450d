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
    """What a bound promises about the limits of a variable.

    >>> [bound.name for bound in (sl.MinExact, sl.MinConstraint, sl.MaxExact, sl.MaxConstraint)]
    ['MinExact', 'MinConstraint', 'MaxExact', 'MaxConstraint']
    >>> k = sl.program("y(i) = 2 * x(i)", schedule="bound(i, ib, 4, MaxExact)")
    >>> k(np.ones(4)).to_numpy()
    array([2., 2., 2., 2.])
    """

    MinExact = "MinExact"
    MinConstraint = "MinConstraint"
    MaxExact = "MaxExact"
    MaxConstraint = "MaxConstraint"

    @property
    def is_lower(self) -> bool:
        """Whether it speaks of where the range begins, not of where it ends."""
        return self in (BoundType.MinExact, BoundType.MinConstraint)

    @property
    def is_exact(self) -> bool:
        """Whether the limit is known, not only limited itself."""
        return self in (BoundType.MinExact, BoundType.MaxExact)


@node
class BoundRelation(Alias):
    """``child`` is ``parent`` with a limit that is promised. Of positions (``entries``) it is counted from where their segment begins."""

    parent: IndexVar
    child: IndexVar
    value: int
    kind: BoundType
    entries: bool = False

    word: ClassVar[str] = "bound"
    promises: ClassVar[bool] = True

    @property
    def label(self) -> str:
        return f"bound({self.value},{self.kind.name})"

    def range_of(self, var: IndexVar, ranges: Ranges[V]) -> tuple[V, V]:
        low, high = ranges.range_of(self.parent)
        if not self.kind.is_exact:
            return low, high
        if self.entries and self.kind.is_lower:
            return low, high  # where a segment begins is what it is counted from
        return (self._limit(ranges), high) if self.kind.is_lower else (low, self._limit(ranges))

    def _limit(self, ranges: Ranges[V]) -> V:
        """The promised limit, in the parent's own range."""
        do = ranges.arithmetic
        value = do.number(self.value)
        return do.add(ranges.range_of(self.parent)[0], value) if self.entries else value

    def extent_of(self, var: IndexVar, ranges: Ranges[V]) -> V:
        if self.entries and self.kind is BoundType.MaxExact:
            return ranges.arithmetic.number(self.value)
        return ranges.extent(self.parent) if self.entries else Alias.extent_of(self, var, ranges)

    def broken(self, ranges: Ranges[V]) -> tuple[str, V, V]:
        low, high = ranges.range_of(self.parent)
        comparison = "not_equal" if self.kind.is_exact else "less" if self.kind.is_lower else "greater"
        if self.entries and self.kind.is_lower:
            return comparison, ranges.arithmetic.number(0), ranges.arithmetic.number(self.value)
        return comparison, low if self.kind.is_lower else high, self._limit(ranges)

    @property
    def as_step(self) -> str:
        return f"bound({self.parent}, {self.child}, {self.value}, {self.kind.value})"

    @property
    def promise(self) -> str:
        if self.kind.is_exact:
            return ""
        return f"starting at {self.value} or later" if self.kind.is_lower else f"ending at {self.value} or earlier"

    def __str__(self) -> str:
        return f"{self.child} = {self.parent} with {self.kind.value} {self.value}"
