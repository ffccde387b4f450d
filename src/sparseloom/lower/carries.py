"""Carries: what the first and the last run of a block of positions have to share with their neighbours, joined in order.

    forall p0 (CPUThread, Temporary)      parallel for p0: the first and the last row of the block go to places of its own,
      forall p1                     ==>     all rows between them to y
        y(i) += A(i,j) * x(j)             for each block: y[row of its first run] += first; y[row of its last run] += last

Blocks are the schedule's, so the result has the same bits however many threads there are.
"""

from __future__ import annotations

from dataclasses import replace

from sparseloom.core import algebra
from sparseloom.core.dtypes import INT64
from sparseloom.core.errors import CompilerBug
from sparseloom.iteration.provenance import Provenance
from sparseloom.iteration.region import innermost, written
from sparseloom.loops import nodes as ir
from sparseloom.lower.forall import over
from sparseloom.lower.position_nest import fixing_level, needed_above
from sparseloom.lower.split import Room, in_turn, with_room
from sparseloom.notation.nodes import Access, Forall, IndexVar, Tag
from sparseloom.relations.relation import Positions
from sparseloom.scope.ranges import subtract
from sparseloom.scope.scope import Carry, Scope


def carried_by(loop: Forall, outer: set[IndexVar], graph: Provenance) -> Positions | None:
    """The positions of which a loop counts blocks that only meet in their first and last run; None if it does not.

    The loop inside must run through one block, as a nest over the levels above; a run must be told apart from its neighbours; and what
    it writes must be one place, or places that follow each other.
    """
    lhs, inner, relation = written(loop), loop.body, graph.position(loop.var)
    if relation is None or relation.position == loop.var or not isinstance(inner, Forall) or replace(inner.tag, prefetches=()) != Tag():
        return None
    known = {*outer, loop.var}
    if relation.position not in graph.known({*known, inner.var}) or not graph.is_leading(relation.position, inner.var, known):
        return None
    fixing = fixing_level(inner, relation, graph)
    if fixing is None or not needed_above(inner, relation, graph):
        return None
    levels = relation.access.tensor.format.levels[: fixing + 1]
    fixed = _fixed_modes(lhs, relation, fixing, outer, graph)
    in_order = fixed == sorted(fixed, reverse=True) and (fixed[:1] == [True] or not fixed)
    in_order = in_order and all(level.full for level in lhs.tensor.format.levels[sum(fixed) :])
    return relation if in_order and all(level.unique or level.ordered for level in levels) else None


def _fixed_modes(lhs: Access, relation: Positions, fixing: int, outer: set[IndexVar], graph: Provenance) -> list[bool]:
    """Which modes of a result are the same in a whole run."""
    levels, walked = graph.position_levels(relation), graph.walked(relation)
    known = graph.known({*outer, *(var for k, var in zip(levels, walked, strict=True) if k <= fixing)})
    return [var in known for var in graph.stored(lhs)]


def in_carries(stmt: Forall, relation: Positions, scope: Scope) -> ir.Stmt:
    """A loop over blocks of positions, each with places of its own for its first and its last run."""
    op, (carry, sized) = reducing(stmt), opened(stmt, relation, scope)
    ready, scope = scope.result.initialise(scope), replace(scope, uninitialised=None)
    slots = ir.multiply(ir.index(2), scope.ranges.extent(stmt.var))

    def then(inner: Scope) -> ir.Stmt:
        number = subtract(inner.coordinates[stmt.var], inner.ranges.range_of(stmt.var)[0])
        mine = replace(carry, first=ir.multiply(ir.index(2), number))
        return ir.block(cleared(mine, op), inner.ways.statement(stmt.body, replace(inner, carry=mine, edge=None)))

    slot, place, begin = (ir.Var(scope.fresh(name)) for name in ("slot", "place", "begin"))
    joined = ir.Store(scope.view(written(stmt)).values, ir.add(begin, place), carry.load(slot, place), op)
    there = ir.If(ir.compare("greater_equal", begin, ir.ZERO), ir.For(place, ir.ZERO, carry.size, joined))
    scope.remark(f"{stmt.var}: each block carries what its first and last run share with others, joined in order")
    rooms = (Room(carry.values, ir.multiply(slots, carry.size)), Room(carry.begins, slots))
    combined = in_turn(slot, slots, ir.Declare(begin, ir.Load(carry.begins, slot)), there)
    return ir.block(ready, sized, with_room(rooms, over(stmt, scope, then), combined))


def reducing(stmt: Forall) -> str:
    """How iterations that meet in one place combine."""
    op = innermost(stmt).op
    if op is None:
        raise CompilerBug(stmt, "iterations that meet in one place must reduce")
    return op


def opened(stmt: Forall, relation: Positions, scope: Scope) -> tuple[Carry, ir.Stmt]:
    """The arrays of carries, which nobody has allocated yet, and what says how large one is."""
    lhs, fixing = written(stmt), fixing_level(stmt, relation, scope.provenance)
    if fixing is None:
        raise CompilerBug(stmt, "blocks whose runs cannot be told apart carry nothing")
    fixed = _fixed_modes(lhs, relation, fixing, {*scope.coordinates}, scope.provenance)
    count: ir.Expr = ir.ONE
    for level, same in zip(scope.view(lhs).levels, fixed, strict=True):
        count = count if same else ir.multiply(count, level.size)
    name = lhs.tensor.name
    carries = ir.Array(scope.fresh(f"{name}_carries"), scope.view(lhs).values.dtype)
    begins = ir.Array(scope.fresh(f"{name}_carried"), INT64)
    size = count if isinstance(count, ir.Literal) else ir.Var(scope.fresh(f"{name}_carry_size"))
    sized = ir.Declare(size, count) if isinstance(size, ir.Var) else ir.block()
    return Carry(lhs.tensor, relation.position, carries, begins, ir.ZERO, size), sized


def cleared(carry: Carry, op: str) -> ir.Stmt:
    """Nothing is carried yet."""
    identity = ir.constant(algebra.identity(op, carry.values.dtype), carry.values.dtype)
    return ir.block(
        ir.Fill(carry.values, ir.multiply(carry.first, carry.size), ir.multiply(ir.index(2), carry.size), identity),
        ir.Fill(carry.begins, carry.first, ir.index(2), ir.index(-1)),
    )
