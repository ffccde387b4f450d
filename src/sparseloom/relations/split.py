"""Split: blocks of a constant size.

parent     0 1 2 3   4 5 6 7   8 9         size 4
outer      0         1         2
inner      0 1 2 3   0 1 2 3   0 1         parent = outer * 4 + inner
"""

from __future__ import annotations

from typing import ClassVar

from sparseloom.core.trees import node
from sparseloom.notation.nodes import IndexVar
from sparseloom.relations.digits import Digits
from sparseloom.relations.relation import Ranges, V


@node
class SplitRelation(Digits):
    """``parent = lo + outer * size + inner``, with ``inner`` in ``[0, size)``."""

    parent: IndexVar
    outer: IndexVar
    inner: IndexVar
    size: int

    word: ClassVar[str] = "split"

    @property
    def label(self) -> str:
        return f"split({self.size})"  # also where a format makes it

    @property
    def constants(self) -> tuple[int, ...]:
        return (self.size,)

    def block_of(self, var: IndexVar) -> int | None:
        return self.size if var == self.outer else None

    def block_size(self, ranges: Ranges[V]) -> V:
        return ranges.arithmetic.number(self.size)

    def range_of(self, var: IndexVar, ranges: Ranges[V]) -> tuple[V, V]:
        do = ranges.arithmetic
        size = do.number(self.size)
        return do.number(0), do.blocks(ranges.extent(self.parent), size) if var == self.outer else size
