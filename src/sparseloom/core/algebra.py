"""What the operators are and which laws they obey.

One table serves both interpreters, the compiler and the targets. An operator is named as in NumPy. The laws that
matter for sparse code are three:

* the **identity** of a reduction: a term that has this value need not be visited,
* the **annihilator** of an operation: an *absent* argument that has this value decides the result, so the other
  arguments are never read (``0 * inf`` at an absent entry is ``0``, not ``nan``),
* the **fill**: what an expression is worth where all of its sparse operands are absent.
"""

from __future__ import annotations

import math
import operator as arithmetic
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import repeat
from typing import Any

import numpy as np

from sparseloom.core import dtypes
from sparseloom.core.dtypes import DType
from sparseloom.core.errors import DTypeError, NotationError

Scalar = bool | int | float | complex


@dataclass(frozen=True)
class Operator:
    """One element-wise operator.

    ``rule`` says how the result's dtype follows from the arguments': ``promote``, ``inexact`` (integers become
    float64), ``bool`` (a truth value), ``real`` (a complex argument gives a real result), ``select`` (the first argument is a
    condition), ``cast`` (``as_float32`` and so on: the dtype that is named). ``identity`` is set on operators that may reduce.
    ``annihilators`` holds (position, value) pairs.
    """

    name: str
    arity: int
    rule: str
    symbol: str = ""
    commutative: bool = False
    associative: bool = False
    identity: Callable[[DType], Any] | None = None
    annihilators: tuple[tuple[int, Scalar], ...] = ()


def _reducing(name: str, rule: str, symbol: str, identity: Callable[[DType], Any], zero: Scalar | None) -> Operator:
    """A commutative, associative operator of two or more arguments."""
    annihilators = () if zero is None else ((0, zero), (1, zero))
    return Operator(name, 2, rule, symbol, True, True, identity, annihilators)


