"""How far two computations of one statement may differ: not at all for small whole numbers, else by rounding.

The *magnitude* of a value is what it would be if nothing cancelled: all numbers positive, every minus a plus. Rounding errors are
a small multiple of eps times the magnitude, however the sums were ordered.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sparseloom.core.algebra import operator
from sparseloom.core.dtypes import float_limits, is_half
from sparseloom.core.trees import walk
from sparseloom.notation.interpret import Operand, evaluate
from sparseloom.notation.nodes import Access, Apply, Assign, Expr, Literal, Reduce, TensorVar

_FOLLOWED = ("absolute", "conjugate", "real", "imag", "negative")
_ROUNDING_FREE = frozenset(
    "add subtract multiply negative absolute square conjugate real imag sign floor ceil trunc minimum maximum where".split()
)


def is_exact(assign: Assign) -> bool:
    """Whether every operator gives a whole number for whole numbers, so that nothing is ever rounded."""
    complex_valued = any(isinstance(n, TensorVar) and n.dtype.kind == "c" for n in walk(assign))
    for found in walk(assign.rhs):
        match found:
            case Apply(op) if operator(op).rule not in ("bool", "cast") and op not in _ROUNDING_FREE:
                return False
            case Apply("absolute") if complex_valued:
                return False
            case Reduce("multiply"):
                return False
    return True


def magnitudes(assign: Assign, operands: Mapping[str, Operand], sizes: Mapping[str, int]) -> np.ndarray:
    """The magnitude of every element of the result."""
    lhs = Access(TensorVar(assign.lhs.tensor.name, assign.lhs.tensor.order, assign.lhs.tensor.format), assign.lhs.indices)
    with np.errstate(all="ignore"):
        found = evaluate(Assign(lhs, _magnitude(assign.rhs)), operands, sizes).values
        if assign.op is not None:
            found = found + np.abs(operands[assign.lhs.tensor.name].values)
    return found


def _magnitude(expr: Expr) -> Expr:
    match expr:
        case Access():
            return Apply("absolute", (Apply("as_complex128", (expr,)),))
        case Literal(value):
            return Literal(abs(complex(value)))
        case Apply(op, args) if op in _FOLLOWED or op.startswith("as_"):
            return _magnitude(args[0])
        case Apply("add" | "subtract" | "minimum" | "maximum" as op, args, zero):
            # Under a semiring an absent argument may annihilate: then it has no magnitude.
            return Apply("add", tuple(map(_magnitude, args))) if zero is None else Literal(8.0)
        case Apply("multiply", args):
            return Apply("multiply", tuple(map(_magnitude, args)))
        case Apply("divide", (left, right)):
            return Apply("divide", (_magnitude(left), _magnitude(right)))
        case Apply("square", (arg,)):
            return Apply("multiply", (_magnitude(arg), _magnitude(arg)))
        case Apply("where", (_, then, other)):
            return Apply("add", (_magnitude(then), _magnitude(other)))
        case Apply("sign" | "floor" | "ceil" | "trunc", (arg,)):
            return Apply("add", (_magnitude(arg), Literal(1.0)))
        case Apply(op) if operator(op).rule == "bool":
            return Literal(1.0)
        case Apply():
            return Apply("absolute", (Apply("as_complex128", (expr,)),))
        case Reduce("add" | "minimum" | "maximum", variables, body):
            return Reduce("add", variables, _magnitude(body))
        case Reduce("multiply", variables, body):
            return Reduce("multiply", variables, _magnitude(body))
    return Literal(1.0)


def difference(got: np.ndarray, want: np.ndarray, magnitude: np.ndarray, exact: bool, coarsest: np.dtype, terms: int) -> str | None:
    """Where and how ``got`` is not what was wanted, or None. ``terms`` says how many values are summed at most."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"dtype and shape are {got.dtype} {got.shape}, not {want.dtype} {want.shape}"
    if got.dtype.kind in "biu":
        wrong = got != want
    else:
        with np.errstate(all="ignore"):
            # A half is rounded once from what was computed in float32: that may fall to the other side of a step.
            largest, step = float_limits(got.dtype) if is_half(got.dtype) else (float(np.finfo(coarsest).max), 0.0)
            least = float(np.nextafter(got.dtype.type(0), got.dtype.type(1))) if step else 0.0
            got, want = (array.astype(np.float64) if step else array for array in (got, want))
            info = np.finfo(coarsest)
            small = exact and float(np.nanmax(np.where(np.isfinite(magnitude), magnitude, 0), initial=0)) < 0.5 / info.eps
            slack = np.where(np.isfinite(magnitude), magnitude, np.abs(want)) * (16 * info.eps * (8 + terms)) + float(info.tiny)
            slack = slack + np.where(np.isfinite(want), np.abs(want) * step + least, 0)
            allowed = np.zeros_like(slack) if small else slack
            same = (got == want) | (np.isnan(got) & np.isnan(want))
            # Near overflow the order of a sum decides; what is exact is exactly beyond or not.
            beyond = (magnitude > float(np.finfo(coarsest).max) / 1e3) | (bool(step and not small) & (magnitude > largest / 2))
            wrong = ~same & ~(np.abs(got - want) <= allowed) & ~beyond
    if not wrong.any():
        return None
    place = tuple(int(n) for n in np.argwhere(wrong)[0])
    return f"at {place} there is {got[place]!r}, not {want[place]!r}\n  got\n{got}\n  want\n{want}"
