"""Lowering one statement to one kernel.

Every loop binds a variable. When it is bound, whatever depends on it follows at once: original variables are recovered from
derived ones, dense levels are located, and a result location that has become fixed gets a scalar to reduce into.
"""

from __future__ import annotations

from collections.abc import Sequence as Many
from dataclasses import dataclass, replace
from functools import cached_property

from sparseloom.core import algebra
from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import BOOL
from sparseloom.core.errors import CompilerBug
from sparseloom.core.names import Names
from sparseloom.core.trees import walk
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.formula import ALWAYS, NEVER, Flag, Formula, Stored
from sparseloom.iteration.region import annihilating, is_skippable, region, written
from sparseloom.loops import nodes as ir
from sparseloom.loops.simplify import simplify
from sparseloom.lower.append import AppendResult
from sparseloom.lower.cancel import add_polls
from sparseloom.lower.coiterate import Loop, iterate
from sparseloom.lower.context import Context
from sparseloom.lower.expression import Value, lower_expression, operate
from sparseloom.lower.result import DenseResult, Result, SharedResult
from sparseloom.lower.scope import Accumulator, Scope
from sparseloom.lower.views import Sizes, Slot, input_parameters, view_tensor
from sparseloom.lower.walking import make_walker, next_variable, settle
from sparseloom.notation.dtyping import fill_of, reduced_dtype
from sparseloom.notation.nodes import Access, Apply, Assign, Expr, Forall, IndexVar, Sequence, Stmt, SuchThat, TensorVar, Where
from sparseloom.notation.relations import SplitRelation


@dataclass(frozen=True)
class Lowered:
    """A kernel in the loop IR, what its parameters are, and how it walks its operands."""

    function: ir.Function
    slots: tuple[Slot, ...]
    result: Access
    shared: str | None
    fill: Scalar
    remarks: tuple[str, ...]

    @cached_property
    def hands_out(self) -> bool:
        """Whether the kernel allocates what it returns; a dense result's values are its first parameter instead."""
        return any(param.role in (ir.Role.GROWN, ir.Role.COUNT) for param in self.function.params)


def lower(concrete: Concrete, name: str = "kernel", int32_limit: int = 2**31 - 1) -> Lowered:
    """Lower a concrete statement to one kernel."""
    return _Lowering(concrete, int32_limit).run(name)


