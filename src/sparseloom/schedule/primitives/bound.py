"""bound(i, bounded, value, type): promise something about the limits of a loop.

    forall i                forall bounded     bounded = i with MaxExact 4
      y(i) = b(i)    ==>      y(i) = b(i)

MinExact and MaxExact: the lower or upper limit is the value; a constant that reaches the code. MinConstraint and
MaxConstraint: the limit is at least or at most the value. The promise is checked when the kernel is called. Limits of positions count
entries from where their segment begins: after pos(j, p, A(i,j)), bound(p, pb, 3, MaxExact) says that every row has 3 entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from sparseloom.iteration.foralls import fresh_variables, loops, provenance, replace_loops
from sparseloom.notation.nodes import Forall, IndexVar, Stmt
from sparseloom.relations.bound import BoundRelation, BoundType
from sparseloom.schedule.primitive import Primitive, no_loop, not_fresh, primitive
from sparseloom.schedule.refusal import Refusal


@primitive
class Bound(Primitive):
    """``bounded`` takes the place of ``i``, with the promise ``type`` ``value``."""

    i: IndexVar
    bounded: IndexVar
    value: int
    type: BoundType

    def check(self, stmt: Stmt) -> Refusal | None:
        if self.value < 0:
            return Refusal("S1001", f"value must be at least 0, not {self.value}", "limits are counted from 0")
        return no_loop("S1002", stmt, self.i) or not_fresh("S1003", stmt, self.bounded.name) or self._contradicts(stmt)

    def _contradicts(self, stmt: Stmt) -> Refusal | None:
        """A promise that is already known to be broken."""
        graph = provenance(stmt)
        lower, upper = (0, graph.extent(self.i)) if graph.counts_entries(self.i) and not self.type.is_lower else graph.limits(self.i)
        known = lower if self.type.is_lower else upper
        if known is None or known == self.value or (not self.type.is_exact and (known > self.value) == self.type.is_lower):
            return None
        which = "starts at" if self.type.is_lower else "ends at"
        return Refusal("S1004", f"{self.i} {which} {known}, which breaks {self.type.name} {self.value}", "give the limit it has", at=self.i)

    def apply(self, stmt: Stmt) -> Stmt:
        made = BoundRelation(self.i, self.bounded, self.value, self.type, provenance(stmt).counts_entries(self.i))
        return replace_loops(stmt, self.i, lambda loop: Forall(self.bounded, loop.body, loop.tag), made)

    @property
    def relation(self) -> BoundRelation:
        """``bounded = i``, within the promised limit."""
        return BoundRelation(self.i, self.bounded, self.value, self.type)

    @classmethod
    def candidates(cls, stmt: Stmt, rng: Random) -> Iterator[Bound]:
        graph = provenance(stmt)
        for var in rng.sample(loops(stmt), len(loops(stmt))):
            (bounded,) = fresh_variables(stmt, f"{var}b")
            lower, upper = graph.limits(var)
            kind = rng.choice(tuple(BoundType))
            if kind.is_lower:
                # Positions begin anywhere: only that they are not negative is true of any data.
                yield cls(var, bounded, lower or 0, BoundType.MinConstraint if lower is None else kind)
            elif upper is not None:
                yield cls(var, bounded, upper, kind)
            elif kind is BoundType.MaxConstraint:
                yield cls(var, bounded, 10**9, kind)  # true of any data a test can hold
