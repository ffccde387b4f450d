"""Loop expressions as C, with the parentheses that C needs and no more.

Values behave as NumPy's: integers wrap, so signed arithmetic is done in the unsigned type of the same width; sums and products of
truth values are *or* and *and*; minimum and maximum keep nan. Index arithmetic cannot overflow and is written plainly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, reduce
from typing import NamedTuple

import numpy as np

from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import BOOL, INT32, INT64, DType, is_half, is_integer, smallest
from sparseloom.core.errors import CompilerBug
from sparseloom.loops.nodes import Cast, Expr, Literal, Load, Op, Search, Select, Thread, Var
from sparseloom.loops.roles import is_nonnegative
from sparseloom.targets.c_names import CNames

# How tightly operators bind. A comparison or negation inside a comparison gets parentheses, as compilers advise.
ATOM, UNARY, TIMES, PLUS, NOT, COMPARE, AND, OR, CHOICE = 10, 9, 8, 7, 6, 5, 4, 3, 2

HALF_TYPES = {"float16": "float16_bits", "bfloat16": "bfloat16_bits"}
_C_TYPES = {"bool": "bool", "float32": "float", "float64": "double"} | HALF_TYPES
INFIX = {"add": ("+", PLUS), "subtract": ("-", PLUS), "multiply": ("*", TIMES), "divide": ("/", TIMES)}
_COMPARISONS = {"equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
# The symbol, how tightly it binds, and how tightly its arguments must.
_OR, _AND, _XOR = ("||", OR, COMPARE), ("&&", AND, AND), ("!=", COMPARE, PLUS)
_ON_BOOL = {
    "add": _OR, "maximum": _OR, "logical_or": _OR,
    "multiply": _AND, "minimum": _AND, "logical_and": _AND,
    "logical_xor": _XOR,
}  # fmt: skip
_CARRIERS = ("uint32_t", "uint64_t")  # the types in which modular arithmetic is done
# By the kind of dtype: what leaves values as they are, and what helpers of ours compute.
_SAME = {"i": ("real", "conjugate", "floor", "ceil", "trunc"), "f": ("real", "conjugate"), "c": ()}
_SAME["u"] = (*_SAME["i"], "absolute")
_HELPERS = {
    "i": ("minimum", "maximum", "sign", "absolute", "square", "power", "floordiv", "mod"),
    "f": ("minimum", "maximum", "sign", "square", "floordiv", "mod"),
    "c": ("divide", "power", "square", "log2", "log10", "log1p", "expm1", "isnan", "isinf", "isfinite"),
}
_HELPERS["u"] = _HELPERS["i"]
_LIBRARY = {"absolute": "fabs", "power": "pow", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2"}
_COMPLEX_LIBRARY = {"absolute": "cabs", "conjugate": "conj", "real": "creal", "imag": "cimag"}


@cache  # NumPy works out the name of a dtype each time
def c_type(dtype: DType) -> str:
    """The C type of a dtype."""
    return _C_TYPES.get(dtype.name, f"{dtype.name}_t")


class Piece(NamedTuple):
    """C text and how tightly it binds. ``modular`` is the same number in unsigned arithmetic, before it is cast back."""

    text: str
    level: int = ATOM
    modular: tuple[str, int] | None = None

    def at(self, least: int) -> str:
        """The text, in parentheses if it binds more loosely than ``least``."""
        return self.text if self.level >= least else f"({self.text})"


def literal(value: Scalar, dtype: DType) -> Piece:
    """A constant that reads back as exactly this value."""
    if dtype.kind == "c":
        number = complex(value)
        part = np.dtype(f"f{dtype.itemsize // 2}")
        return Piece(f"{dtype}_of({_component(number.real, part)}, {_component(number.imag, part)})")
    if is_half(dtype):
        return Piece(f"0x{int(np.asarray(value, dtype).view(np.uint16)):04x}")
    if dtype.kind == "f":
        text = _real(float(value.real), dtype)
    elif dtype == BOOL:
        text = "true" if value else "false"
    else:
        return _integer(int(value.real), dtype)
    return Piece(text, UNARY if text.startswith("-") else ATOM)


def _real(value: float, dtype: DType) -> str:
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    return f"{np.float32(value)!s}f" if dtype.itemsize == 4 else repr(value)


def _component(value: float, dtype: DType) -> str:
    """One part of a complex constant; both must have the same type."""
    text = _real(value, dtype)
    return text if math.isfinite(value) else f"({c_type(dtype)}){text}"


def _integer(value: int, dtype: DType) -> Piece:
    wide = dtype.itemsize == 8
    unsigned = f"UINT64_C({value})" if wide else f"{value}u"
    if dtype.kind == "u":
        return Piece(unsigned if dtype.itemsize >= 4 else str(value), modular=(unsigned, ATOM))
    if value == smallest(dtype) and dtype.itemsize >= 4:
        return Piece(f"INT{8 * dtype.itemsize}_MIN")
    return Piece(str(value), modular=(unsigned, ATOM)) if value >= 0 else Piece(str(value), UNARY)


def convert(piece: Piece, source: DType, target: DType) -> Piece:
    """A conversion as NumPy's ``astype``. C takes the real part of a complex number by itself."""
    if source == target:
        return piece
    if is_half(source) or is_half(target):
        return _call(f"{target.name}_of_{source.name}", [piece])
    if target == BOOL:
        return Piece(f"{piece.at(PLUS)} != 0", COMPARE)
    return Piece(f"({c_type(target)}){piece.at(UNARY)}", UNARY)


