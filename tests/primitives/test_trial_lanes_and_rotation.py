"""Two relations of one parent: lanes that take every n-th value, and a rotation.

    forall i                forall lane                                       forall i                forall r
      y(i) = b(i)    ==>      forall turn      i = turn * 4 + lane              y(i) = b(i)    ==>      y(i) = b(i)      i = (r + 2) % |i|
                                y(i) = b(i)

The first keeps the order of ``i`` where its turns stand outside, and the second never.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import ClassVar

import numpy as np
import pytest
from primitives.entry_points import (
    STATEMENTS,
    agree,
    draws,
    emits_cuda,
    fuzzed,
    replace_nest,
    scheduled,
    survives_json,
)

import sparseloom as sl
from sparseloom.core.trees import node
from sparseloom.iteration.foralls import fresh_variables, loops
from sparseloom.notation.nodes import IndexVar, Stmt
from sparseloom.relations.relation import Line, Ranges, V
from sparseloom.schedule.primitive import PRIMITIVES, Primitive, is_tagged, no_loop, not_fresh
from sparseloom.schedule.refusal import Refusal


@node
class CyclicRelation(Line):
    """``parent = turn * count + lane``: each lane takes every ``count``-th value."""

    parent: IndexVar
    lane: IndexVar
    turn: IndexVar
    count: int

    word: ClassVar[str] = "cyclic"

    @property
    def children(self) -> tuple[IndexVar, ...]:
        return (self.lane, self.turn)

    @property
    def significant(self) -> tuple[IndexVar, ...]:
        return (self.turn, self.lane)

    @property
    def constants(self) -> tuple[int, ...]:
        return (self.count,)

    def range_of(self, var: IndexVar, ranges: Ranges[V]) -> tuple[V, V]:
        do, count = ranges.arithmetic, ranges.arithmetic.number(self.count)
        return do.number(0), count if var == self.lane else do.blocks(ranges.extent(self.parent), count)

    def recover(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        do = ranges.arithmetic
        value = do.add(do.multiply(values[self.turn], do.number(self.count)), values[self.lane])
        return (do.add(ranges.range_of(self.parent)[0], value),)

    def derive(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        do, count = ranges.arithmetic, ranges.arithmetic.number(self.count)
        value = do.subtract(values[self.parent], ranges.range_of(self.parent)[0])
        return do.remainder(value, count), do.quotient(value, count)


class Cyclic(Primitive):
    """Deal a loop out to lanes."""

    i: IndexVar
    lane: IndexVar
    step: IndexVar
    count: int

    def check(self, stmt: Stmt) -> Refusal | None:
        return (
            no_loop("S9951", stmt, self.i)
            or not_fresh("S9952", stmt, self.lane.name, self.step.name)
            or is_tagged("S9953", stmt, self.i, "cyclic")
        )

    def apply(self, stmt: Stmt) -> Stmt:
        return replace_nest(stmt, (self.i,), (self.lane, self.step), self.relation)

    @property
    def relation(self) -> CyclicRelation:
        return CyclicRelation(self.i, self.lane, self.step, self.count)

    @classmethod
    def candidates(cls, stmt: Stmt, rng: Random) -> Iterator[Cyclic]:
        for var in rng.sample(loops(stmt), len(loops(stmt))):
            yield cls(var, *fresh_variables(stmt, f"{var}l", f"{var}s"), rng.choice((1, 2, 3, 4)))


@node
class RotatedRelation(Line):
    """``parent = (child + by) % |parent|``."""

    parent: IndexVar
    child: IndexVar
    by: int

    word: ClassVar[str] = "rotate"

    @property
    def children(self) -> tuple[IndexVar, ...]:
        return (self.child,)

    def range_of(self, var: IndexVar, ranges: Ranges[V]) -> tuple[V, V]:
        return ranges.arithmetic.number(0), ranges.extent(self.parent)

    def _turned(self, value: V, by: V, ranges: Ranges[V]) -> V:
        do = ranges.arithmetic
        return do.remainder(do.add(value, by), do.share(ranges.extent(self.parent), do.number(1)))

    def recover(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        do = ranges.arithmetic
        return (do.add(ranges.range_of(self.parent)[0], self._turned(values[self.child], do.number(self.by), ranges)),)

    def derive(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        do, extent = ranges.arithmetic, ranges.arithmetic.share(ranges.extent(self.parent), ranges.arithmetic.number(1))
        back = do.subtract(extent, do.remainder(do.number(self.by), extent))
        return (self._turned(do.subtract(values[self.parent], ranges.range_of(self.parent)[0]), back, ranges),)


class Rotate(Primitive):
    """Begin in the middle."""

    i: IndexVar
    rotated: IndexVar
    by: int

    def check(self, stmt: Stmt) -> Refusal | None:
        return no_loop("S9956", stmt, self.i) or not_fresh("S9957", stmt, self.rotated.name) or is_tagged("S9958", stmt, self.i, "rotate")

    def apply(self, stmt: Stmt) -> Stmt:
        return replace_nest(stmt, (self.i,), (self.rotated,), self.relation)

    @property
    def relation(self) -> RotatedRelation:
        return RotatedRelation(self.i, self.rotated, self.by)

    @classmethod
    def candidates(cls, stmt: Stmt, rng: Random) -> Iterator[Rotate]:
        for var in rng.sample(loops(stmt), len(loops(stmt))):
            yield cls(var, *fresh_variables(stmt, f"{var}r"), rng.choice((0, 1, 3, 8)))


CYCLIC, ROTATE = node(Cyclic), node(Rotate)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PRIMITIVES, "cyclic", CYCLIC)
    monkeypatch.setitem(PRIMITIVES, "rotate", ROTATE)


SCHEDULES = [
    "cyclic(i, l, s, 3)",
    "cyclic(j, l, s, 3)",
    "cyclic(i, l, s, 3) reorder(s, l)",
    "cyclic(j, l, s, 3) reorder(s, l)",
    "cyclic(j, l, s, 4) reorder(s, l) unroll(l, 4)",
    "cyclic(i, l, s, 3) parallelize(l, CPUThread, NoRaces)",
    "cyclic(i, l, s, 3) reorder(s, l) parallelize(s, CPUThread, NoRaces)",
    "cyclic(j, l, s, 3) parallelize(l, CPUThread, Temporary)",
    "cyclic(i, l, s, 3) split(s, s0, s1, 2)",
    "cyclic(i, l, s, 3) reorder(s, l) split(s, s0, s1, 2)",
    "cyclic(j, l, s, 4) reorder(s, l) split(l, l0, l1, 2)",
    "cyclic(j, l, s, 4) reorder(s, l) pos(l, p, A(i,j))",
    "cyclic(i, l, s, 4) reorder(s, l) cyclic(l, l0, l1, 2)",
    "cyclic(i, l, s, 4) reorder(s, l) fuse(s, l, f)",
    "cyclic(i, l, s, 4) reorder(s, l) fuse(l, j, f)",
    "fuse(i, j, f) cyclic(f, l, s, 4) parallelize(l, CPUThread, Atomics)",
    "fuse(i, j, f) pos(f, p, A(i,j)) cyclic(p, l, s, 4)",
    "fuse(i, j, f) pos(f, p, A(i,j)) cyclic(p, l, s, 4) reorder(s, l)",
    "fuse(i, j, f) pos(f, p, A(i,j)) cyclic(p, l, s, 4) parallelize(l, CPUThread, Atomics)",
    "split(j, j0, j1, 3) cyclic(j1, l, s, 2)",
    "split(j, j0, j1, 3) cyclic(j0, l, s, 2)",
    "rotate(i, r, 3)",
    "rotate(j, r, 3)",
    "rotate(j, r, 9) split(r, r0, r1, 2)",
    "rotate(i, r, 3) parallelize(r, CPUThread, NoRaces)",
    "rotate(j, r, 3) pos(r, p, A(i,j))",
    "pos(j, p, A(i,j)) rotate(p, r, 2)",
    "fuse(i, j, f) rotate(f, r, 10) split(r, r0, r1, 4)",
    "rotate(i, r, 2) fuse(r, j, f)",
    "cyclic(i, l, s, 3) rotate(l, r, 1)",
]


def test_printing() -> None:
    assert str(scheduled("cyclic(i, l, s, 4) rotate(j, r, 2)")).splitlines() == [
        "forall l       coordinates in [0, 4)",
        "  forall s     coordinates in [0, ceil(|i| / 4))",
        "    forall r   coordinates in [0, |j|)",
        "      y(i) += A(i,j) * x(j)",
        "such that",
        "  i = s * 4 + l",
        "  j = (r + 2) % |j|",
    ]


def test_json_graphs_and_pictures() -> None:
    made = scheduled("cyclic(i, l, s, 2) rotate(j, r, 1)")
    assert survives_json(made)
    assert draws(made)
    assert str(made.picture(np.ones((3, 2)))).splitlines() == ["a2  a1", "a6  a5", "b4  b3"]


def test_results_stay_what_they_are() -> None:
    assert agree(SCHEDULES) > 180


def test_compiled_results_stay_what_they_are() -> None:
    assert agree(SCHEDULES, [STATEMENTS[0], STATEMENTS[5], STATEMENTS[11]], "c") > 50


def test_sparse_results_are_rejected() -> None:
    added = "C(i,j) = A(i,j) + B(i,j)", "A:csr B:csr C:csr"
    with pytest.raises(sl.ScheduleError, match=r"\[S608\] .*: C\(i,j\) is appended in the order i, s, l, but the loops run i, l, s"):
        scheduled("cyclic(j, l, s, 3)", *added)
    with pytest.raises(sl.ScheduleError, match=r"\[S608\] .* but the loops over r, which rotate made of j, run in another one"):
        scheduled("rotate(j, r, 3)", *added)


def test_on_a_gpu() -> None:
    steps = "cyclic(i, l, s, 32) reorder(s, l) parallelize(s, GPUBlock, NoRaces) parallelize(l, GPUThread, NoRaces)"
    assert "threadIdx.x" in emits_cuda("y(i) = A(i,j) * x(j)", {"A": "csr"}, steps)


@pytest.mark.parametrize("name", ["cyclic", "rotate"])
def test_random_schedules_with_it(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fuzzed(name, seed, monkeypatch)
