"""Lowering one statement to one kernel.

Every loop binds a variable. When it is bound, whatever depends on it follows at once: original variables are recovered from
derived ones, dense levels are located, and a result location that has become fixed gets a scalar to reduce into.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sparseloom.core import algebra
from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import BOOL, widest
from sparseloom.core.errors import CompilerBug
from sparseloom.core.names import Names
from sparseloom.core.once import cached_property
from sparseloom.core.trees import Node, walk
from sparseloom.formats.levels.listed import Listed
from sparseloom.formats.levels.scattered import Scattered
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.provenance import Provenance
from sparseloom.iteration.region import annihilating, innermost, is_skippable, written
from sparseloom.iteration.rows import why_listed
from sparseloom.loops import nodes as ir
from sparseloom.lower.accumulation import accumulate, contribution, decides_value
from sparseloom.lower.block_row import BlockRow
from sparseloom.lower.context import Context, Remark
from sparseloom.lower.counted import CountedResult
from sparseloom.lower.expression import Value, lower_expression
from sparseloom.lower.hashed import HashRow
from sparseloom.lower.insert import InsertResult, flat_loop
from sparseloom.lower.listing import ListWorkspace
from sparseloom.lower.make_result import first_statement, first_value, make_result
from sparseloom.lower.parallel import ParallelLoops
from sparseloom.lower.refill import Accumulated, RefillResult, takes_whole_row
from sparseloom.lower.result import DenseResult, Nowhere, Result
from sparseloom.lower.scope import Accumulator, Scope
from sparseloom.lower.space import Space
from sparseloom.lower.views import Sizes, Slot, input_parameters, view_tensor
from sparseloom.lower.walking import settle
from sparseloom.lower.workspace import Scatter, Workspace
from sparseloom.notation.dtyping import Absence, absence_of
from sparseloom.notation.nodes import (
    Access,
    Apply,
    Assign,
    Forall,
    IndexVar,
    Races,
    Sequence,
    Stmt,
    SuchThat,
    TensorVar,
    Where,
)
from sparseloom.relations.pos import PosRelation
from sparseloom.relations.weighted import WeightedRelation
from sparseloom.schedule.loops import paths, relations_of
from sparseloom.schedule.races import analyse
from sparseloom.schedule.units import GPU_UNITS
from sparseloom.targets.target import Target


@dataclass(frozen=True)
class Lowered:
    """A kernel in the loop IR, what its parameters are, and how it walks its operands."""

    function: ir.Function
    slots: tuple[Slot, ...]
    result: Access
    shared: str | None
    fill: Scalar
    remarks: tuple[Remark, ...]

    @cached_property
    def hands_out(self) -> bool:
        """Whether the kernel allocates what it returns; a dense result's values are its first parameter instead."""
        return bool(self.grown or self.counted)

    @cached_property
    def grown(self) -> tuple[int, ...]:
        """The parameters that are arrays which the kernel allocates."""
        return self._parameters(ir.Role.GROWN)

    @cached_property
    def counted(self) -> tuple[int, ...]:
        """The parameters that say how many entries a level of the result has."""
        return self._parameters(ir.Role.COUNT)

    def _parameters(self, role: ir.Role) -> tuple[int, ...]:
        return tuple(k for k, param in enumerate(self.function.params) if param.role is role)

    @cached_property
    def parts(self) -> dict[tuple[int | None, str], int]:
        """Which parameters belong to the result, by level and part."""
        return {(slot.level, slot.part): k for k, slot in enumerate(self.slots) if slot.tensor == self.result.tensor.name}

    @cached_property
    def extents(self) -> tuple[int, ...]:
        """Which parameters say how large the result is in each of its modes."""
        sizes = {slot.part: k for k, slot in enumerate(self.slots) if slot.tensor is None}
        return tuple(sizes[var.name] for var in self.result.indices)


def lower(concrete: Concrete, target: Target, name: str = "kernel", int32_limit: int = 2**31 - 1, refill: bool = False) -> Lowered:
    """Lower a concrete statement to one kernel; one that refills computes the values of a sparse result whose structure is given."""
    return _Lowering(concrete, target, int32_limit, refill).run(name)