_UNARY = {
    "inexact": "sqrt exp log sin cos tan arcsin arccos arctan sinh cosh tanh log1p expm1 log2 log10 cbrt",
    "promote": "negative sign floor ceil trunc conjugate square",
    "real": "absolute real imag",
    "bool": "logical_not isnan isinf isfinite",
}
_CASTS = tuple(f"as_{name}" for name in dtypes.STORED_NAMES)
COMPARISONS = {"equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}

OPERATORS: dict[str, Operator] = {
    op.name: op
    for op in (
        _reducing("add", "promote", "+", lambda d: d.type(0), None),
        _reducing("multiply", "promote", "*", lambda d: d.type(1), 0),
        _reducing("minimum", "promote", "min", dtypes.largest, None),
        _reducing("maximum", "promote", "max", dtypes.smallest, None),
        _reducing("logical_or", "bool", "or", lambda d: False, True),
        _reducing("logical_and", "bool", "and", lambda d: True, False),
        _reducing("logical_xor", "bool", "xor", lambda d: False, None),
        Operator("subtract", 2, "promote", "-"),
        Operator("divide", 2, "inexact", "/", annihilators=((0, 0),)),
        Operator("floordiv", 2, "promote", "//", annihilators=((0, 0),)),
        Operator("mod", 2, "promote", "%", annihilators=((0, 0),)),
        Operator("power", 2, "promote", "**"),
        Operator("arctan2", 2, "inexact"),
        Operator("hypot", 2, "inexact"),
        Operator("where", 3, "select"),
        *(Operator(name, 2, "bool", symbol) for name, symbol in COMPARISONS.items()),
        *(Operator(name, 1, "cast") for name in _CASTS),
        *(Operator(name, 1, rule) for rule, names in _UNARY.items() for name in names.split()),
    )
}

# What the compiler alone writes: whether an operand has an entry; a value where a condition is stored and holds, or where it is stored
# itself, and the annihilator that the operation names elsewhere.
INTERNAL = {own.name: own for own in (Operator("is_stored", 1, "bool"), Operator("within", 2, "select"), Operator("or_else", 1, "promote"))}

# What NumPy calls an operator, if not as we do: loops have a floor_divide of their own, for indices, which are never divided by 0.
_OF_NUMPY = {"floordiv": "floor_divide"}

# How a user may spell an operator, beside its NumPy name.
ALIASES = {
    "floor_divide": "floordiv", "remainder": "mod", "//": "floordiv", "%": "mod",
    "abs": "absolute", "pow": "power", "min": "minimum", "max": "maximum", "sum": "add", "prod": "multiply",
    "any": "logical_or", "all": "logical_and", "or": "logical_or", "and": "logical_and", "xor": "logical_xor",
    "not": "logical_not", "neg": "negative", "conj": "conjugate", "plus": "add", "times": "multiply",
    "+": "add", "*": "multiply", "-": "subtract", "/": "divide", "**": "power",
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2",
}  # fmt: skip


def operator(name: str) -> Operator:
    """Find an operator by its name or an alias, or say which there are."""
    found = OPERATORS.get(ALIASES.get(name, name)) or INTERNAL.get(name)
    if found is None:
        raise NotationError(f"there is no function {name!r}; there are {', '.join(sorted(OPERATORS))}")
    return found


def ufunc(name: str) -> Callable[..., Any]:
    """NumPy's function for an operator."""
    found: Callable[..., Any] = getattr(np, _OF_NUMPY.get(name, name))
    return found


@lru_cache(maxsize=64)
def cast_dtype(op: str) -> DType:
    """The dtype that a cast names: float32 for ``as_float32``."""
    return dtypes.value_dtype(op.removeprefix("as_"))


def result_dtype(op: str, arguments: Sequence[DType | Scalar]) -> DType:
    """The dtype of ``op`` on arguments given as dtypes, or as Python numbers (which promote weakly, as in NumPy)."""
    rule = operator(op).rule
    if rule == "bool":
        return dtypes.BOOL
    compute = compute_dtype(op, arguments)
    return dtypes.real_part(compute) if rule == "real" else compute


def compute_dtype(op: str, arguments: Sequence[DType | Scalar]) -> DType:
    """The dtype to which the arguments of ``op`` are converted before it is computed."""
    # Numbers are left out: 1, 1.0 and True are one key, and promote differently.
    typed = all(map(isinstance, arguments, repeat(np.dtype)))
    return _of_dtypes(op, tuple(arguments)) if typed else _compute_dtype(op, arguments)


@lru_cache(maxsize=1024)
def _of_dtypes(op: str, arguments: tuple[DType, ...]) -> DType:
    return _compute_dtype(op, arguments)


def _compute_dtype(op: str, arguments: Sequence[DType | Scalar]) -> DType:
    found = operator(op)
    if found.name.startswith("logical"):
        return dtypes.BOOL
    if found.rule == "cast":
        return cast_dtype(found.name)
    compared = arguments[1:] if found.rule == "select" else arguments
    promoted = _promoted(compared)
    if found.rule == "inexact":
        promoted = dtypes.as_inexact(promoted)
    if not dtypes.is_value_dtype(promoted):
        raise DTypeError(f"{op} of {', '.join(map(str, arguments))} has no supported dtype")
    if promoted.kind == "b" and op in ("subtract", "negative", "sign", "power"):
        instead = "convert one of them with astype" if op == "power" else "use xor or not, or convert with astype"
        raise DTypeError(f"{op} is not defined on truth values{'' if op == 'power' else ', as in NumPy'}; {instead}")
    if promoted.kind == "b" and found.name in ("floordiv", "mod"):
        return np.dtype(np.int8)  # as NumPy has it
    if promoted.kind == "c" and found.name in ("minimum", "maximum", "less", "less_equal", "greater", "greater_equal", "floor",
                                       "ceil", "trunc", "arctan2", "hypot", "cbrt", "sign", "floordiv", "mod"):  # fmt: skip
        raise DTypeError(f"{op} is not defined on complex numbers: they have no order")
    return promoted


def _promoted(arguments: Sequence[DType | Scalar]) -> DType:
    """The dtype to which the arguments promote. A Python integer that it cannot hold widens it, where NumPy refuses to compute."""
    promoted = dtypes.promoted(arguments)
    if promoted.kind not in "iu":
        return promoted
    limits = np.iinfo(promoted)
    if all(limits.min <= a <= limits.max for a in arguments if isinstance(a, int)):
        return promoted
    return np.result_type(*(np.min_scalar_type(a) if isinstance(a, int) else a for a in arguments))


def compute(op: str, arguments: Sequence[Any], dtype: DType) -> Any:
    """Compute ``op`` on arrays or scalars after converting them to ``dtype`` (the compute dtype), with NumPy.

    This is the meaning of every operator: both interpreters and constant folding use it. What is wanted in a half is computed in float32,
    and rounded in the end; a cast to a half rounds, in whatever dtype the result is wanted.
    """
    found = operator(op)
    if found.rule == "cast":
        return _converted(arguments[0], cast_dtype(found.name), dtype)
    if dtypes.is_half(dtype):
        made = np.asarray(compute(op, arguments, dtypes.FLOAT32))
        return made if made.dtype == dtypes.BOOL else made.astype(dtype)
    if found.rule == "select":
        condition, then, other = arguments
        return np.where(np.asarray(condition, bool), np.asarray(then).astype(dtype), np.asarray(other).astype(dtype))
    if found.name in COMPARISONS and all(np.asarray(a).dtype.kind in "iu" for a in arguments):
        return getattr(np, found.name)(*arguments)  # int64 and uint64 have no dtype in common, but NumPy compares them exactly
    with np.errstate(all="ignore"):  # such as nan to an integer
        converted = [np.asarray(a).astype(dtype) for a in arguments]
    with np.errstate(all="ignore"):
        if found.name == "power" and dtype.kind in "iu":
            return integer_power(*converted)
        function = ufunc(found.name)
        value = converted[0] if len(converted) > 1 else function(converted[0])
        for argument in converted[1:]:
            value = function(value, argument)
        return value


def _converted(given: Any, named: DType, wanted: DType) -> Any:
    """Values as a cast gives them. What is no float32 is converted to one before it is rounded to a half."""
    with np.errstate(all="ignore"):
        through = (dtypes.FLOAT32, named, wanted) if dtypes.is_half(named) else (wanted,)
        values = np.asarray(given)
        for dtype in through:
            values = values.astype(dtype)
    return values


def constant(op: str, values: Sequence[Scalar]) -> Scalar:
    """``op`` on numbers alone, as Python computes with them: whole numbers do not wrap, and truth values count as 0 and 1."""
    name = operator(op).name
    whole = [int(value) for value in values if isinstance(value, int)]
    if len(whole) == len(values) and name == "power" and whole[1] < 0:
        values = [float(value) for value in whole]
    elif len(whole) == len(values) and name in _ON_WHOLE_NUMBERS:
        return _whole(name, whole)
    result: Scalar = np.asarray(compute(op, values, compute_dtype(op, values))).astype(result_dtype(op, values)).item()
    return result


_ON_WHOLE_NUMBERS: dict[str, Callable[..., int]] = {
    "add": arithmetic.add, "subtract": arithmetic.sub, "multiply": arithmetic.mul, "negative": arithmetic.neg, "power": pow,
    "floordiv": lambda a, b: a // b if b else 0, "mod": lambda a, b: a % b if b else 0,  # as NumPy divides whole numbers by 0
    "minimum": min, "maximum": max, "equal": arithmetic.eq, "not_equal": arithmetic.ne, "less": arithmetic.lt,
    "less_equal": arithmetic.le, "greater": arithmetic.gt, "greater_equal": arithmetic.ge,
}  # fmt: skip


def _whole(name: str, values: Sequence[int]) -> int:
    """An operator on whole numbers, exactly. A result that no dtype holds is refused before it grows."""
    function = _ON_WHOLE_NUMBERS[name]
    value, *others = values
    if not others:
        return function(value)
    for other in others:
        enormous = name == "power" and abs(value) > 1 and other > 64
        value = 2**64 if enormous else function(value, other)
        if not -(2**63) <= value < 2**64:
            help = f"write one of them as a float, {values[0]}.0"
            raise DTypeError(f"{name} of {values[0]} and {other} does not fit in 64 bits\n  help: {help}")
    return value


def negative_power(what: str, instead: str) -> NotationError:
    """The error for integers to a negative power, in the words of NumPy's."""
    return NotationError(f"Integers to negative integer powers are not allowed: {what}\n  help: write {instead}")


def integer_power(base: Any, exponent: Any) -> Any:
    """Integer powers by wrapping multiplication; a negative exponent gives the truncated reciprocal (0 for |base| > 1)."""
    base, exponent = np.broadcast_arrays(base, exponent)
    negative = exponent < 0
    power = np.power(base, np.where(negative, exponent.dtype.type(0), exponent))
    odd = (exponent & exponent.dtype.type(1)).astype(bool)
    unit = np.where(base == 1, 1, np.where(odd, -1, 1))
    reciprocal = np.where((base == 1) | (base == base.dtype.type(-1) if base.dtype.kind == "i" else base == 1), unit, 0)
    return np.where(negative, reciprocal.astype(base.dtype), power)


def identity(op: str, dtype: DType) -> Any:
    """The value that leaves ``op`` unchanged, as a Python number of ``dtype``."""
    found = operator(op)
    if found.identity is None:
        known = ", ".join(sorted(o.name for o in OPERATORS.values() if o.identity is not None))
        raise NotationError(f"{op} cannot reduce: it has no identity; reductions are {known}")
    return dtype.type(found.identity(dtype)).item()


def neutral(op: str, dtype: DType) -> Scalar | None:
    """The value that leaves every other as it is, bit by bit: that of a sum is -0.0. None where there is no such value."""
    if operator(op).identity is None or (dtype.kind == "c" and op != "add"):
        return None
    value: Scalar = identity(op, dtype)
    return -value if op == "add" and dtype.kind in "fc" else value


class Repetition(Enum):
    """What an operator makes of many equal values."""

    ONCE = "once"  # the value: of any number of them the least is the value itself
    TIMES = "times"  # the value times their number
    POWER = "power"  # the value to the power of their number
    PARITY = "parity"  # the value if their number is odd, and nothing else


def repetition(op: str, dtype: DType) -> Repetition:
    """What a reduction with ``op`` makes of many equal values of ``dtype``. Truth values are added by or, and multiplied by and."""
    match operator(op).name:
        case "add" if dtype.kind != "b":
            return Repetition.TIMES
        case "multiply" if dtype.kind != "b":
            return Repetition.POWER
        case "logical_xor":
            return Repetition.PARITY
    return Repetition.ONCE


def annihilates(op: str, position: int, value: Any, zero: Scalar | None = None) -> bool:
    """Whether an absent argument with this fill value decides the result of ``op`` alone.

    ``zero`` is the annihilator that a semiring promises for this operation. The result is then the value itself
    (0 * x is 0; inf + x is inf in min-plus).
    """
    if zero is not None and same_value(value, zero):
        return True
    found = operator(op)
    place = 0 if found.commutative and position > 0 else position
    return any(place == where and same_value(value, decided) for where, decided in found.annihilators)


def same_value(left: Any, right: Any) -> bool:
    """Equality in which nan equals nan."""
    return bool(left == right) or (left != left and right != right)


def identical(left: Scalar, right: Scalar) -> bool:
    """Whether two constants are the same in every respect: 1 is not 1.0, and 0.0 is not -0.0."""
    return type(left) is type(right) and repr(left) == repr(right)


def same_sign(left: Scalar, right: Scalar) -> bool:
    """Whether two equal constants have the same signs, if they are zero: -0.0 differs from 0.0, and from 0."""
    return left is right or left != 0 or _signs(left) == _signs(right)


def _signs(value: Scalar) -> tuple[float, float]:
    number = complex(value)
    return math.copysign(1.0, number.real), math.copysign(1.0, number.imag)


@dataclass(frozen=True)
class Semiring:
    """A pair of operators that stands for + and *, with the value of an absent entry.

    >>> sl.Semiring("min", "plus", zero=float("inf"))
    Semiring(add='minimum', multiply='add', zero=inf)

    ``zero`` must be the identity of ``add`` and annihilate ``multiply``; left out, it is the identity of ``add`` in
    the dtype at hand. Under a semiring an absent entry of any operand is that zero.
    """

    add: str
    multiply: str
    zero: Scalar | None = None

    def __post_init__(self) -> None:
        for role in ("add", "multiply"):
            found = operator(getattr(self, role))
            if found.identity is None:
                raise NotationError(f"a semiring cannot use {found.name} to {role}: it is not associative with an identity")
            object.__setattr__(self, role, found.name)

    def zero_of(self, dtype: DType) -> Scalar:
        """The additive identity in ``dtype``."""
        value: Scalar = identity(self.add, dtype) if self.zero is None else dtype.type(self.zero).item()
        return value


SEMIRINGS: dict[str, Semiring] = {
    "plus_times": Semiring("add", "multiply"),
    "min_plus": Semiring("minimum", "add"),
    "max_plus": Semiring("maximum", "add"),
    "min_times": Semiring("minimum", "multiply"),
    "max_times": Semiring("maximum", "multiply"),
    "max_min": Semiring("maximum", "minimum"),
    "min_max": Semiring("minimum", "maximum"),
    "or_and": Semiring("logical_or", "logical_and"),
    "xor_and": Semiring("logical_xor", "logical_and"),
}


def semiring(wanted: Semiring | str) -> Semiring:
    """Find a semiring by name, or pass one through."""
    if isinstance(wanted, Semiring):
        return wanted
    if not isinstance(wanted, str) or wanted not in SEMIRINGS:
        raise NotationError(f"there is no semiring {wanted!r}; there are {', '.join(SEMIRINGS)}, or give a sl.Semiring")
    return SEMIRINGS[wanted]
