"""Statements of concrete notation: each becomes loops, a workspace that is filled and read, or a value that is written.

Every loop binds a variable. When it is bound, whatever depends on it follows at once: original variables are recovered from
derived ones, dense levels are located, and a result location that has become fixed gets a scalar to reduce into.

What is made of a statement has its origin: the variable of a loop, the tensor that an assignment writes, the workspace of a ``where``.
"""

from __future__ import annotations

from dataclasses import replace

from sparseloom.assemble.workspace import Workspace
from sparseloom.core import algebra
from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import walk
from sparseloom.iteration.region import innermost, is_skippable, written
from sparseloom.loops import nodes as ir
from sparseloom.loops.origins import stamped
from sparseloom.lower.accumulation import accumulate, contribution, declared, fresh_accumulator
from sparseloom.lower.forall import over_digit
from sparseloom.lower.parallel import over_iterations
from sparseloom.lower.runs import is_whole
from sparseloom.lower.where import lower_where
from sparseloom.notation.nodes import Access, Assign, Forall, Sequence, Stmt, SuchThat, TensorVar, Where
from sparseloom.scope.expression import lower_expression
from sparseloom.scope.scope import Scope, Then, Value, Ways


def lower_statement(stmt: Stmt, scope: Scope) -> ir.Stmt:
    """Lower any statement of concrete index notation."""
    match stmt:
        case Forall(var):
            return stamped(reduced(stmt, scope, lambda inner: over_iterations(stmt, inner)), scope.context.origin_of(var))
        case Where(consumer, producer):
            return _where(consumer, producer, scope)
        case Sequence(stmts):
            first, *rest = stmts
            later = replace(scope, uninitialised=None, combines=True, untouched=False)
            places = [(first, scope), *((part, later) for part in rest)]
            return ir.block(*(lower_statement(part, _inside(part, place)) for part, place in places))
        case SuchThat(body, _):
            return lower_statement(body, scope)
        case Assign():
            return stamped(_assign(stmt, scope), scope.context.origin_of(stmt.lhs.tensor))
    raise CompilerBug(stmt, "not a statement of concrete index notation")


def _inside(part: Stmt, scope: Scope) -> Scope:
    """The scope of one of several statements, which may have other names for variables than the others."""
    return replace(scope, provenance=scope.provenance.within(part, scope.coordinates))


def _where(consumer: Stmt, producer: Stmt, scope: Scope) -> ir.Stmt:
    """Fill a temporary and read it. Its memory may be made further outside, and stems from it all the same."""
    origin = scope.context.origin_of(written(producer).tensor)
    made = lower_where(consumer, producer, scope)
    for stmts in (scope.home.first, scope.home.last):
        stmts[:] = [stamped(one, origin) for one in stmts]
    return stamped(made, origin)


def reduced(stmt: Stmt, scope: Scope, go: Then) -> ir.Stmt:
    """Go on with the loops of a statement; once they no longer move the location written to, they reduce into a scalar.

    The threads of a GPU that meet in memory each have a scalar of their own, so that it is declared inside their loop.
    """
    target, assign = written(stmt), innermost(stmt)
    held = target in scope.accumulators or (target != scope.context.lhs and assign.op is None)
    is_fixed = all(var in scope.coordinates for var in target.indices)
    if held or not is_fixed or _units_meet(stmt, target.tensor, scope):
        return go(scope)
    return _into_scalar(assign, scope, go)


def _units_meet(stmt: Stmt, target: TensorVar, scope: Scope) -> bool:
    """Whether units of a GPU inside a statement meet in one place of a tensor, and write it there."""
    together = scope.conflicts.together
    return bool(together) and any(isinstance(n, Forall) and (n.var, target) in together for n in walk(stmt))


def _into_scalar(assign: Assign, scope: Scope, go: Then) -> ir.Stmt:
    """The location is fixed: reduce into a scalar and write it once."""
    if assign.op is None:
        raise CompilerBug(assign, "loops inside a fixed location must reduce")
    identity = algebra.identity(assign.op, assign.lhs.tensor.dtype)
    sink = scope.sink_of(assign.lhs)
    tracked = sink.needs_presence and (isinstance(sink, Workspace) or is_skippable(assign.rhs, assign.op))
    accumulator = fresh_accumulator(assign.lhs.tensor, assign.op, tracked, scope)
    inner = replace(scope.accumulating(assign.lhs, accumulator), uninitialised=None)
    value = Value(accumulator.var, accumulator.present, identity, whole=is_whole(assign, scope))
    origin = scope.context.origin_of(assign.lhs.tensor)
    return ir.block(stamped(declared(accumulator), origin), go(inner), stamped(sink.write(assign, value, scope), origin))


def _assign(assign: Assign, scope: Scope) -> ir.Stmt:
    found = lower_expression(assign.rhs, scope)
    value, sink = contribution(assign, found), scope.sink_of(assign.lhs)
    if scope.context.drops and sink is scope.result:
        value = replace(value, present=ir.both(value.present, _differs(value.computed, scope.context.lhs.tensor.fill)))
    accumulator = scope.accumulators.get(assign.lhs)
    if accumulator is not None:
        return accumulate(accumulator, value, found.present)
    if sink is scope.result and _leaves_places(assign.lhs, scope):
        return ir.block(sink.initialise(scope), sink.write(assign, value, scope))
    return sink.write(assign, value, scope)


def _leaves_places(lhs: Access, scope: Scope) -> bool:
    """Whether writing this one location leaves others below it without a value (``B(i,i) = ...``)."""
    return scope.uninitialised is not None and scope.uninitialised < len(lhs.indices)


def _differs(value: ir.Expr, fill: algebra.Scalar) -> ir.Expr:
    """Whether a value is another than the fill; a fill of nan is told apart by being unequal to itself."""
    if fill != fill:
        return ir.compare("equal", value, value)
    return ir.compare("not_equal", value, ir.constant(fill, value.dtype))


WAYS = Ways(lower_statement, reduced, over_digit)
