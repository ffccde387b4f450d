"""The grammar of statements: text to a syntax tree in which names have no meaning yet.

    statement  := tensor ("=" | "+=") expression
    expression := operand {infix operand}           infix, loosest first: or, then and, then < <= > >= == !=, then + -, then * / // %
    operand    := "not" operand | signed            "not" binds as in Python: tighter than and, looser than a comparison
    signed     := ("-" | "+") signed | power
    power      := atom ["**" signed]
    atom       := number | name | tensor | function | "(" expression ")"
    tensor     := name "(" [places] ")" | name "[" [places] "]"
    function   := name "(" argument {"," argument} ")"
    argument   := expression | "{" names "}"
    places     := (name | whole number) {"," (name | whole number)}
    names      := name {"," name}

A name before ``(`` is a function if it is one of ``core.algebra`` and the caller has no tensor of that name; before ``[`` it
is always a tensor.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches

from sparseloom.core.algebra import ALIASES, OPERATORS, Scalar
from sparseloom.core.errors import NotationError
from sparseloom.notation.caret import refuse
from sparseloom.notation.tokens import Token, number, tokenize

# Deeper trees would meet the recursion limit of the passes that follow, and longer ones take minutes to compile.
DEEPEST = 80
LONGEST = 4000
TOO_DEEP = (f"it is nested more than {DEEPEST} deep", "compute a part of it in a statement of its own")
TOO_LONG = (f"it has more than {LONGEST} numbers and accesses", "compute it in several statements, and add to the result with +=")

# ``complex(1, 2)`` is how the number 1+2j is written.
FUNCTIONS: frozenset[str] = frozenset(OPERATORS) | {name for name in ALIASES if name.isidentifier()} | {"complex"}
# What people look for under names that statements do not have.
_ROUNDED = "statements have floor, ceil and trunc; sl.round and sl.rint take whole tensors"
_INSTEAD = {
    "round": _ROUNDED, "rint": _ROUNDED, "around": _ROUNDED, "relu": "write max(x, 0)", "sigmoid": "write 1 / (1 + exp(-x))",
    "clip": "write min(max(x, low), high)", "heaviside": "write where(x > 0, 1, 0)",
}  # fmt: skip
CONSTANTS: dict[str, Scalar] = {"inf": math.inf, "nan": math.nan, "True": True, "False": False}


@dataclass(frozen=True, slots=True)
class WrittenNumber:
    """A number, with its sign if it has one."""

    value: Scalar
    at: int


@dataclass(frozen=True, slots=True)
class Name:
    """A name alone: a scalar, a constant or an index variable."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Element:
    """``A(i,3)``: a tensor at index variables and whole numbers. On the left side also a scalar, at none."""

    name: str
    indices: tuple[Name | WrittenNumber, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Braces:
    """``{i,j}``: the variables of a reduction."""

    names: tuple[Name, ...]
    at: int


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """``f(a, b)``."""

    function: str
    args: tuple[Syntax, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Operation:
    """A prefix or infix operator, by its name in ``core.algebra``."""

    op: str
    args: tuple[Syntax, ...]
    at: int


Syntax = WrittenNumber | Name | Element | Braces | WrittenCall | Operation


@dataclass(frozen=True, slots=True)
class WrittenStatement:
    """``left = right`` or, if it ``accumulates``, ``left += right``."""

    left: Element
    right: Syntax
    accumulates: bool


_COMPARISONS = {op.symbol: op.name for op in OPERATORS.values() if op.symbol[:1] in tuple("<>=!")}
# How tightly operators bind.
OR, AND, NOT, COMPARISON, SUM, PRODUCT, SIGN, POWER, ATOM = range(1, 10)
# The level of each infix operator, and its name; ** is read apart, since it binds from right to left.
_INFIX = {symbol: (COMPARISON, op) for symbol, op in _COMPARISONS.items()} | {
    "or": (OR, "logical_or"), "and": (AND, "logical_and"),
    "+": (SUM, "add"), "-": (SUM, "subtract"), "*": (PRODUCT, "multiply"), "/": (PRODUCT, "divide"),
    "//": (PRODUCT, "floordiv"), "%": (PRODUCT, "mod"),
}  # fmt: skip
# What other languages write between two values.
_FOREIGN = {
    "is": "compare with ==", "xor": "write xor(a, b)", "AND": "write and", "OR": "write or", "NOT": "write not",
    "mod": "the remainder is a % b", "div": "the quotient rounded down is a // b",
}  # fmt: skip


def read_statement(text: str, tensors: Collection[str]) -> WrittenStatement:
    """Read a statement; ``tensors`` are names that are tensors although they are also functions."""
    return _Reader(text, tensors).statement()


def _joined(op: str, left: Syntax, right: Syntax, at: int) -> Operation:
    """``left op right``; a long sum or product becomes one wide node rather than a deep tree."""
    match left:
        case Operation(name, args) if name == op in ("add", "multiply", "logical_and", "logical_or"):
            return Operation(op, (*args, right), left.at)
    return Operation(op, (left, right), at)


def depth(root: Syntax) -> int:
    """How many nodes stand above the deepest leaf. A loop, since the tree may be too deep for recursion."""
    deepest, stack = 0, [(root, 0)]
    while stack:
        current, level = stack.pop()
        deepest = max(deepest, level)
        if isinstance(current, WrittenCall | Operation):
            stack.extend((arg, level + 1) for arg in current.args)
    return deepest


def _instead_of(name: str) -> str:
    """What to write instead of a function that there is not."""
    if name in _INSTEAD:
        return _INSTEAD[name]
    near = get_close_matches(name, sorted({*FUNCTIONS, *_INSTEAD}), 1)
    if near and near[0] in _INSTEAD:
        return f"there is no {near[0]} either; {_INSTEAD[near[0]]}"
    return f"did you mean {near[0]}?" if near else "a tensor is followed by index variables, with commas between them"


class _Reader:
    """Reads tokens from left to right; one method per phrase of the grammar."""

    def __init__(self, text: str, tensors: Collection[str]) -> None:
        self.text = text
        self.tensors = tensors
        self.tokens = tokenize(text)
        self.place = 0
        self.nested = 0
        self.leaves = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.place]

    @property
    def last(self) -> Token:
        return self.tokens[self.place - 1]

    def advance(self) -> Token:
        self.place += 1
        return self.last

    def follows(self, *symbols: str) -> bool:
        return self.token.kind == "symbol" and self.token.text in symbols

    def refuse(self, what: str, help: str = "", at: int | None = None) -> NotationError:
        where = self.token.at if at is None else at
        return refuse(f"cannot read the statement: {what}", self.text, where, help)

    def expect(self, symbol: str, help: str = "") -> None:
        if not self.follows(symbol):
            raise self.refuse(f"expected '{symbol}' after {self.last}", help)
        self.advance()

    def statement(self) -> WrittenStatement:
        if self.token.kind == "end":
            raise self.refuse("it is empty", "write one such as y(i) = A(i,j) * x(j)")
        left = self.left_side()
        if self.follows("-=", "*=", "/="):
            raise self.refuse(f"there is no '{self.token.text}'", "a statement is written with = or +=")
        if not self.follows("=", "+="):
            raise self.refuse(f"expected '=' or '+=' after {self.last}")
        accumulates = self.advance().text == "+="
        right = self.expression()
        self.expect_end()
        if depth(right) > DEEPEST:
            raise self.refuse(*TOO_DEEP, 0)
        return WrittenStatement(left, right, accumulates)

    def left_side(self) -> Element:
        if self.token.kind != "name":
            raise self.refuse("the left side must be a tensor", "write one such as y(i) or, for a scalar, y")
        name = self.advance()
        left = self.element(name) if self.follows("(", "[") else Element(name.text, (), name.at)
        for index in left.indices:
            if isinstance(index, WrittenNumber):
                help = "leave that mode out, and put what was computed in its place afterwards; operands may stand at numbers"
                raise self.refuse(f"a result is made as a whole, so it cannot stand at {index.value}", help, index.at)
        return left

    def expect_end(self) -> None:
        if self.token.kind == "end":
            return
        if self.follows(")", "]", "}"):
            raise self.refuse(f"{self.token} closes nothing")
        if self.follows("=", "+="):
            raise self.refuse(f"a second {self.token}", "compare with ==" if self.token.text == "=" else "")
        raise self.refuse(f"expected an operator after {self.last}", _FOREIGN.get(self.token.text, ""))

    def expression(self, floor: int = OR) -> Syntax:
        """Precedence climbing: operators that bind at least as tightly as ``floor``, from left to right."""
        left = self.operand(floor)
        while self.token.kind in ("symbol", "name") and _INFIX.get(self.token.text, (0, ""))[0] >= floor:
            symbol = self.advance()
            level, op = _INFIX[symbol.text]
            left = _joined(op, left, self.expression(level + 1), symbol.at)
            if level == COMPARISON and self.follows(*_COMPARISONS):
                raise self.refuse("comparisons cannot be chained", "write a < b and b < c")
        return left

    def operand(self, floor: int) -> Syntax:
        """A value with its sign, or what ``not`` negates."""
        if not self.at_not():
            return self.signed()
        if floor > NOT:
            if self.tokens[self.place + 1].text == "(":
                return self.signed()  # nothing but the function can be meant
            raise self.refuse(f"'not' binds looser than {self.last}", "put it into parentheses: (not a)")
        self.nested += 1
        if self.nested > DEEPEST:
            raise self.refuse(*TOO_DEEP)
        word = self.advance()
        negated = self.expression(NOT)
        self.nested -= 1
        return Operation("logical_not", (negated,), word.at)

    def at_not(self) -> bool:
        """Whether the word ``not`` comes, before a value, and is not a tensor here."""
        if self.token.kind != "name" or self.token.text != "not" or "not" in self.tensors:
            return False
        following = self.tokens[self.place + 1]
        is_infix = following.kind == "name" and following.text in _INFIX
        return (following.kind in ("name", "number") and not is_infix) or following.text in ("(", "{", "-", "+")

    def signed(self) -> Syntax:
        self.nested += 1
        if self.nested > DEEPEST:
            raise self.refuse(*TOO_DEEP)
        try:
            if not self.follows("-", "+"):
                return self.power()
            sign = self.advance()
            stands_alone = self.at_number() and self.tokens[self.place + 1].text != "**"
            operand = self.signed()
        finally:
            self.nested -= 1
        match operand:
            case _ if sign.text == "+":
                return operand
            case WrittenNumber(value) if stands_alone:
                return WrittenNumber(-value if value == value else value, sign.at)  # one nan, so that equal trees compare equal
        return Operation("negative", (operand,), sign.at)

    def power(self) -> Syntax:
        base = self.atom()
        if not self.follows("**"):
            return base
        symbol = self.advance()
        return Operation("power", (base, self.signed()), symbol.at)

    def atom(self) -> Syntax:
        self.leaves += 1
        if self.leaves > LONGEST:
            raise self.refuse(*TOO_LONG)
        if self.at_number():
            return self.number()
        if self.token.kind == "name":
            return self.named()
        if self.follows("("):
            self.advance()
            self.leaves -= 1  # it is counted inside
            inside = self.expression()
            self.expect(")")
            return inside
        if self.follows("{"):
            raise self.refuse("variables in braces stand only at the start of a reduction", "write sum({i,j}, A(i,j))")
        raise self.refuse(f"expected a value after {self.last}")

    def at_number(self) -> bool:
        """Whether a number comes: digits, or the name of a constant that is not a tensor here."""
        if self.token.kind == "number":
            return True
        is_constant = self.token.text in CONSTANTS and self.token.text not in self.tensors
        return is_constant and self.tokens[self.place + 1].text not in ("(", "[")

    def number(self) -> WrittenNumber:
        token = self.advance()
        if token.text in CONSTANTS:
            return WrittenNumber(CONSTANTS[token.text], token.at)
        if token.text.isdigit() and (len(token.text) > 20 or int(token.text) >= 2**64):
            raise self.refuse("the number does not fit in 64 bits", "write it as a float: 1e30", token.at)
        return WrittenNumber(number(token.text), token.at)

    def named(self) -> Syntax:
        name = self.advance()
        if self.follows("[") or (self.follows("(") and (name.text in self.tensors or name.text not in FUNCTIONS)):
            return self.element(name)
        if self.follows("("):
            return self.call(name)
        return Name(name.text, name.at)

    def element(self, name: Token) -> Element:
        closing = ")" if self.advance().text == "(" else "]"
        indices = () if self.follows(closing) else self.places(name)
        self.expect(closing, "a tensor is followed by index variables, with commas between them")
        return Element(name.text, indices, name.at)

    def places(self, owner: Token) -> tuple[Name | WrittenNumber, ...]:
        """Names and whole numbers with commas between them, up to but without the closing bracket."""
        found: list[Name | WrittenNumber] = []
        while True:
            found.append(self.place_number() if self.token.kind == "number" or self.follows("-") else self.index_name(owner))
            if not self.follows(","):
                return tuple(found)
            self.advance()

    def names(self, owner: Token) -> tuple[Name, ...]:
        """Names with commas between them, up to but without the closing bracket."""
        found = [self.index_name(owner)]
        while self.follows(","):
            self.advance()
            found.append(self.index_name(owner))
        return tuple(found)

    def place_number(self) -> WrittenNumber:
        """A number in the place of an index variable: it counts from the first coordinate, 0."""
        if self.follows("-"):
            raise self.refuse("an index counts from 0", "sizes are not known here, so that nothing can be counted from the end")
        token = self.token
        if not token.text.isdigit():
            raise self.refuse(f"an index must be a variable or a whole number, not {token.text}")
        if len(token.text) > 19 or int(token.text) >= 2**63:
            raise self.refuse("no tensor reaches that far: coordinates have 64 bits")
        return self.number()

    def index_name(self, owner: Token) -> Name:
        """The name of an index variable."""
        if self.token.kind == "number":
            raise self.refuse(f"a variable was expected, not {self.token.text}")
        if self.token.kind != "name":
            raise self.refuse(f"expected an index variable after {self.last}")
        name = self.advance()
        if self.follows("(", "["):
            raise self.refuse(f"{owner} is not a function, so it cannot be applied to {name}", _instead_of(owner.text), owner.at)
        return Name(name.text, name.at)

    def call(self, name: Token) -> WrittenCall:
        self.advance()
        args = [self.argument()]
        while self.follows(","):
            self.advance()
            args.append(self.argument())
        self.expect(")")
        return WrittenCall(name.text, tuple(args), name.at)

    def argument(self) -> Syntax:
        if not self.follows("{"):
            return self.expression()
        opening = self.advance()
        names = self.names(opening)
        self.expect("}")
        return Braces(names, opening.at)
