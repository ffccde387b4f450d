"""Divide: a constant number of blocks.

parent     0 1 2 3   4 5 6 7   8 9         count 3, so m = ceil(10 / 3) = 4
outer      0         1         2
inner      0 1 2 3   0 1 2 3   0 1         parent = outer * m + inner
"""

from __future__ import annotations

from typing import ClassVar

from sparseloom.core.trees import node
from sparseloom.notation.nodes import IndexVar
from sparseloom.relations.digits import Digits
from sparseloom.relations.relation import Ranges, V


@node
class DivideRelation(Digits):
    """``parent = lo + outer * m + inner``, with ``outer`` in ``[0, count)`` and ``m = max(1, ceil(extent / count))``."""

    parent: IndexVar
    outer: IndexVar
    inner: IndexVar
    count: int

    word: ClassVar[str] = "divide"

    @property
    def constants(self) -> tuple[int, ...]:
        return (self.count,)

    def block_size(self, ranges: Ranges[V]) -> V:
        return ranges.arithmetic.share(ranges.extent(self.parent), ranges.arithmetic.number(self.count))

    def range_of(self, var: IndexVar, ranges: Ranges[V]) -> tuple[V, V]:
        do = ranges.arithmetic
        return do.number(0), do.number(self.count) if var == self.outer else self.block_size(ranges)
