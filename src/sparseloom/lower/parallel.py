"""Parallel loops whose iterations meet in one place: each gets a slot or a copy of its own, and they are combined in order.

    a_acc = 0                             a_slots = [0, 0, ...]        one slot for each part of the range
    forall i (CPUThread, Temporary)  ==>  parallel for part
      a_acc += b(i)                         own = 0; for i in part: own += b(i); a_slots[part] = own
                                          for slot: a_acc += a_slots[slot]

The threads of a GPU block do the same in shared memory, with barriers; the lanes of a warp need no memory, they shuffle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sparseloom.core import algebra
from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import rewrite
from sparseloom.iteration.region import innermost, written
from sparseloom.loops import nodes as ir
from sparseloom.lower.append import AppendResult
from sparseloom.lower.block_row import BlockRow
from sparseloom.lower.counted import CountedResult
from sparseloom.lower.device import barrier, memory
from sparseloom.lower.expression import operate
from sparseloom.lower.forall import LoopLowering
from sparseloom.lower.hashed import HashRow
from sparseloom.lower.insert import InsertResult
from sparseloom.lower.listing import ListWorkspace
from sparseloom.lower.parts import PartedResult, ThreadResult
from sparseloom.lower.refill import Accumulated, RefillResult
from sparseloom.lower.result import LocatedResult, Result, combine, placed
from sparseloom.lower.scope import Accumulator, Scope
from sparseloom.lower.space import ceil_divide, subtract
from sparseloom.lower.workspace import Scatter, Workspace
from sparseloom.notation.nodes import Access, Forall, IndexVar, Races, Tag, TensorVar, Unit
from sparseloom.relations.divide import DivideRelation


@dataclass(frozen=True)
class _Own:
    """A scalar that all iterations reduce into, and the one that an iteration has for itself."""

    held: ir.Var
    var: ir.Var
    op: str

    @property
    def identity(self) -> ir.Expr:
        """What it is worth before anything was reduced into it."""
        return ir.constant(algebra.identity(self.op, self.var.dtype), self.var.dtype)

    def combined(self, value: ir.Expr) -> ir.Stmt:
        """What combines the value of one iteration with that of the others."""
        if self.op == "logical_or":
            return ir.If(value, ir.Assign(self.held, ir.TRUE))
        return ir.Assign(self.held, operate(self.op, [self.held, value], self.held.dtype, self.held.dtype))


class ParallelLoops(LoopLowering):
    """Loops with private slots or copies where iterations meet and their strategy asks for that."""

    result: Result
    private: frozenset[tuple[IndexVar, TensorVar]]  # parallel loops whose iterations meet in this tensor, each with a place of its own
    meeting: frozenset[tuple[IndexVar, TensorVar]]  # loops on a GPU whose iterations meet in this tensor and write it there

    def sink(self, target: Access) -> Result | Workspace | Scatter | HashRow | BlockRow | ListWorkspace | Accumulated:
        """Where an assignment goes: the result, or a workspace."""
        raise CompilerBug(target, "a subclass knows where assignments go")

    def parallel(self, stmt: Forall, scope: Scope) -> ir.Stmt:
        """A loop, with private slots or copies if its iterations meet in one place and its strategy asks for them."""
        target = written(stmt)
        sink = self.sink(target)
        if stmt.tag.unit is Unit.CPUThread and isinstance(sink, InsertResult) and sink.lhs == target:
            return self._in_places(stmt, scope)
        if stmt.tag.unit is Unit.CPUThread and isinstance(sink, AppendResult) and sink.lhs == target:
            if isinstance(sink, CountedResult):
                return self._in_counted_parts(stmt, sink, scope)
            if sink.can_be_parted:
                return self._in_parts(stmt, sink, scope)
            if isinstance(sink, RefillResult) and sink.has_places:
                return self._in_places(stmt, scope)
        if stmt.tag.unit is not None and not target.tensor.format.is_dense and not isinstance(sink, LocatedResult):
            # What keeps a list of its entries takes them one after another.
            self.context.remark(f"{stmt.var}: {target.tensor} lists its entries, so iterations run one after another")
            return self.forall(replace(stmt, tag=replace(stmt.tag, unit=None, races=None)), scope)
        held = scope.accumulators.get(target)
        # The units of a GPU have no scalar in common, so that one which all reduce into is made of private ones, whatever was asked.
        private = self.private if held is None else self.private | self.meeting
        if (stmt.var, target.tensor) not in private or self.is_gone(self.context.provenance.root(stmt.var), scope):
            return self.forall(stmt, scope)
        own_reduction = stmt.tag.unit is Unit.CPUVector or (stmt.tag.unit is Unit.CPUThread and stmt.tag.races is Races.ParallelReduction)
        if held is not None and own_reduction:
            return self.forall(stmt, scope)  # the target language reduces scalars itself
        if stmt.tag.unit is Unit.CPUVector:
            raise CompilerBug(stmt, "lanes that meet in memory are refused")
        context, outside = self.context, self.context.provenance
        ranges, scope = self.find_ranges(stmt.var, scope)
        if stmt.tag.unit is Unit.CPUThread:
            part, within = IndexVar(context.names.fresh(f"{stmt.var}_slot")), IndexVar(context.names.fresh(f"{stmt.var}_within"))
            context.provenance = outside.adding(DivideRelation(stmt.var, part, within, context.target.slots))
            stmt = Forall(part, Forall(within, stmt.body, Tag(unroll=stmt.tag.unroll)), replace(stmt.tag, unroll=0))
        if held is None:
            made = self._in_copies(stmt, target, scope)
        elif stmt.tag.unit is Unit.GPUThread and scope.units[-1:] == (Unit.GPUWarp,):
            made = self._in_lanes(stmt, held, scope)
        else:
            made = self._in_slots(stmt, held, scope)
        context.provenance = outside
        return ir.block(ranges, made)

    def _in_places(self, stmt: Forall, scope: Scope) -> ir.Stmt:
        """Rows that have places of their own; workspaces are a thread's own, too."""
        made, first, last = self._with_own_memory(lambda: self.forall(stmt, scope))
        return _with_team(made, first, last)

    def _in_parts(self, stmt: Forall, whole: AppendResult, scope: Scope) -> ir.Stmt:
        """Threads append rows of their own, in parts that are joined afterwards. Workspaces are a thread's own, too."""
        context, outside = self.context, self.context.provenance
        ranges, scope = self.find_ranges(stmt.var, scope)
        parts = PartedResult(whole, ir.index(context.target.parts))
        self.result = self.hooks = parts.thread
        context.remark(f"{stmt.var}: in {context.target.parts} parts, each appended by one thread, then joined")
        made, first, last = self._part_by_part(stmt, scope, parts.thread)
        context.provenance = outside
        self.result = self.hooks = whole
        team = _with_team(made, ir.block(parts.thread.begin(), first), ir.block(last, parts.thread.keep()), _at_a_time(first))
        return ir.block(ranges, parts.open(), team, parts.join())

    def _in_counted_parts(self, stmt: Forall, result: CountedResult, scope: Scope) -> ir.Stmt:
        """Threads count the entries of parts of the rows, and then fill them in where they belong. Workspaces are a thread's own, too."""
        context, outside = self.context, self.context.provenance
        ranges, scope = self.find_ranges(stmt.var, scope)
        result.parts, result.in_parts = ir.index(context.target.parts), True
        context.remark(f"{stmt.var}: in {context.target.parts} parts, each counted by one thread, then filled in by one")
        runs: list[ir.Stmt] = []
        while len(runs) < 2:
            made, first, last = self._part_by_part(stmt, scope, result)
            context.provenance = outside
            runs.append(ir.block(_with_team(made, first, last, _at_a_time(first)), result.fill_next() if result.is_counting else None))
        return ir.block(ranges, *runs)

    def _part_by_part(self, stmt: Forall, scope: Scope, result: ThreadResult | CountedResult) -> tuple[ir.Stmt, ir.Stmt, ir.Stmt]:
        """A loop cut into parts, and what a thread does before its first part and after its last."""
        context = self.context
        part, within = IndexVar(context.names.fresh(f"{stmt.var}_part")), IndexVar(context.names.fresh(f"{stmt.var}_within"))
        cut = DivideRelation(stmt.var, part, within, context.target.parts)
        context.provenance = context.provenance.adding(cut)
        space = context.space(scope)
        used = ceil_divide(space.extent(stmt.var), cut.block_size(space))

        def then(inner: Scope) -> ir.Stmt:
            number = inner.coordinates[part]
            begin = result.begin_part(number)
            body = self.lower(Forall(within, stmt.body, Tag(unroll=stmt.tag.unroll)), inner)
            return ir.block(begin, body, result.end_part(number))

        made, first, last = self._with_own_memory(lambda: self.over(Forall(part, stmt.body, replace(stmt.tag, unroll=0)), scope, then))
        # Parts behind the last row are nobody's, so that threads that take as many each have as much to do.
        return _ending_at(made, used), first, last

    def _with_own_memory(self, make: Callable[[], ir.Stmt]) -> tuple[ir.Stmt, ir.Stmt, ir.Stmt]:
        """What is made, and what a thread does before and after it: workspaces are its own."""
        context = self.context
        before, behind = context.before, context.behind
        context.before, context.behind = [], []
        made = make()
        first, last = ir.block(*context.before), ir.block(*context.behind)
        context.before, context.behind = before, behind
        return made, first, last

    def _own(self, held: Accumulator) -> list[_Own]:
        """What an iteration reduces into instead of what all of them hold: a scalar, and whether there was anything."""
        fresh = self.context.names.fresh
        scalars = [(held.var, held.op)] + ([] if held.seen is None else [(held.seen, "logical_or")])
        return [_Own(var, ir.Var(fresh(f"{var.name}_own"), var.dtype), op) for var, op in scalars]

    def _in_lanes(self, stmt: Forall, held: Accumulator, scope: Scope) -> ir.Stmt:
        """Each lane reduces into a scalar of its own; shuffles then combine them. Lanes that a guard leaves idle take part."""
        parts = self._own(held)
        own = replace(held, var=parts[0].var, seen=parts[1].var if held.seen is not None else None)
        first = [ir.Declare(part.var, part.identity) for part in parts]
        last = [ir.Shuffle(part.held, part.op, part.var) for part in parts]
        target = written(stmt)
        self.context.remark(f"{stmt.var}: lanes reduce into {target.tensor} by shuffles")
        return self.over(
            stmt, scope, lambda inner: self.lower(stmt.body, inner.accumulating(target, own)), lambda body: ir.block(*first, body, *last)
        )

    def _in_slots(self, stmt: Forall, held: Accumulator, scope: Scope) -> ir.Stmt:
        """Each iteration reduces into a slot of its own; the slots are then combined in order."""
        fresh, count, parts = self.context.names.fresh, self._slot_count(stmt, scope), self._own(held)
        own = replace(held, var=parts[0].var, seen=parts[1].var if held.seen is not None else None)
        where, wait = memory(self.context.target, count, scope, stmt), barrier(scope)
        slots = [ir.Array(fresh(f"{part.held.name}_slots"), part.var.dtype, where) for part in parts]
        target = written(stmt)

        def then(inner: Scope) -> ir.Stmt:
            body = self.lower(stmt.body, inner.accumulating(target, own))
            mine = subtract(inner.coordinates[stmt.var], self.context.space(inner).range_of(stmt.var)[0])
            first = [ir.Declare(part.var, part.identity) for part in parts]
            return ir.block(*first, body, *(ir.Store(array, mine, part.var) for array, part in zip(slots, parts, strict=True)))

        made = [
            ir.block(ir.Allocate(array, count), ir.Fill(array, ir.ZERO, count, part.identity))
            for array, part in zip(slots, parts, strict=True)
        ]
        slot = ir.Var(fresh("slot"))
        combined = ir.block(*(part.combined(ir.Load(array, slot)) for array, part in zip(slots, parts, strict=True)))
        reduced = ir.For(slot, ir.ZERO, count, combined)
        return ir.block(*made, wait, self.over(stmt, scope, then), wait, reduced, wait, *map(ir.Free, slots))

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
        where = memory(self.context.target, ir.multiply(count, extent), scope, stmt)
        copies = ir.Array(fresh(f"{values.name}_copies"), values.dtype, where)
        identity = ir.constant(algebra.identity(op, values.dtype), values.dtype)
        ready = sink.initialise(scope)
        scope = replace(scope, uninitialised=None)

        def then(inner: Scope) -> ir.Stmt:
            mine = subtract(inner.coordinates[stmt.var], self.context.space(inner).range_of(stmt.var)[0])
            copy = (target, copies, subtract(ir.multiply(mine, size), first))
            # What loops outside share is written when the copies are combined; loops inside may meet in the copy.
            atomic = frozenset(pair for pair in inner.atomic if pair[0] != target)
            return self.lower(stmt.body, replace(inner, copy=copy, atomic=atomic, edge=None))

        slot, place, wait = ir.Var(fresh("slot")), ir.Var(fresh("place")), barrier(scope)
        array, there = placed(target, values, ir.add(first, place), scope)
        added = combine(target, array, there, ir.Load(copies, ir.add(ir.multiply(slot, size), place)), op, replace(scope, edge=None))
        return ir.block(
            ready,
            ir.Declare(first, begin),
            ir.Declare(size, extent),
            ir.Allocate(copies, ir.multiply(count, size)),
            ir.Fill(copies, ir.ZERO, ir.multiply(count, size), identity),
            wait,
            self.over(stmt, scope, then),
            wait,
            ir.For(slot, ir.ZERO, count, ir.For(place, ir.ZERO, size, added)),
            wait,
            ir.Free(copies),
        )

    def _slot_count(self, stmt: Forall, scope: Scope) -> ir.Expr:
        return self.context.space(scope).extent(stmt.var)


def _at_a_time(first: ir.Stmt) -> int:
    """Parts that take unlike time, as with workspaces, are handed out one by one; else a thread takes many that follow each other."""
    return 0 if first == ir.block() else 1


def _ending_at(made: ir.Stmt, end: ir.Expr) -> ir.Stmt:
    """The same statements with a threads loop that ends earlier."""

    def rule(found: object) -> ir.Stmt | None:
        match found:
            case ir.For(kind=ir.LoopKind.THREADS) as loop:
                return replace(loop, end=end)
        return None

    return rewrite(made, rule)


def _with_team(made: ir.Stmt, first: ir.Stmt, last: ir.Stmt, at_a_time: int = 0) -> ir.Stmt:
    """The threads loop among these statements, with what each thread runs before and after it."""

    def rule(found: object) -> ir.Stmt | None:
        match found:
            case ir.For(kind=ir.LoopKind.THREADS) as loop:
                return ir.Team(first, replace(loop, factor=at_a_time), last)
        return None

    return rewrite(made, rule)
