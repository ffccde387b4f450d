"""mergeby(i, way): choose how a loop that intersects sparse operands finds equal coordinates.

    forall i                     forall i   [merged by Gallop]
      y(i) = a(i) * b(i)   ==>     y(i) = a(i) * b(i)

TwoFinger advances the operand that is behind by one entry. Gallop searches ahead in it, which pays when one operand has
far fewer entries than the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from sparseloom.iteration.foralls import loops, retag, tag_of
from sparseloom.iteration.formula import All, Formula, Stored
from sparseloom.iteration.walked import walked
from sparseloom.notation.nodes import IndexVar, Merge, Stmt
from sparseloom.notation.printer import show
from sparseloom.schedule.primitive import Primitive, no_loop, primitive
from sparseloom.schedule.refusal import Refusal, listed


@primitive
class MergeBy(Primitive):
    """Equal coordinates of ``i`` are found by ``way``."""

    i: IndexVar
    way: Merge

    def check(self, stmt: Stmt) -> Refusal | None:
        if missing := no_loop("S1101", stmt, self.i):
            return missing
        before = tag_of(stmt, self.i).merge
        if before is not None:
            return Refusal("S1102", f"the loop over {self.i} is already merged by {before.name}", "choose once", at=self.i)
        for found in walked(stmt, self.i):
            if found.position is not None:
                why = f"{self.i} counts positions of {show(found.position.access)}, and the other operands are looked up there"
                return Refusal("S1103", why, "mergeby is for loops over coordinates", at=self.i)
            if not found.sparse:
                return Refusal("S1104", f"the loop over {self.i} follows no sparse operand, so there is nothing to merge", at=self.i)
            if self.way is Merge.Gallop and not _is_intersection(found.region):
                why = f"the loop over {self.i} visits what only some of {listed(map(show, found.sparse))} store, and Gallop skips that"
                return Refusal("S1105", why, "use TwoFinger, or gallop in an intersection", at=self.i)
            unordered = [show(access) for access in found.sparse if not all(level.ordered for level in access.tensor.format.levels)]
            if unordered:
                why = f"{listed(unordered)} is stored in no order, so it cannot be merged"
                return Refusal("S1106", why, "convert the operand", at=self.i)
            if not found.merges:
                why = f"the loop over {self.i} follows {listed(map(show, found.sparse))} alone, so there is nothing to merge"
                return Refusal("S1107", why, "mergeby is for loops that follow several sparse operands", at=self.i)
        return None

    def apply(self, stmt: Stmt) -> Stmt:
        return retag(stmt, self.i, lambda tag: replace(tag, merge=self.way))

    @classmethod
    def candidates(cls, stmt: Stmt, rng: Random) -> Iterator[MergeBy]:
        for var in rng.sample(loops(stmt), len(loops(stmt))):
            if any(found.merges for found in walked(stmt, var)):
                yield cls(var, rng.choice(tuple(Merge)))


def _is_intersection(region: Formula) -> bool:
    return all(isinstance(part, Stored) for part in (region.parts if isinstance(region, All) else (region,)))
