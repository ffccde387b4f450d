"""A fuse that counts columns first, with two parents: it keeps the order of ``(j, i)``, and not that of ``(i, j)``.

    forall i                       forall f
      forall j              ==>      C(i,j) = A(i,j)      i = f % |i|, j = f / |i|
        C(i,j) = A(i,j)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from primitives.entry_points import STATEMENTS, agree, apart, draws, emits_cuda, fuzzed, nests, replace_nest, scheduled, survives_json

import sparseloom as sl
from sparseloom.core.trees import node
from sparseloom.iteration.foralls import fresh_variables
from sparseloom.notation.nodes import IndexVar, Stmt
from sparseloom.relations.relation import Ranges, Relation, V
from sparseloom.schedule.primitive import PRIMITIVES, Primitive, is_tagged, no_loop, not_fresh
from sparseloom.schedule.refusal import Refusal


@node
class ByColumnsRelation(Relation):
    """``fused = j * |i| + i``."""

    i: IndexVar
    j: IndexVar
    fused: IndexVar

    word: ClassVar[str] = "bycolumns"

    @property
    def parents(self) -> tuple[IndexVar, ...]:
        return (self.i, self.j)

    @property
    def children(self) -> tuple[IndexVar, ...]:
        return (self.fused,)

    @property
    def nest(self) -> tuple[IndexVar, ...]:
        return (self.j, self.i)

    def range_of(self, var: IndexVar, ranges: Ranges[V]) -> tuple[V, V]:
        do = ranges.arithmetic
        return do.number(0), do.multiply(ranges.extent(self.i), ranges.extent(self.j))

    def recover(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        do = ranges.arithmetic
        height = do.share(ranges.extent(self.i), do.number(1))
        row, column = do.remainder(values[self.fused], height), do.quotient(values[self.fused], height)
        return do.add(ranges.range_of(self.i)[0], row), do.add(ranges.range_of(self.j)[0], column)

    def derive(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        do = ranges.arithmetic
        row, column = (do.subtract(values[var], ranges.range_of(var)[0]) for var in (self.i, self.j))
        return (do.add(do.multiply(column, ranges.extent(self.i)), row),)

    def guards(self, var: IndexVar, ranges: Ranges[V]) -> tuple[bool, bool]:
        return False, False


class ByColumns(Primitive):
    """``fused`` takes the place of ``i`` and ``j`` and runs through their pairs, column by column."""

    i: IndexVar
    j: IndexVar
    fused: IndexVar

    def check(self, stmt: Stmt) -> Refusal | None:
        return (
            no_loop("S9911", stmt, self.i, self.j)
            or (apart("S9912", stmt, self.j, self.i) and apart("S9912", stmt, self.i, self.j))
            or not_fresh("S9913", stmt, self.fused.name)
            or is_tagged("S9914", stmt, self.i, "bycolumns")
            or is_tagged("S9914", stmt, self.j, "bycolumns")
        )

    def apply(self, stmt: Stmt) -> Stmt:
        nest = (self.i, self.j) if apart("S9912", stmt, self.i, self.j) is None else (self.j, self.i)
        return replace_nest(stmt, nest, (self.fused,), self.relation)

    @property
    def relation(self) -> ByColumnsRelation:
        return ByColumnsRelation(self.i, self.j, self.fused)

    @classmethod
    def candidates(cls, stmt: Stmt, rng: Random) -> Iterator[ByColumns]:
        for i, j in nests(stmt, rng, 2):
            yield cls(*rng.sample((i, j), 2), *fresh_variables(stmt, "f"))


STEP = node(ByColumns)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PRIMITIVES, "bycolumns", STEP)


SCHEDULES = [
    "bycolumns(i, j, f)",
    "bycolumns(i, j, f) split(f, f0, f1, 5)",
    "bycolumns(i, j, f) split(f, f0, f1, 5) reorder(f1, f0)",
    "bycolumns(i, j, f) divide(f, f0, f1, 3) parallelize(f0, CPUThread, Atomics)",
    "bycolumns(i, j, f) parallelize(f, CPUThread, NoRaces)",
    "bycolumns(i, j, f) split(f, f0, f1, 4) unroll(f1, 4)",
    "bycolumns(i, j, f) split(f, f0, f1, 4) parallelize(f1, CPUVector, NoRaces)",
    "split(i, i0, i1, 3) bycolumns(i1, j, f)",
    "split(j, j0, j1, 3) reorder(j0, i, j1) bycolumns(i, j1, f)",
    "split(i, i0, i1, 3) bycolumns(i0, i1, f)",
    "reorder(j, i) bycolumns(j, i, f)",
    "reorder(j, i) bycolumns(j, i, f) pos(f, p, A(i,j)) split(p, p0, p1, 4)",
    "reorder(j, i) bycolumns(j, i, f) split(f, f0, f1, 6) pos(f1, p, A(i,j))",
    "bycolumns(i, j, f) pos(f, p, A(i,j)) split(p, p0, p1, 4) parallelize(p0, CPUThread, Atomics)",
    "bycolumns(i, j, f) bound(f, g, 49, MaxExact) split(g, g0, g1, 7)",
    "bycolumns(i, k, f)",
    "bycolumns(k, j, f) parallelize(f, CPUThread, Atomics)",
    "fuse(i, j, f) split(f, f0, f1, 4) bycolumns(f0, f1, g)",
]


def test_text_and_json() -> None:
    made = scheduled("bycolumns(i, j, f) split(f, f0, f1, 4)")
    assert made.text == "bycolumns(i, j, f)\nsplit(f, f0, f1, 4)"
    assert survives_json(made)


def test_printing() -> None:
    assert str(scheduled("bycolumns(i, j, f) split(f, f0, f1, 4)")).splitlines() == [
        "forall f0     coordinates in [0, ceil(|f| / 4))",
        "  forall f1   coordinates in [0, 4)",
        "    y(i) += A(i,j) * x(j)",
        "such that",
        "  i = f % |i|, j = f / |i|",
        "  f = f0 * 4 + f1",
    ]


def test_graphs_and_pictures() -> None:
    made = scheduled("bycolumns(i, j, f)")
    assert str(made.provenance).splitlines() == [
        "i, j --bycolumns--> f",
        "recover_original   i = f % |i|, j = f / |i|",
        "recover_derived    f = j * |i| + i",
    ]
    assert draws(made)
    assert str(made.picture(np.array([[1, 0, 2], [0, 3, 0], [4, 0, 0]]))).splitlines() == ["1  .  4", ".  3  .", "2  .  ."]


def test_rejections() -> None:
    with pytest.raises(sl.ScheduleError, match="no loop over k"):
        scheduled("bycolumns(i, k, f)")
    with pytest.raises(sl.ScheduleError, match="bycolumns made f of it"):
        scheduled("bycolumns(i, j, f) split(i, i0, i1, 2)")
    added = "C(i,j) = A(i,j) + B(i,j)", "A:csr B:csr C:csr"
    why = r"\[S608\] .*: C\(i,j\) is appended in the order i, j, but the loops over f, which bycolumns made of i, j, run in another one"
    with pytest.raises(sl.ScheduleError, match=why):
        scheduled("bycolumns(i, j, f)", *added)
    with pytest.raises(sl.ScheduleError, match=r"\[S407\] .*: f runs over j, i, but A\(i,j\) stores i, j in that order"):
        scheduled("bycolumns(i, j, f) pos(f, p, A(i,j))")


def test_races() -> None:
    assert not scheduled("bycolumns(i, j, f) parallelize(f, CPUThread, NoRaces)", "C(i,j) = A(i,j)").conflicts
    with pytest.raises(sl.ScheduleError, match="both add to y"):
        scheduled("bycolumns(i, j, f) parallelize(f, CPUThread, NoRaces)")


def test_results_stay_what_they_are() -> None:
    assert agree(SCHEDULES) > 90


def test_compiled_results_stay_what_they_are() -> None:
    assert agree(SCHEDULES, STATEMENTS[:3] + STATEMENTS[7:8], "c") > 30


def test_columns_are_walked_in_the_order_in_which_they_are_stored() -> None:
    kernel = sl.program("y(i) = A(i,j) * x(j)", formats={"A": "csc"}, schedule="bycolumns(i, j, f)")
    kernel(sp.csc_array(np.eye(10)), np.ones(10))
    told = kernel.explain()
    assert "j: every coordinate (10 times)" in told
    assert "i: driven by A (10 times)" in told


def test_a_result_that_is_stored_by_columns_is_appended() -> None:
    schedule = "bycolumns(i, j, f) split(f, f0, f1, 5)"
    kernel = sl.program("C(i,j) = A(i,j) + B(i,j)", formats={"A": "csc", "B": "csc", "C": "csc"}, schedule=schedule)
    a, b = sp.random_array((6, 9), density=0.3, format="csc", rng=1), sp.random_array((6, 9), density=0.3, format="csc", rng=2)
    assert abs(kernel(a, b).to_scipy() - (a + b)).max() == 0


def test_on_a_gpu() -> None:
    schedule = "bycolumns(i, j, f) split(f, f0, f1, 64) parallelize(f0, GPUBlock, NoRaces) parallelize(f1, GPUThread, NoRaces)"
    text = emits_cuda("C(i,j) = A(i,j) * 2", {}, schedule)
    assert "blockIdx.x" in text


def test_random_schedules_with_it(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fuzzed("bycolumns", seed, monkeypatch)
