"""Which loops over lanes vector registers can do at once: plain arithmetic on neighbouring numbers of one float dtype."""

from __future__ import annotations

from sparseloom.core.dtypes import DType
from sparseloom.core.trees import walk
from sparseloom.loops.nodes import ZERO, Expr, For, Load, Op, Stmt, Store, Var, stmts_of

_ARITHMETIC = ("add", "subtract", "multiply", "divide", "negative")


def is_lanewise(loop: For) -> bool:
    """Whether every statement of the loop's body is such arithmetic, from lane 0 on."""
    dtype = lane_dtype(loop)
    return dtype is not None and loop.begin == ZERO and all(_is_lanewise(stmt, loop.var, dtype) for stmt in stmts_of(loop.body))


def lane_dtype(loop: For) -> DType | None:
    """The dtype of what a loop over lanes stores, if it is one float dtype."""
    found = {n.array.dtype for n in walk(loop.body) if isinstance(n, Store)}
    return found.pop() if len(found) == 1 and next(iter(found)).kind == "f" else None


def is_neighbouring(index: Expr, lane: Var) -> bool:
    """Whether an index counts up with the lane: it is the lane, or something plus the lane."""
    match index:
        case Op("add", (*rest, last)) if last == lane:
            return not any(n == lane for part in rest for n in walk(part))
    return index == lane


def _is_lanewise(stmt: Stmt, lane: Var, dtype: DType) -> bool:
    match stmt:
        case Store(_, index, value, op, False):
            return op in (None, "add", "subtract", "multiply") and is_neighbouring(index, lane) and _is_arithmetic(value, lane, dtype)
    return False


def _is_arithmetic(expr: Expr, lane: Var, dtype: DType) -> bool:
    if not any(n == lane for n in walk(expr)):
        return expr.dtype == dtype
    match expr:
        case Load(_, index):
            return expr.dtype == dtype and is_neighbouring(index, lane)
        case Op(name, args):
            return name in _ARITHMETIC and expr.dtype == dtype and all(_is_arithmetic(arg, lane, dtype) for arg in args)
    return False
