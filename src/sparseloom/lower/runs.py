"""Runs of equal coordinates in a block of positions: only the first and the last can meet a neighbour's.

for each row of the block          the first or last row:  row = 0; for p, for k: row[k] += ...; then Y[i,k] atomically += row[k]
  for p, for k                     any other row:          for p, for k: Y[i,k] += ...
    Y[i,k] += A[p] * X[j,k]
"""

from __future__ import annotations

from dataclasses import replace

from sparseloom.assemble.result import DenseResult, placed
from sparseloom.core import algebra
from sparseloom.iteration.region import innermost, written
from sparseloom.loops import nodes as ir
from sparseloom.notation.nodes import Access, Assign, Forall, Unit
from sparseloom.schedule.units import GPU_UNITS
from sparseloom.scope.device import memory
from sparseloom.scope.ranges import subtract
from sparseloom.scope.scope import Carry, Edge, Row, Scope, Then


def edge_of(access: Access, levels: range, position: ir.Expr, scope: Scope) -> Edge | None:
    """When a position of some levels that share it stands in the first or the last run of its block; None where that cannot be told.

    Where a level repeats coordinates, a run is a row of positions with the same ones, if they are in order.
    """
    kinds, views = access.tensor.format.levels, scope.view(access).levels
    low, high = scope.cuts[access, levels[0]]
    ends = (low, subtract(high, ir.ONE))
    if kinds[levels[0]].unique:
        first, last = (ir.compare("equal", position, end) for end in ends)
        return Edge(first, last)
    if not all(kinds[k].ordered for k in levels):
        return None

    def coordinates(at: ir.Expr) -> list[ir.Expr]:
        parents = [scope.at(access).position if k == levels[0] else at for k in levels]
        return [kinds[k].coordinate(views[k], parent, at) for k, parent in zip(levels, parents, strict=True)]

    def same(end: ir.Expr) -> ir.Expr:
        return ir.both(*(ir.compare("equal", a, b) for a, b in zip(coordinates(position), coordinates(end), strict=True)))

    return Edge(same(ends[0]), same(ends[1]))


def is_whole(assign: Assign, scope: Scope) -> bool:
    """Whether what is reduced from here on is all that goes to its place, unless the run stands at an edge of its block.

    So it is where the place was empty, and all loops outside are over what tells the places, or over blocks of the positions.
    """
    edge, graph = scope.edge, scope.provenance
    if edge is None or edge.position is None or not scope.untouched or assign.op is None:
        return False
    kept = {original for var in assign.lhs.indices for original in graph.originals(var)}
    outside = (var for var in scope.coordinates if var == edge.position or graph.root(var) != edge.position)
    return all(kept.issuperset(graph.originals(var)) for var in outside)


def in_run(stmt: Forall, scope: Scope, go: Then) -> ir.Stmt:
    """One run of equal coordinates. Where loops over further result variables lie inside, it writes a row of the result.

    A row that a neighbour may share is made in private and added at the end of the run, one atomic for each of its elements; or it is
    carried to the end of the loop.
    """
    op, edge, enter = innermost(stmt).op, scope.edge, scope.ways.reduced
    row = _open_row(written(stmt), scope)
    if edge is None or op is None or row is None:
        return enter(stmt, scope, go)
    if scope.carry is not None:
        return _carried(stmt, row, scope.carry, edge, scope, go)
    where = memory(scope.context.target, row.count, scope, stmt.body)
    crowded = where is ir.MemorySpace.GLOBAL and any(unit in GPU_UNITS for unit in scope.units)
    if crowded or Unit.CPUVector in scope.units:
        return enter(stmt, scope, go)  # neither a thread of a GPU has room for a row whose size is not known, nor a lane for any
    tensor = written(stmt).tensor
    own = replace(scope, atomic=frozenset(pair for pair in scope.atomic if pair[0] != tensor), edge=None)
    made = ir.Array(scope.fresh(f"{row.array.name}_row"), row.array.dtype, where)
    first, place = ir.Var(scope.fresh(f"{row.array.name}_first")), ir.Var(scope.fresh("place"))
    outside, destination = placed(tensor, row.array, ir.add(first, place), scope)
    private = ir.block(
        ir.Declare(first, row.begin),
        ir.Allocate(made, row.count),
        ir.Fill(made, ir.ZERO, row.count, ir.constant(algebra.identity(op, made.dtype), made.dtype)),
        enter(stmt, replace(own, copy=(tensor, made, subtract(ir.ZERO, first))), go),
        ir.For(place, ir.ZERO, row.count, ir.Store(outside, destination, ir.Load(made, place), op, atomic=True)),
        ir.Free(made),
    )
    return ir.If(edge.either, private, enter(stmt, own, go))


def _carried(stmt: Forall, row: Row, carry: Carry, edge: Edge, scope: Scope, go: Then) -> ir.Stmt:
    """A row that a neighbour may share is made in a place of the block's own."""
    own, first, slot = replace(scope, edge=None, carry=None), ir.Var(scope.fresh("first")), ir.Var(scope.fresh("slot"))
    copy = (carry.tensor, carry.values, subtract(ir.multiply(slot, carry.size), first))
    kept = ir.block(
        ir.Declare(first, row.begin),
        ir.Declare(slot, carry.slot(edge)),
        ir.Store(carry.begins, slot, first),
        scope.ways.reduced(stmt, replace(own, copy=copy), go),
    )
    return ir.If(edge.either, kept, scope.ways.reduced(stmt, own, go))


def _open_row(target: Access, scope: Scope) -> Row | None:
    """The row of a dense result that a run writes and other iterations may write too; None if it writes no such row."""
    sink, carry = scope.sink, scope.carry
    shared = any(tensor == target.tensor for tensor, _ in scope.atomic) or (carry is not None and carry.tensor == target.tensor)
    open_modes = [var not in scope.coordinates for var in sink.variables]
    is_row = any(open_modes) and not open_modes[0] and open_modes == sorted(open_modes)
    mine = isinstance(sink, DenseResult) and sink.lhs == target
    return sink.row(scope) if shared and is_row and mine else None
