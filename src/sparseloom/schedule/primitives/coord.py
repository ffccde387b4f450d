"""coord(p, i): run over coordinates again instead of positions.

    forall p0                       forall p0
      forall p1              ==>      forall j1            p1 = position of j1
        y(i) += A(i,j) * x(j)           y(i) += A(i,j) * x(j)

The new variable runs over the coordinates from the first to the last of the positions that p would count.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from sparseloom.iteration.foralls import fresh_variables, loops, provenance, replace_loops, result
from sparseloom.iteration.provenance import are_distinct
from sparseloom.notation.nodes import Forall, IndexVar, Stmt
from sparseloom.notation.printer import show
from sparseloom.relations.coord import CoordRelation
from sparseloom.schedule.primitive import Primitive, no_loop, not_fresh, primitive
from sparseloom.schedule.refusal import Refusal


@primitive
class Coord(Primitive):
    """``i`` takes the place of ``p`` and counts coordinates."""

    p: IndexVar
    i: IndexVar

    def check(self, stmt: Stmt) -> Refusal | None:
        return no_loop("S501", stmt, self.p) or not_fresh("S502", stmt, self.i.name) or self._lost(stmt) or self._twice(stmt)

    def _lost(self, stmt: Stmt) -> Refusal | None:
        """Positions that would not be found again: every coordinate must stand at one of them, and every one of them must have one."""
        graph = provenance(stmt)
        relation = graph.position(self.p)
        if relation is None:
            return Refusal("S503", f"{self.p} counts coordinates already", "coord undoes pos", at=self.p)
        levels = graph.levels(self.p, relation.access)
        if levels is None:
            why = f"{self.p} counts blocks of positions, which have no coordinates of their own"
            return Refusal("S504", why, "use coord on the inner variable, or before the split", at=self.p)
        first, last = levels
        stored = relation.access.tensor.format.levels
        if not all(level.ordered for level in stored[first : last + 1]):
            why = f"{show(relation.access)} is stored in no order, so the positions of a coordinate cannot be found again"
            return Refusal("S505", why, "convert the operand to an ordered format", at=self.p)
        if not are_distinct(stored, first, last):
            why = f"{show(relation.access)} may store a coordinate at several positions, so one cannot stand for the other"
            return Refusal("S506", why, "convert the operand to a format without repetitions", at=self.p)
        if first < last and not all(level.compact for level in stored[first : last + 1]):
            why = f"{show(relation.access)} pads its rows, so unused places stand among the positions of several of them"
            return Refusal("S506", why, "use pos and coord on one level, or convert the operand", at=self.p)
        return None

    def _twice(self, stmt: Stmt) -> Refusal | None:
        """A part of the positions below which a result has a variable twice: a row would end with the part, and is appended once (S611)."""
        graph, lhs = provenance(stmt), result(stmt)
        twice = [var for var in graph.originals(self.p) if lhs.indices.count(var) > 1]
        made = graph.made_by(self.p)
        if not twice or lhs.tensor.format.is_dense or (made is not None and made.positions is not None):
            return None
        why = f"{self.p} is a part of the positions, and each part would end the rows of {show(lhs)}, which has {twice[0]} twice"
        return Refusal("S611", why, "use coord before the split", at=self.p)

    def apply(self, stmt: Stmt) -> Stmt:
        return replace_loops(stmt, self.p, lambda loop: Forall(self.i, loop.body, loop.tag), self.relation)

    @property
    def relation(self) -> CoordRelation:
        """``p`` is the position at which ``i`` is stored."""
        return CoordRelation(self.p, self.i)

    @classmethod
    def candidates(cls, stmt: Stmt, rng: Random) -> Iterator[Coord]:
        graph = provenance(stmt)
        positions = [var for var in loops(stmt) if graph.position(var) is not None]
        for var in rng.sample(positions, len(positions)):
            (coordinate,) = fresh_variables(stmt, f"{var}c")
            yield cls(var, coordinate)
