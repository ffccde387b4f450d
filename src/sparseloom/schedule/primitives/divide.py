"""divide(i, outer, inner, count): cut i into a constant number of equal blocks.

    forall i                forall outer
      y(i) = b(i)    ==>      forall inner      i = outer * ceil(|i| / count) + inner
                                y(i) = b(i)

The number of blocks does not grow with the tensor, so a search at the start of each costs little.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from sparseloom.notation.nodes import Forall, IndexVar, Stmt
from sparseloom.relations.divide import DivideRelation
from sparseloom.schedule.loops import fresh_variables, loops, replace_loops
from sparseloom.schedule.primitive import Primitive, is_tagged, no_loop, not_fresh, primitive
from sparseloom.schedule.refusal import Refusal


@primitive
class Divide(Primitive):
    """``count`` blocks: ``outer`` counts them, ``inner`` the places in one."""

    i: IndexVar
    outer: IndexVar
    inner: IndexVar
    count: int

    def check(self, stmt: Stmt) -> Refusal | None:
        if self.count < 1:
            return Refusal("S201", f"count must be at least 1, not {self.count}", "give the number of blocks")
        return (
            no_loop("S202", stmt, self.i)
            or not_fresh("S203", stmt, self.outer.name, self.inner.name)
            or is_tagged("S204", stmt, self.i, "divide")
        )

    def apply(self, stmt: Stmt) -> Stmt:
        return replace_loops(stmt, self.i, lambda loop: Forall(self.outer, Forall(self.inner, loop.body)), self.relation)

    @property
    def relation(self) -> DivideRelation:
        """``i = lo + outer * m + inner``, where m is the size of a block."""
        return DivideRelation(self.i, self.outer, self.inner, self.count)

    @classmethod
    def candidates(cls, stmt: Stmt, rng: Random) -> Iterator[Divide]:
        for var in rng.sample(loops(stmt), len(loops(stmt))):
            outer, inner = fresh_variables(stmt, f"{var}0", f"{var}1")
            yield cls(var, outer, inner, rng.choice((1, 2, 3, 4, 7)))
