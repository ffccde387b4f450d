"""Unstored entries in closed form: a reduction visits what is stored and counts it; all other terms are worth the same.

    y(i) = max(j, A(i,j))      ==>   y(i) = max(stored, 0 if there are fewer than |j| entries)     stored = max(j, stored A(i,j))
    y(i) = sum(j, A(i,j) + 1)  ==>   y(i) = stored + 1 * (|j| - count)                               count = sum(j, 1 where A is stored)
    y(i) = prod(j, A(i,j))     ==>   y(i) = stored if |j| entries are stored, else 0

This holds for every term that has one value wherever nothing is stored along the variables of the reduction, be it a number or an
expression such as b(i). ``sum(j, A(i,j) + x(j))`` is no such reduction: every coordinate is visited.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import isfinite

from sparseloom.core import algebra
from sparseloom.core.algebra import Repetition, Scalar
from sparseloom.core.dtypes import COMPLEX128, FLOAT64, INT64, UINT64, DType, is_integer
from sparseloom.iteration.formula import ALWAYS, Formula, Stored
from sparseloom.iteration.nests import join_reductions
from sparseloom.iteration.region import present
from sparseloom.notation.contents import accesses_in, reductions_in
from sparseloom.notation.dtyping import Absence, absence_of, cast, compute_dtype_of, constant_of, dtype_of, fill_of, reduced_dtype
from sparseloom.notation.nodes import Access, Apply, Assign, Expr, IndexVar, Literal, Points, Reduce
from sparseloom.notation.terms import free_variables


class Apart(Enum):
    """When a dense result gets what the unstored terms of its one reduction make, in loops of their own."""

    FIRST = "first"  # it starts as that, and stored terms are reduced into it
    LAST = "last"  # after stored terms are reduced: one unstored 0 decides a product, beside infinity and nan too


@dataclass(frozen=True)
class Closed:
    """A statement whose reductions visit stored entries alone where they can.

    If something stands ``apart``, the arguments of the right side are a reduction of stored terms and what the others make.
    """

    assign: Assign
    apart: Apart | None = None


def close_reductions(assign: Assign) -> Closed:
    """Apply unstored terms in closed form in every reduction of a statement."""
    rhs = join_reductions(assign.rhs)
    if not any(access.tensor.may_be_absent for access in accesses_in(rhs)) or not reductions_in(rhs):
        return Closed(assign)
    if isinstance(rhs, Reduce) and (found := _apart(assign, rhs)) is not None:
        return found
    closed = close_expression(rhs)
    return Closed(assign if closed == rhs else replace(assign, rhs=closed))


def _apart(assign: Assign, rhs: Reduce) -> Closed | None:
    """The statement of a dense result whose stored terms can be reduced into it where they come; None if they cannot."""
    lhs, op = assign.lhs, rhs.op
    if not lhs.tensor.format.is_dense or len({*lhs.indices}) < len(lhs.indices) or lhs.tensor.dtype != reduced_dtype(op, rhs.body):
        return None
    parts = _parts(_flat(rhs)) if assign.op in (None, op) else None
    if parts is None:
        return None
    if parts.absence is not Absence.ONE_DECIDES:
        return Closed(replace(assign, rhs=Apply(op, (parts.stored, parts.others))), Apart.FIRST)
    if assign.op is not None:
        return None
    decided = Apply("within", (parts.some, Literal(parts.fill)), parts.fill)
    return Closed(replace(assign, rhs=Apply(op, (parts.stored, decided))), Apart.LAST)


def close_expression(expr: Expr) -> Expr:
    """An expression in which every reduction visits stored entries alone, if it can."""
    match expr:
        case Apply(op, args, zero):
            return Apply(op, tuple(map(close_expression, args)), zero)
        case Reduce(op, variables, body) if absence_of(op, body) is Absence.LEFT_OUT:
            return Reduce(op, variables, close_expression(body))
        case Reduce():
            return _closed_reduction(_flat(expr))
    return expr


def where_stored(rhs: Expr) -> Expr:
    """What is reduced at stored entries alone, as the user wrote it."""
    match rhs:
        case Apply("or_else" | "within", (*_, value)):
            return value
    return rhs


def _closed_reduction(expr: Reduce) -> Expr:
    """One reduction that may not skip unstored terms: over all of its variables in closed form, or else over those that can be."""
    if (parts := _parts(expr)) is not None:
        return parts.whole
    body = close_expression(expr.body)
    varying = {var for access in accesses_in(expr.body) if not access.tensor.may_be_absent for var in access.indices}
    inner = tuple(var for var in expr.variables if var not in varying)
    outer = tuple(var for var in expr.variables if var in varying)
    if inner and outer and (parts := _parts(Reduce(expr.op, inner, expr.body))) is not None:
        return Reduce(expr.op, outer, parts.whole)
    return Reduce(expr.op, expr.variables, body)


def _flat(expr: Reduce) -> Reduce:
    """A reduction of a reduction with the same operator as one over the variables of both."""
    body = expr.body
    while isinstance(body, Reduce) and body.op == expr.op and reduced_dtype(expr.op, body.body) == dtype_of(body.body):
        expr = Reduce(expr.op, (*expr.variables, *body.variables), body.body)
        body = expr.body
    return expr


@dataclass(frozen=True)
class _Parts:
    """A reduction of what is stored, what all other terms make, the two combined; whether there are some others; and its absence."""

    stored: Reduce
    others: Expr
    whole: Expr
    some: Expr
    absence: Absence | None
    fill: Scalar


def _parts(expr: Reduce) -> _Parts | None:
    """A reduction in closed form; None if it can skip unstored terms anyway, or if their value varies along it."""
    op, variables, body = expr.op, expr.variables, close_expression(expr.body)
    absence = absence_of(op, expr.body)
    # If it shows in the result which terms are absent, all that decides on it counts, also what is the same for all of them.
    split = _split(body, frozenset(variables if absence is None else free_variables(body)))
    if absence is Absence.LEFT_OUT or split.worth is None or split.differs in (None, _ANYWHERE):
        return None
    dtype = reduced_dtype(op, expr.body)
    identity = algebra.identity(op, dtype)
    differs, worth = split.differs, _as(dtype, split.worth)
    stored = Reduce(op, variables, _within(differs, _as(dtype, body), identity))
    missing = _Missing.of(variables, differs)
    others = _repeated(op, dtype, worth, missing)
    whole: Expr = Apply(op, (stored, others))
    fill = fill_of(expr)
    if fill is not None and absence is Absence.ALL_ABSENT:
        whole = Apply("within", (_stored(stored), whole), fill)
    if fill is not None and absence is Absence.ONE_DECIDES:
        whole = Apply("within", (Apply("logical_and", (_stored(stored), Apply("logical_not", (missing.some,)))), stored), fill)
    return _Parts(stored, others, whole, missing.some, absence, 0 if fill is None else fill)


@dataclass(frozen=True)
class _Missing:
    """How many points along some variables are not stored: whether there are ``some``, their number as a float, and modulo 2**64."""

    some: Expr
    as_float: Expr
    wrapped: Expr

    @staticmethod
    def of(variables: Sequence[IndexVar], differs: Expr) -> _Missing:
        """The points at which an expression that ``differs`` at some of them is worth the same."""
        used = {*free_variables(differs)}
        along, beside = (tuple(var.name for var in variables if (var in used) is whether) for whether in (True, False))
        counted = tuple(var for var in variables if var in used)
        one = Apply("within", (differs, Literal(1)), 0)
        count = Reduce("add", counted, one) if counted else one

        def of(dtype: DType) -> Expr:
            missing: Expr = Apply("subtract", (Points(along, dtype) if along else Literal(1), _as(dtype, count)))
            return Apply("multiply", (missing, Points(beside, dtype))) if beside else missing

        # The product of several extents may be more than 64 bits hold.
        as_float, wrapped = of(FLOAT64), of(INT64)
        return _Missing(Apply("greater", (wrapped if len(variables) == 1 else as_float, Literal(0))), as_float, wrapped)


def _repeated(op: str, dtype: DType, worth: Expr, missing: _Missing) -> Expr:
    """What as many terms make as are missing, each of them worth the same."""
    identity, wide = Literal(algebra.identity(op, dtype)), _wide(dtype)
    number = missing.wrapped if is_integer(dtype) else missing.as_float
    match algebra.repetition(op, dtype):
        case Repetition.ONCE:
            return _as(dtype, Apply("where", (missing.some, worth, identity)))
        case Repetition.TIMES:
            made = _as(dtype, Apply("multiply", (_as(wide, worth), _as(wide, number))))
            return made if _is_finite(worth) else _as(dtype, Apply("where", (missing.some, made, identity)))
        case Repetition.POWER:
            return _as(dtype, Apply("power", (_as(wide, worth), _as(wide, number))))
        case Repetition.PARITY:
            odd = Apply("equal", (Apply("mod", (missing.wrapped, Literal(2))), Literal(1)))
            return Apply("logical_and", (odd, worth))


def _wide(dtype: DType) -> DType:
    """The dtype in which values are repeated: with room for their number."""
    return {"i": INT64, "u": UINT64, "c": COMPLEX128}.get(dtype.kind, FLOAT64)


def _is_finite(worth: Expr) -> bool:
    value = constant_of(worth)
    return is_integer(dtype_of(worth)) or (value is not None and isfinite(abs(value)))


@dataclass(frozen=True)
class _Split:
    """An expression along some variables: where it ``differs`` from what it is ``worth`` wherever nothing is stored along them.

    ``differs`` is a truth value that is stored at such points, None if there are none; ``worth`` is None if that varies. ``absent`` tells
    whether such a value is that of an unstored entry, and not of numbers and dense operands.
    """

    differs: Expr | None
    worth: Expr | None
    absent: bool = False


_ANYWHERE = Literal(True)
_VARIES = _Split(_ANYWHERE, None)


def _split(expr: Expr, along: frozenset[IndexVar]) -> _Split:
    if along.isdisjoint(free_variables(expr)):
        return _Split(None, expr)
    match expr:
        case Access(tensor) if tensor.may_be_absent:
            return _Split(_stored(expr), Literal(cast(tensor.fill, tensor.dtype)), True)
        case Reduce() if (fill := fill_of(expr)) is not None:
            return _Split(_stored(expr), Literal(fill), True)
        case Apply("within", (condition, _), otherwise) if otherwise is not None:
            return _Split(condition, Literal(otherwise), True)
        case Apply():
            return _applied(expr, [_split(arg, along) for arg in expr.args])
    return _VARIES


def _applied(expr: Apply, parts: Sequence[_Split]) -> _Split:
    """An unstored argument that annihilates decides; otherwise all arguments must have one value."""
    dtype = dtype_of(expr)
    deciding = [part for k, part in enumerate(parts) if _decides(expr, k, part)]
    if deciding:
        return _Split(_joined("logical_and", deciding), Literal(cast(_value(deciding[0]), dtype)), True)
    if expr.op == "where" and parts[0].worth is not None and (condition := constant_of(parts[0].worth)) is not None:
        parts = [parts[0], parts[1] if condition else parts[2]]
        worth = parts[1].worth
        return _VARIES if worth is None else _Split(_joined("logical_or", parts), _as(dtype, worth), parts[1].absent)
    worths = [part.worth for part in parts if part.worth is not None]
    if len(worths) < len(parts):
        return _VARIES
    return _Split(_joined("logical_or", parts), _worth(expr, worths), any(part.absent for part in parts))


def _decides(expr: Apply, position: int, part: _Split) -> bool:
    return part.absent and (value := _value(part)) is not None and algebra.annihilates(expr.op, position, value, expr.zero)


def _value(part: _Split) -> Scalar | None:
    return None if part.worth is None else constant_of(part.worth)


def _worth(expr: Apply, worths: Sequence[Expr]) -> Expr:
    """The same operation on what its arguments are worth, in the same dtypes: as numbers, they would promote otherwise."""
    dtype, compute = dtype_of(expr), compute_dtype_of(expr)
    known = [value for worth in worths if (value := constant_of(worth)) is not None]
    if len(known) == len(worths):
        return Literal(cast(algebra.compute(expr.op, known, compute), dtype))
    if algebra.operator(expr.op).rule != "promote":
        return _as(dtype, Apply(expr.op, tuple(worths), expr.zero))
    args = tuple(worth if constant_of(worth) is not None else _as(compute, worth) for worth in worths)
    return _as(dtype, Apply(expr.op, args, expr.zero))


def _joined(op: str, parts: Iterable[_Split]) -> Expr | None:
    """Where all parts differ, or any of them."""
    found = tuple(dict.fromkeys(part.differs for part in parts if part.differs is not None))
    if _ANYWHERE in found:
        found = (_ANYWHERE,) if op == "logical_or" else tuple(one for one in found if one != _ANYWHERE) or (_ANYWHERE,)
    return None if not found else found[0] if len(found) == 1 else Apply(op, found)


def _within(condition: Expr, value: Expr, otherwise: Scalar) -> Expr:
    """A value where a condition is stored and holds; where the value is stored at the same points, it says so itself."""
    same = not reductions_in(value) and _pattern(condition) == _pattern(value)
    return Apply("or_else", (value,), otherwise) if same else Apply("within", (condition, value), otherwise)


def _pattern(expr: Expr) -> Formula:
    return present(expr, lambda access: Stored(access) if access.tensor.may_be_absent else ALWAYS)


def _stored(expr: Expr) -> Expr:
    return Apply("is_stored", (expr,))


def _as(dtype: DType, expr: Expr) -> Expr:
    if (value := constant_of(expr)) is not None:
        return Literal(cast(value, dtype))
    return expr if dtype_of(expr) == dtype else Apply(f"as_{dtype.name}", (expr,))