def operate(name: str, args: Sequence[Piece], dtype: DType) -> Piece:
    """An operator on values of ``dtype``; more than two arguments combine from the left."""
    match name, dtype.kind:
        case "where", _:
            return choose(*args)
        case "logical_not", _:
            return Piece(f"!{args[0].at(UNARY)}", NOT)
        case _ if name in _COMPARISONS:
            return Piece(f"{args[0].at(PLUS)} {_COMPARISONS[name]} {args[1].at(PLUS)}", COMPARE)
        case _, "b" if name in _ON_BOOL:
            return _on_bool(*_ON_BOOL[name], args)
        case (("add" | "subtract" | "multiply" | "negative"), ("i" | "u")):
            return _modular(name, args, dtype)
        case (("add" | "subtract" | "multiply"), ("f" | "c")):
            return infix(name, args)
        case "divide", "f":
            return infix(name, args)
        case "negative", ("f" | "c"):
            return minus(args[0])
    return _function(name, args, dtype)


def _function(name: str, args: Sequence[Piece], dtype: DType) -> Piece:
    """A function of numbers: one that leaves them as they are, a helper of ours, or one of the C library."""
    match name, dtype.kind:
        case "imag", ("b" | "i" | "u" | "f"):
            return literal(0, dtype)
        case (("isnan" | "isinf" | "isfinite"), ("b" | "i" | "u")):
            return Piece("true" if name == "isfinite" else "false")
        case (("isnan" | "isinf" | "isfinite"), "f"):
            # The C library promises no more than "not zero": isinf of -inf may be -1.
            return Piece(f"(bool){_call(name, args).text}", UNARY)
        case (("minimum" | "maximum"), ("i" | "u")) if len(args) == 2 and all(a.text.isidentifier() for a in args):
            left, right = args
            return choose(Piece(f"{left.text} {'<' if name == 'minimum' else '>'} {right.text}", COMPARE), left, right)
        case _, kind if kind == "b" or name.startswith("as_") or name in _SAME[kind]:
            return args[0]
        case _, kind if name in _HELPERS[kind]:
            return _call(f"{name}_{dtype}", args)
        case _, "f":
            return _call(_LIBRARY.get(name, name) + ("f" if dtype.itemsize == 4 else ""), args)
        case _, "c":
            return _call(_COMPLEX_LIBRARY.get(name, "c" + _LIBRARY.get(name, name)) + ("f" if dtype.itemsize == 8 else ""), args)
    raise CompilerBug(name, f"{name} is computed on real or complex numbers, not {dtype}")


