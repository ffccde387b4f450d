"""Index notation in Python: what ``A[i, j] * x[j]`` makes.

An expression is a notation tree together with the storages its tensors stand for. Storages never change, so an
expression keeps the values its tensors had when it was written: ``y[i] = 2 * y[i]`` reads the old ``y``.
"""

from __future__ import annotations

import itertools
import numbers
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from sparseloom.core.errors import DTypeError, NotationError
from sparseloom.core.signs import printable
from sparseloom.core.trees import rewrite
from sparseloom.formats.storage import Storage
from sparseloom.interop.numpy import from_numpy
from sparseloom.notation.dtyping import as_written, dtype_of
from sparseloom.notation.nodes import Access, Apply, Expr, IndexVar, Literal, TensorVar
from sparseloom.notation.printer import show
from sparseloom.notation.syntax import DEEPEST, LONGEST, TOO_DEEP, TOO_LONG
from sparseloom.notation.terms import combine
from sparseloom.plan.problem import declared

_NAME = re.compile(r"[^\W\d]\w*")


def indices(names: str) -> tuple[IndexVar, ...]:
    """Index variables by name, always as a tuple: ``i, j = indices("i j")``.

    >>> i, j = sl.indices("i j")
    >>> i.name, j.name
    ('i', 'j')
    """
    words = names.replace(",", " ").split() if isinstance(names, str) else []
    for word in words:
        if not _NAME.fullmatch(word):
            raise NotationError(f"{word!r} cannot name an index variable; use letters, digits and _, not beginning with a digit")
    if not words:
        raise NotationError("no names are given; write for example i, j = indices('i j')")
    return tuple(IndexVar(word) for word in words)


@dataclass(frozen=True)
class Operand:
    """What a name of an expression stands for, and whether the user chose the name."""

    storage: Storage
    named: bool


def _operator(op: str, swapped: bool = False) -> Callable[[Expression, Any], Expression]:
    """The method behind an operator; where it is swapped, the expression stands on the right."""
    return lambda expression, other: binary(op, other, expression) if swapped else binary(op, expression, other)


_ON_TRUTHS = {"&": "logical_and", "|": "logical_or", "^": "logical_xor"}


def _bits(symbol: str, swapped: bool = False) -> Callable[[Expression, Any], Expression]:
    """The method behind an operator on bits, which expressions have for truth values."""

    def combined(expression: Expression, other: Any) -> Expression:
        pair = (lift(other), expression) if swapped else (expression, lift(other))
        for part in pair:
            _check_truth(part, symbol)
        return binary(_ON_TRUTHS[symbol], *pair)

    return combined


def _check_truth(value: Expression, symbol: str) -> None:
    """Refuse bits of numbers: nothing computes them in a statement."""
    dtype = dtype_of(as_written(value.node))
    if dtype.kind != "b":
        help = f"compare first, as in (a != 0) {symbol} (b != 0)" if symbol != "~" else "compare first, as in ~(a != 0)"
        raise DTypeError(
            f"{symbol} of expressions is for truth values, and {show(value.node)} is {dtype}\n"
            f"  help: {help}; sl.bitwise_and, sl.invert and the like compute the bits of whole tensors"
        )


class Expression:
    """A value in index notation. Operators combine expressions; nothing is computed before it is assigned to a tensor.

    >>> i, j = sl.indices("i j")
    >>> A = sl.eye(2, format="csr")
    >>> isinstance(2 * A[i, j], sl.Expression)
    True
    """

    __slots__ = ("depth", "increment", "leaves", "node", "operands")
    __array_ufunc__ = None  # so that NumPy leaves ``array * expression`` to us, and we can refuse it with a reason
    __hash__ = None  # type: ignore[assignment]  # as in NumPy: == makes an expression

    def __array__(self, *_: Any, **__: Any) -> Any:
        """NumPy would make an array of one object."""
        raise DTypeError(f"{show(self.node)} is no array; assign it to a tensor, then read that with to_numpy()")

    def __init__(self, node: Expr, operands: Mapping[str, Operand], parts: Sequence[Expression] = ()) -> None:
        self.node = node
        self.operands = operands
        self.increment: tuple[Expression, Expression] | None = None
        # A sum that goes on with its first part is no deeper than that.
        goes_on = bool(parts) and isinstance(node, Apply) and len(node.args) > len(parts)
        self.depth: int = max((part.depth + (0 if goes_on and k == 0 else 1) for k, part in enumerate(parts)), default=0)
        self.leaves: int = sum(part.leaves for part in parts) or 1
        for is_beyond, (what, help) in ((self.depth > DEEPEST, TOO_DEEP), (self.leaves > LONGEST, TOO_LONG)):
            if is_beyond:
                raise NotationError(f"the expression cannot be computed: {what}\n  help: {help}")

    def __repr__(self) -> str:
        return printable(f"Expression({show(self.node)})")

    def __bool__(self) -> NoReturn:
        raise DTypeError(
            f"{show(self.node)} has no truth value before it is computed\n"
            "  help: choose with sl.where(condition, a, b), and write & | ~ instead of and, or, not, as in (0 < a) & (a < 1)"
        )

    def __iter__(self) -> NoReturn:
        raise DTypeError(f"{show(self.node)} cannot be iterated; assign it to a tensor, then read that with to_numpy()")

    __add__, __radd__ = _operator("add"), _operator("add", swapped=True)
    __sub__, __rsub__ = _operator("subtract"), _operator("subtract", swapped=True)
    __mul__, __rmul__ = _operator("multiply"), _operator("multiply", swapped=True)
    __truediv__, __rtruediv__ = _operator("divide"), _operator("divide", swapped=True)
    __floordiv__, __rfloordiv__ = _operator("floordiv"), _operator("floordiv", swapped=True)
    __mod__, __rmod__ = _operator("mod"), _operator("mod", swapped=True)
    __pow__, __rpow__ = _operator("power"), _operator("power", swapped=True)
    __lt__, __le__ = _operator("less"), _operator("less_equal")
    __gt__, __ge__ = _operator("greater"), _operator("greater_equal")
    __eq__, __ne__ = _operator("equal"), _operator("not_equal")  # type: ignore[assignment]
    __and__, __rand__ = _bits("&"), _bits("&", swapped=True)
    __or__, __ror__ = _bits("|"), _bits("|", swapped=True)
    __xor__, __rxor__ = _bits("^"), _bits("^", swapped=True)

    def __iadd__(self, other: Any) -> Expression:
        added = lift(other)
        total = binary("add", self, added)
        if isinstance(self.node, Access):
            total.increment = (self, added)
        return total

    def __invert__(self) -> Expression:
        _check_truth(self, "~")
        return apply("logical_not", self)

    def __neg__(self) -> Expression:
        return apply("negative", self)

    def __pos__(self) -> Expression:
        return self

    def __abs__(self) -> Expression:
        return apply("absolute", self)


