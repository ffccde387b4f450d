"""Expressions of the loop IR from their text: tokens, operators by how tightly they bind, and dtypes from the place of an expression."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TypeVar

from sparseloom.core.algebra import OPERATORS
from sparseloom.core.dtypes import BOOL, INT32, INT64, STORED_NAMES, DType, value_dtype
from sparseloom.core.errors import NotationError
from sparseloom.loops import nodes as ir
from sparseloom.loops.contexts import INDEX_OPERATORS, compared, literal_dtype, natural, operand_dtype, result_of
from sparseloom.loops.printer import JOINED, KEYWORDS, LEVELS, SYMBOLS

NAME = r"`\w+`|[^\W\d]\w*"
T = TypeVar("T")
_NUMBER = r"(?:\d+\.?\d*(?:e[+-]?\d+)?j?|nan\b|inf\b|nanj\b|infj\b|True\b|False\b)"
_COMPLEX = rf"\(-?{_NUMBER}[+-]{_NUMBER}\)"
_TOKEN = re.compile(rf"\s*(?:(?P<number>(?:{_COMPLEX}|{_NUMBER})(?::\w+)?)|(?P<name>{NAME})|(?P<sign>\*\*|//|[<>=!]=|[-+*/%<>()\[\],:=]))")
_OPERATORS = {symbol: name for name, symbol in SYMBOLS.items()}
_WORDS = {"True": True, "False": False, "nan": float("nan"), "inf": float("inf")}
_UNDECIDED: DType = None  # type: ignore[assignment]  # the dtype of a constant until its place is known


@dataclass(frozen=True)
class KnownNames:
    """The scalars and arrays that a text may use at one place."""

    scalars: dict[str, ir.Var] = field(default_factory=dict)
    arrays: dict[str, ir.Array] = field(default_factory=dict)

    def inner(self) -> KnownNames:
        """The names of a loop body or a branch, which may declare more."""
        return KnownNames(dict(self.scalars), dict(self.arrays))

    def declare(self, target: ir.Var | ir.Array) -> None:
        """Make a name known from here on."""
        known: dict[str, ir.Var] | dict[str, ir.Array] = self.scalars if isinstance(target, ir.Var) else self.arrays
        known[target.name] = target  # type: ignore[assignment]

    def scalar(self, written: str) -> ir.Var:
        """The scalar of this name."""
        return _known(self.scalars, written, "scalar")

    def array(self, written: str) -> ir.Array:
        """The array of this name."""
        return _known(self.arrays, written, "array")


def _known(known: dict[str, T], written: str, what: str) -> T:
    found = known.get(unquoted(written))
    if found is None:
        raise NotationError(f"there is no {what} {written!r} here; there are {', '.join(sorted(known)) or 'none'}")
    return found


def unquoted(name: str) -> str:
    """A name without the quotes of one that the text uses for something else."""
    return name.strip("`")


class Tokens:
    """What is left of one line."""

    def __init__(self, line: str, names: KnownNames) -> None:
        self.line, self.names = line, names
        self._tokens = list(self._cut(line))
        self._next = 0

    def _cut(self, line: str) -> list[re.Match[str]]:
        found, start = [], 0
        while line[start:].strip():
            match = _TOKEN.match(line, start)
            if match is None:
                raise NotationError(f"cannot read {line[start:].strip()!r} in the line {line.strip()!r}")
            found.append(match)
            start = match.end()
        return found

    @property
    def ahead(self) -> str:
        """The next token; nothing at the end."""
        return self._tokens[self._next][0].strip() if self._next < len(self._tokens) else ""

    @property
    def is_number(self) -> bool:
        """Whether the next token is a constant."""
        return self._next < len(self._tokens) and self._tokens[self._next]["number"] is not None

    def take(self, *expected: str) -> str:
        """The next token, which must be one of these if any are given."""
        found = self.ahead
        if not found or (expected and found not in expected):
            raise NotationError(f"expected {' or '.join(map(repr, expected)) or 'more'}, not {found!r}, in the line {self.line.strip()!r}")
        self._next += 1
        return found

    def takes(self, *wanted: str) -> bool:
        """Take some tokens if they come next."""
        end = self._next + len(wanted)
        if [token[0].strip() for token in self._tokens[self._next : end]] != list(wanted):
            return False
        self._next = end
        return True

    def name(self) -> str:
        """The next token, which must be a name."""
        if self._next < len(self._tokens) and self._tokens[self._next]["name"] is None:
            raise NotationError(f"expected a name, not {self.ahead!r}, in the line {self.line.strip()!r}")
        return unquoted(self.take())

    def expr(self, expected: DType | None) -> ir.Expr:
        """An expression of this dtype, or of its own if none is expected."""
        return _fitted(self._select(), expected)

    def index(self) -> ir.Expr:
        """An index, a bound or a size."""
        return self.expr(INT64)

    def arguments(self) -> list[ir.Expr]:
        """Expressions in parentheses, whose dtypes are not settled."""
        found = [self._select()]
        while self.takes(","):
            found.append(self._select())
        self.take(")")
        return found

    def _select(self) -> ir.Expr:
        then = self._binary(2)
        if not self.takes("if"):
            return then
        condition = _fitted(self._binary(2), BOOL)
        self.take("else")
        return ir.Select(condition, then, self._binary(2))

    def _binary(self, least: int) -> ir.Expr:
        """Operators that bind at least so tightly, from the left."""
        if least > max(LEVELS.values()):
            return self._atom()
        if least == LEVELS["negative"] and self.ahead == "-" and not self._is_negative_number():
            self.take("-")
            return _op("negative", [self._binary(least)])
        made = self._binary(least + 1)
        while LEVELS.get(self.ahead) == least and self.ahead not in ("if", "negative"):
            symbol = self.take()
            args = [made, self._binary(least + 1)]
            while _OPERATORS[symbol] in JOINED and self.takes(symbol):
                args.append(self._binary(least + 1))
            made = _op(_OPERATORS[symbol], args)
        return made

    def _is_negative_number(self) -> bool:
        after = self._next + 1
        return after < len(self._tokens) and self._tokens[after]["number"] is not None

    def _atom(self) -> ir.Expr:
        if self.ahead == "-":
            self.take("-")
            return self._number("-")
        if self.is_number:
            return self._number("")
        if self.takes("("):
            inside = self._select()
            self.take(")")
            return inside
        if self.takes("thread", "(", ")"):
            return ir.Thread()
        quoted = self.ahead.startswith("`")
        name = self.name()
        if self.takes("["):
            place = self.index()
            self.take("]")
            return ir.Load(self.names.array(name), place)
        if self.takes("("):
            return self._applied(name)
        if name in KEYWORDS and not quoted:
            raise NotationError(f"expected a value, not {name!r}, in the line {self.line.strip()!r}")
        return self.names.scalar(name)

    def _number(self, sign: str) -> ir.Expr:
        text, _, dtype = self.take().partition(":")
        value = _value(sign + text)
        return ir.Literal(value, value_dtype(dtype) if dtype else _UNDECIDED)

    def _applied(self, name: str) -> ir.Expr:
        """A conversion, a search or an operator that is written as a function."""
        if name == "search":
            array = self.names.array(self.name())
            self.take(",")
            begin, end, key, *lanes = (_fitted(arg, INT64) for arg in self.arguments())
            return ir.Search(array, begin, end, key, lanes=int(one.value.real) if lanes and isinstance(one := lanes[0], ir.Literal) else 1)
        if name in STORED_NAMES:
            (operand,) = self.arguments()
            return ir.Cast(_fitted(operand, None), value_dtype(name))
        found = _OPERATORS.get(name, name)
        if found not in OPERATORS and found not in INDEX_OPERATORS:
            raise NotationError(f"there is no function {name!r}, in the line {self.line.strip()!r}")
        return _op(found, self.arguments())


def _value(text: str) -> bool | int | float | complex:
    """The number that Python writes so."""
    sign, word = (-1.0, text[1:]) if text.startswith("-") else (1.0, text)
    if word in _WORDS:
        return _WORDS[word] if isinstance(_WORDS[word], bool) else sign * _WORDS[word]
    for kind in (int, float, complex):
        try:
            return kind(text)
        except ValueError:
            continue
    raise NotationError(f"{text!r} is not a number")


def _op(name: str, args: list[ir.Expr]) -> ir.Op:
    """An operator whose operands are not settled yet, nor therefore its dtype."""
    return ir.Op(name, tuple(args), _UNDECIDED)


def _fitted(expr: ir.Expr, expected: DType | None) -> ir.Expr:
    """An expression with the dtypes and conversions that its text leaves to its place."""
    match expr:
        case ir.Literal(value, dtype) if dtype is _UNDECIDED:
            return ir.Literal(value, literal_dtype(value, expected))
        case ir.Var() | ir.Load() if expected == INT64 and expr.dtype == INT32:
            return ir.Cast(expr, INT64)
        case ir.Select(condition, then, other):
            inside = operand_dtype("where", [natural(one, written=True) for one in (then, other)], expected)
            return ir.Select(condition, _fitted(then, inside), _fitted(other, inside))
        case ir.Op(name, args) if expr.dtype is _UNDECIDED:
            operands = compared(name, args)
            inside = operand_dtype(name, [natural(one, written=True) for one in operands], expected)
            conditions = [_fitted(one, BOOL) for one in args[: len(args) - len(operands)]]
            fitted = [_fitted(one, inside) for one in operands]
            return replace(expr, args=(*conditions, *fitted), dtype=result_of(name, fitted[0].dtype))
    return expr