FIRST_LIST = 63  # how many entries a list has room for at first, where it is one of many


class _Lowering(ParallelLoops):
    def __init__(self, concrete: Concrete, target: Target, int32_limit: int, refill: bool) -> None:
        self.stmt = stmt = concrete.stmt
        self.assign = concrete.assign
        self.lhs = self.assign.lhs
        self.shared, self.concrete = concrete.shared, concrete
        provenance = Provenance.of(stmt)
        temporaries = {written(n.producer).tensor for n in walk(stmt) if isinstance(n, Where)}
        self.accesses = list(dict.fromkeys(n for n in walk(stmt) if isinstance(n, Access) and n.tensor not in temporaries))
        names = Names()
        for n in walk(stmt):
            if isinstance(n, IndexVar | TensorVar):
                names.take(n.name)
        originals = dict.fromkeys(v for access in self.accesses for v in access.indices)
        everything = Provenance(relations_of(stmt))
        originals |= dict.fromkeys(v for n in walk(stmt) if isinstance(n, Forall) for v in everything.originals(n.var))
        sizes = Sizes(originals, names)
        whole = Space(provenance, sizes, {}, {})
        for var in {v for access in self.accesses for v in provenance.stored(access)} - set(originals):
            sizes.derive(var, whole.extent(var))
        views = {}
        for access in self.accesses:
            if access.tensor not in views:
                views[access.tensor] = view_tensor(access, provenance.stored(access), sizes, names)
        width = widest(tensor.index_dtype for tensor in views)
        self.context = Context(names, sizes, views, provenance, everything, int32_limit, target, width)
        self.context.lower = self.lower
        self.operands = [a for a in self.accesses if a != self.lhs]
        self.inputs = tuple(self.operands)
        self.workspaces: dict[TensorVar, Workspace | Scatter | HashRow | BlockRow | ListWorkspace | Accumulated] = {}
        conflicts = [(c.var, c.assign.lhs.tensor, None if c.resolved is None else c.resolved[1]) for c in analyse(stmt)]
        self.atomic = frozenset((var, tensor) for var, tensor, how in conflicts if how is Races.Atomics)
        self.private = frozenset((var, tensor) for var, tensor, how in conflicts if how not in (None, Races.Atomics))
        on_gpu = {n.var for n in walk(stmt) if isinstance(n, Forall) and n.tag.unit in GPU_UNITS}
        self.meeting = frozenset((var, tensor) for var, tensor, _ in conflicts if var in on_gpu) - self.private
        meets = any(tensor == self.lhs.tensor for _, tensor in self.meeting)
        self.combines = meets or self.assign.op is not None or reduces_outside(first_statement(stmt), self.lhs, provenance)
        self.result = self.hooks = make_result(self.context, concrete, self.combines, refill)

    def run(self, name: str) -> Lowered:
        """The whole kernel."""
        fresh = isinstance(self.result, DenseResult) and self.assign.op is None
        start = Scope(uninitialised=0 if fresh else None, combines=self.combines)
        settled, scope = settle(self.context, start, self.operands)
        loops = self._loops(self.result, scope)
        body = ir.block(self.result.begin(), *self.context.before, settled, loops, *self.context.behind, self.result.finish())
        params = self.result.parameters()
        seen: set[TensorVar] = {self.lhs.tensor}
        for access in self.inputs:
            if access.tensor not in seen:
                seen.add(access.tensor)
                params += input_parameters(self.context.view(access))
        for var, size in self.context.sizes.params.items():
            params.append((ir.Param(size, ir.Role.SIZE), Slot(None, var.name)))
        function = ir.Function(name, tuple(p for p, _ in params), body)
        shared = None if self.shared is None else self.shared.tensor.name
        return Lowered(function, tuple(slot for _, slot in params), self.lhs, shared, self.lhs.tensor.fill, tuple(self.context.remarks))

    def _loops(self, result: Result, scope: Scope) -> ir.Stmt:
        """The loops; those of a result that is counted first run twice, here or in the parts that threads take."""
        name = self.lhs.tensor.name
        match result:
            case InsertResult():
                counted, how = self._counted(result, scope)
                loops = ir.block(counted, result.fill_next(), self.lower(self.stmt, scope))
                self.context.remark(f"{name}: {how}")
                return loops
            case CountedResult():
                loops = self._in_two_runs(result, scope)
                self.context.remark(f"{name}: these loops run twice, to count the entries and to fill them in")
                return loops
        return self.lower(self.stmt, scope)

    def _in_two_runs(self, result: CountedResult, scope: Scope) -> ir.Stmt:
        """Loops that count, and loops that fill in; threads do both for parts of the loop they share."""
        begin = result.begin_part(ir.ZERO)
        counted = self.lower(self.stmt, scope)
        if result.in_parts:
            return counted
        stmts = [begin, counted, result.end_part(ir.ZERO), result.fill_next(), result.begin_part(ir.ZERO), self.lower(self.stmt, scope)]
        return ir.block(*stmts, result.end_part(ir.ZERO))

    def _counted(self, result: InsertResult, scope: Scope) -> tuple[ir.Stmt, str]:
        """What counts the entries of each row, in words too; a single loop, if the operand's own entries tell."""
        context, found = self.context, flat_loop(self.stmt, self.lhs)
        if found is None:
            return self.lower(self.stmt, scope), "these loops run twice, to count the entries of each row and to fill them in"
        flat, result.driver = found
        outside, remarks = (context.provenance, context.everything), list(context.remarks)
        context.provenance = context.everything = Provenance.of(flat)
        counted = self.lower(flat, scope)
        context.provenance, context.everything = outside
        context.remarks = remarks
        return counted, "one loop over all entries counts those of each row, then these fill them in"

    # Statements

    def lower(self, stmt: Stmt, scope: Scope) -> ir.Stmt:
        """Lower any statement of concrete index notation."""
        match stmt:
            case Forall():
                return self.enter(stmt, scope, lambda inner: self.parallel(stmt, inner))
            case Where(consumer, producer):
                return self._where(consumer, producer, scope)
            case Sequence(stmts):
                first, *rest = stmts
                later = replace(scope, uninitialised=None, combines=True)
                return ir.block(self.lower(first, scope), *(self.lower(part, later) for part in rest))
            case SuchThat(body, _):
                return self.lower(body, scope)
            case Assign():
                return self._assign(stmt, scope)
        raise CompilerBug(stmt, "not a statement of concrete index notation")

    def _is_fixed(self, target: Access, scope: Scope) -> bool:
        """Whether the coordinates so far select one location of what is written."""
        return all(var in scope.coordinates for var in target.indices)

    def enter(self, stmt: Stmt, scope: Scope, go: Callable[[Scope], ir.Stmt]) -> ir.Stmt:
        """Go on with the loops of a statement; once they no longer move the location written to, they reduce into a scalar.

        The threads of a GPU that meet in memory each have a scalar of their own, so that it is declared inside their loop.
        """
        target = written(stmt)
        held = target in scope.accumulators or (target != self.lhs and innermost(stmt).op is None)
        if held or not self._is_fixed(target, scope) or self._threads_meet(stmt, target.tensor):
            return go(scope)
        return self._reduce(stmt, scope, go)

    def _threads_meet(self, stmt: Stmt, target: TensorVar) -> bool:
        """Whether units of a GPU inside a statement meet in one place of a tensor, and write it there."""
        return bool(self.meeting) and any(isinstance(n, Forall) and (n.var, target) in self.meeting for n in walk(stmt))

    def _reduce(self, stmt: Stmt, scope: Scope, go: Callable[[Scope], ir.Stmt]) -> ir.Stmt:
        """The location is fixed: reduce into a scalar and write it once."""
        assign = innermost(stmt)
        if assign.op is None:
            raise CompilerBug(assign, "loops inside a fixed location must reduce")
        identity = algebra.identity(assign.op, assign.lhs.tensor.dtype)
        sink = self.sink(assign.lhs)
        tracked = sink.needs_presence and (isinstance(sink, Workspace) or is_skippable(assign.rhs, assign.op))
        accumulator = self._accumulator(assign.lhs.tensor, assign.op, tracked)
        first, inner = self._declare(accumulator, scope)
        inner = replace(inner.accumulating(assign.lhs, accumulator), uninitialised=None)
        value = Value(accumulator.var, accumulator.present, identity)
        return ir.block(first, go(inner), sink.write(assign, value, scope))

    def sink(self, target: Access) -> Result | Workspace | Scatter | HashRow | BlockRow | ListWorkspace | Accumulated:
        """Where an assignment goes: the result, or a workspace."""
        return self.workspaces.get(target.tensor, self.result)

    def _accumulator(self, target: TensorVar, op: str, tracked: bool, absence: Absence = Absence.LEFT_OUT) -> Accumulator:
        fresh = self.context.names.fresh
        var = ir.Var(fresh(f"{target.name}_acc"), target.dtype)
        flag = "lacks" if absence is Absence.ONE_DECIDES else "seen"
        return Accumulator(var, op, ir.Var(fresh(f"{target.name}_{flag}"), BOOL) if tracked else None, absence)

    def _declare(self, accumulator: Accumulator, scope: Scope, seen: ir.Expr = ir.FALSE) -> tuple[ir.Stmt, Scope]:
        var = accumulator.var
        identity = ir.constant(algebra.identity(accumulator.op, var.dtype), var.dtype)
        flag = None if accumulator.seen is None else ir.Declare(accumulator.seen, seen)
        return ir.block(ir.Declare(var, identity), flag), scope

    def _is_empty(self, producer: Stmt) -> ir.Expr:
        """Whether a reduction runs over nothing, so that its identity is all there is."""
        graph, sizes = self.context.everything, self.context.sizes
        (path,) = [path for path in paths(producer) if path.assign is innermost(producer)]
        variables = dict.fromkeys(var for loop in path.loops for var in graph.originals(loop.var))
        return ir.either(*(ir.compare("equal", sizes.of(var), ir.ZERO) for var in variables))

    def _where(self, consumer: Stmt, producer: Stmt, scope: Scope) -> ir.Stmt:
        temporary, made = written(producer), innermost(producer)
        if any(isinstance(level, Scattered) for level in temporary.tensor.format.levels):
            return self._scattered(consumer, producer, scope)
        if any(isinstance(level, Listed) for level in temporary.tensor.format.levels):
            return self._listed(consumer, producer, scope)
        if temporary.indices or made.op is None:
            return self._with_workspace(consumer, producer, scope)
        absence = absence_of(made.op, made.rhs)
        takers = [path.assign.lhs.tensor for path in paths(consumer) if temporary in walk(path.assign.rhs)]
        matters = self.result.needs_presence or any(taker.partial for taker in takers) or decides(consumer, temporary)
        tracked = temporary.tensor.partial and absence is not None and (matters or decides_value(absence, made))
        accumulator = self._accumulator(temporary.tensor, made.op, tracked, absence or Absence.LEFT_OUT)
        first, scope = self._declare(accumulator, scope, self._is_empty(producer) if absence is Absence.ALL_ABSENT else ir.FALSE)
        inner = scope.accumulating(temporary, accumulator)
        around = self.context.provenance
        self.context.provenance = around.within(producer, scope.coordinates)
        filling = self._lower_part(producer, replace(inner, uninitialised=None))
        self.context.provenance = around
        return ir.block(first, filling, self._lower_part(consumer, inner))

    def _lower_part(self, stmt: Stmt, scope: Scope) -> ir.Stmt:
        """A producer or a consumer: only the operands that it reads, or walks along, are followed in it."""
        before, inside, reach = self.operands, set(walk(stmt)), self.context.reach
        driving = self._driving(inside)
        if self.shared is not None and self.lhs in inside:
            inside.add(self.shared)
        self.operands = [access for access in before if access in inside or access in driving]
        self.context.reach = {access: depth for access, depth in driving.items() if access not in inside}
        settled, scope = settle(self.context, scope, self.operands)
        made = self.lower(stmt, scope)
        self.operands, self.context.reach = before, reach
        return ir.block(settled, made)

    def _driving(self, inside: set[Node]) -> dict[Access, int]:
        """The operands whose positions some loops walk, and how many of their levels that takes; producers further in count too."""
        graph = self.context.everything
        walked = {above for n in inside if isinstance(n, Forall) for above in graph.ancestors(n.var)}
        found: dict[Access, int] = {}
        for relation in graph.relations:
            if isinstance(relation, PosRelation) and relation.position in walked:
                found[relation.access] = max(found.get(relation.access, 0), graph.position_levels(relation)[-1] + 1)
            if isinstance(relation, WeightedRelation) and relation.inner in walked:
                above = graph.stored(relation.access).index(relation.parent)
                found[relation.access] = max(found.get(relation.access, 0), above)
        return found

    def _scattered(self, consumer: Stmt, producer: Stmt, scope: Scope) -> ir.Stmt:
        """Build a row in any order, then read it in order."""
        temporary = written(producer)
        if takes_whole_row(consumer, temporary, self.result):
            return self._accumulated(producer, scope)
        row = self._row(temporary, producer)
        reason = "the only kind for blocks" if isinstance(row, BlockRow) else self.concrete.rows.reason
        return self._collected(consumer, producer, scope, row, reason)

    def _listed(self, consumer: Stmt, producer: Stmt, scope: Scope) -> ir.Stmt:
        """List entries in any order, then read them in order."""
        made = written(producer)
        guess = (None if scope.coordinates else self.result.expected()) or ir.index(FIRST_LIST)
        ordered = all(level.ordered for n in walk(producer) if isinstance(n, Access) for level in n.tensor.format.levels)
        inside = self.context.provenance.within(producer, scope.coordinates)
        repeats = innermost(producer).op is not None and (not ordered or reduces_outside(producer, made, inside))
        entries = ListWorkspace(self.context, producer, guess, repeats, ordered)
        return self._collected(consumer, producer, scope, entries, why_listed(made.tensor.format.levels, self.concrete.rows))

    def _collected(
        self, consumer: Stmt, producer: Stmt, scope: Scope, row: Scatter | HashRow | BlockRow | ListWorkspace, reason: str
    ) -> ir.Stmt:
        """Fill a workspace that keeps a list, put it in order, and read it. ``reason`` tells why it is of its kind."""
        context, temporary = self.context, written(producer)
        context.remark(f"{temporary.tensor.name}: {row.story}, {reason}")
        self.workspaces[temporary.tensor] = row
        around, provenance = self.hooks, context.provenance
        self.hooks = Nowhere(context, temporary, context.view(temporary))
        context.provenance = provenance.within(producer, scope.coordinates)
        filled = self._lower_part(producer, replace(scope, uninitialised=None))
        self.hooks, context.provenance = around, provenance
        reads = [n for n in walk(consumer) if isinstance(n, Access) and n.tensor == temporary.tensor]
        outside = self.operands
        self.operands = list(dict.fromkeys([*outside, *reads]))
        taken = self._lower_part(consumer, scope)
        self.operands = outside  # where the code is repeated, it is filled again, and must not be followed while it is
        return ir.block(row.open(), filled, row.sort(), taken, row.close())

    def _accumulated(self, producer: Stmt, scope: Scope) -> ir.Stmt:
        """Add up a row of a result whose coordinates are known, and move it there."""
        context, temporary = self.context, written(producer)
        row = Accumulated(context, temporary, innermost(producer))
        self.workspaces[temporary.tensor] = row
        context.remark(f"{temporary.tensor.name}: a row in a dense workspace, read at the coordinates that {self.lhs.tensor} has")
        around, provenance = self.hooks, context.provenance
        self.hooks = Nowhere(context, temporary, context.view(temporary))
        context.provenance = provenance.within(producer, scope.coordinates)
        filled = self._lower_part(producer, replace(scope, uninitialised=None))
        self.hooks, context.provenance = around, provenance
        if not isinstance(self.result, RefillResult):
            raise CompilerBug(producer, "a row is moved into a structure that is known")
        return ir.block(filled, row.take(self.result, scope))

    def _row(self, temporary: Access, producer: Stmt) -> Scatter | HashRow | BlockRow:
        if temporary.tensor.format.blocks:
            return BlockRow(self.context, temporary, first_value(producer, temporary))
        match temporary.tensor.format.levels[0]:
            case Scattered(hashed=True):
                return HashRow(self.context, temporary)
        return Scatter(self.context, temporary)

    def _with_workspace(self, consumer: Stmt, producer: Stmt, scope: Scope) -> ir.Stmt:
        """Fill an array, then read it. In the producer, renamed variables stand for the consumer's."""
        context, temporary = self.context, written(producer)
        reads = [n for n in walk(consumer) if isinstance(n, Access) and n.tensor == temporary.tensor]
        readers = [path for path in paths(consumer) if not set(reads).isdisjoint(walk(path.assign.rhs))]
        needed = any(path.assign.lhs.tensor.may_be_absent for path in readers) or any(decides(consumer, read) for read in reads)
        masked = temporary.tensor.partial and needed
        outside, around = context.provenance, self.hooks
        context.provenance = outside.along({*scope.coordinates, *readers[0].variables})
        ranges, scope = self.find_extents(reads[0].indices, scope)
        workspace = Workspace(context, temporary, reads[0], innermost(producer), scope, masked, (consumer, producer))
        self.workspaces[temporary.tensor] = workspace
        self.operands = list(dict.fromkeys([*self.operands, temporary, *reads]))
        context.provenance, self.hooks = outside.within(producer, scope.coordinates), Nowhere(context, temporary, context.view(temporary))
        filled = self._lower_part(producer, replace(scope, uninitialised=None))
        context.provenance, self.hooks = outside, around
        return ir.block(ranges, workspace.open(), filled, workspace.turn(), self._lower_part(consumer, scope), workspace.close())

    def _assign(self, assign: Assign, scope: Scope) -> ir.Stmt:
        found = lower_expression(self.context, assign.rhs, scope)
        value = contribution(assign, found)
        if self.concrete.drops and self.sink(assign.lhs) is self.result:
            value = replace(value, present=ir.both(value.present, differs(value.computed, self.lhs.tensor.fill)))
        accumulator = scope.accumulators.get(assign.lhs)
        if accumulator is None and assign.lhs.tensor in self.workspaces:
            return self.workspaces[assign.lhs.tensor].write(assign, value, scope)
        if accumulator is None:
            ready = self.result.initialise(scope) if scope.uninitialised is not None and self._needs_first(scope) else None
            return ir.block(ready, self.result.write(assign, value, scope))
        return accumulate(accumulator, value, found.present)

    def _needs_first(self, scope: Scope) -> bool:
        """Whether writing this one location leaves others below it without a value (``B(i,i) = ...``)."""
        return scope.uninitialised is not None and scope.uninitialised < len(self.lhs.indices)


