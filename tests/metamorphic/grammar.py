"""Programs of sums and products of tensors: their nodes, their text, and how they are rebuilt.

Nothing here is shared with the compiler's own notation: a program is text when it reaches the compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Index = str | int


@dataclass(frozen=True)
class Access:
    """``A(i,j,2)``: variables and whole numbers as indices."""

    name: str
    indices: tuple[Index, ...]

    def __str__(self) -> str:
        return f"{self.name}({','.join(map(str, self.indices))})" if self.indices else self.name


@dataclass(frozen=True)
class Total:
    """``(A(i) + B(i))``: a sum as a factor."""

    terms: tuple[Term, ...]

    def __str__(self) -> str:
        return f"({spelled(self.terms)})"


Factor = Access | int | Total


@dataclass(frozen=True)
class Term:
    """A product with its sign."""

    factors: tuple[Factor, ...]
    negative: bool = False

    def __str__(self) -> str:
        return " * ".join(map(str, self.factors))


@dataclass(frozen=True)
class Statement:
    """``R(i,k) = A(i,j) * B(j,k) - C(i,k)``, or the same with ``+=``."""

    result: Access
    terms: tuple[Term, ...]
    adds: bool = False

    def __str__(self) -> str:
        return f"{self.result} {'+=' if self.adds else '='} {spelled(self.terms)}"


@dataclass(frozen=True, eq=False)
class Operand:
    """A tensor as its entries, which may repeat and may be zero, and how it is stored."""

    shape: tuple[int, ...]
    coordinates: NDArray[np.int64]
    values: NDArray[np.generic]
    format: str
    fill: int = 0

    @property
    def dense(self) -> NDArray[np.generic]:
        """Every coordinate's value, in a dtype in which nothing is rounded."""
        wide = np.complex128 if self.values.dtype.kind == "c" else np.int64
        array = np.full(self.shape, self.fill, wide)
        stored = np.zeros(self.shape, bool)
        for place, value in zip(map(tuple, self.coordinates.T.tolist()), self.values, strict=True):
            array[place] = (array[place] if stored[place] else 0) + wide(value)
            stored[place] = True
        return array


@dataclass(frozen=True, eq=False)
class Program:
    """Statements, the last of which makes the result; operands by name, formats of results, and how far variables run."""

    statements: tuple[Statement, ...]
    operands: dict[str, Operand]
    formats: dict[str, str]
    extents: dict[str, int]

    @property
    def text(self) -> str:
        """One statement a line."""
        return "\n".join(map(str, self.statements))

    @property
    def result(self) -> Access:
        """What the last statement makes."""
        return self.statements[-1].result

    @property
    def unknown(self) -> dict[str, int]:
        """The extents of variables that no operand has."""
        known = {i for one in self.statements for access in accesses(one.terms) for i in access.indices}
        return {i: self.extents[i] for i in map(str, self.result.indices) if i not in known}

    def __str__(self) -> str:
        lines = [f"  {line}" for line in self.text.splitlines()]
        for name, operand in self.operands.items():
            fill = f" fill {operand.fill}" if operand.fill else ""
            lines.append(f"  {name}: {operand.format or 'scalar'} {operand.values.dtype} {operand.shape}{fill}")
        lines += [f"  {name}: {form} (result)" for name, form in self.formats.items()]
        return "\n".join(lines)


def spelled(terms: tuple[Term, ...]) -> str:
    """A sum as text."""
    first, *rest = terms
    return f"{'-' if first.negative else ''}{first}" + "".join(f" {'-' if term.negative else '+'} {term}" for term in rest)


def accesses(terms: tuple[Term, ...]) -> Iterator[Access]:
    """Every access, in order of appearance."""
    for factor in (factor for term in terms for factor in term.factors):
        match factor:
            case Access():
                yield factor
            case Total(inner):
                yield from accesses(inner)


def variables(term: Term) -> tuple[str, ...]:
    """The variables of a product, in order of appearance."""
    return tuple(dict.fromkeys(i for access in accesses((term,)) for i in access.indices if isinstance(i, str)))


def rebuilt(terms: tuple[Term, ...], change: Callable[[Access], Factor]) -> tuple[Term, ...]:
    """The same sum in which accesses are replaced."""

    def factor(one: Factor) -> Factor:
        match one:
            case Access():
                return change(one)
            case Total(inner):
                return Total(rebuilt(inner, change))
        return one

    return tuple(replace(term, factors=tuple(map(factor, term.factors))) for term in terms)


def with_accesses(program: Program, change: Callable[[Access], Factor]) -> tuple[Statement, ...]:
    """The statements in which accesses of operands are replaced; results are not."""
    return tuple(replace(one, terms=rebuilt(one.terms, change)) for one in program.statements)
