"""unroll(i, factor): repeat the body of a loop ``factor`` times in the code.

    forall i                forall i   [unrolled by 4]
      y(i) = b(i)    ==>      y(i) = b(i)

Less control flow, more code. The loop need not be split before, and its extent need not be a multiple. A thread takes ``factor``
iterations of an unrolled CPUThread loop in one turn, and a vector of CPUVector has ``factor`` lanes. A unit of a GPU runs one iteration
of its loop, so nothing is left to unroll there; ``explain`` says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from sparseloom.iteration.foralls import loops, retag, tag_of
from sparseloom.notation.nodes import IndexVar, Stmt
from sparseloom.schedule.primitive import Primitive, no_loop, primitive
from sparseloom.schedule.refusal import Refusal


@primitive
class Unroll(Primitive):
    """The body of ``i`` stands ``factor`` times in the code."""

    i: IndexVar
    factor: int

    def check(self, stmt: Stmt) -> Refusal | None:
        if self.factor < 1:
            return Refusal("S901", f"factor must be at least 1, not {self.factor}", "give the number of copies of the body")
        if missing := no_loop("S902", stmt, self.i):
            return missing
        before = tag_of(stmt, self.i).unroll
        if before:
            return Refusal("S903", f"the loop over {self.i} is already unrolled by {before}", "unroll a loop once", at=self.i)
        return None

    def apply(self, stmt: Stmt) -> Stmt:
        return retag(stmt, self.i, lambda tag: replace(tag, unroll=self.factor))

    @classmethod
    def candidates(cls, stmt: Stmt, rng: Random) -> Iterator[Unroll]:
        for var in rng.sample(loops(stmt), len(loops(stmt))):
            yield cls(var, rng.choice((1, 2, 3, 4, 8)))
