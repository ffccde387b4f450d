"""Lowering one statement to one kernel: its parameters, the result that it makes, and the loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sparseloom.assemble.appended import AppendedResult, Stage
from sparseloom.assemble.inserted import InsertedResult
from sparseloom.assemble.make_result import first_statement, make_result, reduces_outside
from sparseloom.assemble.parts import arranged, begin_counted, end_counted
from sparseloom.assemble.result import DenseResult
from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import widest
from sparseloom.core.names import Names
from sparseloom.core.once import cached_property
from sparseloom.core.trees import walk
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.foralls import relations_of
from sparseloom.iteration.making import Inserted, Shared
from sparseloom.iteration.provenance import Provenance
from sparseloom.iteration.region import written
from sparseloom.loops import nodes as ir
from sparseloom.loops.origins import stamped
from sparseloom.loops.outcomes import Outcome
from sparseloom.loops.splits import Split
from sparseloom.lower.forall import find_ranges
from sparseloom.lower.statement import WAYS, lower_statement
from sparseloom.lower.walking import settle
from sparseloom.notation.contents import numbers_in
from sparseloom.notation.nodes import Access, Fixed, Forall, IndexVar, Races, Stmt, TensorVar, Unit, Where
from sparseloom.schedule.races import analyse, has_own_places
from sparseloom.schedule.units import GPU_UNITS
from sparseloom.scope.context import Conflicts, Context, Remark
from sparseloom.scope.ranges import Ranges
from sparseloom.scope.scope import Scope, Sink
from sparseloom.scope.views import Sizes, Slot, TensorView, input_parameters, view_tensor
from sparseloom.targets.target import Target


@dataclass(frozen=True)
class Lender:
    """The operand of which a result takes over the first levels, down to a depth."""

    name: str
    depth: int


@dataclass(frozen=True)
class Lowered:
    """A kernel in the loop IR, what its parameters are, and how it walks its operands."""

    function: ir.Function
    slots: tuple[Slot, ...]
    result: Access
    shared: Lender | None
    fill: Scalar
    remarks: tuple[Remark, ...]
    splits: tuple[Split, ...] = ()  # how reductions are shared out
    outcomes: tuple[Outcome, ...] = ()  # what passes made of the loops that the schedule tags

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

    @cached_property
    def indices(self) -> frozenset[ir.Array]:
        """The arrays that say where the entries of operands stand: they do not change from call to call, as values may."""
        pairs = zip(self.function.params, self.slots, strict=True)
        return frozenset(p.target for p, slot in pairs if slot.level is not None and isinstance(p.target, ir.Array))

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


def lower(
    concrete: Concrete, target: Target, name: str = "kernel", int32_limit: int = 2**31 - 1, origins: Mapping[str, str] | None = None
) -> Lowered:
    """Lower a concrete statement to one kernel. ``origins`` are what the names that passes made stand for."""
    lhs = concrete.assign.lhs
    start = _start(concrete, target, int32_limit, origins)
    ranges, start, pieces = _pieces(concrete, start)
    result = make_result(start, concrete, pieces)
    fresh = isinstance(result, DenseResult) and concrete.assign.op is None
    settled, scope = settle(replace(start, sink=result, result=result, uninitialised=0 if fresh else None, untouched=fresh))
    loops = _loops(concrete, result, scope)
    body = ir.block(ranges, result.begin(), *scope.home.first, settled, loops, *scope.home.last, result.finish())
    params = [*result.parameters(), *_inputs(scope)]
    shared = Lender(taken.operand.tensor.name, taken.depth) if isinstance(taken := concrete.making, Shared) else None
    function = ir.Function(name, tuple(p for p, _ in params), stamped(body, lhs.tensor.name))
    remarks, splits = tuple(scope.context.remarks), tuple(dict.fromkeys(scope.context.splits))
    return Lowered(function, tuple(slot for _, slot in params), lhs, shared, lhs.tensor.fill, remarks, splits)


def _pieces(concrete: Concrete, scope: Scope) -> tuple[ir.Stmt, Scope, ir.Expr | None]:
    """How many pieces threads insert that have places of their own in every row; None if they do not."""
    if not isinstance(concrete.making, Inserted):
        return ir.block(), scope, None
    lhs, graph = concrete.assign.lhs, scope.provenance
    threads = (n for n in walk(concrete.stmt) if isinstance(n, Forall) and n.tag.unit is Unit.CPUThread)
    loop = next((n for n in threads if written(n) == lhs and has_own_places(n, graph, lhs)), None)
    if loop is None:
        return ir.block(), scope, None
    ranges, scope = find_ranges(loop.var, scope)
    return ranges, scope, scope.ranges.extent(loop.var)


def _start(concrete: Concrete, target: Target, int32_limit: int, origins: Mapping[str, str] | None = None) -> Scope:
    """What is known before the first loop."""
    stmt, lhs = concrete.stmt, concrete.assign.lhs
    provenance, everything = Provenance.of(stmt), Provenance(relations_of(stmt), numbers=numbers_in(stmt))
    temporaries = {written(n.producer).tensor for n in walk(stmt) if isinstance(n, Where)}
    accesses = list(dict.fromkeys(n for n in walk(stmt) if isinstance(n, Access) and n.tensor not in temporaries))
    names = Names()
    for n in walk(stmt):
        if isinstance(n, IndexVar | TensorVar) and not isinstance(n, Fixed):
            names.take(n.name)
    sizes = _sizes(stmt, accesses, provenance, everything, names)
    views: dict[TensorVar, TensorView] = {}
    for access in accesses:
        if access.tensor not in views:
            views[access.tensor] = view_tensor(access, provenance.stored(access), sizes, names)
    width, conflicts = widest(tensor.index_dtype for tensor in views), _conflicts(stmt)
    rows, drops, origins = concrete.rows, concrete.drops, origins or {}
    context = Context(names, sizes, everything, target, width, int32_limit, lhs, concrete.shared, rows, drops, conflicts, origins=origins)
    meets = any(tensor == lhs.tensor for _, tensor in conflicts.together)
    combines = meets or concrete.assign.op is not None or reduces_outside(first_statement(stmt), lhs, provenance)
    numbers: dict[IndexVar, ir.Expr] = {var: ir.index(var.value) for var in numbers_in(stmt)}
    return Scope(context, WAYS, provenance, views, tuple(a for a in accesses if a != lhs), coordinates=numbers, combines=combines)


def _sizes(stmt: Stmt, accesses: list[Access], provenance: Provenance, everything: Provenance, names: Names) -> Sizes:
    """A parameter for the extent of every original variable; those of blocks follow."""
    originals = dict.fromkeys(v for access in accesses for v in access.indices)
    originals |= dict.fromkeys(v for n in walk(stmt) if isinstance(n, Forall) for v in everything.originals(n.var))
    sizes = Sizes(originals, names)
    whole = Ranges(provenance, sizes, {}, {})
    for var in {v for access in accesses for v in provenance.stored(access)} - set(originals):
        sizes.derive(var, whole.extent(var))
    return sizes


def _conflicts(stmt: Stmt) -> Conflicts:
    """Where iterations of parallel loops meet, by what the schedule says becomes of it."""
    found = [(c.var, c.assign.lhs.tensor, None if c.resolved is None else c.resolved[1]) for c in analyse(stmt)]
    on_gpu = {n.var for n in walk(stmt) if isinstance(n, Forall) and n.tag.unit in GPU_UNITS}
    private = frozenset((var, tensor) for var, tensor, how in found if how not in (None, Races.Atomics))
    return Conflicts(
        atomic=frozenset((var, tensor) for var, tensor, how in found if how is Races.Atomics),
        private=private,
        together=frozenset((var, tensor) for var, tensor, _ in found if var in on_gpu) - private,
    )


def _inputs(scope: Scope) -> list[tuple[ir.Param, Slot]]:
    """The parameters through which operands and extents come in."""
    seen: set[TensorVar] = {scope.context.lhs.tensor}
    params: list[tuple[ir.Param, Slot]] = []
    for access in scope.operands:
        if access.tensor not in seen:
            seen.add(access.tensor)
            params += input_parameters(scope.view(access))
    return params + [(ir.Param(size, ir.Role.SIZE), Slot(None, var.name)) for var, size in scope.context.sizes.params.items()]


def _loops(concrete: Concrete, result: Sink, scope: Scope) -> ir.Stmt:
    """The loops; where entries are counted first, other loops do that, or the same ones run twice."""
    stmt, name = concrete.stmt, scope.context.lhs.tensor.name
    match result, concrete.making:
        case InsertedResult(asks=True), Inserted(counting=Stmt() as counting, takes_leaves=True):
            return ir.block(_counted(counting, stmt, scope), result.arranged())
        case InsertedResult(asks=True), Inserted(counting=Stmt() as counting, driver=driver):
            counted, filling = _counted(counting, stmt, scope), result.filling()
            loops = ir.block(counted, result.arranged(), lower_statement(stmt, replace(scope, sink=filling, result=filling)))
            how = "one loop over all entries counts those of each row, then these fill them in"
            if driver is None or result.places is not None:
                how = "these loops run twice, to count the entries of each row and to fill them in"
            scope.remark(f"{name}: {how}")
            return loops
        case AppendedResult(stage=Stage.COUNT), _:
            loops = _in_two_runs(stmt, result, scope)
            scope.remark(f"{name}: these loops run twice, to count the entries and to fill them in")
            return loops
    return lower_statement(stmt, scope)


def _counted(counting: Stmt, filling: Stmt, scope: Scope) -> ir.Stmt:
    """The loops that count. Those that also fill are told about there."""
    if counting is filling:
        return lower_statement(counting, scope)
    graph = Provenance.of(counting)
    return lower_statement(counting, replace(scope, provenance=graph, context=replace(scope.context, everything=graph, remarks=[])))


def _in_two_runs(stmt: Stmt, result: AppendedResult, scope: Scope) -> ir.Stmt:
    """Loops that count, and loops that fill in; threads do both for parts of the loop they share."""
    if result.parts is not None:
        return lower_statement(stmt, scope)
    filling, first = result.at(Stage.FILL), ir.ZERO
    counted = ir.block(begin_counted(result, first), lower_statement(stmt, scope), end_counted(result, first), arranged(result))
    filled = lower_statement(stmt, replace(scope, sink=filling, result=filling))
    return ir.block(counted, begin_counted(filling, first), filled, end_counted(filling, first))
