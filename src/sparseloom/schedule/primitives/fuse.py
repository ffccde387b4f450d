"""fuse(i, j, fused): collapse two directly nested loops into one.

    forall i                      forall fused
      forall j             ==>      y(i) += A(i,j) * x(j)      fused = i * |j| + j
        y(i) += A(i,j) * x(j)

The order of iteration stays. Two position loops fuse when they count neighbouring levels of one operand; the fused
variable then counts the entries of the lower level.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from sparseloom.core.trees import rewrite
from sparseloom.iteration.foralls import body_of, fresh_variables, loops, paths, places, provenance, related, relations_of, replace_loops
from sparseloom.iteration.provenance import Provenance
from sparseloom.notation.nodes import Forall, IndexVar, Stmt
from sparseloom.notation.printer import show
from sparseloom.relations.coord import CoordRelation
from sparseloom.relations.fuse import FuseRelation
from sparseloom.relations.pos import PosRelation
from sparseloom.relations.relation import Positions, Relation
from sparseloom.schedule.primitive import Primitive, is_tagged, no_loop, not_fresh, primitive
from sparseloom.schedule.refusal import Refusal, listed


@primitive
class Fuse(Primitive):
    """``fused`` takes the place of ``i`` and ``j`` and runs over their pairs."""

    i: IndexVar
    j: IndexVar
    fused: IndexVar

    def check(self, stmt: Stmt) -> Refusal | None:
        return (
            no_loop("S301", stmt, self.i, self.j)
            or self._apart(stmt)
            or not_fresh("S304", stmt, self.fused.name)
            or is_tagged("S305", stmt, self.i, "fuse")
            or is_tagged("S305", stmt, self.j, "fuse")
            or self._spaces(provenance(stmt))
        )

    def _apart(self, stmt: Stmt) -> Refusal | None:
        """Loops that are not directly nested, in this order, wherever they stand."""
        if self.i == self.j:
            return Refusal("S302", f"{self.i} cannot be fused with itself", "name two loops, the outer one first", at=self.i)
        nested = all(isinstance(loop.body, Forall) and loop.body.var == self.j for _, loop in places(stmt, self.i))
        if nested and all(outer[-1:] == (self.i,) for outer, _ in places(stmt, self.j)):
            return None
        orders = [path.variables for path in paths(stmt) if self.i in path.variables and self.j in path.variables]
        if any(order.index(self.j) < order.index(self.i) for order in orders):
            return Refusal("S303", f"{self.j} is outside {self.i}, not directly inside it", "name the outer loop first", at=self.j)
        between = [v for order in orders for v in order[order.index(self.i) + 1 : order.index(self.j)]]
        what = f"the loop over {listed(dict.fromkeys(between))} stands between them" if between else "a temporary stands between them"
        return Refusal("S303", f"{self.j} is not directly inside {self.i}: {what}", "reorder the loops first", at=self.j)

    def _spaces(self, graph: Provenance) -> Refusal | None:
        """A variable lives in coordinate space or in the position space of one access, so both must live in the same."""
        outer, inner = graph.position(self.i), graph.position(self.j)
        if outer is None and inner is None:
            return None
        if outer is None or inner is None:
            position, coordinate = (self.j, self.i) if outer is None else (self.i, self.j)
            why = f"{position} counts positions and {coordinate} counts coordinates, so the pair counts neither"
            return Refusal("S306", why, f"turn {position} back with coord, or {coordinate} into positions with pos", at=position)
        if outer == inner:
            return None
        if self._are_neighbours(graph, outer, inner):
            return self._parts(graph, outer, inner)
        why = f"{self.i} counts positions of {show(outer.access)} and {self.j} those of {show(inner.access)}, no neighbouring levels"
        return Refusal("S307", why, "fuse the coordinates, then use pos once", at=self.j)

    def _are_neighbours(self, graph: Provenance, outer: Positions, inner: Positions) -> bool:
        """Whether ``j`` counts all entries right below those that ``i`` counts."""
        above, below = graph.span(self.i), graph.span(self.j)
        if outer.access != inner.access or above is None or below is None or below.needs:
            return False
        return graph.stored_levels(outer.access, above.variables + below.variables) is not None

    def _parts(self, graph: Provenance, outer: Positions, inner: Positions) -> Refusal | None:
        """Positions that are cut, or named elsewhere too, are not all entries of neighbouring levels, as which they would be fused."""
        if self.j != inner.position or _is_named(graph, self.j):
            var, relation = self.j, inner
        elif _is_whole(graph, self.i, outer) or graph.is_distinct(outer) or self._shares_positions(graph, outer, inner):
            return None
        else:
            var, relation = self.i, outer
        why = f"{var} is a part of the positions {relation.position} of {show(relation.access)}, or stands for them elsewhere too"
        return Refusal("S307", why, "fuse before bound and precompute", at=var)

    def _shares_positions(self, graph: Provenance, outer: Positions, inner: Positions) -> bool:
        """Whether an entry of the upper level has one entry below it, at the same position, so that ``i`` counts both already.

        The positions are then those of both levels, wherever they are named.
        """
        levels = inner.access.tensor.format.levels
        renamed = any(r.is_local and outer.position in graph.line(r.parents[0]) for r in graph.relations)
        return not renamed and not _is_named(graph, self.i) and all(levels[k].branchless for k in graph.position_levels(inner))

    def apply(self, stmt: Stmt) -> Stmt:
        def make(loop: Forall) -> Stmt:
            return Forall(self.fused, loop.body.body) if isinstance(loop.body, Forall) else loop

        graph = provenance(stmt)
        outer, inner = graph.position(self.i), graph.position(self.j)
        if outer is None or inner is None or outer == inner:
            return replace_loops(stmt, self.i, make, self.relation)
        return replace_loops(related(body_of(stmt), self._positions(stmt, graph, outer, inner)), self.i, make)

    def _positions(self, stmt: Stmt, graph: Provenance, outer: Positions, inner: Positions) -> tuple[Relation, ...]:
        """The relations when entries of the lower level below entries of the upper one become the entries of both levels at once."""
        above, both = fresh_variables(stmt, f"{self.i}c", f"{outer.coordinate}{inner.coordinate}")
        kept = tuple(r for r in relations_of(stmt) if r != inner)
        counted = PosRelation(both, self.fused, inner.access)
        if _is_whole(graph, self.i, outer):
            return (*(r for r in kept if r != outer), FuseRelation(outer.coordinate, inner.coordinate, both), counted)
        if graph.is_distinct(outer):
            return (*kept, CoordRelation(self.i, above), FuseRelation(above, inner.coordinate, both), counted)
        # The positions that were cut are those of both levels: ``i`` only gets another name.
        cut = tuple(r for r in kept if any(outer.position in graph.ancestors(v) for v in r.parents))
        renamed = (rewrite(r, lambda found: self.fused if found == self.i else None) for r in cut)
        whole = FuseRelation(outer.coordinate, inner.coordinate, both), PosRelation(both, outer.position, inner.access)
        return (*(r for r in kept if r != outer and r not in cut), *whole, *renamed)

    @property
    def relation(self) -> FuseRelation:
        """``fused = (i - lo_i) * |j| + (j - lo_j)``."""
        return FuseRelation(self.i, self.j, self.fused)

    @classmethod
    def candidates(cls, stmt: Stmt, rng: Random) -> Iterator[Fuse]:
        pairs = [(loop.var, loop.body.var) for var in loops(stmt) for _, loop in places(stmt, var) if isinstance(loop.body, Forall)]
        for outer, inner in rng.sample(pairs, len(pairs)):
            (fused,) = fresh_variables(stmt, "f")
            yield cls(outer, inner, fused)


def _is_named(graph: Provenance, var: IndexVar) -> bool:
    """Whether a loop's variable stands for something elsewhere too: in the producer of a temporary."""
    return any(var in relation.parents for relation in graph.relations)


def _is_whole(graph: Provenance, var: IndexVar, relation: Positions) -> bool:
    """Whether a variable counts all positions that a relation has, and nothing else knows them."""
    return var == relation.position and not _is_named(graph, var)
