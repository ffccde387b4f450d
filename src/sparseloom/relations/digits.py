"""Digits: a range that is cut into blocks. ``outer`` counts the blocks, ``inner`` the places in one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from sparseloom.core.errors import CompilerBug
from sparseloom.notation.nodes import IndexVar
from sparseloom.relations.relation import Known, Line, Ranges, V


class Digits(Line):
    """``parent = begin of block outer + inner``."""

    __slots__ = ()
    outer: IndexVar  # fields of every member
    inner: IndexVar
    counts_up: ClassVar[bool] = True

    @property
    def children(self) -> tuple[IndexVar, ...]:
        return (self.outer, self.inner)

    @property
    def significant(self) -> tuple[IndexVar, ...]:
        return (self.outer, self.inner)

    def overruns(self, ranges: Ranges[V]) -> bool:
        """Whether the last block may reach beyond the end: it may, unless the blocks fill the range for certain."""
        do = ranges.arithmetic
        extent, size, count = map(do.constant, (ranges.extent(self.parent), self.block_size(ranges), ranges.extent(self.outer)))
        return extent is None or size is None or count is None or extent != size * count

    def reaches(self, ranges: Ranges[V]) -> tuple[V, ...]:
        do = ranges.arithmetic
        return tuple(do.add(ranges.extent(self.parent), do.number(size)) for size in self.constants if self.overruns(ranges))

    def block_size(self, ranges: Ranges[V]) -> V:
        """How many values of the parent one block has."""
        raise CompilerBug(self, "blocks of one size must say which")

    def begin(self, block: V, ranges: Ranges[V]) -> V:
        """The first value of a block."""
        do = ranges.arithmetic
        return do.add(ranges.range_of(self.parent)[0], do.multiply(block, self.block_size(ranges)))

    def recover(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        return (ranges.arithmetic.add(self.begin(values[self.outer], ranges), values[self.inner]),)

    def derive(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        do = ranges.arithmetic
        offset, size = do.subtract(values[self.parent], ranges.range_of(self.parent)[0]), self.block_size(ranges)
        return do.quotient(offset, size), do.remainder(offset, size)

    def guards(self, var: IndexVar, ranges: Ranges[V]) -> tuple[bool, bool]:
        return False, self.overruns(ranges)

    def interval(self, var: IndexVar, known: Known[V]) -> tuple[V, V]:
        do, (low, high), block = known.arithmetic, known.range_of(self.parent), known.value(self.outer)
        if block is not None:
            begin, (first, last) = self.begin(block, known), known.interval(self.inner)
            end = do.add(begin, last)
            return do.add(begin, first), do.least(end, high) if self.overruns(known) else end
        if not known.is_narrowed(self.outer):
            return low, high
        first, last = known.interval(self.outer)
        return self.begin(first, known), do.least(self.begin(last, known), high)
