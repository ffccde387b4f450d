"""An independent reading of absence: plain NumPy, with a mask of presence beside each value. It imports nothing of Sparseloom.

A random expression is drawn together with its text. Every variable has an axis; a term is a value, whether it is present, and whether it
is a constant. The rules are those of docs/semantics.md, read literally:

* an absent factor, an absent numerator, an absent false of ``and`` and an absent true of ``or`` decide, and the result is absent,
* anything else is absent where all arguments are absent or constant, and one is absent,
* a reduction is its operator on its terms, one after another; if two absent terms make something else than one, it is present,
* over nothing it is its identity, which is present unless it is what absent terms would make.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from random import Random
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
BINARY: dict[str, np.ufunc] = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "min": np.minimum, "max": np.maximum}
UNARY: dict[str, np.ufunc] = {"-": np.negative, "abs": np.absolute, "cos": np.cos, "exp": np.exp, "square": np.square}
REDUCTIONS: dict[str, tuple[np.ufunc, Any]] = {
    "sum": (np.add, 0.0), "prod": (np.multiply, 1.0), "min": (np.minimum, np.inf), "max": (np.maximum, -np.inf),
    "any": (np.logical_or, False), "all": (np.logical_and, True),
}  # fmt: skip
AXES = "ijmn"
SPECIALS = (np.nan, np.inf, -np.inf)


@dataclass(frozen=True)
class Masked:
    """The values of a term, where it is present, what it is worth if nothing is (None if that cannot be), and whether it is a constant."""

    values: Array
    present: Array
    fill: Any
    constant: bool = False


@dataclass(frozen=True)
class Term:
    """A term as text, as values, and the variables that are free in it."""

    text: str
    made: Masked
    free: frozenset[str]


def decides(function: np.ufunc, position: int, values: Array) -> Array:
    """Where an absent argument with these values decides alone."""
    if function is np.multiply or (function is np.divide and position == 0):
        return values == 0
    if function is np.logical_and:
        return ~values.astype(bool)
    return values.astype(bool) if function is np.logical_or else np.zeros(values.shape, bool)


def apply(function: np.ufunc, *args: Masked) -> Masked:
    """An operator on terms."""
    with np.errstate(all="ignore"):
        values = function(*(arg.values for arg in args))
    shape = values.shape
    if all(arg.constant for arg in args):
        return Masked(values, np.ones(shape, bool), values.ravel()[0], True)
    present = np.logical_or.reduce([np.broadcast_to(arg.present & (not arg.constant), shape) for arg in args])
    for position, arg in reversed(list(enumerate(args))):
        missing = np.broadcast_to(~arg.present & decides(function, position, arg.values), shape)
        values = np.where(missing, np.broadcast_to(arg.values, shape).astype(values.dtype), values)
        present = present & ~missing
    return Masked(values, present, _fill(function, args, values.dtype))


def _fill(function: np.ufunc, args: tuple[Masked, ...], dtype: np.dtype[Any]) -> Any:
    for position, arg in enumerate(args):
        if arg.fill is not None and not arg.constant and decides(function, position, np.asarray(arg.fill)):
            return dtype.type(arg.fill)
    if any(arg.fill is None for arg in args):
        return None
    with np.errstate(all="ignore"):
        return function(*(arg.fill for arg in args))


def same(left: Any, right: Any) -> Any:
    """Equality in which nan equals nan."""
    return (left == right) | ((left != left) & (right != right))


@dataclass
class Drawing:
    """Draws expressions, and the tensors they read: by name, the variables, what is stored where, and the fill."""

    random: Random
    sizes: dict[str, int]
    tensors: dict[str, tuple[str, Array, Array, float | None]] = field(default_factory=dict)
    bound: list[str] = field(default_factory=list)

    def term(self, depth: int) -> Term:
        """An expression at most so many operators deep."""
        draw = self.random.random()
        if depth == 0 or draw < 0.1:
            return self.literal() if self.random.random() < 0.1 else self.tensor()
        if draw < 0.45:
            return self.reduction(depth)
        if draw < 0.55:
            name = self.random.choice(list(UNARY))
            inner = _as_number(self.term(depth - 1))
            return Term(f"{name}({inner.text})", apply(UNARY[name], inner.made), inner.free)
        name = self.random.choice(("+", "-", "*", "*", "/", "/", "min", "max"))
        left = self.term(depth - 1) if name == "/" else _as_number(self.term(depth - 1))
        right = self.divisor() if name == "/" else _as_number(self.term(depth - 1))
        text = f"{name}({left.text}, {right.text})" if name in ("min", "max") else f"({left.text}) {name} ({right.text})"
        return Term(text, apply(BINARY[name], left.made, right.made), left.free | right.free)

    def divisor(self) -> Term:
        """Something whose zeros have a certain sign: an operand, or an extreme or sum of one."""
        draw = self.random.random()
        if draw < 0.5:
            return self.tensor(negative_zeros=True)
        if draw < 0.7:
            inner, name = self.tensor(), self.random.choice(("min", "max"))
            return Term(f"{name}({inner.text}, {inner.text})", apply(BINARY[name], inner.made, inner.made), inner.free)
        return self.reduction(1, ("sum", "min", "max"))

    def literal(self) -> Term:
        """A number."""
        value = self.random.choice((0.0, 1.0, 2.0, -3.0))
        return Term(repr(value), Masked(np.full((1,) * len(AXES), value), np.ones((1,) * len(AXES), bool), value, True), frozenset())

    def tensor(self, negative_zeros: bool = False) -> Term:
        """A new operand over some variables that are not bound."""
        usable = [name for name in AXES if name not in self.bound]
        indices = self.random.sample(usable, min(self.random.choice((0, 1, 1, 2, 2)), len(usable)))
        shape = tuple(self.sizes[name] for name in indices)
        rng = np.random.default_rng(self.random.getrandbits(32))
        values = rng.integers(-2, 3, shape).astype(float)
        if self.random.random() < 0.5:
            values = np.where(rng.random(shape) < 0.2, rng.choice(SPECIALS, shape), values)
        if negative_zeros:
            values = np.where(rng.random(shape) < 0.2, -0.0, values)
        stored = rng.random(shape) < self.random.choice((0.0, 0.4, 0.7, 1.0))
        fill = self.random.choice((1.0, np.inf, -1.0)) if self.random.random() < 0.12 else 0.0
        if not indices or self.random.random() < 0.25:
            stored, fill = np.ones(shape, bool), None
        name = f"T{len(self.tensors)}"
        self.tensors[name] = "".join(indices), values, stored, fill
        filled = values if fill is None else np.where(stored, values, fill)
        made = Masked(self._spread(indices, filled), self._spread(indices, stored), fill)
        return Term(f"{name}({','.join(indices)})" if indices else name, made, frozenset(indices))

    def _spread(self, indices: list[str], array: Array) -> Array:
        order = sorted(range(len(indices)), key=lambda k: AXES.index(indices[k]))
        return array.transpose(order).reshape([self.sizes[name] if name in indices else 1 for name in AXES])

    def reduction(self, depth: int, names: tuple[str, ...] = tuple(REDUCTIONS)) -> Term:
        """A reduction over one or two free variables, which no one else may use afterwards."""
        inner = _as_number(self.term(depth - 1))
        if not inner.free:
            return inner
        name = self.random.choice(names)
        function, identity = REDUCTIONS[name]
        chosen = self.random.sample(sorted(inner.free), min(len(inner.free), self.random.choice((1, 1, 2))))
        made = reduce(lambda sofar, axis: self._fold(function, identity, sofar, axis), chosen, inner.made)
        renamed = {axis: f"{axis}{len(self.bound) + k}" for k, axis in enumerate(chosen)}
        self.bound += renamed.values()
        text = _rename(inner.text, renamed)
        return Term(f"{name}({{{','.join(renamed.values())}}}, {text})", made, inner.free - {*chosen})

    def _fold(self, function: np.ufunc, identity: Any, terms: Masked, axis: str) -> Masked:
        where = AXES.index(axis)
        dtype = bool if isinstance(identity, bool) else float
        shape = [self.sizes[axis] if k == where else size for k, size in enumerate(terms.values.shape)]
        values, present = (np.broadcast_to(array, shape) for array in (terms.values.astype(dtype), terms.present))
        fill = None if terms.fill is None or terms.constant else dtype(terms.fill)
        with np.errstate(all="ignore"):
            keeps = fill is not None and bool(same(function(fill, fill), fill))
        if not self.sizes[axis]:
            shape[where] = 1
            absent = keeps and bool(same(identity, fill))
            return Masked(np.full(shape, identity, dtype), np.full(shape, not absent), fill if keeps else None)
        parts = [Masked(values.take([k], where), present.take([k], where), fill) for k in range(self.sizes[axis])]
        made = reduce(lambda left, right: apply(function, left, right), parts)
        return Masked(made.values, made.present if keeps else np.ones(made.present.shape, bool), fill if keeps else None)


def _as_number(term: Term) -> Term:
    """A truth value as a number, so that two of them add up as numbers do."""
    if term.made.values.dtype != bool:
        return term
    one = np.ones((1,) * len(AXES))
    made = apply(np.multiply, term.made, Masked(one, one.astype(bool), 1.0, True))
    return Term(f"({term.text}) * 1.0", made, term.free)


def _rename(text: str, names: dict[str, str]) -> str:
    """The text with other variables in its accesses and reductions; names of variables are single letters until they are bound."""
    out, word = "", ""
    for letter in f"{text} ":
        if letter.isalnum() or letter == "_":
            word += letter
            continue
        out += names.get(word, word) + letter
        word = ""
    return out[:-1]