class _Lowering:
    def __init__(self, concrete: Concrete, int32_limit: int) -> None:
        self.stmt = stmt = concrete.stmt
        self.assign = concrete.assign
        self.lhs = self.assign.lhs
        self.shared = concrete.shared
        relations = tuple(r for n in walk(stmt) if isinstance(n, SuchThat) for r in n.relations if isinstance(r, SplitRelation))
        temporaries = {written(n.producer).tensor for n in walk(stmt) if isinstance(n, Where)}
        self.accesses = list(dict.fromkeys(n for n in walk(stmt) if isinstance(n, Access) and n.tensor not in temporaries))
        names = Names()
        for n in walk(stmt):
            if isinstance(n, IndexVar | TensorVar):
                names.take(n.name)
        derived = {v for relation in relations for v in (relation.outer, relation.inner)}
        originals = dict.fromkeys(v for access in self.accesses for v in access.indices)
        originals |= dict.fromkeys(n.var for n in walk(stmt) if isinstance(n, Forall) and n.var not in derived)
        sizes = Sizes(originals, names)
        for relation in relations:
            blocks = ir.Op("floor_divide", (ir.add(sizes.of(relation.parent), ir.index(relation.size - 1)), ir.index(relation.size)))
            sizes.derive(relation.outer, blocks)
            sizes.derive(relation.inner, ir.index(relation.size))
        views = {}
        for access in self.accesses:
            if access.tensor not in views:
                views[access.tensor] = view_tensor(access, sizes, names)
        self.context = Context(names, sizes, views, relations, int32_limit)
        self.context.lower = self.lower
        self.operands = [a for a in self.accesses if a != self.lhs]
        self.combines = self.assign.op is not None or reduces_outside(first_statement(stmt), self.lhs)
        self.result = self._make_result()

    def _make_result(self) -> Result:
        lhs, view = self.lhs, self.context.view(self.lhs)
        fill = first_value(self.stmt, lhs)
        if lhs.tensor.format.is_dense:
            return DenseResult(self.context, lhs, view, fill, result_fill(self.assign))
        if self.shared is not None:
            size = ir.Var(self.context.names.fresh(f"{lhs.tensor.name}_count"))
            return SharedResult(self.context, lhs, view, fill, self.shared, size, self.combines)
        return AppendResult(self.context, lhs, view, result_fill(self.assign))

    def run(self, name: str) -> Lowered:
        """The whole kernel."""
        fresh = isinstance(self.result, DenseResult) and self.assign.op is None
        start = Scope(uninitialised=0 if fresh else None, combines=self.combines)
        settled, scope = settle(self.context, start, self.operands)
        body = ir.block(self.result.begin(), settled, self.lower(self.stmt, scope), self.result.finish())
        params = self.result.parameters()
        seen: set[TensorVar] = {self.lhs.tensor}
        for access in self.operands:
            if access.tensor not in seen:
                seen.add(access.tensor)
                params += input_parameters(self.context.view(access))
        for var, size in self.context.sizes.params.items():
            params.append((ir.Param(size, ir.Role.SIZE), Slot(None, var.name)))
        function = simplify(add_polls(simplify(ir.Function(name, tuple(p for p, _ in params), body))))
        shared = None if self.shared is None else self.shared.tensor.name
        fill = result_fill(self.assign)
        return Lowered(function, tuple(slot for _, slot in params), self.lhs, shared, fill, tuple(self.context.remarks))

    # Statements

    def lower(self, stmt: Stmt, scope: Scope) -> ir.Stmt:
        """Lower any statement of concrete index notation."""
        match stmt:
            case Forall():
                target = written(stmt)
                if target == self.lhs and target not in scope.accumulators and self._is_fixed(scope):
                    return self._reduce(stmt, scope)
                return self._forall(stmt, scope)
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

    def _is_fixed(self, scope: Scope) -> bool:
        """Whether the coordinates so far select one location of the result."""
        return all(var in scope.coordinates for var in self.lhs.indices)

    def _reduce(self, stmt: Stmt, scope: Scope) -> ir.Stmt:
        """The location is fixed: reduce into a scalar and write it once."""
        assign = innermost(stmt)
        if assign.op is None:
            raise CompilerBug(assign, "loops inside a fixed location must reduce")
        dtype = reduced_dtype(assign.op, assign.rhs)
        tracked = self.result.needs_presence and is_skippable(assign.rhs, assign.op)
        accumulator = self._accumulator(self.lhs.tensor.name, assign.op, assign.rhs, tracked)
        first, inner = self._declare(accumulator, scope)
        inner = replace(inner.accumulating(self.lhs, accumulator), uninitialised=None)
        identity = algebra.identity(assign.op, dtype)
        value = Value(accumulator.var, ir.TRUE if accumulator.seen is None else accumulator.seen, identity)
        return ir.block(first, self._forall_any(stmt, inner), self.result.write(assign, value, scope))

    def _forall_any(self, stmt: Stmt, scope: Scope) -> ir.Stmt:
        return self._forall(stmt, scope) if isinstance(stmt, Forall) else self.lower(stmt, scope)

    def _accumulator(self, name: str, op: str, rhs: Expr, tracked: bool) -> Accumulator:
        fresh = self.context.names.fresh
        var = ir.Var(fresh(f"{name}_acc"), reduced_dtype(op, rhs))
        return Accumulator(var, op, ir.Var(fresh(f"{name}_seen"), BOOL) if tracked else None)

    def _declare(self, accumulator: Accumulator, scope: Scope) -> tuple[ir.Stmt, Scope]:
        var = accumulator.var
        identity = ir.constant(algebra.identity(accumulator.op, var.dtype), var.dtype)
        seen = None if accumulator.seen is None else ir.Declare(accumulator.seen, ir.FALSE)
        return ir.block(ir.Declare(var, identity), seen), scope

    def _where(self, consumer: Stmt, producer: Stmt, scope: Scope) -> ir.Stmt:
        temporary, made = written(producer), innermost(producer)
        if made.op is None:
            raise CompilerBug(made, "a temporary is reduced into")
        tracked = temporary.tensor.partial and (self.result.needs_presence or decides(consumer, temporary))
        accumulator = self._accumulator(temporary.tensor.name, made.op, made.rhs, tracked)
        first, scope = self._declare(accumulator, scope)
        inner = scope.accumulating(temporary, accumulator)
        filling = self.lower(producer, replace(inner, uninitialised=None))
        return ir.block(first, filling, self.lower(consumer, inner))

    def _assign(self, assign: Assign, scope: Scope) -> ir.Stmt:
        value = lower_expression(self.context, assign.rhs, scope)
        accumulator = scope.accumulators.get(assign.lhs)
        if accumulator is None:
            ready = self.result.initialise(scope) if scope.uninitialised is not None and self._needs_first(scope) else None
            return ir.block(ready, self.result.write(assign, value, scope))
        return accumulate(accumulator, assign, value)

    def _needs_first(self, scope: Scope) -> bool:
        """Whether writing this one location leaves others below it without a value (``B(i,i) = ...``)."""
        return scope.uninitialised is not None and scope.uninitialised < len(self.lhs.indices)

    # Loops

    def _forall(self, stmt: Forall, scope: Scope) -> ir.Stmt:
        context, var = self.context, stmt.var
        inside = set(n for n in walk(stmt) if isinstance(n, Access))
        walking = [a for a in self.operands if a in inside and self._walks(a, var, scope)]
        formula = ALWAYS if self.result.demands_all(var) else region(stmt, lambda a: self._known(a, walking, scope))
        if formula == NEVER and not self._closes(var):
            return self.result.initialise(scope)
        before = ir.block()
        covered = scope.uninitialised
        if covered is not None:
            covers = formula == ALWAYS and self._covers(var, covered)
            before = ir.block() if covers else self.result.initialise(scope)
            scope = replace(scope, uninitialised=covered + 1 if covers else None)
        context.depth += 1
        walkers = tuple(make_walker(context, a, scope) for a in walking)
        coordinate = ir.Var(var.name)
        loop = Loop(context, var, coordinate, context.sizes.of(var), walkers, scope, lambda s: self._body(stmt, s))
        made = iterate(loop, formula)
        context.depth -= 1
        return ir.block(before, made, self.result.after(var, scope))

    def _closes(self, var: IndexVar) -> bool:
        return isinstance(self.result, AppendResult) and var in self.result.variables

    def _covers(self, var: IndexVar, depth: int) -> bool:
        """Whether a full loop over ``var`` visits every row of the result's next level exactly once."""
        variables = self.result.variables
        distinct = len(set(variables)) == len(variables)
        return distinct and depth < len(variables) and variables[depth] == var

    def _walks(self, access: Access, var: IndexVar, scope: Scope) -> bool:
        place = scope.at(access)
        if place.is_absent or next_variable(access, place) != var:
            return False
        return not access.tensor.format.levels[place.depth].full

    def _known(self, access: Access, walking: Many[Access], scope: Scope) -> Formula:
        """What this loop knows of an operand's presence."""
        held = scope.accumulators.get(access)
        if held is not None:
            return ALWAYS if held.seen is None else Flag(held.seen)
        place = scope.at(access)
        if place.is_absent:
            return NEVER
        if access in walking:
            return Stored(access)
        return ALWAYS if place.present == ir.TRUE else Flag(place.present)

    def _body(self, stmt: Forall, scope: Scope) -> ir.Stmt:
        """What runs at one coordinate: recover, locate, then the statement inside."""
        recovered, guard, scope = self._recover(scope)
        settled, scope = settle(self.context, scope, self.operands)
        body = self.result.around(stmt.var, self.lower(stmt.body, scope), scope)
        body = ir.block(settled, body)
        return ir.block(*recovered, body if guard == ir.TRUE else ir.If(guard, body))

    def _recover(self, scope: Scope) -> tuple[list[ir.Stmt], ir.Expr, Scope]:
        """Original variables whose derived variables are now all known."""
        stmts: list[ir.Stmt] = []
        guards: list[ir.Expr] = []
        for relation in self.context.relations:
            known = scope.coordinates
            if relation.parent in known or relation.outer not in known or relation.inner not in known:
                continue
            parent = ir.Var(relation.parent.name)
            value = ir.add(ir.multiply(known[relation.outer], ir.index(relation.size)), known[relation.inner])
            stmts.append(ir.Declare(parent, value))
            guards.append(ir.compare("less", parent, self.context.sizes.of(relation.parent)))
            scope = scope.knowing(relation.parent, parent)
        return stmts, ir.both(*guards), scope


