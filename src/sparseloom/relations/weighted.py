"""Weighted divide: a constant number of pieces that hold equally many entries of an operand.

    i             0   1   2   3   4   5        A has 1 4 0 2 1 0 entries there, 8 in all
    outer         0   .   1   .   .   .        count 2: a piece begins where its share of 4 entries does
    inner         0   1   2   3   4   5        i = inner, which runs through piece ``outer``

Where the pieces begin is searched in the operand's positions, so ``inner`` runs inside the loop over ``outer``. A value of i may have a
weight of its own, besides its entries: where most are empty, walking them is most of the work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from sparseloom.core.trees import node
from sparseloom.notation.nodes import Access, IndexVar
from sparseloom.relations.relation import Known, Pieces, Ranges, V


@node
class WeightedRelation(Pieces):
    """``parent = inner``, in ``[cut(outer), cut(outer + 1))``: piece b begins at the first value before which ``b / count`` of the
    entries of ``access`` stand; each value that ``access`` has a place for weighs as much as ``rows`` entries more."""

    parent: IndexVar
    outer: IndexVar
    inner: IndexVar
    count: int
    access: Access
    rows: int = 0

    word: ClassVar[str] = "divide"

    @property
    def label(self) -> str:
        return f"divide({self.count}, {self.access.tensor}{f' + {self.rows} rows' if self.rows else ''})"

    @property
    def constants(self) -> tuple[int, ...]:
        return (self.count,)

    @property
    def children(self) -> tuple[IndexVar, ...]:
        return (self.outer, self.inner)

    @property
    def significant(self) -> tuple[IndexVar, ...]:
        return self.children

    def guards(self, var: IndexVar, ranges: Ranges[V]) -> tuple[bool, bool]:
        return False, False

    def range_of(self, var: IndexVar, ranges: Ranges[V]) -> tuple[V, V]:
        return (ranges.arithmetic.number(0), ranges.arithmetic.number(self.count)) if var == self.outer else ranges.piece_of(self)

    def recover(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        return (values[self.inner],)

    def derive(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        return ranges.piece_at(self, values), values[self.parent]

    def interval(self, var: IndexVar, known: Known[V]) -> tuple[V, V]:
        return known.range_of(self.parent) if known.value(self.outer) is None else known.interval(self.inner)

    @property
    def derivation(self) -> str:
        return f"{self.outer} = piece of {self.parent}, {self.inner} = {self.parent}"

    def __str__(self) -> str:
        inside = ",".join(map(str, self.access.indices))
        by = f"the entries of {self.access.tensor}({inside})" + (f" and {self.rows} for each {self.parent}" if self.rows else "")
        return f"{self.parent} = {self.inner}, in piece {self.outer} of {self.count} by {by}"
