"""Two more relations of one parent, which say no interval themselves: a loop that begins at ``by``, and three digits at once.

    forall i                forall s                      forall i                forall a
      y(i) = b(i)    ==>      y(i) = b(i)   i = s - 3       y(i) = b(i)    ==>      forall b
                                                                                      forall c      i = (a * 2 + b) * 3 + c
                                                                                        y(i) = b(i)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import ClassVar

import pytest
from primitives.entry_points import STATEMENTS, agree, fuzzed, replace_nest, scheduled

import sparseloom as sl
from sparseloom.core.trees import node
from sparseloom.iteration.foralls import fresh_variables, loops
from sparseloom.notation.nodes import IndexVar, Stmt
from sparseloom.relations.relation import Line, Ranges, V
from sparseloom.schedule.primitive import PRIMITIVES, Primitive, is_tagged, no_loop, not_fresh
from sparseloom.schedule.refusal import Refusal


@node
class ShiftRelation(Line):
    """``child = parent + by``."""

    parent: IndexVar
    child: IndexVar
    by: int

    word: ClassVar[str] = "shift"

    @property
    def children(self) -> tuple[IndexVar, ...]:
        return (self.child,)

    @property
    def significant(self) -> tuple[IndexVar, ...]:
        return self.children

    def range_of(self, var: IndexVar, ranges: Ranges[V]) -> tuple[V, V]:
        do, (low, high) = ranges.arithmetic, ranges.range_of(self.parent)
        return do.add(low, do.number(self.by)), do.add(high, do.number(self.by))

    def recover(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        return (ranges.arithmetic.subtract(values[self.child], ranges.arithmetic.number(self.by)),)

    def derive(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        return (ranges.arithmetic.add(values[self.parent], ranges.arithmetic.number(self.by)),)


class Shift(Primitive):
    """Begin at ``by``."""

    i: IndexVar
    shifted: IndexVar
    by: int

    def check(self, stmt: Stmt) -> Refusal | None:
        return no_loop("S9961", stmt, self.i) or not_fresh("S9962", stmt, self.shifted.name) or is_tagged("S9963", stmt, self.i, "shift")

    def apply(self, stmt: Stmt) -> Stmt:
        return replace_nest(stmt, (self.i,), (self.shifted,), self.relation)

    @property
    def relation(self) -> ShiftRelation:
        return ShiftRelation(self.i, self.shifted, self.by)

    @classmethod
    def candidates(cls, stmt: Stmt, rng: Random) -> Iterator[Shift]:
        for var in rng.sample(loops(stmt), len(loops(stmt))):
            yield cls(var, *fresh_variables(stmt, f"{var}s"), rng.choice((0, 1, 3, 10)))


@node
class DigitsRelation(Line):
    """``parent = (a * 2 + b) * 3 + c``."""

    parent: IndexVar
    a: IndexVar
    b: IndexVar
    c: IndexVar

    word: ClassVar[str] = "digits"

    @property
    def children(self) -> tuple[IndexVar, ...]:
        return (self.a, self.b, self.c)

    @property
    def significant(self) -> tuple[IndexVar, ...]:
        return self.children

    @property
    def constants(self) -> tuple[int, ...]:
        return (6, 3)

    def range_of(self, var: IndexVar, ranges: Ranges[V]) -> tuple[V, V]:
        do = ranges.arithmetic
        if var == self.a:
            return do.number(0), do.blocks(ranges.extent(self.parent), do.number(6))
        return do.number(0), do.number(2 if var == self.b else 3)

    def recover(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        do = ranges.arithmetic
        block = do.add(do.multiply(values[self.a], do.number(2)), values[self.b])
        return (do.add(ranges.range_of(self.parent)[0], do.add(do.multiply(block, do.number(3)), values[self.c])),)

    def derive(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        do = ranges.arithmetic
        value = do.subtract(values[self.parent], ranges.range_of(self.parent)[0])
        block = do.quotient(value, do.number(3))
        return do.quotient(block, do.number(2)), do.remainder(block, do.number(2)), do.remainder(value, do.number(3))


class Digits(Primitive):
    """Cut a loop into three."""

    i: IndexVar
    a: IndexVar
    b: IndexVar
    c: IndexVar

    def check(self, stmt: Stmt) -> Refusal | None:
        names = [var.name for var in self.relation.children]
        return no_loop("S9966", stmt, self.i) or not_fresh("S9967", stmt, *names) or is_tagged("S9968", stmt, self.i, "digits")

    def apply(self, stmt: Stmt) -> Stmt:
        return replace_nest(stmt, (self.i,), self.relation.children, self.relation)

    @property
    def relation(self) -> DigitsRelation:
        return DigitsRelation(self.i, self.a, self.b, self.c)

    @classmethod
    def candidates(cls, stmt: Stmt, rng: Random) -> Iterator[Digits]:
        for var in rng.sample(loops(stmt), len(loops(stmt))):
            yield cls(var, *fresh_variables(stmt, f"{var}a", f"{var}b", f"{var}c"))


SHIFT, DIGITS = node(Shift), node(Digits)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PRIMITIVES, "shift", SHIFT)
    monkeypatch.setitem(PRIMITIVES, "digits", DIGITS)


SCHEDULES = [
    "shift(i, s, 3)",
    "shift(j, s, 3)",
    "shift(j, s, 3) split(s, s0, s1, 2)",
    "shift(i, s, 3) fuse(s, j, f) split(f, f0, f1, 5)",
    "shift(j, s, 3) fuse(i, s, f) split(f, f0, f1, 5)",
    "shift(j, s, 3) fuse(i, s, f) pos(f, p, A(i,j)) split(p, p0, p1, 4)",
    "shift(j, s, 3) pos(s, p, A(i,j)) shift(p, q, 2)",
    "split(j, j0, j1, 3) shift(j1, s, 3)",
    "split(i, i0, i1, 3) shift(i0, s, 3) parallelize(s, CPUThread, NoRaces)",
    "digits(i, a, b, c)",
    "digits(j, a, b, c)",
    "digits(j, a, b, c) reorder(b, a)",
    "digits(j, a, b, c) pos(c, p, A(i,j))",
    "digits(j, a, b, c) split(c, c0, c1, 2)",
    "digits(i, a, b, c) fuse(b, c, f)",
    "digits(i, a, b, c) fuse(c, j, f) pos(f, p, A(i,j))",
    "shift(j, s, 3) digits(s, a, b, c) unroll(c, 3)",
]


def test_printing() -> None:
    assert str(scheduled("shift(i, s, 3) digits(j, a, b, c)")).splitlines()[-2:] == ["  i = s - 3", "  j = (a * 2 + b) * 3 + c"]


def test_results_stay_what_they_are() -> None:
    assert agree(SCHEDULES) > 120


def test_compiled_results_stay_what_they_are() -> None:
    assert agree(SCHEDULES, [STATEMENTS[0], STATEMENTS[5]], "c") > 25


def test_their_order_is_kept() -> None:
    added = "C(i,j) = A(i,j) + B(i,j)", "A:csr B:csr C:csr"
    assert scheduled("shift(j, s, 3) digits(i, a, b, c)", *added)
    with pytest.raises(sl.ScheduleError, match="is appended in the order a, b, c, j, but the loops run b, a, c, j"):
        scheduled("digits(i, a, b, c) reorder(b, a)", *added)


@pytest.mark.parametrize("name", ["shift", "digits"])
def test_random_schedules_with_it(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fuzzed(name, seed, monkeypatch)