def accumulate(accumulator: Accumulator, assign: Assign, value: Value) -> ir.Stmt:
    """Reduce one value into a scalar, and remember that there was one."""
    op, var = accumulator.op, accumulator.var
    skips = is_skippable(assign.rhs, op)
    added = value.computed if skips else value.full
    update = ir.Assign(var, operate(op, [var, added], var.dtype, var.dtype))
    mark = None if accumulator.seen is None else ir.Assign(accumulator.seen, ir.TRUE)
    if not skips or value.present == ir.TRUE:
        return ir.block(update, mark)
    return ir.block() if value.present == ir.FALSE and not value.constant else ir.If(_counts(value), ir.block(update, mark))


def _counts(value: Value) -> ir.Expr:
    return ir.TRUE if value.constant else value.present


def innermost(stmt: Stmt) -> Assign:
    """The assignment that a statement ends in."""
    match stmt:
        case Assign():
            return stmt
        case Forall(_, body) | SuchThat(body, _) | Where(body, _):
            return innermost(body)
        case Sequence(stmts):
            return innermost(stmts[-1])
    raise CompilerBug(stmt, "a statement must end in an assignment")


def reduces_outside(stmt: Stmt, lhs: Access) -> bool:
    """Whether a loop that reduces stands outside a loop over the result, so that locations are met again."""
    wanted = {*lhs.indices}
    reducing = False
    current = stmt
    while True:
        match current:
            case Forall(var, body):
                if var in wanted or _derives(stmt, var, wanted):
                    if reducing:
                        return True
                else:
                    reducing = True
                current = body
            case Where(body, _) | SuchThat(body, _):
                current = body
            case _:
                return False