def differs(value: ir.Expr, fill: Scalar) -> ir.Expr:
    """Whether a value is another than the fill; a fill of nan is told apart by being unequal to itself."""
    if fill != fill:
        return ir.compare("equal", value, value)
    return ir.compare("not_equal", value, ir.constant(fill, value.dtype))


def reduces_outside(stmt: Stmt, lhs: Access, provenance: Provenance) -> bool:
    """Whether some loop up to the one that fixes a result location helps to reduce, so that locations may be met again."""
    known: set[IndexVar] = set()
    current = stmt
    while not set(lhs.indices) <= provenance.known(known):
        match current:
            case Forall(var, body):
                if not set(provenance.originals(var)) <= set(lhs.indices):
                    return True
                if _repeats(provenance, var):
                    return True
                known.add(var)
                current = body
            case Where(body, _) | SuchThat(body, _):
                current = body
            case _:
                return False
    return False


def _repeats(provenance: Provenance, var: IndexVar) -> bool:
    """Whether positions of a level that repeats coordinates are walked, so that one coordinate is met more than once."""
    relation = provenance.position(var)
    if relation is None:
        return False
    return not relation.access.tensor.format.levels[provenance.position_levels(relation)[-1]].unique


def decides(stmt: Stmt, temporary: Access) -> bool:
    """Whether the absence of a temporary annihilates something that reads it."""
    applied = (n for n in walk(stmt) if isinstance(n, Apply))
    return any(temporary in (n for n in walk(apply.args[k])) for apply in applied for k in annihilating(apply))
