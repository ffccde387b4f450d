"""Runs of equal coordinates in a block of positions: only the first and the last can meet a neighbour's.

    for each row of the block          the first or last row:  row = 0; for p, for k: row[k] += ...; then Y[i,k] atomically += row[k]
      for p, for k                     any other row:          for p, for k: Y[i,k] += ...
        Y[i,k] += A[p] * X[j,k]
"""

from __future__ import annotations

from dataclasses import replace

from sparseloom.core import algebra
from sparseloom.iteration.region import innermost, written
from sparseloom.loops import nodes as ir
from sparseloom.lower.device import memory
from sparseloom.lower.fused import FusedLoops
from sparseloom.lower.nest import Then
from sparseloom.lower.result import DenseResult, placed
from sparseloom.lower.scope import Scope
from sparseloom.lower.space import subtract
from sparseloom.notation.nodes import Access, Forall
from sparseloom.schedule.units import GPU_UNITS


class RunLoops(FusedLoops):
    """What happens in one run of a block of positions."""

    def edge_of(self, access: Access, level: int, position: ir.Expr, scope: Scope) -> ir.Expr | None:
        """When a position of a level stands in the first or the last run of its block; None where that cannot be told.

        Where a level repeats coordinates, a run is a row of positions with the same one, if they are in order.
        """
        kind, view, parent = access.tensor.format.levels[level], self.context.view(access).levels[level], scope.at(access).position
        low, high = scope.cuts[access, level]
        ends = (low, subtract(high, ir.ONE))
        if kind.unique:
            return ir.either(*(ir.compare("equal", position, end) for end in ends))
        if not kind.ordered:
            return None
        here = kind.coordinate(view, parent, position)
        return ir.either(*(ir.compare("equal", here, kind.coordinate(view, parent, end)) for end in ends))

    def in_run(self, stmt: Forall, scope: Scope, go: Then) -> ir.Stmt:
        """One run of equal coordinates. Where loops over further result variables lie inside, it writes a row of the result.

        A row that a neighbour may share is made in private and added at the end of the run, one atomic for each of its elements.
        """
        target, hooks, op, edge = written(stmt), self.hooks, innermost(stmt).op, scope.edge
        shared = any(tensor == target.tensor for tensor, _ in scope.atomic)
        open_modes = [var not in scope.coordinates for var in hooks.variables]
        is_row = any(open_modes) and not open_modes[0] and open_modes == sorted(open_modes)
        if edge is None or op is None or not (shared and is_row and isinstance(hooks, DenseResult) and hooks.lhs == target):
            return self.enter(stmt, scope, go)
        begin, count = hooks.part(scope)
        where = memory(self.context.target, count, scope, stmt.body)
        if where is ir.MemorySpace.GLOBAL and any(unit in GPU_UNITS for unit in scope.units):
            return self.enter(stmt, scope, go)  # a thread of a GPU has no room for a row whose size is not known
        fresh, values = self.context.names.fresh, hooks.view.values
        row = ir.Array(fresh(f"{values.name}_row"), values.dtype, where)
        first, place = ir.Var(fresh(f"{values.name}_first")), ir.Var(fresh("place"))
        outside, destination = placed(target.tensor, values, ir.add(first, place), scope)
        own = replace(scope, atomic=frozenset(pair for pair in scope.atomic if pair[0] != target.tensor), edge=None)
        private = ir.block(
            ir.Declare(first, begin),
            ir.Allocate(row, count),
            ir.Fill(row, ir.ZERO, count, ir.constant(algebra.identity(op, values.dtype), values.dtype)),
            self.enter(stmt, replace(own, copy=(target.tensor, row, subtract(ir.ZERO, first))), go),
            ir.For(place, ir.ZERO, count, ir.Store(outside, destination, ir.Load(row, place), op, atomic=True)),
            ir.Free(row),
        )
        return ir.If(edge, private, self.enter(stmt, own, go))
