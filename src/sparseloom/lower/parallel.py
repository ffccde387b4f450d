"""Parallel loops whose iterations meet in one place: each gets a slot or a copy of its own, and they are combined in order.

    a_acc = 0                             a_slots = [0, 0, ...]        one slot for each part of the range
    forall i (CPUThread, Temporary)  ==>  parallel for part
      a_acc += b(i)                         own = 0; for i in part: own += b(i); a_slots[part] = own
                                          for slot: a_acc += a_slots[slot]
"""

from __future__ import annotations

from dataclasses import replace

from sparseloom.core import algebra
from sparseloom.core.dtypes import BOOL
from sparseloom.core.errors import CompilerBug
from sparseloom.iteration.region import innermost, written
from sparseloom.loops import nodes as ir
from sparseloom.lower.expression import operate
from sparseloom.lower.forall import LoopLowering
from sparseloom.lower.listing import ListWorkspace
from sparseloom.lower.result import LocatedResult, Result
from sparseloom.lower.scope import Accumulator, Scope
from sparseloom.lower.space import subtract
from sparseloom.lower.workspace import Scatter, Workspace
from sparseloom.notation.nodes import Access, Forall, IndexVar, Races, Tag, TensorVar, Unit
from sparseloom.notation.relations import DivideRelation

SLOTS = 16  # how many private copies a loop over threads makes: the result then does not depend on how many threads there are