def infix(name: str, args: Sequence[Piece]) -> Piece:
    """A chain of a left-associative operator."""
    symbol, level = INFIX[name]
    first, *rest = args
    return Piece(f" {symbol} ".join([first.at(level), *(a.at(level + 1) for a in rest)]), level)


def choose(condition: Piece, then: Piece, other: Piece) -> Piece:
    """One of two values."""
    return Piece(f"{condition.at(OR)} ? {then.at(OR)} : {other.at(CHOICE)}", CHOICE)


def minus(piece: Piece) -> Piece:
    """A number with the other sign."""
    inner = piece.at(UNARY)
    return Piece(f"-({inner})" if inner.startswith("-") else f"-{inner}", UNARY)


def _call(function: str, args: Sequence[Piece]) -> Piece:
    """A call; a function of two arguments takes more one after another."""
    if len(args) == 1:
        return Piece(f"{function}({args[0].text})")
    return reduce(lambda left, right: Piece(f"{function}({left.text}, {right.text})"), args)


def _on_bool(symbol: str, level: int, least: int, args: Sequence[Piece]) -> Piece:
    if level != COMPARE:
        return Piece(f" {symbol} ".join(a.at(least) for a in args), level)
    return reduce(lambda left, right: Piece(f"{left.at(least)} {symbol} {right.at(least)}", level), args)


def _modular(name: str, args: Sequence[Piece], dtype: DType) -> Piece:
    """Arithmetic modulo a power of two: in the unsigned type, which wraps, and cast back."""
    carrier = _CARRIERS[dtype.itemsize == 8]
    inner = [Piece(*a.modular) if a.modular else a if c_type(dtype) == carrier else Piece(f"({carrier}){a.at(UNARY)}", UNARY) for a in args]
    result = minus(inner[0]) if name == "negative" else infix(name, inner)
    if c_type(dtype) == carrier:
        return Piece(result.text, result.level, (result.text, result.level))
    return Piece(f"({c_type(dtype)})({result.text})", UNARY, (result.text, result.level))