def access(storage: Storage, name: str | None, variables: tuple[IndexVar, ...]) -> Expression:
    """``A[i, j]``: one variable per mode. A tensor without a name is T0 until it meets another."""
    known = name or "T0"
    if len(variables) != len(storage.shape):
        raise wrong_count(name, storage, variables)
    return Expression(Access(declared(known, storage), variables), {known: Operand(storage, name is not None)})


def wrong_count(name: str | None, storage: Storage, variables: tuple[IndexVar, ...]) -> NotationError:
    """The error for an access with too few or too many variables."""
    given = ", ".join(map(str, variables))
    wanted, what = len(storage.shape), name or f"a tensor of shape {storage.shape}"
    return NotationError(f"{what} has {wanted} modes, but {name or ''}[{given}] gives it {len(variables)}; name one variable per mode")


def lift(value: Any) -> Expression:
    """A number, a NumPy scalar or a tensor of order 0 as an expression.

    Python's numbers promote weakly, as in NumPy; NumPy's own scalars keep their dtype, so they become operands.
    """
    match value:
        case Expression():
            return value
        case IndexVar():
            raise NotationError(f"{value} is an index variable, not a value; pass its values as a tensor")
        case np.generic() | np.ndarray(ndim=0):
            return access(from_numpy(np.asarray(value)).storage, None, ())
        case int() if not -(2**63) <= value < 2**64:
            raise DTypeError("a number in index notation does not fit in 64 bits\n  help: write it as a float, as in 1e30")
        case bool() | int() | float() | complex():
            return Expression(Literal(value), {})
        case numbers.Number():
            raise DTypeError(f"{type(value).__name__} values are not supported; convert {value!r} to float or int")
        case object(storage=Storage() as storage, name=name):
            if storage.shape:
                example = ", ".join("ijklmn"[: len(storage.shape)])
                raise NotationError(f"a tensor with {len(storage.shape)} modes needs index variables here; write {name or 'A'}[{example}]")
            return access(storage, name, ())
    raise NotationError(
        f"a {type(value).__name__} cannot stand in index notation; make it a tensor with asarray and index it, as in asarray(x)[i]"
    )


def binary(op: str, left: Any, right: Any) -> Expression:
    """``left op right``."""
    first, second = lift(left), lift(right)
    renamed, operands = _beside(first.operands, second)
    return Expression(combine(op, first.node, renamed), operands, (first, second))


def apply(op: str, *values: Any) -> Expression:
    """A function on expressions."""
    nodes: list[Expr] = []
    operands: dict[str, Operand] = {}
    parts = [lift(value) for value in values]
    for part in parts:
        renamed, operands = _beside(operands, part)
        nodes.append(renamed)
    return Expression(Apply(op, tuple(nodes)), operands, parts)


def _beside(others: Mapping[str, Operand], right: Expression) -> tuple[Expr, dict[str, Operand]]:
    """The right node with its tensors renamed where they would clash with the others, and all operands.

    One tensor keeps one name; two tensors of the same name are told apart by a number behind it.
    """
    operands = dict(others)
    renamed: dict[str, str] = {}
    for name, operand in right.operands.items():
        new = _name_for(name, operand, operands, {*right.operands} - {name})
        operands[new] = operand
        if new != name:
            renamed[name] = new
    return rename(right.node, renamed), operands


def _name_for(name: str, operand: Operand, taken: Mapping[str, Operand], others: set[str]) -> str:
    known = taken.get(name)
    if known is not None and known.storage is operand.storage:
        return name
    if not operand.named:
        for other, there in taken.items():
            if there.storage is operand.storage:
                return other
    if known is None:
        return name
    return numbered(name, 1, {*taken, *others}) if operand.named else numbered("T", 0, {*taken, *others})


def numbered(stem: str, first: int, taken: Collection[str]) -> str:
    """The stem with the first number behind it that makes a name which is not taken."""
    return next(name for number in itertools.count(first) if (name := f"{stem}{number}") not in taken)


def rename(expr: Expr, names: Mapping[str, str]) -> Expr:
    """Give tensors other names."""
    if not names:
        return expr

    def rule(found: object) -> TensorVar | None:
        match found:
            case TensorVar(name, order, format, _, index_dtype, fill) if name in names:
                return TensorVar(names[name], order, format, found.stored_dtype, index_dtype, fill)
        return None

    return rewrite(expr, rule)
