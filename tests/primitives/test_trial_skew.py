"""A skew, with two parents and two children: the loops run along diagonals, and keep no order of ``i`` and ``j``.

    forall i                       forall s
      forall j              ==>      forall t
        C(i,j) = A(i,j)                C(i,j) = A(i,j)      i = s - t, j = t
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import ClassVar

import numpy as np
import pytest
from primitives.entry_points import STATEMENTS, agree, apart, draws, emits_cuda, fuzzed, nests, replace_nest, scheduled, survives_json

import sparseloom as sl
from sparseloom.core.trees import node
from sparseloom.iteration.foralls import fresh_variables
from sparseloom.notation.nodes import IndexVar, Stmt
from sparseloom.relations.relation import Known, Ranges, Relation, V
from sparseloom.schedule.primitive import PRIMITIVES, Primitive, is_tagged, no_loop, not_fresh
from sparseloom.schedule.refusal import Refusal


@node
class SkewRelation(Relation):
    """``s = i + j, t = j``, both counted from 0."""

    i: IndexVar
    j: IndexVar
    s: IndexVar
    t: IndexVar

    word: ClassVar[str] = "skew"

    @property
    def parents(self) -> tuple[IndexVar, ...]:
        return (self.i, self.j)

    @property
    def children(self) -> tuple[IndexVar, ...]:
        return (self.s, self.t)

    def range_of(self, var: IndexVar, ranges: Ranges[V]) -> tuple[V, V]:
        do, width = ranges.arithmetic, ranges.extent(self.j)
        return do.number(0), width if var == self.t else do.add(ranges.extent(self.i), width)

    def recover(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        do = ranges.arithmetic
        row = do.subtract(values[self.s], values[self.t])
        return do.add(ranges.range_of(self.i)[0], row), do.add(ranges.range_of(self.j)[0], values[self.t])

    def derive(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        do = ranges.arithmetic
        row, column = (do.subtract(values[var], ranges.range_of(var)[0]) for var in (self.i, self.j))
        return do.add(row, column), column

    def guards(self, var: IndexVar, ranges: Ranges[V]) -> tuple[bool, bool]:
        return (True, True) if var == self.i else (False, False)

    def interval(self, var: IndexVar, known: Known[V]) -> tuple[V, V]:
        do, diagonal = known.arithmetic, known.value(self.s)
        low, high = known.range_of(var)
        if var != self.t or diagonal is None:
            return low, high
        first = do.subtract(do.add(diagonal, do.number(1)), known.extent(self.i))
        return do.most(low, first), do.least(do.add(diagonal, do.number(1)), high)


class Skew(Primitive):
    """``s`` counts diagonals, and ``t`` the columns on one."""

    i: IndexVar
    j: IndexVar
    s: IndexVar
    t: IndexVar

    def check(self, stmt: Stmt) -> Refusal | None:
        return (
            no_loop("S9921", stmt, self.i, self.j)
            or apart("S9922", stmt, self.i, self.j)
            or not_fresh("S9923", stmt, self.s.name, self.t.name)
            or is_tagged("S9924", stmt, self.i, "skew")
            or is_tagged("S9924", stmt, self.j, "skew")
        )

    def apply(self, stmt: Stmt) -> Stmt:
        return replace_nest(stmt, (self.i, self.j), (self.s, self.t), self.relation)

    @property
    def relation(self) -> SkewRelation:
        return SkewRelation(self.i, self.j, self.s, self.t)

    @classmethod
    def candidates(cls, stmt: Stmt, rng: Random) -> Iterator[Skew]:
        for i, j in nests(stmt, rng, 2):
            yield cls(i, j, *fresh_variables(stmt, "s", "t"))


STEP = node(Skew)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PRIMITIVES, "skew", STEP)


SCHEDULES = [
    "skew(i, j, s, t)",
    "skew(i, j, s, t) reorder(t, s)",
    "skew(i, j, s, t) split(s, s0, s1, 4)",
    "skew(i, j, s, t) split(t, t0, t1, 3)",
    "skew(i, j, s, t) split(t, t0, t1, 3) reorder(t1, t0)",
    "skew(i, j, s, t) split(t, t0, t1, 3) reorder(t0, s)",
    "skew(i, j, s, t) split(t, t0, t1, 4) unroll(t1, 4)",
    "skew(i, j, s, t) split(t, t0, t1, 4) parallelize(t1, CPUVector, ParallelReduction)",
    "skew(i, j, s, t) parallelize(s, CPUThread, Atomics)",
    "skew(i, j, s, t) parallelize(s, CPUThread, NoRaces)",
    "skew(i, j, s, t) reorder(t, s) parallelize(t, CPUThread, Temporary)",
    "skew(i, j, s, t) fuse(s, t, f)",
    "skew(i, j, s, t) fuse(s, t, f) split(f, f0, f1, 5) parallelize(f0, CPUThread, Atomics)",
    "skew(i, j, s, t) skew(s, t, u, v)",
    "skew(i, j, s, t) bound(t, b, 7, MaxExact) unroll(b, 7)",
    "split(i, i0, i1, 3) skew(i1, j, s, t)",
    "split(i, i0, i1, 3) skew(i0, i1, s, t)",
    "split(j, j0, j1, 3) reorder(j0, i, j1) skew(i, j1, s, t)",
    "split(j, j0, j1, 3) skew(i, j0, s, t)",
    "fuse(i, j, f) split(f, f0, f1, 4) skew(f0, f1, s, t)",
    "reorder(j, i) skew(j, i, s, t)",
    "skew(i, k, s, t)",
    "skew(k, j, s, t) parallelize(s, CPUThread, Atomics)",
    "pos(j, p, A(i,j)) skew(i, p, s, t)",
    "skew(i, j, s, t) pos(t, p, A(i,j))",
    "fuse(i, j, f) pos(f, p, A(i,j)) split(p, p0, p1, 4) skew(p0, p1, s, t)",
    "pos(j, p, A(i,j)) coord(p, jc) skew(i, jc, s, t)",
    "divide(i, i0, i1, 2, A(i,j)) skew(i1, j, s, t)",
]


def test_text_and_json() -> None:
    made = scheduled("skew(i, j, s, t) split(s, s0, s1, 4)")
    assert made.text == "skew(i, j, s, t)\nsplit(s, s0, s1, 4)"
    assert survives_json(made)


def test_printing() -> None:
    assert str(scheduled("skew(i, j, s, t) split(t, t0, t1, 4)")).splitlines() == [
        "forall s        coordinates in [0, |i| + |j|)",
        "  forall t0     coordinates in [0, ceil(|t| / 4))",
        "    forall t1   coordinates in [0, 4)",
        "      y(i) += A(i,j) * x(j)",
        "such that",
        "  i = s - t, j = t",
        "  t = t0 * 4 + t1",
    ]


def test_graphs_and_pictures() -> None:
    made = scheduled("skew(i, j, s, t)")
    assert str(made.provenance).splitlines() == [
        "i, j --skew--> s, t",
        "recover_original   i = s - t, j = t",
        "recover_derived    s = i + j, t = j",
    ]
    assert draws(made)
    assert str(made.picture(np.array([[1, 0, 2], [0, 3, 0], [4, 0, 0]]))).splitlines() == ["1  .  4", ".  3  .", "2  .  ."]


def test_rejections() -> None:
    with pytest.raises(sl.ScheduleError, match="skew made s and t of it"):
        scheduled("skew(i, j, s, t) split(i, i0, i1, 2)")
    why = r"\[S608\] .*: C\(i,j\) is appended in the order i, j, but the loops over s, t, which skew made of i, j, run in another one"
    with pytest.raises(sl.ScheduleError, match=why):
        scheduled("skew(i, j, s, t)", "C(i,j) = A(i,j) + B(i,j)", "A:csr B:csr C:csr")
    with pytest.raises(sl.ScheduleError, match=r"\[S406\]"):
        scheduled("skew(i, j, s, t) pos(t, p, A(i,j))")
    with pytest.raises(sl.ScheduleError, match=r"\[S306\] .*: p counts positions of A\(i,j\), and skew would join it with i"):
        scheduled("pos(j, p, A(i,j)) skew(i, p, s, t)")
    with pytest.raises(sl.ScheduleError, match=r"\[S306\] .*: jc counts coordinates that are found again, and skew would join it with i"):
        scheduled("pos(j, p, A(i,j)) coord(p, jc) skew(i, jc, s, t)")


def test_races() -> None:
    assert not scheduled("skew(i, j, s, t) parallelize(s, CPUThread, NoRaces)", "C(i,j) = A(i,j)").conflicts
    with pytest.raises(sl.ScheduleError, match="both add to y"):
        scheduled("skew(i, j, s, t) parallelize(s, CPUThread, NoRaces)")


def test_results_stay_what_they_are() -> None:
    assert agree(SCHEDULES) > 120


def test_compiled_results_stay_what_they_are() -> None:
    assert agree(SCHEDULES, [STATEMENTS[0], STATEMENTS[5], STATEMENTS[12]], "c") > 40


def test_only_what_lies_on_a_diagonal_is_visited() -> None:
    kernel = sl.program("y(i) = A(i,j) * x(j)", formats={"A": "csr"}, schedule="skew(i, j, s, t)")
    kernel(np.eye(5), np.ones(5))
    told = kernel.explain()
    assert "s: every coordinate (10 times)" in told
    assert "t: every coordinate (at most 50 times)" in told


def test_on_a_gpu() -> None:
    steps = "skew(i, j, s, t) split(s, s0, s1, 64) parallelize(s0, GPUBlock, Atomics) parallelize(s1, GPUThread, Atomics)"
    assert "atomic" in emits_cuda("y(i) = A(i,j) * x(j)", {"A": "csr"}, steps)


def test_random_schedules_with_it(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fuzzed("skew", seed, monkeypatch)