class Expressions:
    """Prints the expressions of one kernel."""

    def __init__(self, names: CNames, indices: frozenset[str], nonnegative: frozenset[str]) -> None:
        self.names = names
        self.indices = indices
        self.nonnegative = nonnegative

    def value(self, expr: Expr) -> str:
        """A value."""
        return self.piece(expr, False).text

    def index(self, expr: Expr) -> str:
        """An expression used as an int64: an index, a bound, or the value of an index variable."""
        return self.index_piece(expr).text

    def index_piece(self, expr: Expr) -> Piece:
        """The same as a piece, which can become an operand."""
        return self._unwidened(expr, True)

    def sized(self, expr: Expr) -> str:
        """The size of an allocation: a product that overflows becomes a size that cannot be had."""
        match expr:
            case Op("multiply", args, dtype) if dtype == INT64:
                return reduce(lambda left, right: f"size_product({left}, {right})", map(self.sized, args))
        return self.index(expr)

    def assigned(self, var: Var, value: Expr) -> str:
        """What a scalar is set to."""
        return self._unwidened(value, var.name in self.indices).text if var.dtype == INT64 else self.value(value)

    def piece(self, expr: Expr, index: bool) -> Piece:
        """An expression; ``index`` says that its value goes into an index."""
        match expr:
            case Var(name):
                return Piece(self.names.scalar(name))
            case Thread():
                return Piece("thread_number()")
            case Literal(value, dtype):
                return literal(value, dtype)
            case Load(array, place):
                return Piece(f"{self.names.array(array)}[{self.index(place)}]")
            case Cast(operand, dtype):
                return convert(self.piece(operand, index and operand.dtype == INT64), operand.dtype, dtype)
            case Select(condition, then, other):
                return choose(self.piece(condition, False), self.piece(then, index), self.piece(other, index))
            case Search(array, begin, end, key):
                return Piece(f"lower_bound_{array.dtype}({self.names.array(array)}, {', '.join(map(self.index, (begin, end, key)))})")
            case Op():
                return self._operator(expr, index)
        raise CompilerBug(expr, "an expression that C knows")

    def _operator(self, op: Op, index: bool) -> Piece:
        name, args = op.name, op.args
        if name in ("floor_divide", "remainder"):
            return self._division(op)
        if name == "hash":
            return _call("leading_bits", [self._unwidened(a, True) for a in args])
        if name in _COMPARISONS:
            return operate(name, [self._unwidened(a, False) for a in args], args[0].dtype)
        if op.dtype == INT64 and (index or self._is_index(op)) and name in ("add", "subtract", "multiply", "negative"):
            pieces = self._plain(args)
            return minus(pieces[0]) if name == "negative" else infix(name, pieces)
        if name == "square" and isinstance(args[0], Var) and not is_integer(op.dtype) and op.dtype != BOOL:
            return operate("multiply", [self.piece(args[0], False)] * 2, op.dtype)
        return operate(name, [self.piece(a, index and a.dtype == INT64) for a in args], args[1 if name == "where" else 0].dtype)

    def _division(self, op: Op) -> Piece:
        """Division that rounds down; C's own rounds towards zero, which is the same where nothing is negative."""
        if all(is_nonnegative(a, self.nonnegative) for a in op.args):
            left, right = self._plain(op.args)
            return Piece(f"{left.at(TIMES)} {'/' if op.name == 'floor_divide' else '%'} {right.at(TIMES + 1)}", TIMES)
        return _call("floor_quotient" if op.name == "floor_divide" else "floor_remainder", [self._unwidened(a, True) for a in op.args])

    def _plain(self, args: Sequence[Expr]) -> list[Piece]:
        """The arguments of index arithmetic: one of the first two must be 64 bits wide in C, and then the other may be less."""
        pieces = [self.piece(a, True) for a in args]
        if len(args) == 2 and _is_widening(args[1]) and not _is_narrow(args[0]):
            pieces[1] = self._unwidened(args[1], True)
        elif len(args) == 2 and _is_widening(args[0]) and not _is_narrow(args[1]):
            pieces[0] = self._unwidened(args[0], True)
        elif len(args) > 1 and all(map(_is_narrow, args[:2])):
            pieces[0] = Piece(f"(int64_t){pieces[0].at(UNARY)}", UNARY)
        return pieces

    def _unwidened(self, expr: Expr, index: bool) -> Piece:
        """Leave out a cast that C makes by itself."""
        return self.piece(expr.operand, False) if isinstance(expr, Cast) and _is_widening(expr) else self.piece(expr, index)

    def _is_index(self, expr: Expr) -> bool:
        """Whether an expression is made of index scalars and constants only."""
        match expr:
            case Var(name):
                return name in self.indices
            case Literal():
                return True
            case Op(_, args, dtype):
                return dtype == INT64 and all(map(self._is_index, args))
        return False


def _is_widening(expr: Expr) -> bool:
    """Whether an expression is an int32 or a truth value that is widened, as C does by itself."""
    return isinstance(expr, Cast) and expr.dtype == INT64 and expr.operand.dtype in (INT32, BOOL)


def _is_narrow(expr: Expr) -> bool:
    """Whether an int64 expression may have a narrower type in C: a small constant, or a choice of them."""
    match expr:
        case Literal():
            return True
        case Select(_, then, other):
            return _is_narrow(then) and _is_narrow(other)
    return False


def update_symbol(name: str, dtype: DType, index: bool = False) -> str | None:
    """The ``+=`` of an operator, where C's own operator on this type is the right one."""
    wraps = is_integer(dtype) and c_type(dtype) not in _CARRIERS and not index
    if wraps or dtype == BOOL or (name == "divide" and dtype.kind == "c"):
        return None
    return f"{INFIX[name][0]}=" if name in INFIX else None


def is_zero_bits(value: Scalar, dtype: DType) -> bool:
    """Whether a constant is all zero bits, as memset writes them."""
    return not any(np.asarray(value, dtype).tobytes())
