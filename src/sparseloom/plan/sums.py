"""Sums inside a nest: what only some factors need is summed first, once for a whole row of results that stays in registers.

    Y(i,l) = S(i,j) * C(i,k) * D(j,k) * E(j,l)     i, j, l, k   ==>   i, lb, j:   t = C(i,k) * D(j,k)           k runs here
                                                                                  Y(i,l) += S(i,j) * t * E(j,l)

The lanes of lb share t. Where a row does not fit into registers, two statements are better: with 64 and 128 doubles one nest took up to
1.5 times as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sparseloom.core.names import Names
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.foralls import accesses, taken_names
from sparseloom.notation.nodes import Apply, Assign, Expr, IndexVar, Races, Unit
from sparseloom.notation.printer import show
from sparseloom.notation.terms import free_variables
from sparseloom.plan.compose import Steps, composed
from sparseloom.plan.decision import Decision
from sparseloom.plan.space import Space
from sparseloom.schedule.matching import flat
from sparseloom.schedule.primitive import Primitive


@dataclass(frozen=True)
class Inside:
    """Loops with a sum inside, and the decision that leads to them."""

    decision: Decision
    concrete: Concrete
    space: Space


@dataclass(frozen=True)
class _Part:
    """Factors that can be summed first: over ``moved``, while the loops over ``stay`` keep their order."""

    factors: Expr
    stay: tuple[IndexVar, ...]
    moved: tuple[IndexVar, ...]


def sum_inside(concrete: Concrete, space: Space) -> Inside | None:
    """The loops with the sum inside that saves most; None where little is gained."""
    if len(space.paths) != 1 or space.spine != space.paths[0].variables or space.graph.relations:
        return None
    found = [made for part in _parts(space) if (made := _made(concrete, space, part)) is not None]
    best = min(found, key=lambda made: made.space.runs, default=None)
    return best if best is not None and space.runs > space.machine.blocks.gain * best.space.runs else None


def _made(concrete: Concrete, space: Space, part: _Part) -> Inside | None:
    """The loops with a part summed inside; None if its row does not fill registers, or the steps are rejected."""
    steps = _steps(concrete, space, part)
    made = None if steps is None else composed(concrete, steps)
    if steps is None or made is None:
        return None
    within = Space(made.stmt, space.sizes, space.statistics, space.machine)
    what = f"{show(part.factors)} is summed over {', '.join(map(str, part.moved))} first, and a row of results stays in registers"
    why = f"innermost loops run about {within.runs:,.0f} times, and {space.runs:,.0f} times without that"
    return Inside(Decision(steps, what, why, "all factors innermost"), made, within)


def _parts(space: Space) -> Iterator[_Part]:
    """What could be summed first, for each variable that is summed over: all factors that have it, if those are dense."""
    assign, variables = space.paths[0].assign, space.paths[0].variables
    if assign.op is None or not isinstance(assign.rhs, Apply):
        return
    factors = flat(assign.rhs)
    for var in variables:
        those = tuple(factor for factor in factors if var in free_variables(factor))
        if var in assign.lhs.indices or len(those) in (0, len(factors)) or not all(map(_is_dense, those)):
            continue
        beside = {*assign.lhs.indices, *(v for factor in factors if factor not in those for v in free_variables(factor))}
        moved, stay = tuple(v for v in variables if v not in beside), tuple(v for v in variables if v in beside)
        yield _Part(those[0] if len(those) == 1 else Apply(assign.rhs.op, those, assign.rhs.zero), stay, moved)


def _is_dense(factor: Expr) -> bool:
    return all(access.tensor.format.is_dense for access in accesses(factor))


def _steps(concrete: Concrete, space: Space, part: _Part) -> tuple[Primitive, ...] | None:
    """The row of results moves out of the sums over it, and the part is summed inside of these; None if there is no such row."""
    if not part.stay:
        return None
    *around, row = part.stay
    assign, extent = space.paths[0].assign, space.extent(row)
    sums = [var for var in around if var not in assign.lhs.indices]
    rows = around[: len(around) - len(sums)]
    if not sums or [*rows, *sums] != around or row in free_variables(part.factors) or not _is_row(space, assign, row):
        return None
    if extent * assign.lhs.tensor.dtype.itemsize not in space.machine.blocks.row_bytes:
        return None
    steps = Steps(Names(taken_names(concrete.stmt)))
    lanes = steps.bound(row, extent)
    steps.reorder(*rows, lanes, *sums, *part.moved)
    steps.precompute(part.factors, (), (), "t")
    steps.parallelize(lanes, Unit.CPUVector, Races.NoRaces)
    return steps.all()


def _is_row(space: Space, assign: Assign, row: IndexVar) -> bool:
    """Whether a variable runs over neighbouring values of the result, and of all that have it."""
    having = [access for access in (assign.lhs, *accesses(assign.rhs)) if row in access.indices]
    last = all(space.is_last(row, access) and access.tensor.format.levels[-1].full for access in having)
    return last and row in assign.lhs.indices
