"""Loops under the schedules that the planner composes: step after step, and what several of them begin with is done once.

The laws are checked at the end alone. A user's schedule is checked after each step, to say which of them broke a law.
"""

from __future__ import annotations

from functools import lru_cache

from sparseloom.core.names import Names
from sparseloom.iteration.concretize import Concrete
from sparseloom.notation.nodes import Access, Expr, IndexVar, Races, Unit
from sparseloom.relations.bound import BoundType
from sparseloom.schedule.laws import breach
from sparseloom.schedule.primitive import Primitive
from sparseloom.schedule.primitives import Bound, Divide, Fuse, Parallelize, Pos, Precompute, Prefetch, Reorder, Split, Unroll
from sparseloom.schedule.schedule import RejectedStep, Schedule
from sparseloom.targets.interpret import INTERPRET
from sparseloom.targets.target import Target


@lru_cache(maxsize=512)
def composed(loops: Concrete, steps: tuple[Primitive, ...], target: Target = INTERPRET) -> Concrete | None:
    """The loops under a schedule; None if a step cannot be done or the schedule breaks a law on a target."""
    if not steps:
        return loops
    made = after(loops, steps)
    return None if made is None or breach(made.concrete, target) is not None else made.concrete


@lru_cache(maxsize=2048)
def after(loops: Concrete, steps: tuple[Primitive, ...]) -> Schedule | None:
    """The schedule after some steps, before the laws are checked."""
    if not steps:
        return Schedule(loops)
    before = after(loops, steps[:-1])
    made = None if before is None else before.attempt(steps[-1])
    return None if isinstance(made, RejectedStep) else made


class Steps:
    """Steps of one decision, put together one after another; new variables get names that are free.

        steps = Steps(names)
        outer, inner = steps.split(i, 32, "i0", "i1")
        steps.parallelize(outer, Unit.CPUThread, Races.NoRaces)
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._taken: list[Primitive] = []

    def all(self) -> tuple[Primitive, ...]:
        """The steps so far."""
        return tuple(self._taken)

    def fresh(self, wish: str) -> IndexVar:
        """A variable with a name that is free."""
        return IndexVar(self._names.fresh(wish))

    def split(self, i: IndexVar, size: int, outer: str, inner: str) -> tuple[IndexVar, IndexVar]:
        """Cut a loop into blocks of a size."""
        made = self.fresh(outer), self.fresh(inner)
        self._taken.append(Split(i, *made, size))
        return made

    def divide(
        self, i: IndexVar, count: int, outer: str, inner: str, access: Access | None = None, rows: int | None = None
    ) -> tuple[IndexVar, IndexVar]:
        """Cut a loop into so many pieces: of equal length, or of equally many entries of an operand."""
        made = self.fresh(outer), self.fresh(inner)
        self._taken.append(Divide(i, *made, count, access, rows))
        return made

    def fuse(self, *variables: IndexVar) -> IndexVar:
        """Make one loop of several."""
        fused, *rest = variables
        for var in rest:
            into = self.fresh("f")
            self._taken.append(Fuse(fused, var, into))
            fused = into
        return fused

    def pos(self, i: IndexVar, access: Access) -> IndexVar:
        """Run over the entries of an operand."""
        made = self.fresh("p")
        self._taken.append(Pos(i, made, access))
        return made

    def bound(self, i: IndexVar, extent: int) -> IndexVar:
        """State that a loop runs exactly so far."""
        made = self.fresh(f"{i}b")
        self._taken.append(Bound(i, made, extent, BoundType.MaxExact))
        return made

    def reorder(self, *order: IndexVar) -> None:
        """Put loops into this order."""
        self._taken.append(Reorder(order))

    def precompute(self, e: Expr, i: tuple[IndexVar, ...], iw: tuple[IndexVar, ...], wish: str) -> None:
        """Compute a part of the expression ahead."""
        self._taken.append(Precompute(e, i, iw, self._names.fresh(wish)))

    def unroll(self, i: IndexVar, factor: int) -> None:
        """Repeat the body of a loop."""
        self._taken.append(Unroll(i, factor))

    def parallelize(self, i: IndexVar, unit: Unit, races: Races) -> None:
        """Give the iterations of a loop to a parallel unit."""
        self._taken.append(Parallelize(i, unit, races))

    def prefetch(self, access: Access, i: IndexVar, distance: int) -> None:
        """Ask ahead for what a later iteration reads."""
        self._taken.append(Prefetch(access, i, distance))
