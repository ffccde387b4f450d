"""Fuse: two variables counted as one, row by row.

outer      0 0 0   1 1 1         |inner| = 3
inner      0 1 2   0 1 2
fused      0 1 2   3 4 5         fused = outer * 3 + inner
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from sparseloom.core.trees import node
from sparseloom.notation.nodes import IndexVar
from sparseloom.relations.relation import Ranges, Relation, V


@node
class FuseRelation(Relation):
    """``fused = (outer - lo_outer) * |inner| + (inner - lo_inner)``."""

    outer: IndexVar
    inner: IndexVar
    fused: IndexVar

    word: ClassVar[str] = "fuse"

    @property
    def parents(self) -> tuple[IndexVar, ...]:
        return (self.outer, self.inner)

    @property
    def children(self) -> tuple[IndexVar, ...]:
        return (self.fused,)

    @property
    def nest(self) -> tuple[IndexVar, ...]:
        return self.parents

    def guards(self, var: IndexVar, ranges: Ranges[V]) -> tuple[bool, bool]:
        return False, False

    def range_of(self, var: IndexVar, ranges: Ranges[V]) -> tuple[V, V]:
        do = ranges.arithmetic
        return do.number(0), do.multiply(ranges.extent(self.outer), ranges.extent(self.inner))

    def recover(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        do = ranges.arithmetic
        width = do.share(ranges.extent(self.inner), do.number(1))  # at least 1: an empty row divides nothing
        row, column = do.quotient(values[self.fused], width), do.remainder(values[self.fused], width)
        return do.add(ranges.range_of(self.outer)[0], row), do.add(ranges.range_of(self.inner)[0], column)

    def derive(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        do = ranges.arithmetic
        row = do.subtract(values[self.outer], ranges.range_of(self.outer)[0])
        column = do.subtract(values[self.inner], ranges.range_of(self.inner)[0])
        return (do.add(do.multiply(row, ranges.extent(self.inner)), column),)

    def __str__(self) -> str:
        return self.derivation
