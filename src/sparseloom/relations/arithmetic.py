"""Arithmetic on whatever a relation is asked about: integers, numbers that may be unknown, arrays, text.

Relations are written once, over any of these; lowering adds one that makes loop IR.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

V = TypeVar("V")
Step = Callable[[Any, Any], Any]


class Arithmetic(ABC, Generic[V]):
    """What relations compute with. Divisors are positive."""

    @abstractmethod
    def number(self, value: int) -> V:
        """A constant."""

    @abstractmethod
    def do(self, what: str, left: V, right: V) -> V:
        """Combine two values; ``what`` is the name of one of the methods below."""

    def constant(self, value: V) -> int | None:
        """The number that a value is, if that is certain."""
        return None

    def add(self, left: V, right: V) -> V:
        """``left + right``."""
        return self.do("add", left, right)

    def subtract(self, left: V, right: V) -> V:
        """``left - right``."""
        return self.do("subtract", left, right)

    def multiply(self, left: V, right: V) -> V:
        """``left * right``."""
        return self.do("multiply", left, right)

    def quotient(self, left: V, right: V) -> V:
        """``left / right``, rounded down."""
        return self.do("quotient", left, right)

    def remainder(self, left: V, right: V) -> V:
        """What that leaves."""
        return self.do("remainder", left, right)

    def blocks(self, extent: V, size: V) -> V:
        """How many blocks of one size cover an extent: their quotient, rounded up."""
        return self.do("blocks", extent, size)

    def share(self, extent: V, count: V) -> V:
        """How large each of ``count`` blocks is that together cover an extent: at least 1."""
        return self.do("share", extent, count)

    def least(self, left: V, right: V) -> V:
        """The smaller of two."""
        return self.do("least", left, right)

    def most(self, left: V, right: V) -> V:
        """The larger of two."""
        return self.do("most", left, right)


def _blocks(extent: Any, size: Any) -> Any:
    return -(-extent // size)


_NUMBERS: Mapping[str, Step] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "quotient": operator.floordiv,
    "remainder": operator.mod,
    "blocks": _blocks,
    "share": lambda extent, count: max(1, _blocks(extent, count)),
    "least": min,
    "most": max,
}

_ARRAYS: Mapping[str, Step] = {
    **_NUMBERS,
    "share": lambda extent, count: np.maximum(1, _blocks(extent, count)),
    "least": np.minimum,
    "most": np.maximum,
}


class Integers(Arithmetic[int]):
    """Python's integers, however large."""

    def number(self, value: int) -> int:
        return value

    def do(self, what: str, left: int, right: int) -> int:
        return int(_NUMBERS[what](left, right))


class Unknowns(Arithmetic[int | None]):
    """Integers of which some are not known, and then nothing is that is computed from them."""

    def number(self, value: int) -> int | None:
        return value

    def do(self, what: str, left: int | None, right: int | None) -> int | None:
        return None if left is None or right is None else int(_NUMBERS[what](left, right))


class Arrays(Arithmetic[NDArray[np.int64]]):
    """Arrays of integers, element by element."""

    def number(self, value: int) -> NDArray[np.int64]:
        return np.array(value)

    def do(self, what: str, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.asarray(_ARRAYS[what](left, right))


@dataclass(frozen=True)
class Text:
    """An expression as people write it. ``weight`` says how tightly its last operation binds."""

    words: str
    weight: int = 3

    def inside(self, weight: int) -> str:
        """As a part of something: in parentheses if that binds more tightly."""
        return self.words if self.weight >= weight else f"({self.words})"


_ZERO = Text("0")
_SIGNS = {"add": ("+", 1), "subtract": ("-", 1), "multiply": ("*", 2), "quotient": ("/", 2), "remainder": ("%", 2)}


class Words(Arithmetic[Text]):
    """Expressions in words, for people."""

    def number(self, value: int) -> Text:
        return Text(str(value))

    def do(self, what: str, left: Text, right: Text) -> Text:
        match what, left, right:
            case ("add" | "subtract", _, Text("0")) | ("add", Text("0"), _):
                return left if right == _ZERO else right
            case (("blocks" | "share"), _, _):
                return left if right.words == "1" else Text(f"ceil({left.words} / {right.inside(3)})")
            case ("least" | "most"), _, _:
                return Text(f"{'min' if what == 'least' else 'max'}({left.words}, {right.words})")
        sign, weight = _SIGNS[what]
        behind = weight + 1 if what in ("subtract", "quotient", "remainder") else weight
        return Text(f"{left.inside(weight)} {sign} {right.inside(behind)}", weight)


INTEGERS, UNKNOWNS, ARRAYS, WORDS = Integers(), Unknowns(), Arrays(), Words()
