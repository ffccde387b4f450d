"""parallelize(i, unit, races): run the iterations of a loop at the same time.

    forall i0                     forall i0   [CPUThread with NoRaces]
      forall i1            ==>      forall i1
        y(i) = b(i)                   y(i) = b(i)

The unit says what runs an iteration, the strategy what happens when two of them write one place. NoRaces must be provable.
Where a unit may stand is the subject of ``schedule.units``, which places conflict that of ``schedule.races``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from sparseloom.iteration.foralls import loops, places, replace_loops, tag_of
from sparseloom.iteration.region import written
from sparseloom.iteration.rows import lists_entries
from sparseloom.notation.nodes import Forall, IndexVar, Races, Stmt, Unit
from sparseloom.schedule.primitive import Primitive, no_loop, primitive
from sparseloom.schedule.refusal import Refusal


@primitive
class Parallelize(Primitive):
    """The iterations of ``i`` run at the same time, each in a ``unit``; ``races`` says how shared places are written."""

    i: IndexVar
    unit: Unit
    races: Races

    def check(self, stmt: Stmt) -> Refusal | None:
        if missing := no_loop("S801", stmt, self.i):
            return missing
        before = tag_of(stmt, self.i).unit
        if before is not None:
            return Refusal("S802", f"the loop over {self.i} is already run by {before.name}", "parallelize a loop once", at=self.i)
        filled = [written(loop).tensor for _, loop in places(stmt, self.i)]
        if all(lists_entries(tensor.format) for tensor in filled):
            why = f"the loop over {self.i} fills {filled[0]}, which lists its entries one after another"
            return Refusal("S812", why, "parallelize a loop outside of it, or ask for a dense result", at=self.i)
        return None

    def apply(self, stmt: Stmt) -> Stmt:
        """Loops of that name that fill a list stay as they are: those that read it are meant."""

        def tagged(loop: Forall) -> Stmt:
            tag = replace(loop.tag, unit=self.unit, races=self.races)
            return loop if lists_entries(written(loop).tensor.format) else replace(loop, tag=tag)

        return replace_loops(stmt, self.i, tagged)

    @classmethod
    def candidates(cls, stmt: Stmt, rng: Random) -> Iterator[Parallelize]:
        for var in rng.sample(loops(stmt), len(loops(stmt))):
            unit = rng.choice((Unit.CPUThread, Unit.CPUThread, Unit.CPUVector, Unit.GPUBlock, Unit.GPUThread))
            yield cls(var, unit, rng.choice((Races.NoRaces, Races.Atomics, Races.Temporary, Races.ParallelReduction)))
