"""A fuse of three loops at once, with three parents: it keeps their order, so entries of all levels follow each other.

    forall i                            forall f
      forall j                 ==>        y(i) += T(i,j,k)      i = f / (|j| * |k|), j = f / |k| % |j|, k = f % |k|
        forall k
          y(i) += T(i,j,k)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import ClassVar

import numpy as np
import pytest
from primitives.entry_points import (
    Statement,
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
class Fuse3Relation(Relation):
    """``fused = (a * |b| + b) * |c| + c``, each counted from its first value."""

    a: IndexVar
    b: IndexVar
    c: IndexVar
    fused: IndexVar

    word: ClassVar[str] = "fuse3"

    @property
    def parents(self) -> tuple[IndexVar, ...]:
        return (self.a, self.b, self.c)

    @property
    def children(self) -> tuple[IndexVar, ...]:
        return (self.fused,)

    @property
    def nest(self) -> tuple[IndexVar, ...]:
        return self.parents

    def range_of(self, var: IndexVar, ranges: Ranges[V]) -> tuple[V, V]:
        do = ranges.arithmetic
        return do.number(0), do.multiply(do.multiply(ranges.extent(self.a), ranges.extent(self.b)), ranges.extent(self.c))

    def recover(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        do, value = ranges.arithmetic, values[self.fused]
        wide, deep = (do.share(ranges.extent(var), do.number(1)) for var in (self.b, self.c))
        row = do.quotient(value, deep)
        parts = do.quotient(row, wide), do.remainder(row, wide), do.remainder(value, deep)
        return tuple(do.add(ranges.range_of(var)[0], part) for var, part in zip(self.parents, parts, strict=True))

    def derive(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        do = ranges.arithmetic
        a, b, c = (do.subtract(values[var], ranges.range_of(var)[0]) for var in self.parents)
        return (do.add(do.multiply(do.add(do.multiply(a, ranges.extent(self.b)), b), ranges.extent(self.c)), c),)

    def guards(self, var: IndexVar, ranges: Ranges[V]) -> tuple[bool, bool]:
        return False, False


class Fuse3(Primitive):
    """``fused`` takes the place of three loops."""

    a: IndexVar
    b: IndexVar
    c: IndexVar
    fused: IndexVar

    def check(self, stmt: Stmt) -> Refusal | None:
        nest = (self.a, self.b, self.c)
        tagged = (is_tagged("S9934", stmt, var, "fuse3") for var in nest)
        return (
            no_loop("S9931", stmt, *nest)
            or apart("S9932", stmt, *nest)
            or not_fresh("S9933", stmt, self.fused.name)
            or next((found for found in tagged if found), None)
        )

    def apply(self, stmt: Stmt) -> Stmt:
        return replace_nest(stmt, self.relation.parents, (self.fused,), self.relation)

    @property
    def relation(self) -> Fuse3Relation:
        return Fuse3Relation(self.a, self.b, self.c, self.fused)

    @classmethod
    def candidates(cls, stmt: Stmt, rng: Random) -> Iterator[Fuse3]:
        for a, b, c in nests(stmt, rng, 3):
            yield cls(a, b, c, *fresh_variables(stmt, "f"))


STEP = node(Fuse3)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PRIMITIVES, "fuse3", STEP)


THREE: list[Statement] = [
    ("y(i) = T(i,j,k)", {"T": "csf"}),
    ("y(i) = T(i,j,k) * x(k)", {"T": "csf"}),
    ("y(i) = T(i,j,k) * x(k)", {"T": "dss"}),
    ("y(i) = T(i,j,k) * x(k)", {"T": "coo"}),
    ("y(i) = T(i,j,k) * x(k)", {}),
    ("y(i) = max(j, max(k, T(i,j,k)))", {"T": "csf"}),
    ("S(i,j,k) = 2 * T(i,j,k)", {"T": "csf", "S": "csf"}),
    ("S(i,j,k) = T(i,j,k) + U(i,j,k)", {"T": "csf", "U": "csf", "S": "csf"}),
    ("S(i,j,k) = T(i,j,k) + U(i,j,k)", {"T": "csf", "U": "coo", "S": "coo"}),
    ("S(i,j,k) = T(i,j,k) + U(i,j,k)", {"T": "csf", "U": "csf"}),
    ("D(i,j) = T(i,j,k) * x(k)", {"T": "csf", "D": "csr"}),
]
SCHEDULES = [
    "fuse3(i, j, k, f)",
    "fuse3(i, j, k, f) split(f, f0, f1, 5)",
    "fuse3(i, j, k, f) split(f, f0, f1, 5) reorder(f1, f0)",
    "fuse3(i, j, k, f) divide(f, f0, f1, 3) parallelize(f0, CPUThread, Atomics)",
    "fuse3(i, j, k, f) divide(f, f0, f1, 3) parallelize(f0, CPUThread, Temporary)",
    "fuse3(i, j, k, f) split(f, f0, f1, 4) unroll(f1, 4)",
    "fuse3(i, j, k, f) pos(f, p, T(i,j,k))",
    "fuse3(i, j, k, f) pos(f, p, T(i,j,k)) split(p, p0, p1, 4) parallelize(p0, CPUThread, Atomics)",
    "fuse3(i, j, k, f) split(f, f0, f1, 6) pos(f1, p, T(i,j,k))",
    "fuse3(i, j, k, f) pos(f, p, T(i,j,k)) split(p, p0, p1, 4) coord(p1, c)",
    "split(i, i0, i1, 2) fuse3(i1, j, k, f)",
    "split(j, j0, j1, 2) fuse3(i, j0, j1, f)",
    "split(i, i0, i1, 2) fuse3(i0, i1, j, f)",
    "fuse3(i, j, k, f) bound(f, g, 84, MaxExact) split(g, g0, g1, 7)",
    "reorder(j, i) fuse3(j, i, k, f)",
]


def test_text_json_and_printing() -> None:
    made = scheduled("fuse3(i, j, k, f) split(f, f0, f1, 4)", "y(i) = T(i,j,k)", "T:csf")
    assert made.text == "fuse3(i, j, k, f)\nsplit(f, f0, f1, 4)"
    assert survives_json(made, "y(i) = T(i,j,k)", "T:csf")
    assert str(made).splitlines()[-2:] == ["  i = f / |k| / |j|, j = f / |k| % |j|, k = f % |k|", "  f = f0 * 4 + f1"]


def test_graphs() -> None:
    made = scheduled("fuse3(i, j, k, f) pos(f, p, T(i,j,k))", "y(i) = T(i,j,k)", "T:csf")
    assert str(made.provenance).splitlines() == [
        "i, j, k --fuse3--> f --pos(T)--> p",
        "recover_original   f = crd(T)[p]",
        "                   i = f / |k| / |j|, j = f / |k| % |j|, k = f % |k|",
        "recover_derived    f = (i * |j| + j) * |k| + k",
        "                   p = search of f in T",
        "recover_track      i, j advance with p",
    ]
    assert "svg" in made.provenance._repr_svg_() and "svg" in made.iteration_graph._repr_svg_()
    assert draws(scheduled("split(i, i0, i1, 2) fuse3(i0, i1, j, f)"))


def test_results_stay_what_they_are() -> None:
    assert agree(SCHEDULES, THREE) > 90


def test_compiled_results_stay_what_they_are() -> None:
    assert agree(SCHEDULES, [THREE[1], THREE[4], THREE[7]], "c") > 20


def test_entries_are_appended_and_walked_in_order() -> None:
    kernel = sl.program(*THREE[7][:1], formats=THREE[7][1], schedule="fuse3(i, j, k, f) split(f, f0, f1, 5)")
    given = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(kernel(given, given).to_numpy(), 2 * given)
    kernel = sl.program("y(i) = T(i,j,k)", formats={"T": "csf"}, schedule="fuse3(i, j, k, f)")
    kernel(np.eye(4).reshape(2, 2, 4))
    assert "k: driven by T (4 times)" in kernel.explain()


def test_on_a_gpu() -> None:
    steps = "fuse3(i, j, k, f) pos(f, p, T(i,j,k)) split(p, p0, p1, 64)"
    units = "parallelize(p0, GPUBlock, Atomics) parallelize(p1, GPUThread, Atomics)"
    assert "blockIdx.x" in emits_cuda("y(i) = T(i,j,k)", {"T": "csf"}, f"{steps} {units}")


def test_random_schedules_with_it(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fuzzed("fuse3", seed, monkeypatch)
