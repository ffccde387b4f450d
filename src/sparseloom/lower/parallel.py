"""Parallel loops: how their iterations share what they fill, and what they do where they meet in one place.

    a_acc = 0                             a_slots = [0, 0, ...]        one slot for each part of the range
    forall i (CPUThread, Temporary)  ==>  parallel for part
      a_acc += b(i)                         own = 0; for i in part: own += b(i); a_slots[part] = own
                                          for slot: a_acc += a_slots[slot]

The blocks of a GPU do the same. The lanes of a warp need no memory, nor do the threads and warps of a block: they shuffle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sparseloom.assemble.result import DenseResult, combine, placed
from sparseloom.core import algebra
from sparseloom.core.errors import CompilerBug
from sparseloom.iteration.region import innermost, written
from sparseloom.loops import nodes as ir
from sparseloom.loops.splits import Combined, Partial, Split
from sparseloom.lower.accumulation import Own, own_of
from sparseloom.lower.carries import carried_by, in_carries
from sparseloom.lower.forall import find_ranges, forall, is_gone, over
from sparseloom.lower.in_parts import in_parts
from sparseloom.lower.in_pieces import in_rows
from sparseloom.lower.rows_of_block import in_rows_of_block
from sparseloom.lower.segments import in_segments
from sparseloom.lower.split import Room, in_turn, with_room
from sparseloom.lower.unit_carries import carried_by_units, in_unit, in_units
from sparseloom.notation.nodes import Access, Forall, Races, Unit
from sparseloom.schedule.units import GPU_UNITS
from sparseloom.scope.device import barrier, memory
from sparseloom.scope.ranges import ceil_divide, subtract
from sparseloom.scope.scope import Accumulator, Scope, Sharing

_COMBINING = 256  # threads of a GPU that combine what blocks leave
_BY_THREADS = {Sharing.ROWS: in_rows, Sharing.PARTS: in_parts, Sharing.COUNTED: in_parts}


def over_iterations(stmt: Forall, scope: Scope) -> ir.Stmt:
    """A loop, with private slots or copies if its iterations meet in one place and its strategy asks for them."""
    target = written(stmt)
    is_scalar = target != scope.context.lhs and target.tensor not in scope.workspaces and not target.indices
    sharing = Sharing.PLACES if is_scalar else scope.sink_of(target).sharing
    if stmt.tag.unit is Unit.CPUThread and sharing in _BY_THREADS:
        return _BY_THREADS[sharing](stmt, scope)
    if stmt.tag.unit is not None and sharing is not Sharing.PLACES:
        raise CompilerBug(stmt, f"{target.tensor} takes entries one after another, so such loops are refused")
    held = scope.accumulators.get(target)
    if scope.carry is not None and stmt.var in scope.carry.units:
        return in_unit(stmt, scope)
    if not _has_private_places(stmt, target, held, scope):
        if (whole := _shared(stmt, target, held, scope)) is not None:
            _note(stmt, target, *whole, scope)
        return forall(stmt, scope)
    ranges, scope = find_ranges(stmt.var, scope)
    for partial, combined, make in _IN_PLACES if held is None else _IN_SCALARS:
        made = make(stmt, scope)
        if made is not None:
            _note(stmt, target, partial, combined, scope)
            return ir.block(ranges, made)
    raise CompilerBug(stmt, "a reduction that iterations share is split in some way")


def _note(stmt: Forall, target: Access, partial: Partial, combined: Combined, scope: Scope) -> None:
    """Keep how a reduction is split, for ``explain``."""
    loop, tensor = (scope.context.origin_of(made) for made in (stmt.var, target.tensor))
    scope.context.splits.append(Split(loop, tensor, partial, combined))


def _shared(stmt: Forall, target: Access, held: Accumulator | None, scope: Scope) -> tuple[Partial, Combined] | None:
    """How a reduction is split of which no iteration has a part that the loops name; None if none is."""
    if (stmt.var, target.tensor) in scope.conflicts.atomic:
        return Partial.PLACE, Combined.ATOMICS
    is_target = held is not None and (stmt.var, target.tensor) in scope.conflicts.private and stmt.tag.unit is Unit.CPUThread
    return (Partial.REGISTER, Combined.TARGET) if is_target else None


def _is_free(target: Access, scope: Scope) -> bool:
    """Whether iterations write a dense result itself, and nothing outside has taken care of where."""
    return isinstance(scope.sink_of(target), DenseResult) and scope.copy is None and not scope.atomic


def _in_carries(stmt: Forall, scope: Scope) -> ir.Stmt | None:
    """A loop over blocks of positions, or units that share them out, which only meet in their first and last run; None if it is none."""
    if not _is_free(written(stmt), scope):
        return None
    find, make = (carried_by_units, in_units) if stmt.tag.unit in GPU_UNITS else (carried_by, in_carries)
    found = find(stmt, {*scope.coordinates}, scope.provenance)
    return None if found is None else make(stmt, found, scope)


def _has_private_places(stmt: Forall, target: Access, held: Accumulator | None, scope: Scope) -> bool:
    """Whether each iteration has a place of its own for what all of them reduce into.

    The units of a GPU have no scalar in common, so that one which all reduce into is made of private ones, whatever was asked.
    """
    conflicts = scope.conflicts
    private = conflicts.private if held is None else conflicts.private | conflicts.together
    if (stmt.var, target.tensor) not in private or is_gone(scope.provenance.root(stmt.var), scope):
        return False
    own_reduction = stmt.tag.unit is Unit.CPUVector or (stmt.tag.unit is Unit.CPUThread and stmt.tag.races is Races.ParallelReduction)
    if held is not None and own_reduction:
        return False  # the target language reduces scalars itself
    if stmt.tag.unit is Unit.CPUVector:
        raise CompilerBug(stmt, "lanes that meet in memory are refused")
    return True


def _by_shuffles(stmt: Forall, scope: Scope) -> ir.Stmt | None:
    """Each lane, thread or warp reduces into a scalar of its own; shuffles then combine them. Those that a guard leaves idle take part."""
    if stmt.tag.unit not in (Unit.GPUWarp, Unit.GPUThread):
        return None
    parts, own = own_of(scope.accumulators[written(stmt)], scope)
    # What several kernels may need is assigned, not shuffled into: it can then live in memory.
    totals = [part.held if scope.units else ir.Var(scope.fresh(f"{part.held.name}_total"), part.held.dtype) for part in parts]
    first = [ir.Declare(part.var, part.identity) for part in parts]
    last = [ir.Shuffle(total, part.op, part.var) for total, part in zip(totals, parts, strict=True)]
    target, who = written(stmt), "warps" if stmt.tag.unit is Unit.GPUWarp else "lanes" if Unit.GPUWarp in scope.units else "threads"
    scope.remark(f"{stmt.var}: {who} reduce into {target.tensor} by shuffles")

    def then(inner: Scope) -> ir.Stmt:
        return inner.ways.statement(stmt.body, inner.accumulating(target, own))

    made = over(stmt, scope, then, lambda body: ir.block(*first, body, *last))
    if scope.units:
        return made
    begun = [ir.Declare(total, part.identity) for total, part in zip(totals, parts, strict=True)]
    return ir.block(*begun, made, *(part.combined(total) for total, part in zip(totals, parts, strict=True)))


def _mine(stmt: Forall, scope: Scope) -> ir.Expr:
    """The number of an iteration."""
    return subtract(scope.coordinates[stmt.var], scope.ranges.range_of(stmt.var)[0])


def _in_slots(stmt: Forall, scope: Scope) -> ir.Stmt:
    """Each iteration reduces into a slot of its own; the slots are then combined in order."""
    count, (parts, own) = scope.ranges.extent(stmt.var), own_of(scope.accumulators[written(stmt)], scope)
    where, wait = memory(scope.context.target, count, scope, stmt), barrier(scope)
    slots = [(ir.Array(scope.fresh(f"{part.held.name}_slots"), part.var.dtype, where), part) for part in parts]
    target = written(stmt)

    def then(inner: Scope) -> ir.Stmt:
        body = inner.ways.statement(stmt.body, inner.accumulating(target, own))
        first = [ir.Declare(part.var, part.identity) for part in parts]
        return ir.block(*first, body, *(ir.Store(array, _mine(stmt, inner), part.var) for array, part in slots))

    rooms = [Room(array, count, part.identity) for array, part in slots]
    if stmt.tag.unit is Unit.GPUBlock:
        reduced = _by_one_block(slots, count, scope)
    else:
        slot = ir.Var(scope.fresh("slot"))
        reduced = in_turn(slot, count, *(part.combined(ir.Load(array, slot)) for array, part in slots))
    return with_room(rooms, over(stmt, scope, then), reduced, wait)


def _by_one_block(slots: list[tuple[ir.Array, Own]], count: ir.Expr, scope: Scope) -> ir.Stmt:
    """The slots that blocks of a GPU filled, combined by the threads of one more: each takes every so many, and then they shuffle."""
    thread, turn, width = ir.Var(scope.fresh("thread")), ir.Var(scope.fresh("turn")), ir.index(_COMBINING)
    totals = [replace(part, held=ir.Var(scope.fresh(f"{part.held.name}_total"), part.held.dtype)) for _, part in slots]
    own = [replace(part, held=part.var) for _, part in slots]
    here = ir.add(ir.multiply(turn, width), thread)
    taken = ir.block(*(part.combined(ir.Load(array, here)) for part, (array, _) in zip(own, slots, strict=True)))
    body = ir.block(
        *(ir.Declare(part.var, part.identity) for part in own),
        ir.For(turn, ir.ZERO, ceil_divide(subtract(count, thread), width), taken),
        *(ir.Shuffle(part.held, part.op, part.var) for part in totals),
    )
    return ir.block(
        *(ir.Declare(part.held, part.identity) for part in totals),
        ir.For(thread, ir.ZERO, width, body, ir.LoopKind.GPU_THREAD, _COMBINING),
        *(part.combined(total.held) for total, (_, part) in zip(totals, slots, strict=True)),
    )


def _in_copies(stmt: Forall, scope: Scope) -> ir.Stmt:
    """Each iteration writes a copy of its own of the places that are open; the copies are then combined in order."""
    target = written(stmt)
    sink, op, tensor = scope.sink_of(target), innermost(stmt).op, target.tensor
    row = sink.row(scope)
    if op is None or row is None:
        raise CompilerBug(stmt, "iterations that meet in places that exist must reduce")
    count, values = scope.ranges.extent(stmt.var), row.array
    first, size = ir.Var(scope.fresh(f"{values.name}_first")), ir.Var(scope.fresh(f"{values.name}_size"))
    room = ir.multiply(count, row.count if isinstance(row.count, ir.Literal) else size)
    where = memory(scope.context.target, room, scope, stmt)
    copies = ir.Array(scope.fresh(f"{values.name}_copies"), values.dtype, where)
    identity = ir.constant(algebra.identity(op, values.dtype), values.dtype)
    ready = sink.initialise(scope)
    scope = replace(scope, uninitialised=None)

    def then(inner: Scope) -> ir.Stmt:
        copy = (tensor, copies, subtract(ir.multiply(_mine(stmt, inner), size), first))
        # What loops outside share is written when the copies are combined; loops inside may meet in the copy.
        atomic = frozenset(pair for pair in inner.atomic if pair[0] != tensor)
        return inner.ways.statement(stmt.body, replace(inner, copy=copy, atomic=atomic, edge=None))

    slot, place, wait = ir.Var(scope.fresh("slot")), ir.Var(scope.fresh("place")), barrier(scope)
    array, there = placed(tensor, values, ir.add(first, place), scope)
    mine = sink.holds(ir.add(first, place), scope) if scope.units else ir.TRUE  # other units have the rest
    added = combine(tensor, array, there, ir.Load(copies, ir.add(ir.multiply(slot, size), place)), op, replace(scope, edge=None))
    combined = in_turn(slot, count, ir.For(place, ir.ZERO, size, ir.when(mine, added)))
    begun = ready, ir.Declare(first, row.begin), ir.Declare(size, row.count)
    return ir.block(*begun, with_room([Room(copies, room, identity)], over(stmt, scope, then), combined, wait))


_Form = tuple[Partial, Combined, Callable[[Forall, Scope], ir.Stmt | None]]
_IN_PLACES: tuple[_Form, ...] = (
    (Partial.ROWS, Combined.SHUFFLES, in_rows_of_block),
    (Partial.REGISTER, Combined.SEGMENTS, in_segments),
    (Partial.EDGES, Combined.IN_ORDER, _in_carries),
    (Partial.COPY, Combined.IN_ORDER, _in_copies),
)
_IN_SCALARS: tuple[_Form, ...] = ((Partial.REGISTER, Combined.SHUFFLES, _by_shuffles), (Partial.SLOT, Combined.IN_ORDER, _in_slots))
