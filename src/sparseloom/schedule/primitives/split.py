"""split(i, outer, inner, size): strip-mine i into blocks of constant size.

    forall i                forall outer
      y(i) = b(i)    ==>      forall inner      i = outer * size + inner
                                y(i) = b(i)

Coordinates and positions are split alike. Only the last block can be short.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from sparseloom.iteration.foralls import cut_loops, fresh_variables, loops
from sparseloom.notation.nodes import IndexVar, Stmt
from sparseloom.relations.split import SplitRelation
from sparseloom.schedule.primitive import Primitive, is_tagged, no_loop, not_fresh, primitive
from sparseloom.schedule.refusal import Refusal


@primitive
class Split(Primitive):
    """``i`` is cut into blocks of ``size``: ``outer`` counts the blocks, ``inner`` the places in one."""

    i: IndexVar
    outer: IndexVar
    inner: IndexVar
    size: int

    def check(self, stmt: Stmt) -> Refusal | None:
        if self.size < 1:
            return Refusal("S101", f"size must be at least 1, not {self.size}", "give the number of iterations in a block")
        return (
            no_loop("S102", stmt, self.i)
            or not_fresh("S103", stmt, self.outer.name, self.inner.name)
            or is_tagged("S104", stmt, self.i, "split", merges=True)
        )

    def apply(self, stmt: Stmt) -> Stmt:
        return cut_loops(stmt, self.relation)

    @property
    def relation(self) -> SplitRelation:
        """``i = lo + outer * size + inner``."""
        return SplitRelation(self.i, self.outer, self.inner, self.size)

    @classmethod
    def candidates(cls, stmt: Stmt, rng: Random) -> Iterator[Split]:
        for var in rng.sample(loops(stmt), len(loops(stmt))):
            outer, inner = fresh_variables(stmt, f"{var}0", f"{var}1")
            yield cls(var, outer, inner, rng.choice((1, 2, 3, 4, 5, 8, 16)))
