"""Complex numbers in NumPy's order: by their real parts, and by their imaginary parts where those are equal.

Index notation has no order of complex numbers, but it says this one: ``a < b`` is ``real(a) < real(b)``, or equal real parts and
``imag(a) < imag(b)``. NaN is in no order with anything, and the larger and the smaller of two is NaN if one of them is.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparseloom.core import algebra
from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import DType
from sparseloom.notation.nodes import Access, Apply, Expr, Literal

_BY_REAL_PARTS = {"less": "less", "less_equal": "less", "greater": "greater", "greater_equal": "greater"}
_EXTREMES = {"minimum": "less_equal", "maximum": "greater_equal"}


def compares_complex(op: str, arguments: Sequence[DType | Scalar]) -> bool:
    """Whether an operator asks which of complex numbers is the larger."""
    return (op in _BY_REAL_PARTS or op in _EXTREMES) and algebra.compute_dtype("add", arguments).kind == "c"


def in_order(op: str, left: Expr, right: Expr) -> Expr:
    """An operator that asks for an order, on complex numbers."""
    if op not in _EXTREMES:
        return _compared(op, left, right)
    return Apply("where", (_either(Apply("isnan", (left,)), _compared(_EXTREMES[op], left, right)), left, right))


def _compared(op: str, left: Expr, right: Expr) -> Expr:
    """A comparison. As in NumPy, real parts decide nothing beside an imaginary part that is NaN."""
    (real, imag), (other, its_imag) = _parts(left), _parts(right)
    unknown = _either(Apply("isnan", (imag,)), Apply("isnan", (its_imag,)))
    decided = _both(Apply(_BY_REAL_PARTS[op], (real, other)), Apply("logical_not", (unknown,)))
    return _either(decided, _both(Apply("equal", (real, other)), Apply(op, (imag, its_imag))))


def _parts(operand: Expr) -> tuple[Expr, Expr]:
    """The real and the imaginary part."""
    match operand:
        case Literal(value):
            return Literal(value.real), Literal(float(value.imag))
        case Access(tensor) if tensor.dtype.kind != "c":
            return operand, Literal(0.0)
    return Apply("real", (operand,)), Apply("imag", (operand,))


def _either(one: Expr, other: Expr) -> Expr:
    return Apply("logical_or", (one, other))


def _both(one: Expr, other: Expr) -> Expr:
    return Apply("logical_and", (one, other))