def _derives(stmt: Stmt, var: IndexVar, wanted: set[IndexVar]) -> bool:
    relations = (r for n in walk(stmt) if isinstance(n, SuchThat) for r in n.relations)
    return any(isinstance(r, SplitRelation) and var in (r.outer, r.inner) and r.parent in wanted for r in relations)


def first_statement(stmt: Stmt) -> Stmt:
    """What runs first of a sequence."""
    match stmt:
        case Sequence(stmts):
            return stmts[0]
        case SuchThat(Sequence(stmts), relations):
            return SuchThat(stmts[0], relations)
    return stmt


def result_fill(assign: Assign) -> Scalar:
    """What the result is worth where it has no entry; 0 if it has one everywhere."""
    fill = fill_of(assign.rhs)
    dtype = assign.lhs.tensor.dtype
    return ir.constant(0 if fill is None else algebra.compute(f"as_{dtype.name}", [fill], dtype), dtype).value


def first_value(stmt: Stmt, lhs: Access) -> Scalar:
    """What a location of the result holds before, or without, anything written to it."""
    assign = innermost(first_statement(stmt))
    if assign.op is not None:
        return algebra.identity(assign.op, reduced_dtype(assign.op, assign.rhs))  # type: ignore[no-any-return]
    fill = fill_of(assign.rhs)
    return lhs.tensor.fill if fill is None else fill


def decides(stmt: Stmt, temporary: Access) -> bool:
    """Whether the absence of a temporary annihilates something that reads it."""
    applied = (n for n in walk(stmt) if isinstance(n, Apply))
    return any(temporary in (n for n in walk(apply.args[k])) for apply in applied for k in annihilating(apply))
