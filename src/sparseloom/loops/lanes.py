"""Which loops over lanes can run in vector registers: plain arithmetic on numbers of one dtype that are adjacent, or gathered.

Adjacent float16 and bfloat16 numbers count as the float32 to which they are converted.
"""

from __future__ import annotations

from sparseloom.core.dtypes import FLOAT32, INT64, DType, computed, is_half
from sparseloom.core.trees import walk
from sparseloom.loops.nodes import ZERO, Cast, Expr, For, Literal, Load, Op, Stmt, Store, Var, stmts_of

_ARITHMETIC = ("add", "subtract", "multiply", "negative")


def is_lanewise(loop: For) -> bool:
    """Whether every statement of the loop's body is such arithmetic, from lane 0 on."""
    dtype = lane_dtype(loop)
    return dtype is not None and loop.begin == ZERO and all(_is_lanewise(stmt, loop, dtype) for stmt in stmts_of(loop.body))


def lane_dtype(loop: For) -> DType | None:
    """The dtype of what a loop over lanes computes and stores, if it is one that vectors have."""
    found = {computed(n.array.dtype) for n in walk(loop.body) if isinstance(n, Store)}
    return next(iter(found)) if len(found) == 1 and all(map(has_vectors, found)) else None


def has_vectors(dtype: DType) -> bool:
    """Whether there are vectors of such numbers: real ones of 4 or 8 bytes."""
    return dtype.kind in "fiu" and dtype.itemsize in (4, 8)


def is_neighbouring(index: Expr, lane: Var) -> bool:
    """Whether an index counts up with the lane: it is the lane, or something plus the lane."""
    match index:
        case Op("add", args) if lane in args:
            return sum(n == lane for n in walk(index)) == 1
    return index == lane


def gathering(index: Expr, lane: Var) -> Load | None:
    """The load of neighbouring indices from which an index comes, if it does: each lane reads where its own one says."""
    match index:
        case (Load() as load) | Cast(Load() as load, _) if index.dtype == INT64 and load.dtype.kind == "i" and load.dtype.itemsize >= 4:
            return load if is_neighbouring(load.index, lane) else None
    return None


def gathers(loop: For) -> bool:
    """Whether a loop over lanes gathers."""
    return any(isinstance(n, Load) and gathering(n.index, loop.var) is not None for n in walk(loop.body))


def _is_lanewise(stmt: Stmt, loop: For, dtype: DType) -> bool:
    lane = loop.var
    match stmt:
        case Store(array, index, Cast(value, _), None, False) if is_half(array.dtype):  # all lanes, which are rounded together
            is_whole = loop.end == Literal(loop.factor)
            return is_whole and is_neighbouring(index, lane) and value.dtype == FLOAT32 and _is_arithmetic(value, lane, dtype)
        case Store(_, index, value, op, False):
            return op in (None, "add", "subtract", "multiply") and is_neighbouring(index, lane) and _is_arithmetic(value, lane, dtype)
    return False


def _is_arithmetic(expr: Expr, lane: Var, dtype: DType) -> bool:
    if not any(n == lane for n in walk(expr)):
        return expr.dtype == dtype
    match expr:
        case Load(_, index):
            return expr.dtype == dtype and (is_neighbouring(index, lane) or gathering(index, lane) is not None)
        case Cast(Load(array, index), wanted) if is_half(array.dtype):
            return wanted == dtype == FLOAT32 and is_neighbouring(index, lane)
        case Op("minimum" | "maximum", (_, _) as args):
            return expr.dtype == dtype and all(_is_arithmetic(arg, lane, dtype) for arg in args)
        case Op("divide", args) if dtype.kind == "f":
            return expr.dtype == dtype and all(_is_arithmetic(arg, lane, dtype) for arg in args)
        case Op(name, args):
            return name in _ARITHMETIC and expr.dtype == dtype and all(_is_arithmetic(arg, lane, dtype) for arg in args)
    return False
