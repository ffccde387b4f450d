"""Which dtypes the text of loops leaves out, because the place of an expression decides them.

    A2_pos[i] + 1            an index is int64: the int32 element of ``A2_pos`` is widened, and 1 is an int64
    y_vals[i] = 0.5          the constant has the dtype of the array
    a_vals[p] * 2            a constant has the dtype of the other operand

The printer omits a conversion or the dtype of a constant only if the reader would put the same one back. Both ask the functions here.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparseloom.core import dtypes
from sparseloom.core.algebra import OPERATORS, Scalar, compute_dtype
from sparseloom.core.dtypes import BOOL, INT32, INT64, DType, kind_of
from sparseloom.loops import nodes as ir

INDEX_OPERATORS = ("floor_divide", "remainder", "hash")  # on int64, in loops only
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {"b": (bool,), "i": (int,), "u": (int,), "f": (int, float), "c": (int, float, complex)}
_DEFAULTS: dict[type, DType] = {bool: BOOL, int: INT64, float: dtypes.FLOAT64, complex: dtypes.value_dtype("complex128")}


def literal_dtype(value: Scalar, expected: DType | None) -> DType:
    """The dtype of a constant that is written without one."""
    if expected is None or not _is_one_of(value, _PYTHON_TYPES[kind_of(expected)]):
        return _DEFAULTS[type(value)]
    return expected


def _is_one_of(value: Scalar, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds)


def is_widened(expr: ir.Expr) -> bool:
    """Whether an expression is an int32 scalar or element as an int64, which an index needs not say."""
    match expr:
        case ir.Cast(ir.Var() | ir.Load() as operand, dtype):
            return dtype == INT64 and operand.dtype == INT32
    return False


def operand_dtype(name: str, operands: Sequence[DType | None], expected: DType | None) -> DType | None:
    """The dtype in which the operands of an operator are read, from those that they have by themselves; None if nothing decides it."""
    if name.startswith("logical"):
        return BOOL
    if name in INDEX_OPERATORS:
        return INT64
    keeps = OPERATORS[name].rule in ("promote", "select")
    known = [dtype for dtype in operands if dtype is not None]
    if INT64 in known or (keeps and expected == INT64):
        return INT64
    return known[0] if known else expected if keeps else None


def natural(expr: ir.Expr, written: bool) -> DType | None:
    """The dtype that an expression has by itself in a text; None if its place decides it.

    In what was ``written`` conversions are explicit, and a constant has the dtype that is written after it, if any. An expression that is
    yet to be written is judged as if its conversions to int64 and the dtypes of its constants were left out.
    """
    match expr:
        case ir.Literal(dtype=dtype):
            return dtype if written else None
        case ir.Cast():
            return INT32 if not written and is_widened(expr) else expr.dtype
        case ir.Select(_, then, other):
            return operand_dtype("where", [natural(one, written) for one in (then, other)], None)
        case ir.Op(name, args):
            if name in INDEX_OPERATORS:
                return INT64
            if OPERATORS[name].rule == "bool":
                return BOOL
            found = operand_dtype(name, [natural(arg, written) for arg in compared(name, args)], None)
            return None if found is None else result_of(name, found)
    return expr.dtype


def compared(name: str, args: tuple[ir.Expr, ...]) -> tuple[ir.Expr, ...]:
    """The operands that have one dtype: all but the condition of ``where``."""
    return args[1:] if name == "where" else args


def result_of(name: str, operand: DType) -> DType:
    """The dtype of the result of an operator on operands of this dtype."""
    if name in INDEX_OPERATORS:
        return INT64
    match OPERATORS[name].rule:
        case "bool":
            return BOOL
        case "real":
            return dtypes.real_part(operand)
        case "cast":
            return compute_dtype(name, (operand,))
    return operand
