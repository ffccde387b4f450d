"""A primitive with a relation of its own, written in this one file, passes every door of the house.

    forall i                forall r
      y(i) = b(i)    ==>      y(i) = b(i)      i = |i| - 1 - r
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from fuzz.scheduled_runner import compare
from fuzz.schedules import WEIGHTS, schedulable
from primitives.statements import concrete

import sparseloom as sl
from sparseloom.core.trees import node
from sparseloom.iteration.foralls import fresh_variables, loops, replace_loops
from sparseloom.notation.nodes import Forall, IndexVar, Stmt
from sparseloom.relations.relation import Line, Ranges, V
from sparseloom.schedule.primitive import PRIMITIVES, Primitive, no_loop, not_fresh
from sparseloom.schedule.refusal import Refusal
from sparseloom.schedule.schedule import Schedule


@node
class ReverseRelation(Line):
    """``parent = hi - 1 - child``: the same values from the last to the first."""

    parent: IndexVar
    child: IndexVar

    word: ClassVar[str] = "reverse"

    @property
    def children(self) -> tuple[IndexVar, ...]:
        return (self.child,)

    def range_of(self, var: IndexVar, ranges: Ranges[V]) -> tuple[V, V]:
        return ranges.arithmetic.number(0), ranges.extent(self.parent)

    def recover(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        return (self._mirrored(values[self.child], ranges),)

    def derive(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        return (self._mirrored(values[self.parent], ranges),)

    def _mirrored(self, value: V, ranges: Ranges[V]) -> V:
        do = ranges.arithmetic
        return do.subtract(do.subtract(ranges.range_of(self.parent)[1], do.number(1)), value)


class Reverse(Primitive):
    """Run from the last to the first."""

    i: IndexVar
    reversed: IndexVar

    def check(self, stmt: Stmt) -> Refusal | None:
        return no_loop("S9901", stmt, self.i) or not_fresh("S9902", stmt, self.reversed.name)

    def apply(self, stmt: Stmt) -> Stmt:
        return replace_loops(stmt, self.i, lambda loop: Forall(self.reversed, loop.body, loop.tag), self.relation)

    @property
    def relation(self) -> ReverseRelation:
        return ReverseRelation(self.i, self.reversed)

    @classmethod
    def candidates(cls, stmt: Stmt, rng: Random) -> Iterator[Reverse]:
        for var in rng.sample(loops(stmt), len(loops(stmt))):
            (fresh,) = fresh_variables(stmt, f"{var}r")
            yield cls(var, fresh)


REVERSE = node(Reverse)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PRIMITIVES, "reverse", REVERSE)


SPMV = ("y(i) = A(i,j) * x(j)", "A:csr")


def scheduled(text: str, statement: tuple[str, str] = SPMV) -> Schedule:
    return Schedule.from_text(concrete(*statement), text)


def test_text_and_json() -> None:
    made = scheduled("reverse(i, r) split(r, r0, r1, 4)")
    assert made.text == "reverse(i, r)\nsplit(r, r0, r1, 4)"
    assert Schedule.from_json(concrete(*SPMV), made.to_json()).stmt == made.stmt


def test_printing() -> None:
    assert str(scheduled("reverse(i, r) split(r, r0, r1, 4)")).splitlines() == [
        "forall r0      coordinates in [0, ceil(|r| / 4))",
        "  forall r1    coordinates in [0, 4)",
        "    forall j   coordinates in [0, |j|)",
        "      y(i) += A(i,j) * x(j)",
        "such that",
        "  i = |i| - 1 - r",
        "  r = r0 * 4 + r1",
    ]


def test_graphs_and_pictures() -> None:
    made = scheduled("reverse(i, r)")
    assert str(made.provenance).splitlines() == [
        "j",
        "i --reverse--> r",
        "recover_original   i = |i| - 1 - r",
        "recover_derived    r = |i| - 1 - i",
    ]
    assert "reverse" in made.provenance._repr_svg_()
    assert "r" in str(made.iteration_graph)
    assert "svg" in made.iteration_graph._repr_svg_()
    assert str(made.picture(np.array([[1, 0, 2], [0, 3, 0], [4, 0, 0]]))).splitlines() == ["3  .  4", ".  2  .", "1  .  ."]


def test_refusals() -> None:
    with pytest.raises(sl.ScheduleError, match="no loop over k"):
        scheduled("reverse(k, r)")
    with pytest.raises(sl.ScheduleError, match="reverse made r of it"):
        scheduled("reverse(i, r) split(i, i0, i1, 2)")
    with pytest.raises(sl.ScheduleError, match=r"S608.* appended in the order i"):
        scheduled("reverse(i, r)", ("C(i,j) = A(i,j) + B(i,j)", "A:csr B:csr C:dcsr"))
    with pytest.raises(sl.ScheduleError, match=r"\[S4"):
        scheduled("reverse(j, r) pos(r, p, A(i,j))")


def test_races() -> None:
    assert not scheduled("reverse(i, r) parallelize(r, CPUThread, NoRaces)").conflicts
    with pytest.raises(sl.ScheduleError, match="iterations r = 1 and r = 0 both add to y"):
        scheduled("reverse(j, r) reorder(r, i) parallelize(r, CPUThread, NoRaces)", ("y(i) = A(i,j) * x(j)", ""))


STATEMENTS = [
    ("y(i) = A(i,j) * x(j)", {"A": "csr"}),
    ("y(i) = A(i,j) * x(j)", {"A": "dd"}),
    ("y(i) = A(i,j) * x(j)", {"A": "ss"}),
    ("C(i,j) = A(i,j) + B(i,j)", {"A": "csr", "B": "ss"}),
    ("C(i,j) = A(i,j) * B(i,j)", {"A": "csr", "B": "csr"}),
    ("C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr"}),
]
SCHEDULES = [
    "reverse(i, r)",
    "reverse(j, r)",
    "reverse(i, r) split(r, r0, r1, 4)",
    "reverse(j, r) split(r, r0, r1, 4)",
    "split(i, i0, i1, 3) reverse(i0, r)",
    "split(i, i0, i1, 3) reverse(i1, r)",
    "split(j, j0, j1, 3) reverse(j1, r)",
    "split(j, j0, j1, 3) reverse(j0, r) split(r, r0, r1, 2)",
    "reverse(i, r) reverse(r, q)",
    "reverse(i, r) bound(r, b, 7, MaxExact) divide(b, r0, r1, 2) parallelize(r0, CPUThread, NoRaces)",
    "fuse(i, j, f) reverse(f, r)",
    "reverse(i, r) fuse(r, j, f) split(f, f0, f1, 5)",
]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda case: f"{case[0]} {'-'.join(case[1].values())}")
def test_results_stay_what_they_are(statement: tuple[str, dict[str, str]], schedule: str) -> None:
    text, formats = statement
    rng = np.random.default_rng(3)
    shapes = {"A": (7, 7), "B": (7, 7), "x": (7,)}
    given = {name: np.round(rng.random(shapes[name]) * (rng.random(shapes[name]) < 0.5), 2) for name in shapes if f"{name}(" in text}
    wanted = sl.evaluate(text, **given, target="interpret").to_numpy()
    for target in ("interpret", "c"):
        try:
            kernel = sl.program(text, formats=formats, schedule=schedule, target=target)
        except sl.ScheduleError as refused:
            assert "fuse" in schedule or "split" in schedule or "j," in schedule, refused
            return
        np.testing.assert_allclose(kernel(**given).to_numpy(), wanted, err_msg=kernel.source)


def test_random_schedules_with_it(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WEIGHTS, "reverse", 12)
    tally = compare(schedulable(seed, 9900), 30)
    assert not tally.failures, "\n\n".join(f"{scheduled}\n{problem}" for scheduled, problem in tally.failures)


def test_explain_counts_its_trips() -> None:
    kernel = sl.program(SPMV[0], formats={"A": "csr"}, schedule="reverse(i, r) split(r, r0, r1, 4)")
    kernel(sp.csr_array(np.eye(10)), np.ones(10))
    told = kernel.explain()
    assert "r0: every coordinate (3 times)" in told
    assert "i: every coordinate (10 times)" in told
