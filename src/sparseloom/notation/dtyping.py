"""What an expression's values are: their dtype, and their value where every sparse operand is absent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from sparseloom.core import algebra
from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import BOOL, VALUE_DTYPES, DType, computed, summed
from sparseloom.core.errors import CompilerBug, DTypeError
from sparseloom.core.once import once_for_each
from sparseloom.core.trees import rewrite
from sparseloom.notation.nodes import Access, Apply, Assign, Expr, Literal, Points, Reduce


class Absence(Enum):
    """When a reduction is absent: as its operator is on two arguments. Over nothing at all it is its identity."""

    LEFT_OUT = "left out"  # where all terms are absent; they equal the identity, and need not be visited
    ALL_ABSENT = "all absent"  # where all terms are absent; they take part: the least of absent zeros and others is visited everywhere
    ONE_DECIDES = "one decides"  # where one term is absent, for it annihilates: a product with an absent factor


def dtype_of(expr: Expr) -> DType:
    """The dtype in which an expression is computed: operators promote as in NumPy, reductions keep the dtype of what they reduce."""
    return _strong(_kind(expr))


def stored_dtype_of(expr: Expr) -> DType:
    """The dtype of an expression as its operands are stored: a product of float16, computed in float32, is a float16."""
    return _strong(_stored_kind(expr))


def compute_dtype_of(apply: Apply) -> DType:
    """The dtype to which the arguments of an operation are converted before it is computed."""
    return computed(algebra.compute_dtype(apply.op, [_kind(arg) for arg in apply.args]))


def reduced_dtype(op: str, body: Expr) -> DType:
    """The dtype in which ``op`` reduces the values of ``body``: their own, or bool for the logical operators."""
    dtype = dtype_of(body)
    return algebra.compute_dtype(op, (dtype, dtype))


def promoted_dtype(dtypes: Sequence[DType]) -> DType:
    """The dtype to which all of ``dtypes`` promote."""
    return algebra.compute_dtype("add", dtypes)


def as_written(expr: Expr) -> Expr:
    """The expression with every sum and product computed in the dtypes of its parts from left to right, as NumPy does.

    One node converts all of its arguments to one dtype first. So it stays one only where each of its partial results has that dtype:
    of three int8, int8 and int64, the first two are added as int8. Numbers at the front are combined as Python has them.
    """

    def rule(found: object) -> Expr | None:
        match found:
            case Apply(op, args, zero) if len(args) > 2 and algebra.operator(op).rule == "promote":
                return _from_the_left(op, args, zero)
        return None

    return rewrite(expr, rule)


# What ``sum`` and ``prod`` are called; other reductions keep the dtype of what they reduce.
_SUMS = frozenset({"add", "multiply"})


def with_wide_sums(expr: Expr) -> Expr:
    """The expression with the sums and products that are written out computed in 64 bits where they are of truth values or short integers.

    That is what ``np.sum`` and ``np.prod`` do:    sum(j, A(i,j) != 0)    ==>    sum(j, as_int64(A(i,j) != 0))
    """

    def rule(found: object) -> Expr | None:
        match found:
            case Reduce(op, variables, body, written=True) if op in _SUMS and (own := dtype_of(as_written(body))) != summed(own):
                return Reduce(op, variables, Apply(f"as_{summed(own).name}", (body,)), written=True)
        return None

    return rewrite(expr, rule)


def with_sums_in(dtype: DType, expr: Expr) -> Expr:
    """The expression with the sums that ``with_wide_sums`` made wide computed in ``dtype`` instead, if that holds what they add up."""

    def rule(found: object) -> Expr | None:
        match found:
            case Reduce(op, variables, Apply(cast, (body,))) if op in _SUMS and cast == f"as_{summed(dtype_of(body)).name}":
                return Reduce(op, variables, Apply(f"as_{dtype.name}", (body,))) if np.can_cast(dtype_of(body), dtype) else None
        return None

    return rewrite(expr, rule)


def _from_the_left(op: str, args: Sequence[Expr], zero: Scalar | None) -> Expr:
    """``op`` on all arguments, nested where the dtype changes on the way."""
    group, kinds = [args[0]], [_kind(args[0])]
    sofar = kinds[0]
    for arg in args[1:]:
        kind = _kind(arg)
        following = _combined(op, (sofar, kind))
        if len(group) > 1 and not (isinstance(sofar, np.dtype) and sofar == following):
            group, kinds = [_grouped(op, group, kinds, sofar, zero)], [sofar]
        group.append(arg)
        kinds.append(kind)
        sofar = following
    return _grouped(op, group, kinds, sofar, zero)


def _grouped(op: str, args: Sequence[Expr], kinds: Sequence[DType | Scalar], dtype: DType | Scalar, zero: Scalar | None) -> Expr:
    """One node. Where its arguments would promote otherwise together than in turn, as int8, 0.5 and float32 do, one is converted first."""
    made = list(args)
    if isinstance(dtype, np.dtype) and algebra.compute_dtype(op, kinds) != dtype:
        first = next(k for k, kind in enumerate(kinds) if isinstance(kind, np.dtype))  # a number would stay a number
        made[first] = Apply(f"as_{dtype.name}", (made[first],))
    return Apply(op, tuple(made), zero)


def fill_of(expr: Expr) -> Scalar | None:
    """What ``expr`` is worth where every sparse operand is absent, or ``None`` if that depends on dense operands or sizes."""
    return _known(expr).fill


def absence_of(op: str, body: Expr) -> Absence | None:
    """When reducing ``body`` with ``op`` gives an absent value; None if never, as what absent terms make depends on how many there are."""
    return _absence(op, _known(body))


def result_fill(assign: Assign, dtype: DType) -> Scalar:
    """What a result is worth where it has no entry: what the right side is worth where nothing is stored, if that is known.

    A variable that stands twice, as in ``R(i,i)``, leaves places to which nothing is assigned. They are what the result's tensor says, 0 or
    the zero of a semiring, however the operands are stored; and so is the fill.
    """
    indices, fill = assign.lhs.indices, fill_of(assign.rhs)
    known = assign.lhs.tensor.fill if fill is None or len(set(indices)) < len(indices) else fill
    return cast(algebra.compute(f"as_{dtype.name}", [known], dtype), dtype)


def constant_of(expr: Expr) -> Scalar | None:
    """The value of an expression of numbers alone, or ``None``. Such an expression promotes weakly, as one number does."""
    kind = _kind(expr)
    return None if isinstance(kind, np.dtype) else kind


@once_for_each
def _kind(expr: Expr) -> DType | Scalar:
    """The dtype of an expression, or the number it always is."""
    match expr:
        case Access(tensor):
            return tensor.dtype
        case Literal(value):
            return value
        case Points(_, dtype):
            return dtype
        case Apply(op, args):
            return _combined(op, [_kind(arg) for arg in args])
        case Reduce(op, _, body):
            dtype = dtype_of(body)
            return _promoted(op, (dtype, dtype))
    raise CompilerBug(expr, "an expression is an Access, a Literal, an Apply or a Reduce")


@once_for_each
def _stored_kind(expr: Expr) -> DType | Scalar:
    """The kind of an expression if operators promoted the dtypes in which operands are stored."""
    match expr:
        case Access(tensor):
            return tensor.stored_dtype
        case Apply(op, args):
            kinds = [_stored_kind(arg) for arg in args]
            numbers = [kind for kind in kinds if not isinstance(kind, np.dtype)]
            return algebra.constant(op, numbers) if len(numbers) == len(kinds) else algebra.result_dtype(op, kinds)
        case Reduce(op, _, body):
            dtype = stored_dtype_of(body)
            return algebra.result_dtype(op, (dtype, dtype))
    return _kind(expr)


def _combined(op: str, kinds: Sequence[DType | Scalar]) -> DType | Scalar:
    """The dtype of ``op`` on these, or the number that it gives on numbers alone."""
    numbers = [kind for kind in kinds if not isinstance(kind, np.dtype)]
    return algebra.constant(op, numbers) if len(numbers) == len(kinds) else _promoted(op, kinds)


def _promoted(op: str, kinds: Sequence[DType | Scalar]) -> DType:
    """The dtype of ``op``; also where it is always a truth value, the arguments must fit the operator."""
    algebra.compute_dtype(op, kinds)
    return computed(algebra.result_dtype(op, kinds))


def _strong(kind: DType | Scalar) -> DType:
    """The dtype of a number that stands alone."""
    if isinstance(kind, np.dtype):
        return kind
    dtype = np.asarray(kind).dtype
    if dtype not in VALUE_DTYPES:
        raise DTypeError(f"the number {kind!r} does not fit in 64 bits; write it as a float: {float(kind.real)!r}")
    return dtype


def cast(value: object, dtype: DType) -> Scalar:
    """One number as a dtype holds it."""
    result: Scalar = np.asarray(value).astype(dtype).item()
    return result


@dataclass(frozen=True)
class _Known:
    """What is known of an expression: its kind, what it is worth where nothing is stored, and whether that is absent, not a constant."""

    kind: DType | Scalar
    fill: Scalar | None
    absent: bool = False


@once_for_each
def _known(expr: Expr) -> _Known:
    match expr:
        case Access(tensor) if tensor.may_be_absent:
            return _Known(tensor.dtype, cast(tensor.fill, tensor.dtype), True)
        case Access(tensor):
            return _Known(tensor.dtype, None)
        case Literal(value):
            return _Known(value, value)
        case Points(_, dtype):
            return _Known(dtype, None)
        case Apply("is_stored"):
            return _Known(BOOL, False, True)
        case Apply("within" | "or_else", _, otherwise):
            return _Known(_kind(expr), otherwise, True)
        case Apply():
            return _applied(expr, [_known(arg) for arg in expr.args])
        case Reduce(op, _, body):
            return _reduced(op, _known(body))
    raise CompilerBug(expr, "an expression is an Access, a Literal, an Apply or a Reduce")


def _applied(apply: Apply, args: Sequence[_Known]) -> _Known:
    """An absent argument that annihilates decides; otherwise all arguments must be known."""
    kinds = [arg.kind for arg in args]
    kind = _combined(apply.op, kinds)
    if not isinstance(kind, np.dtype):
        return _Known(kind, kind)
    for position, arg in enumerate(args):
        if arg.absent and arg.fill is not None and algebra.annihilates(apply.op, position, arg.fill, apply.zero):
            return _Known(kind, cast(arg.fill, kind), True)
    fills = [arg.fill for arg in args if arg.fill is not None]
    if len(fills) < len(args):
        return _Known(kind, None)
    return _Known(kind, cast(algebra.compute(apply.op, fills, algebra.compute_dtype(apply.op, kinds)), kind), True)


def _absence(op: str, body: _Known) -> Absence | None:
    own = _strong(body.kind)
    dtype = algebra.compute_dtype(op, (own, own))
    if body.fill is None or not body.absent:
        return None
    value = cast(body.fill, dtype)
    if algebra.same_value(value, algebra.identity(op, dtype)):
        return Absence.LEFT_OUT
    if algebra.annihilates(op, 0, value):
        return Absence.ONE_DECIDES
    return Absence.ALL_ABSENT if algebra.same_value(cast(algebra.compute(op, (value, value), dtype), dtype), value) else None


def _reduced(op: str, body: _Known) -> _Known:
    """Absent terms make what each of them is, as 0 does in a sum and anything in a minimum; or else it depends on how many there are."""
    own = _strong(body.kind)
    dtype = _promoted(op, (own, own))
    match _absence(op, body):
        case Absence.LEFT_OUT:
            return _Known(dtype, algebra.identity(op, dtype), True)
        case Absence.ONE_DECIDES | Absence.ALL_ABSENT if body.fill is not None:
            return _Known(dtype, cast(body.fill, dtype), True)
    return _Known(dtype, None)
