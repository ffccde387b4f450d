"""Statements of the values alone: one loop over the entries, where the result has their structure or is one number.

C(i,j) = 2 * A(i,j)      C: the structure of A     i, j   ==>   p runs over the entries of A, in vectors; no row is looked at
s = A(i,j) * A(i,j)                                             the same, and lanes are added up in the end
"""

from __future__ import annotations

from math import prod

from sparseloom.core.names import Names
from sparseloom.core.trees import walk
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.foralls import accesses, taken_names
from sparseloom.iteration.formula import Stored
from sparseloom.iteration.making import Shared
from sparseloom.loops.lanes import has_vectors
from sparseloom.notation.nodes import Access, Apply, Expr, Literal, Races, Unit
from sparseloom.plan.compose import Steps
from sparseloom.plan.decision import Choice, Decision
from sparseloom.plan.space import NANOSECOND, Space
from sparseloom.plan.vectors import IN_LANES


def choose_flat(concrete: Concrete, space: Space) -> list[Choice]:
    """The loop over entries, shared by threads where there is enough to do; nothing where more than the values matters."""
    access = flat_operand(concrete, space)
    if access is None or not space.machine.has(Unit.CPUVector) or _seconds(space, access) < space.machine.worth.vectors:
        return []
    assign = concrete.assign
    reduces = assign.op is not None or not assign.lhs.indices
    steps = Steps(Names(taken_names(concrete.stmt)))
    var = steps.pos(steps.fuse(*space.spine), access)
    what = f"one loop over the entries of {access.tensor}"
    if space.machine.shares(space.seconds):
        outer, var = steps.divide(var, space.machine.threads.pieces, "p0", "p1")
        steps.parallelize(outer, Unit.CPUThread, Races.Temporary if reduces else Races.NoRaces)
        what += f", of which threads take {space.machine.threads.pieces} pieces"
    if reduces:
        steps.unroll(var, space.machine.vectors.sums * space.machine.vectors.vector // assign.lhs.tensor.dtype.itemsize)
    steps.parallelize(var, Unit.CPUVector, Races.ParallelReduction if reduces else Races.NoRaces)
    why = "the result is one number" if reduces else f"the result has the structure of {access.tensor}"
    return [Choice((Decision(steps.all(), what, f"{why}, and only values are read", "loops over rows"),))]


def flat_operand(concrete: Concrete, space: Space) -> Access | None:
    """The operand whose entries are all that a statement visits, and whose values, beside numbers, are all that it reads."""
    if len(space.paths) != 1 or space.graph.relations or space.spine != space.paths[0].variables or len(space.spine) < 2:
        return None
    path = space.paths[0]
    read = {access for access in accesses(path.assign.rhs) if access.indices}
    if len(read) != 1 or not all(isinstance(n, Access | Apply | Literal) for n in walk(path.assign.rhs, Expr)):
        return None
    (access,) = read
    form, making = access.tensor.format, concrete.making
    if space.levels(access) != space.spine or form.is_dense or space.region(path) != Stored(access):
        return None
    if not all(level.compact and level.ordered for level in form.levels) or form.levels[-1].full or form.levels[-1].shares_values:
        return None
    lhs = path.assign.lhs
    if not lhs.indices:
        return access if path.assign.op in IN_LANES and has_vectors(lhs.tensor.dtype) else None
    return access if making == Shared(access, len(form.levels)) and path.assign.op is None else None


def _seconds(space: Space, access: Access) -> float:
    """Roughly how long loops over rows take, empty ones included."""
    full = (space.extent(var) for var, level in zip(space.levels(access), access.tensor.format.levels, strict=True) if level.full)
    return space.seconds + prod(full) * space.machine.costs.per_value * NANOSECOND
