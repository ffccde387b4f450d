"""Carries of the units of a GPU: what the first and the last run of a unit's positions share with others, joined by another kernel.

    forall b (GPUBlock, Temporary)            for b, for t: the first and the last row of the thread's positions go to places of its own,
      forall t (GPUThread, Temporary)   ==>     all rows between them to y; of these places the first and the last row are left to the block
        forall p1                             for each of the blocks' places [a thread]: the first of one row adds up all that follow
          y(i) += A(i,j) * x(j)

Positions are the schedule's, and their carries are added in order, so the result has the same bits every time. Where a run writes one
place, what the units of a block carry stays in shared memory, and is grouped there; else every unit has places in memory of all.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from sparseloom.core import algebra
from sparseloom.core.dtypes import BOOL
from sparseloom.core.errors import CompilerBug
from sparseloom.iteration.provenance import Provenance
from sparseloom.iteration.region import written
from sparseloom.loops import nodes as ir
from sparseloom.lower.carries import carried_by, cleared, opened, reducing
from sparseloom.lower.forall import over
from sparseloom.lower.split import Room, with_room
from sparseloom.notation.nodes import Forall, IndexVar, Stmt, Unit, Where
from sparseloom.relations.relation import Positions
from sparseloom.schedule.units import GPU_UNITS
from sparseloom.scope.device import is_on_gpu
from sparseloom.scope.expression import operate
from sparseloom.scope.ranges import ceil_divide, least, subtract
from sparseloom.scope.scope import Carry, Scope

_JOINING = 256  # threads of a block that joins
_GROUP = 16  # slots that a thread adds up
_NOWHERE = ir.index(-1)  # where a slot begins that carries nothing


def units_inside(loop: Forall) -> list[Forall]:
    """A loop over units of a GPU, and those directly inside it; a temporary may be made in between."""
    found: list[Forall] = []
    stmt: Stmt = loop
    while True:
        match stmt:
            case Forall(tag=tag) if tag.unit in GPU_UNITS:
                found.append(stmt)
                stmt = stmt.body
            case Where(consumer):
                stmt = consumer
            case _:
                return found


def carried_by_units(loop: Forall, outer: set[IndexVar], graph: Provenance) -> Positions | None:
    """The positions which blocks of a GPU, or units inside them, take in order, so that they only meet in their first and last run."""
    if loop.tag.unit is not Unit.GPUBlock:
        return None
    *around, last = units_inside(loop)
    relation = carried_by(last, {*outer, *(unit.var for unit in around)}, graph)
    if relation is None or not isinstance(last.body, Forall) or is_on_gpu(last.body):
        return None
    loops = [*(unit.var for unit in (*around, last)), last.body.var]
    return relation if _digits(relation.position, loops, graph) == loops else None


def _digits(var: IndexVar, loops: list[IndexVar], graph: Provenance) -> list[IndexVar]:
    """What a variable is counted by, from the most significant on, down to the loops."""
    parts = () if var in loops else graph.significant(var)
    return [digit for part in parts for digit in _digits(part, loops, graph)] if parts else [var]


def in_units(stmt: Forall, relation: Positions, scope: Scope) -> ir.Stmt:
    """A loop over blocks of a GPU; each, or each unit in it, has places of its own for the first and the last run of its positions."""
    carry, sized = opened(stmt, relation, scope)
    ready, scope = scope.result.initialise(scope), replace(scope, uninitialised=None)
    units, grouped = tuple(unit.var for unit in units_inside(stmt)), carry.size == ir.ONE
    count: ir.Expr = ir.index(2)
    for unit in units[:1] if grouped else units:
        count = ir.multiply(scope.ranges.extent(unit), count)
    slots = ir.Var(scope.fresh(f"{carry.values.name}_count"))
    begun = replace(scope, edge=None, carry=replace(carry, units=units))
    made = _in_groups(stmt, begun) if grouped and len(units) > 1 else in_unit(stmt, begun)
    scope.remark(f"{stmt.var}: each block carries what its first and last run share with others, joined in order")
    # Blocks without positions are not run.
    rooms = (Room(carry.values, ir.multiply(slots, carry.size)), Room(carry.begins, slots, _NOWHERE))
    joined = _joined(carry, slots, reducing(stmt), scope.view(written(stmt)).values, scope)
    return ir.block(ready, sized, ir.Declare(slots, count), with_room(rooms, made, joined))


def in_unit(stmt: Forall, scope: Scope) -> ir.Stmt:
    """One of the loops over units on the way to a block of positions: inside the last of them its places are known."""
    carry, op = _carry_of(scope), reducing(stmt)

    def then(inner: Scope) -> ir.Stmt:
        number = ir.add(ir.multiply(carry.first, inner.ranges.extent(stmt.var)), _mine(stmt, inner))
        if carry.units[1:]:
            return inner.ways.statement(stmt.body, replace(inner, carry=replace(carry, first=number, units=carry.units[1:])))
        own = replace(carry, first=ir.multiply(ir.index(2), number), units=())
        return ir.block(cleared(own, op), inner.ways.statement(stmt.body, replace(inner, carry=own)))

    return over(stmt, scope, then)


def _carry_of(scope: Scope) -> Carry:
    if scope.carry is None:
        raise CompilerBug(scope.units, "units that share runs have places for them")
    return scope.carry


def _mine(stmt: Forall, inner: Scope) -> ir.Expr:
    """The number of an iteration."""
    return subtract(inner.coordinates[stmt.var], inner.ranges.range_of(stmt.var)[0])


def _in_groups(stmt: Forall, scope: Scope) -> ir.Stmt:
    """A loop over blocks whose units carry in shared memory; threads add up runs of some of them each, until two are left for the block."""
    carry, op, values = _carry_of(scope), reducing(stmt), scope.view(written(stmt)).values
    count = 2 * prod(scope.provenance.extent(unit) or 0 for unit in carry.units[1:])
    counts = [count, 2 * -(-count // _GROUP)]
    while counts[-1] > 2:
        counts.append(2 * -(-counts[-1] // _GROUP))
    shared = [_shared(carry, scope) for _ in counts[:-1]]

    def then(inner: Scope) -> ir.Stmt:
        block = replace(carry, first=ir.multiply(ir.index(2), _mine(stmt, inner)))
        body = inner.ways.statement(stmt.body, replace(inner, carry=replace(shared[0], units=carry.units[1:])))
        steps = [
            ir.block(ir.Barrier(), _grouped(source, number, made, op, values, scope))
            for source, made, number in zip(shared, [*shared[1:], block], counts, strict=False)
        ]
        room = [stmt for one, number in zip(shared, counts, strict=False) for stmt in _allocated(one, number)]
        return ir.block(*room, body, *steps, ir.Barrier(), *(ir.Free(array) for one in shared for array in (one.values, one.begins)))

    return over(stmt, scope, then)


def _shared(carry: Carry, scope: Scope) -> Carry:
    """Carries of the units of one block."""
    values, begins = (replace(array, name=scope.fresh(f"{array.name}_near")) for array in (carry.values, carry.begins))
    return replace(carry, values=replace(values, space=ir.MemorySpace.SHARED), begins=replace(begins, space=ir.MemorySpace.SHARED))


def _allocated(carry: Carry, count: int) -> list[ir.Stmt]:
    return [ir.Allocate(carry.values, ir.index(count)), ir.Allocate(carry.begins, ir.index(count))]


def _grouped(source: Carry, count: int, made: Carry, op: str, values: ir.Array, scope: Scope) -> ir.Stmt:
    """A loop over threads, each of which adds up the runs of so many slots; the first and the last are carried on, others are whole."""
    group, at, here, run = (ir.Var(scope.fresh(name)) for name in ("group", "at", "here", "run"))
    total, is_first = ir.Var(scope.fresh("total"), values.dtype), ir.Var(scope.fresh("is_first"), BOOL)
    nothing = ir.constant(algebra.identity(op, values.dtype), values.dtype)
    groups, first = -(-count // _GROUP), ir.add(made.first, ir.multiply(ir.index(2), group))

    def kept(slot: ir.Expr) -> ir.Stmt:
        return ir.block(ir.Store(made.values, slot, total), ir.Store(made.begins, slot, run))

    ended = ir.If(is_first, ir.block(kept(first), ir.Assign(is_first, ir.FALSE)), ir.Store(values, run, total, op))
    begun = ir.block(ir.If(_is_somewhere(run), ended), ir.Assign(run, here), ir.Assign(total, nothing))
    added = ir.Assign(total, operate(op, [total, source.load(at, ir.ZERO)], total.dtype, total.dtype))
    seen = ir.block(ir.If(ir.compare("not_equal", here, run), begun), added)
    low = ir.multiply(group, ir.index(_GROUP))
    body = ir.block(
        ir.Declare(run, _NOWHERE),
        ir.Declare(total, nothing),
        ir.Declare(is_first, ir.TRUE),
        ir.Fill(made.begins, first, ir.index(2), _NOWHERE),
        ir.For(
            at, low, least(ir.add(low, ir.index(_GROUP)), ir.index(count)),
            ir.block(ir.Declare(here, ir.Load(source.begins, at)), ir.If(_is_somewhere(here), seen)),
        ),
        ir.If(_is_somewhere(run), kept(ir.add(first, ir.Select(is_first, ir.ZERO, ir.ONE)))),
    )  # fmt: skip
    return ir.For(group, ir.ZERO, ir.index(groups), body, ir.LoopKind.GPU_THREAD, groups)


def _is_somewhere(begin: ir.Expr) -> ir.Expr:
    return ir.compare("greater_equal", begin, ir.ZERO)


def _joined(carry: Carry, slots: ir.Expr, op: str, values: ir.Array, scope: Scope) -> ir.Stmt:
    """A kernel with a thread for each place: that of the first carry of a row adds up those of the row, which follow each other."""
    block, thread, one, slot, place, begin = (
        ir.Var(scope.fresh(name)) for name in ("join", "join_thread", "one", "slot", "place", "begin")
    )
    is_one = carry.size == ir.ONE
    here = ir.block(
        ir.Declare(slot, one if is_one else ir.Op("floor_divide", (one, carry.size))),
        ir.Declare(begin, ir.Load(carry.begins, slot)),
        None if is_one else ir.Declare(place, ir.Op("remainder", (one, carry.size))),
        ir.If(_is_somewhere(begin), _joined_from(carry, slots, op, values, slot, ir.ZERO if is_one else place, begin, scope)),
    )
    count, width = ir.multiply(slots, carry.size), ir.index(_JOINING)
    body = ir.block(ir.Declare(one, ir.add(ir.multiply(block, width), thread)), ir.If(ir.compare("less", one, count), here))
    threads = ir.For(thread, ir.ZERO, width, body, ir.LoopKind.GPU_THREAD, _JOINING)
    return ir.For(block, ir.ZERO, ceil_divide(count, width), threads, ir.LoopKind.GPU_BLOCK)


def _joined_from(
    carry: Carry, slots: ir.Expr, op: str, values: ir.Array, slot: ir.Var, place: ir.Expr, begin: ir.Var, scope: Scope
) -> ir.Stmt:
    """What is carried for a row from some slot on, unless a slot before it has a share of the row. Some slots carry nothing."""
    before, after = ir.Var(scope.fresh("before")), ir.Var(scope.fresh("after"))
    total, there = ir.Var(scope.fresh("total"), values.dtype), ir.add(begin, place)

    def at(slot: ir.Expr, how: str, other: ir.Expr) -> ir.Expr:
        return ir.compare(how, ir.Load(carry.begins, slot), other)

    is_behind_none = ir.both(_is_somewhere(before), at(before, "less", ir.ZERO))
    is_first = ir.either(ir.compare("less", before, ir.ZERO), at(before, "not_equal", begin))
    goes_on = ir.both(ir.compare("less", after, slots), ir.either(at(after, "equal", begin), at(after, "less", ir.ZERO)))
    added = ir.Assign(total, operate(op, [total, carry.load(after, place)], total.dtype, total.dtype))
    joined = ir.block(
        ir.Declare(total, ir.Load(values, there)),
        ir.Declare(after, slot),
        ir.While(goes_on, ir.block(ir.If(at(after, "equal", begin), added), ir.Assign(after, ir.add(after, ir.ONE)))),
        ir.Store(values, there, total),
    )
    return ir.block(
        ir.Declare(before, subtract(slot, ir.ONE)),
        ir.While(is_behind_none, ir.Assign(before, subtract(before, ir.ONE))),
        ir.If(is_first, joined),
    )
