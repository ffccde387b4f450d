"""prefetch(access, i, distance): while a loop runs, ask for what a later iteration will read of an operand.

    forall i                       forall i
      forall j                       forall j   [prefetching B(j,k) 4 ahead]
        forall k              ==>      forall k
          C(i,k) += A(i,j)*B(j,k)        C(i,k) += A(i,j)*B(j,k)

Where the loop follows stored entries, the coordinate ``distance`` entries further on tells what to ask for: rows of B come in
an order that the processor cannot guess. The entries themselves may be asked for too. A short row is asked for as a whole, of a
longer one the beginning. Results stay the same, and nothing is touched that is not there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from sparseloom.iteration.foralls import loops, operands, places, reads, replace_loops, tag_of
from sparseloom.notation.nodes import Access, Forall, IndexVar, Prefetched, Stmt
from sparseloom.notation.printer import show
from sparseloom.schedule.asked_ahead import not_ahead
from sparseloom.schedule.primitive import Primitive, no_loop, primitive
from sparseloom.schedule.refusal import Refusal, listed


@primitive
class Prefetch(Primitive):
    """While ``i`` runs, ``access`` is asked for ``distance`` iterations ahead."""

    access: Access
    i: IndexVar
    distance: int

    def check(self, stmt: Stmt) -> Refusal | None:
        if not 1 <= self.distance <= _FURTHEST:
            return Refusal("S1301", f"distance must be between 1 and {_FURTHEST}, not {self.distance}", "give the number of iterations")
        return no_loop("S1302", stmt, self.i) or self._operand(stmt)

    def _operand(self, stmt: Stmt) -> Refusal | None:
        if self.access not in operands(stmt):
            why = f"{show(self.access)} is not an operand of the statement"
            return Refusal("S1303", why, f"there are {listed(map(show, operands(stmt)))}")
        if not any(self.access in reads(loop.body) for _, loop in places(stmt, self.i)):
            why = f"the loop over {self.i} does not read {show(self.access)}"
            return Refusal("S1304", why, f"it reads {listed(map(show, _read_in(stmt, self.i)))}", at=self.i)
        before = next((one.distance for one in tag_of(stmt, self.i).prefetches if one.access == self.access), None)
        if before is not None:
            why = f"the loop over {self.i} already prefetches {show(self.access)} {before} ahead"
            return Refusal("S1305", why, "ask for an operand once", at=self.i)
        return None

    def apply(self, stmt: Stmt) -> Stmt:
        """Loops of that name that read something else stay as they are."""

        def tagged(loop: Forall) -> Stmt:
            tag = replace(loop.tag, prefetches=(*loop.tag.prefetches, Prefetched(self.access, self.distance)))
            return replace(loop, tag=tag) if self.access in reads(loop.body) else loop

        return replace_loops(stmt, self.i, tagged)

    @classmethod
    def candidates(cls, stmt: Stmt, rng: Random) -> Iterator[Prefetch]:
        for var in rng.sample(loops(stmt), len(loops(stmt))):
            read = [access for access in _read_in(stmt, var) if access in operands(stmt)]
            steps = [cls(access, var, rng.choice((1, 2, 3, 8))) for access in rng.sample(read, len(read))]
            yield from (step for step in steps if step.check(stmt) is None and not_ahead(step.apply(stmt)) is None)


_FURTHEST = 2**20


def _read_in(stmt: Stmt, var: IndexVar) -> list[Access]:
    """What the loops over a variable read, each access once."""
    return list(dict.fromkeys(access for _, loop in places(stmt, var) for access in reads(loop.body)))
