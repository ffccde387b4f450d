"""Right-hand sides: values, and whether they are present.

Where the loops know at compile time that an operand is absent, it vanishes from the expression. Where only a flag of the generated
code knows, the value is selected: an absent operand that annihilates is never multiplied.
"""

from __future__ import annotations

import numpy as np

from sparseloom.core import algebra
from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import BOOL, FLOAT32, FLOAT64, DType, is_half, is_integer
from sparseloom.core.errors import CompilerBug
from sparseloom.iteration.region import annihilating
from sparseloom.loops import nodes as ir
from sparseloom.notation.contents import holds_padding
from sparseloom.notation.dtyping import compute_dtype_of, constant_of, dtype_of, fill_of
from sparseloom.notation.nodes import Access, Apply, Expr, IndexVar, Literal, Points
from sparseloom.scope.scope import Scope, Value
from sparseloom.scope.views import value_at


def lower_expression(expr: Expr, scope: Scope) -> Value:
    """The value of ``expr`` in this scope."""
    match expr:
        case Access():
            return _lower_access(expr, scope)
        case Literal(value):
            return Value(ir.constant(value, dtype_of(expr)), ir.FALSE, value, constant=True)
        case Points(names, dtype):
            extents = [cast(scope.context.sizes.of(IndexVar(name)), dtype) for name in names]
            return Value(operate("multiply", extents, dtype, dtype), ir.TRUE, None)
        case Apply("is_stored", (arg,)):
            return Value(ir.TRUE, lower_expression(arg, scope).present, False)
        case Apply("within" | "or_else"):
            return _lower_within(expr, scope)
        case Apply():
            return _lower_apply(expr, scope)
    raise CompilerBug(expr, "reductions must have become temporaries")


def _lower_access(access: Access, scope: Scope) -> Value:
    held = scope.accumulators.get(access)
    if held is not None:
        fill = access.tensor.fill if access.tensor.partial else None
        return Value(held.var, held.present, fill)
    place = scope.at(access)
    fill = access.tensor.fill if access.tensor.may_be_absent else None
    if place.is_absent:
        return Value(ir.constant(access.tensor.fill, access.tensor.dtype), ir.FALSE, access.tensor.fill)
    if place.depth < len(access.tensor.format.levels):
        raise CompilerBug(access, "read before all of its levels are bound")
    loaded = place.value if place.value is not None else value_at(scope.view(access).values, place.position)
    return Value(loaded, place.present, fill, filled=place.filled)


def _lower_within(expr: Apply, scope: Scope) -> Value:
    """A value where a condition is stored and holds; or where it is stored itself."""
    *conditions, value = (lower_expression(arg, scope) for arg in expr.args)
    known = [part for one in conditions for part in (one.present, one.computed)] or [value.present]
    dtype, present = dtype_of(expr), ir.both(*known)
    computed = ir.constant(expr.zero, dtype) if present == ir.FALSE else cast(value.full, dtype)
    return Value(computed, present, expr.zero)


def _lower_apply(expr: Apply, scope: Scope) -> Value:
    number = constant_of(expr)
    if number is not None:
        return Value(ir.constant(number, dtype_of(expr)), ir.FALSE, number, constant=True)
    args = [lower_expression(arg, scope) for arg in expr.args]
    dtype, compute = dtype_of(expr), compute_dtype_of(expr)
    fill = fill_of(expr)
    deciding = annihilating(expr)
    if deciding:
        present = ir.both(*(args[k].present for k in deciding))
        if present == ir.FALSE:
            return Value(ir.constant(fill, dtype), ir.FALSE, fill)
        values = [arg.computed if k in deciding else arg.full for k, arg in enumerate(args)]
        made = operate(expr.op, values, compute, dtype)
        padded = [] if expr.zero is None else [values[k] for k in deciding if holds_padding(expr.args[k])]
        return Value(_without_padding(made, padded, expr.zero, compute), present, fill)
    present = ir.either(*(arg.present for arg in args if not arg.constant))
    if present == ir.FALSE and fill is not None:
        return Value(ir.constant(fill, dtype), ir.FALSE, fill)
    return Value(operate(expr.op, _without_identities(expr.op, args, compute), compute, dtype), present, fill)


def _without_padding(made: ir.Expr, factors: list[ir.Expr], zero: Scalar | None, compute: DType) -> ir.Expr:
    """A product under a semiring, whose zero decides it where a factor is padding.

    Arithmetic does not see to that: infinity times -1 is minus infinity, and the largest integer plus 1 the smallest.
    """
    for factor in factors:
        is_zero = ir.Op("equal", (cast(factor, compute), ir.constant(zero, compute)), BOOL)
        made = ir.Select(is_zero, ir.constant(zero, made.dtype), made)
    return made


def _without_identities(op: str, args: list[Value], compute: DType) -> list[ir.Expr]:
    """Leave out what is known to be absent and changes nothing: A + B where only A is stored is A."""
    law = algebra.operator(op)
    if law.identity is None:
        return [arg.full for arg in args]
    identity = algebra.identity(op, compute)
    kept = [arg.full for arg in args if arg.constant or arg.present != ir.FALSE or not algebra.same_value(arg.fill, identity)]
    return kept or [args[0].full]


def operate(op: str, args: list[ir.Expr], compute: DType, dtype: DType) -> ir.Expr:
    """An operator on loop-IR values, after converting them to the compute dtype."""
    law = algebra.operator(op)
    if law.rule == "select":
        condition, then, other = args
        return ir.Select(cast(condition, BOOL), cast(then, dtype), cast(other, dtype))
    if compute == FLOAT64 and law.name in _DECIDED_BY_A_MINUS and all(is_integer(arg.dtype) for arg in args):
        return _compare_whole(law.name, *args)
    converted = [cast(arg, compute) for arg in args]
    if law.rule == "cast" and is_half(named := algebra.cast_dtype(law.name)):
        return cast(cast(converted[0], named), dtype)
    if law.rule == "cast" or (len(converted) == 1 and law.arity == 2):
        return converted[0]
    return ir.Op(law.name, tuple(converted), dtype)


# What a comparison says when its left side is negative and its right side is unsigned.
_DECIDED_BY_A_MINUS = {"equal": False, "not_equal": True, "less": True, "less_equal": True, "greater": False, "greater_equal": False}
_MIRRORED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}


def _compare_whole(op: str, left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """Compare integers exactly that promote to float64, which does not hold them all: a signed and an unsigned one of 64 bits."""
    common = np.result_type(left.dtype, right.dtype)
    if is_integer(common):  # the other was a number, which is signed too
        return ir.Op(op, (cast(left, common), cast(right, common)), BOOL)
    if left.dtype.kind == "u":
        op, left, right = _MIRRORED.get(op, op), right, left
    below = ir.Op("less", (left, ir.constant(0, left.dtype)), BOOL)
    return ir.Select(below, ir.constant(_DECIDED_BY_A_MINUS[op], BOOL), ir.Op(op, (cast(left, right.dtype), right), BOOL))


def cast(value: ir.Expr, dtype: DType) -> ir.Expr:
    """The value in another dtype; constants are converted now. What goes into a half, or comes from one, is a float32 in between."""
    if value.dtype == dtype:
        return value
    if isinstance(value, ir.Literal):
        return ir.constant(algebra.compute(f"as_{dtype.name}", [value.dtype.type(value.value)], dtype), dtype)
    if is_half(dtype) or is_half(value.dtype):
        value = value if value.dtype == FLOAT32 else cast(value, FLOAT32) if is_half(dtype) else ir.Cast(value, FLOAT32)
    return value if value.dtype == dtype else ir.Cast(value, dtype)
