"""Loops that threads share, cut into parts or slots: passes over scheduled notation, before loops are made of it.

    forall i (CPUThread)              forall i_part (CPUThread)
      C(i,j) = A(i,j) + B(i,j)  ==>     forall i_within
                                          C(i,j) = A(i,j) + B(i,j)        such that i is divided into 64 parts

Parts are for sparse results: each is made by one thread, and they are joined in order. Slots are for places in which iterations meet:
each has a place of its own, and these are combined in order, so that the result does not depend on how many threads there are.
"""

from __future__ import annotations

from dataclasses import replace

from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.foralls import fresh_variables, places, provenance, replace_loops, statements
from sparseloom.iteration.making import Appended, Counted, Dense, Inserted
from sparseloom.iteration.provenance import Provenance
from sparseloom.iteration.region import written
from sparseloom.lower.carries import carried_by
from sparseloom.notation.nodes import Forall, IndexVar, Races, Stmt, Tag, Unit
from sparseloom.relations.divide import DivideRelation
from sparseloom.schedule.races import analyse, has_own_places


def cut_into_parts(concrete: Concrete, count: int) -> Concrete:
    """Threads that append to a result, or count and fill it, do so in parts."""
    if not isinstance(concrete.making, Appended | Counted):
        return concrete
    mine = next((loop for loop in _thread_loops(concrete.stmt) if written(loop) == concrete.assign.lhs), None)
    return concrete if mine is None else replace(concrete, stmt=_divided(concrete.stmt, [mine], "part", count))


def cut_into_slots(concrete: Concrete, count: int) -> Concrete:
    """Threads that meet in places of their own each have one of a few slots for their share of the iterations."""
    stmt = concrete.stmt
    loops = _thread_loops(stmt)
    if not loops:
        return concrete
    resolved = ((c.var, c.assign.lhs.tensor, c.resolved) for c in analyse(stmt))
    private = {(var, tensor) for var, tensor, how in resolved if how is not None and how[1] is not Races.Atomics}
    graph, cut = Provenance.of(stmt), []
    for loop in loops:
        if isinstance(concrete.making, Inserted) and written(loop) == concrete.assign.lhs:
            if graph.extent(loop.var) is None and has_own_places(loop, graph, concrete.assign.lhs):
                cut.append(loop)
            continue
        outer = next(outside for outside, found in places(stmt, loop.var) if found == loop)
        meets = (loop.var, written(loop).tensor) in private and not _reduces_scalar(stmt, loop, outer)
        carries = written(loop) == concrete.assign.lhs and isinstance(concrete.making, Dense)
        if meets and not (carries and carried_by(loop, {*outer}, graph)):
            cut.append(loop)
    for var in dict.fromkeys(loop.var for loop in cut):
        stmt = _divided(stmt, [loop for loop in cut if loop.var == var], "slot", count)
    return concrete if stmt is concrete.stmt else replace(concrete, stmt=stmt)


def _thread_loops(stmt: Stmt) -> list[Forall]:
    """The loops that threads share."""
    return [n for n in statements(stmt) if isinstance(n, Forall) and n.tag.unit is Unit.CPUThread]


def _reduces_scalar(stmt: Stmt, loop: Forall, outer: tuple[IndexVar, ...]) -> bool:
    """Whether all iterations reduce into one scalar, and are asked to do so as the target's language does it."""
    return loop.tag.races is Races.ParallelReduction and {*written(loop).indices} <= provenance(stmt).known(outer)


def _divided(stmt: Stmt, loops: list[Forall], name: str, count: int) -> Stmt:
    """A statement with the loops over one variable cut into so many blocks of equal length.

    All are cut into the same two variables, for a variable has one set of digits.
    """
    var = loops[0].var
    block, within = fresh_variables(stmt, f"{var}_{name}", f"{var}_within")

    def cut(found: Forall) -> Forall:
        # Other loops over the variable, as in a producer, stay as they are.
        if found not in loops:
            return found
        tag = found.tag
        inside = Forall(within, found.body, Tag(unroll=tag.unroll, prefetches=tag.prefetches))
        return Forall(block, inside, replace(tag, unroll=0, prefetches=()))

    return replace_loops(stmt, var, cut, DivideRelation(var, block, within, count))