class ParallelLoops(LoopLowering):
    """Loops with private slots or copies where iterations meet and their strategy asks for that."""

    private: frozenset[tuple[IndexVar, TensorVar]]  # parallel loops whose iterations meet in this tensor, each with a place of its own

    def sink(self, target: Access) -> Result | Workspace | Scatter | ListWorkspace:
        """Where an assignment goes: the result, or a workspace."""
        raise CompilerBug(target, "a subclass knows where assignments go")

    def parallel(self, stmt: Forall, scope: Scope) -> ir.Stmt:
        """A loop, with private slots or copies if its iterations meet in one place and its strategy asks for them."""
        target = written(stmt)
        if stmt.tag.unit is not None and not target.tensor.format.is_dense and not isinstance(self.sink(target), LocatedResult):
            # What keeps a list of its entries takes them one after another.
            self.context.remark(f"{stmt.var}: {target.tensor} lists its entries, so iterations run one after another")
            return self.forall(replace(stmt, tag=replace(stmt.tag, unit=None, races=None)), scope)
        if (stmt.var, target.tensor) not in self.private or self.is_gone(self.context.provenance.root(stmt.var), scope):
            return self.forall(stmt, scope)
        held = scope.accumulators.get(target)
        own_reduction = stmt.tag.unit is Unit.CPUVector or (stmt.tag.unit is Unit.CPUThread and stmt.tag.races is Races.ParallelReduction)
        if held is not None and own_reduction:
            return self.forall(stmt, scope)  # the target language reduces scalars itself
        if stmt.tag.unit is Unit.CPUVector:
            # Lanes that meet in memory: a copy of the result for each would cost more than lanes gain.
            self.context.remark(f"{stmt.var}: lanes would meet in {target.tensor}, so they run one after another")
            return self.forall(replace(stmt, tag=replace(stmt.tag, unit=None, races=None)), scope)
        context, outside = self.context, self.context.provenance
        ranges, scope = self.find_ranges(stmt.var, scope)
        if stmt.tag.unit is Unit.CPUThread:
            part, within = IndexVar(context.names.fresh(f"{stmt.var}_slot")), IndexVar(context.names.fresh(f"{stmt.var}_within"))
            context.provenance = outside.adding(DivideRelation(stmt.var, part, within, SLOTS))
            stmt = Forall(part, Forall(within, stmt.body, Tag(unroll=stmt.tag.unroll)), replace(stmt.tag, unroll=0))
        made = self._in_slots(stmt, held, scope) if held is not None else self._in_copies(stmt, target, scope)
        context.provenance = outside
        return ir.block(ranges, made)

    def _in_slots(self, stmt: Forall, held: Accumulator, scope: Scope) -> ir.Stmt:
        """Each iteration reduces into a slot of its own; the slots are then combined in order."""
        fresh, count = self.context.names.fresh, self._slot_count(stmt, scope)
        target, slot = written(stmt), ir.Var(fresh("slot"))
        slots = ir.Array(fresh(f"{held.var.name}_slots"), held.var.dtype, ir.Space.LOCAL)
        own = Accumulator(ir.Var(fresh(f"{held.var.name}_own"), held.var.dtype), held.op)
        identity = ir.constant(algebra.identity(held.op, held.var.dtype), held.var.dtype)
        parts = [(slots, own.var, identity)]
        combined: ir.Stmt = ir.Assign(held.var, operate(held.op, [held.var, ir.Load(slots, slot)], held.var.dtype, held.var.dtype))
        if held.seen is not None:
            seen_slots = ir.Array(fresh(f"{held.seen.name}_slots"), BOOL, ir.Space.LOCAL)
            own = replace(own, seen=ir.Var(fresh(f"{held.seen.name}_own"), BOOL))
            parts.append((seen_slots, own.seen or held.seen, ir.FALSE))
            combined = ir.block(combined, ir.If(ir.Load(seen_slots, slot), ir.Assign(held.seen, ir.TRUE)))

        def then(inner: Scope) -> ir.Stmt:
            body = self.lower(stmt.body, inner.accumulating(target, own))
            mine = subtract(inner.coordinates[stmt.var], self.context.space(inner).range_of(stmt.var)[0])
            first = [ir.Declare(var, value) for _, var, value in parts]
            return ir.block(*first, body, *(ir.Store(array, mine, var) for array, var, _ in parts))

        made = [ir.block(ir.Allocate(array, count), ir.Fill(array, ir.ZERO, count, value)) for array, _, value in parts]
        freed = [ir.Free(array) for array, _, _ in parts]
        return ir.block(*made, self.over(stmt, scope, then), ir.For(slot, ir.ZERO, count, combined), *freed)

    def _in_copies(self, stmt: Forall, written_to: Access, scope: Scope) -> ir.Stmt:
        """Each iteration writes a copy of the result of its own; the copies are then combined in order."""
        sink = self.sink(written_to)
        if not isinstance(sink, LocatedResult | Workspace):
            raise CompilerBug(stmt, "only what exists beforehand has private copies")
        fresh, count = self.context.names.fresh, self._slot_count(stmt, scope)
        values, op, target = sink.view.values, innermost(stmt).op, written_to.tensor
        if op is None:
            raise CompilerBug(stmt, "iterations that meet in one place must reduce")
        first, size = ir.Var(fresh(f"{values.name}_first")), ir.Var(fresh(f"{values.name}_size"))
        begin, extent = sink.part(scope)
        copies = ir.Array(fresh(f"{values.name}_copies"), values.dtype)
        identity = ir.constant(algebra.identity(op, values.dtype), values.dtype)
        ready = sink.initialise(scope)
        scope = replace(scope, uninitialised=None)

        def then(inner: Scope) -> ir.Stmt:
            mine = subtract(inner.coordinates[stmt.var], self.context.space(inner).range_of(stmt.var)[0])
            return self.lower(stmt.body, replace(inner, copy=(target, copies, subtract(ir.multiply(mine, size), first))))

        slot, place = ir.Var(fresh("slot")), ir.Var(fresh("place"))
        added = ir.Store(values, ir.add(first, place), ir.Load(copies, ir.add(ir.multiply(slot, size), place)), op)
        return ir.block(
            ready,
            ir.Declare(first, begin),
            ir.Declare(size, extent),
            ir.Allocate(copies, ir.multiply(count, size)),
            ir.Fill(copies, ir.ZERO, ir.multiply(count, size), identity),
            self.over(stmt, scope, then),
            ir.For(slot, ir.ZERO, count, ir.For(place, ir.ZERO, size, added)),
            ir.Free(copies),
        )

    def _slot_count(self, stmt: Forall, scope: Scope) -> ir.Expr:
        return self.context.space(scope).extent(stmt.var)
