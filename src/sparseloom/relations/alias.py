"""Aliases: one variable under another name."""

from __future__ import annotations

from collections.abc import Mapping

from sparseloom.notation.nodes import IndexVar
from sparseloom.relations.relation import Known, Line, Ranges, V


class Alias(Line):
    """The child has the values of the parent."""

    __slots__ = ()
    child: IndexVar  # a field of every member

    @property
    def children(self) -> tuple[IndexVar, ...]:
        return (self.child,)

    @property
    def significant(self) -> tuple[IndexVar, ...]:
        return self.children

    def range_of(self, var: IndexVar, ranges: Ranges[V]) -> tuple[V, V]:
        return ranges.range_of(self.parent)

    def guards(self, var: IndexVar, ranges: Ranges[V]) -> tuple[bool, bool]:
        return False, False

    def recover(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        return (values[self.child],)

    def derive(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        return (values[self.parent],)

    def interval(self, var: IndexVar, known: Known[V]) -> tuple[V, V]:
        return known.interval(self.child)

    @property
    def alias(self) -> IndexVar:
        return self.child
