"""A statement's text as tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sparseloom.core.algebra import Scalar
from sparseloom.notation.caret import refuse

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?j?)
      | (?P<name>[^\W\d]\w*)
      | (?P<symbol>\*\*|//|[-+*/<>=!]=|[-+*/%<>=()\[\]{},])""",
    re.VERBOSE,
)

LONGEST_NAME = 1000
MOST_TOKENS = 100_000
_STRANGERS = {
    "^": "a power is written with **",
    "@": "a product is written with its indices: A(i,j) * x(j)",
    ";": "give one statement at a time",
    "&": "write a and b",
    "|": "write a or b",
    "~": "write not a",
    "!": "write not a",
    ":": "take slices of a tensor before it enters the statement",
    ".": "a function is written without its module: exp(x)",
}


@dataclass(frozen=True, slots=True)
class Token:
    """A word of the statement. ``kind`` is name, number, symbol or end; ``at`` is where it starts."""

    kind: str
    text: str
    at: int

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else f"'{self.text}'"


def tokenize(text: str) -> list[Token]:
    """Split a statement into tokens, the last of which is the end."""
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise refuse(f"cannot read the statement: {text[at]!r} has no meaning here", text, at, _STRANGERS.get(text[at], ""))
        kind = str(found.lastgroup)
        if kind == "name" and tokens and tokens[-1].kind == "number" and tokens[-1].at + len(tokens[-1].text) == at:
            raise refuse(
                f"cannot read the statement: {found.group()!r} follows a number",
                text, at, f"a product is written with *: {tokens[-1].text} * {found.group()}",
            )  # fmt: skip
        if kind == "name" and len(found.group()) > LONGEST_NAME:
            help = f"names have at most {LONGEST_NAME} characters"
            raise refuse("cannot read the statement: the name is too long", text, at, help)
        if len(tokens) == MOST_TOKENS:
            raise refuse("cannot read the statement: it is too long", text, at, "compute it in several statements")
        if kind != "space":
            tokens.append(Token(kind, found.group(), at))
        at = found.end()
    tokens.append(Token("end", "", len(text)))
    return tokens


def number(text: str) -> Scalar:
    """The value of a number token: an int, a float or an imaginary number."""
    if text.endswith("j"):
        return complex(0.0, float(text[:-1]))
    return int(text) if text.isdigit() else float(text)
