"""What an expression's values are: their dtype, and their value where every sparse operand is absent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from sparseloom.core import algebra
from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import VALUE_DTYPES, DType
from sparseloom.core.errors import CompilerBug, DTypeError
from sparseloom.notation.nodes import Access, Apply, Assign, Expr, Literal, Reduce


class Absence(Enum):
    """When a reduction is absent: as its operator is on two arguments. Over nothing at all it is its identity."""

    LEFT_OUT = "left out"  # where all terms are absent; they equal the identity, and need not be visited
    ALL_ABSENT = "all absent"  # where all terms are absent; they take part: the least of absent zeros and others is visited everywhere
    ONE_DECIDES = "one decides"  # where one term is absent, for it annihilates: a product with an absent factor


def dtype_of(expr: Expr) -> DType:
    """The dtype of an expression: operators promote as in NumPy, reductions keep the dtype of what they reduce."""
    return _strong(_kind(expr))


def compute_dtype_of(apply: Apply) -> DType:
    """The dtype to which the arguments of an operation are converted before it is computed."""
    return algebra.compute_dtype(apply.op, [_kind(arg) for arg in apply.args])


def reduced_dtype(op: str, body: Expr) -> DType:
    """The dtype in which ``op`` reduces the values of ``body``: their own, or bool for the logical operators."""
    dtype = dtype_of(body)
    return algebra.compute_dtype(op, (dtype, dtype))


def promoted_dtype(dtypes: Sequence[DType]) -> DType:
    """The dtype to which all of ``dtypes`` promote."""
    return algebra.compute_dtype("add", dtypes)


def fill_of(expr: Expr) -> Scalar | None:
    """What ``expr`` is worth where every sparse operand is absent, or ``None`` if that depends on dense operands or sizes."""
    found = _fill(expr)
    return None if found is None else found.value


def absence_of(op: str, body: Expr) -> Absence | None:
    """When reducing ``body`` with ``op`` gives an absent value; None if never, as what absent terms make depends on how many there are."""
    fill, dtype = _fill(body), reduced_dtype(op, body)
    if fill is None or not fill.absent:
        return None
    value = _cast(fill.value, dtype)
    if algebra.same_value(value, algebra.identity(op, dtype)):
        return Absence.LEFT_OUT
    if algebra.annihilates(op, 0, value):
        return Absence.ONE_DECIDES
    return Absence.ALL_ABSENT if algebra.same_value(_cast(algebra.compute(op, (value, value), dtype), dtype), value) else None


def result_fill(assign: Assign, dtype: DType) -> Scalar:
    """What a result is worth where it has no entry: what the right side is worth where nothing is stored, if that is known.

    A variable that stands twice, as in ``R(i,i)``, leaves places to which nothing is assigned. They are what the result's tensor says, 0 or
    the zero of a semiring, however the operands are stored; and so is the fill.
    """
    indices, fill = assign.lhs.indices, fill_of(assign.rhs)
    known = assign.lhs.tensor.fill if fill is None or len(set(indices)) < len(indices) else fill
    return _cast(algebra.compute(f"as_{dtype.name}", [known], dtype), dtype)


def constant_of(expr: Expr) -> Scalar | None:
    """The value of an expression of numbers alone, or ``None``. Such an expression promotes weakly, as one number does."""
    kind = _kind(expr)
    return None if isinstance(kind, np.dtype) else kind


def _kind(expr: Expr) -> DType | Scalar:
    """The dtype of an expression, or the number it always is."""
    match expr:
        case Access(tensor):
            return tensor.dtype
        case Literal(value):
            return value
        case Apply(op, args):
            kinds = [_kind(arg) for arg in args]
            numbers = [kind for kind in kinds if not isinstance(kind, np.dtype)]
            return _computed(op, numbers, numbers) if len(numbers) == len(kinds) else _promoted(op, kinds)
        case Reduce(op, _, body):
            dtype = dtype_of(body)
            return _promoted(op, (dtype, dtype))
    raise CompilerBug(expr, "an expression is an Access, a Literal, an Apply or a Reduce")


def _promoted(op: str, kinds: Sequence[DType | Scalar]) -> DType:
    """The dtype of ``op``; also where it is always a truth value, the arguments must fit the operator."""
    algebra.compute_dtype(op, kinds)
    return algebra.result_dtype(op, kinds)


def _strong(kind: DType | Scalar) -> DType:
    """The dtype of a number that stands alone."""
    if isinstance(kind, np.dtype):
        return kind
    dtype = np.asarray(kind).dtype
    if dtype not in VALUE_DTYPES:
        raise DTypeError(f"the number {kind!r} does not fit in 64 bits; write it as a float: {float(kind.real)!r}")
    return dtype


def _computed(op: str, values: Sequence[Scalar], kinds: Sequence[DType | Scalar]) -> Scalar:
    """``op`` on numbers that have these dtypes."""
    return _cast(algebra.compute(op, values, algebra.compute_dtype(op, kinds)), algebra.result_dtype(op, kinds))


def _cast(value: object, dtype: DType) -> Scalar:
    result: Scalar = np.asarray(value).astype(dtype).item()
    return result


@dataclass(frozen=True)
class _Fill:
    """A value, and whether it is that of absent entries rather than a constant."""

    value: Scalar
    absent: bool


def _fill(expr: Expr) -> _Fill | None:
    match expr:
        case Access(tensor):
            return _Fill(_cast(tensor.fill, tensor.dtype), True) if tensor.may_be_absent else None
        case Literal(value):
            return _Fill(value, False)
        case Apply():
            return _applied_fill(expr)
        case Reduce(op, _, body):
            return _reduced_fill(op, body, dtype_of(expr))
    raise CompilerBug(expr, "an expression is an Access, a Literal, an Apply or a Reduce")


def _applied_fill(apply: Apply) -> _Fill | None:
    """An absent argument that annihilates decides; otherwise all arguments must be known."""
    fills = [_fill(arg) for arg in apply.args]
    for position, fill in enumerate(fills):
        if fill is not None and fill.absent and algebra.annihilates(apply.op, position, fill.value, apply.zero):
            return _Fill(_cast(fill.value, dtype_of(apply)), True)
    known = [fill for fill in fills if fill is not None]
    if len(known) < len(fills):
        return None
    value = _computed(apply.op, [fill.value for fill in known], [_kind(arg) for arg in apply.args])
    return _Fill(value, any(fill.absent for fill in known))


def _reduced_fill(op: str, body: Expr, dtype: DType) -> _Fill | None:
    """Absent terms make what each of them is, as 0 does in a sum and anything in a minimum; or else it depends on how many there are."""
    fill = _fill(body)
    match absence_of(op, body):
        case Absence.LEFT_OUT:
            return _Fill(algebra.identity(op, dtype), True)
        case Absence.ONE_DECIDES | Absence.ALL_ABSENT if fill is not None:
            return _Fill(_cast(fill.value, dtype), True)
    return None
