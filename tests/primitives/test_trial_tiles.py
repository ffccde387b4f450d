"""Tiles of two rows and two columns, with two parents and two children: inside a tile, and from tile to tile, no order is kept.

    forall i                       forall tile
      forall j              ==>      forall within         i = tile / ceil(|j| / 2) * 2 + within / 2
        C(i,j) = A(i,j)                C(i,j) = A(i,j)      j = tile % ceil(|j| / 2) * 2 + within % 2

Nothing is said of guards or intervals: what is recovered is compared with both ends of its range.
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
    apart,
    draws,
    emits_cuda,
    fuzzed,
    nests,
    replace_nest,
    scheduled,
    survives_json,
)

import sparseloom as sl
from sparseloom.core.trees import node
from sparseloom.iteration.foralls import fresh_variables
from sparseloom.notation.nodes import IndexVar, Stmt
from sparseloom.relations.relation import Ranges, Relation, V
from sparseloom.schedule.primitive import PRIMITIVES, Primitive, is_tagged, no_loop, not_fresh
from sparseloom.schedule.refusal import Refusal


@node
class TilesRelation(Relation):
    """``outer`` counts tiles of 2 x 2 row by row, and ``inner`` the places in one."""

    i: IndexVar
    j: IndexVar
    outer: IndexVar
    inner: IndexVar

    word: ClassVar[str] = "tiles"

    @property
    def parents(self) -> tuple[IndexVar, ...]:
        return (self.i, self.j)

    @property
    def children(self) -> tuple[IndexVar, ...]:
        return (self.outer, self.inner)

    def _across(self, ranges: Ranges[V]) -> V:
        """How many tiles stand side by side, and at least 1."""
        do = ranges.arithmetic
        return do.share(ranges.extent(self.j), do.number(2))

    def range_of(self, var: IndexVar, ranges: Ranges[V]) -> tuple[V, V]:
        do = ranges.arithmetic
        if var == self.inner:
            return do.number(0), do.number(4)
        return do.number(0), do.multiply(do.blocks(ranges.extent(self.i), do.number(2)), self._across(ranges))

    def recover(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        do, tile, place, two = ranges.arithmetic, values[self.outer], values[self.inner], ranges.arithmetic.number(2)
        row = do.add(do.multiply(do.quotient(tile, self._across(ranges)), two), do.quotient(place, two))
        column = do.add(do.multiply(do.remainder(tile, self._across(ranges)), two), do.remainder(place, two))
        return do.add(ranges.range_of(self.i)[0], row), do.add(ranges.range_of(self.j)[0], column)

    def derive(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        do, two = ranges.arithmetic, ranges.arithmetic.number(2)
        row, column = (do.subtract(values[var], ranges.range_of(var)[0]) for var in (self.i, self.j))
        tile = do.add(do.multiply(do.quotient(row, two), self._across(ranges)), do.quotient(column, two))
        return tile, do.add(do.multiply(do.remainder(row, two), two), do.remainder(column, two))


class Tiles(Primitive):
    """Visit tile by tile."""

    i: IndexVar
    j: IndexVar
    outer: IndexVar
    inner: IndexVar

    def check(self, stmt: Stmt) -> Refusal | None:
        return (
            no_loop("S9941", stmt, self.i, self.j)
            or apart("S9942", stmt, self.i, self.j)
            or not_fresh("S9943", stmt, self.outer.name, self.inner.name)
            or is_tagged("S9944", stmt, self.i, "tiles")
            or is_tagged("S9944", stmt, self.j, "tiles")
        )

    def apply(self, stmt: Stmt) -> Stmt:
        return replace_nest(stmt, (self.i, self.j), (self.outer, self.inner), self.relation)

    @property
    def relation(self) -> TilesRelation:
        return TilesRelation(self.i, self.j, self.outer, self.inner)

    @classmethod
    def candidates(cls, stmt: Stmt, rng: Random) -> Iterator[Tiles]:
        for i, j in nests(stmt, rng, 2):
            yield cls(i, j, *fresh_variables(stmt, "tile", "within"))


STEP = node(Tiles)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PRIMITIVES, "tiles", STEP)


SCHEDULES = [
    "tiles(i, j, t, w)",
    "tiles(i, j, t, w) unroll(w, 4)",
    "tiles(i, j, t, w) reorder(w, t)",
    "tiles(i, j, t, w) parallelize(w, CPUVector, NoRaces)",
    "tiles(i, j, t, w) parallelize(t, CPUThread, Atomics) unroll(w, 4)",
    "tiles(i, j, t, w) split(t, t0, t1, 2) reorder(t1, t0)",
    "tiles(i, j, t, w) fuse(t, w, f) split(f, f0, f1, 5)",
    "tiles(i, j, t, w) tiles(t, w, t2, w2)",
    "split(i, i0, i1, 3) tiles(i1, j, t, w)",
    "split(i, i0, i1, 3) tiles(i0, i1, t, w)",
    "fuse(i, j, f) split(f, f0, f1, 4) tiles(f0, f1, t, w)",
    "tiles(i, k, t, w)",
    "tiles(k, j, t, w) parallelize(t, CPUThread, Temporary)",
]


def test_printing() -> None:
    assert str(scheduled("tiles(i, j, t, w)")).splitlines() == [
        "forall t     coordinates in [0, ceil(|i| / 2) * ceil(|j| / 2))",
        "  forall w   coordinates in [0, 4)",
        "    y(i) += A(i,j) * x(j)",
        "such that",
        "  i = t / ceil(|j| / 2) * 2 + w / 2, j = t % ceil(|j| / 2) * 2 + w % 2",
    ]


def test_json_graphs_and_pictures() -> None:
    made = scheduled("tiles(i, j, t, w)")
    assert survives_json(made)
    assert draws(made)
    assert str(made.picture(np.ones((3, 4)))).splitlines() == [
        " 1   2   5   6",
        " 3   4   7   8",
        " 9  10  11  12",
    ]


def test_results_stay_what_they_are() -> None:
    assert agree(SCHEDULES) > 60


def test_compiled_results_stay_what_they_are() -> None:
    assert agree(SCHEDULES, [STATEMENTS[0], STATEMENTS[5], STATEMENTS[14]], "c") > 20


def test_sparse_results_are_rejected() -> None:
    with pytest.raises(sl.ScheduleError, match="which tiles made of i, j, run in another one"):
        scheduled("tiles(i, j, t, w)", "C(i,j) = A(i,j) + B(i,j)", "A:csr B:csr C:csr")


def test_on_a_gpu() -> None:
    steps = "tiles(i, j, t, w) split(t, t0, t1, 32) reorder(t0, w, t1)"
    units = "parallelize(t0, GPUBlock, NoRaces) parallelize(t1, GPUThread, NoRaces)"
    assert "blockIdx.x" in emits_cuda("C(i,j) = A(i,j) * 2", {"A": "csr"}, f"{steps} {units}")


def test_random_schedules_with_it(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fuzzed("tiles", seed, monkeypatch)
