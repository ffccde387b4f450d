"""Fused loops: every interval of a fused range visits its points, row by row, dense or sparse inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from lower.conditions import conditions, drawn, note, valued, visiting

from sparseloom.loops import nodes as ir
from sparseloom.lower.fused import FusedInterval
from sparseloom.notation.nodes import Forall, IndexVar
from sparseloom.relations.fuse import FuseRelation
from sparseloom.scope.scope import Asked, Scope
from sparseloom.scope.style import SERIAL

i, j, f = IndexVar("i"), IndexVar("j"), IndexVar("f")
FORMATS = ("dd", "csr", "dcsr", "coo", "db", "bs", "ell", "sd")
SHAPES = ((3, 4), (4, 1), (1, 5), (2, 3), (0, 3), (3, 0))
Digits = Callable[[int, int], tuple[int, ...]]


def points(shape: tuple[int, int], low: int, high: int) -> Iterator[tuple[int, int, int]]:
    """The points of an interval: the fused value, the row and the column."""
    return ((value, *divmod(value, shape[1])) for value in range(low, high))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_interval_visits_its_points(form: str, shape: tuple[int, int], rng: np.random.Generator) -> None:
    given = conditions("y(i,j) = A(i,j)", f"A:{form}", "fuse(i,j,f)")
    access, low, high, total = given.access("A"), ir.Var("low"), ir.Var("high"), ir.Var("total")

    def here(scope: Scope) -> list[ir.Expr]:
        return [low, high, *(scope.coordinates[var] for var in (f, i, j)), valued(access, scope)]

    scope = given.in_ways(here)
    ranges, stmt = scope.ranges, given.stmt
    assert isinstance(stmt, Forall)
    relation = scope.provenance.made_by(f)
    assert isinstance(relation, FuseRelation)
    asked = Asked(stmt, f, SERIAL, lambda s: note(*here(s)))
    made = FusedInterval(asked, relation, f, ranges, (ir.Var("width"), ir.ONE)).make(low, high, scope)
    behind = ir.add(total, ir.ONE)
    loops = ir.block(
        ir.Declare(ir.Var("width"), ranges.extent(j)),
        ir.Declare(total, ranges.range_of(f)[1]),
        ir.For(low, ir.ZERO, behind, ir.For(high, ir.ZERO, behind, made)),
    )
    storage, held = drawn(rng, form, shape)
    count = shape[0] * shape[1]
    pairs = [(a, b) for a in range(count + 1) for b in range(count + 1)]
    visits = [(a, b, *point, held.get(point[1:])) for a, b in pairs for point in points(shape, a, b)]
    assert given.notes(loops, 6).on({"A": storage}) == [row for row in visits if row[-1] is not None]


DIGITS = (
    ("split(f,f0,f1,3)", "f0 f1", lambda value, total: divmod(value, 3)),
    ("divide(f,f0,f1,3)", "f0 f1", lambda value, total: divmod(value, max(1, -(-total // 3)))),
    ("bound(f,g,12,MaxConstraint)", "g", lambda value, total: (value,)),
    ("bound(f,g,12,MaxConstraint) split(g,g0,g1,4)", "g g0 g1", lambda value, total: (value, *divmod(value, 4))),
    ("split(f,f0,f1,5) split(f1,a,b,2)", "f0 f1 a b", lambda value, total: (*divmod(value, 5), *divmod(value % 5, 2))),
)


@pytest.mark.parametrize(("steps", "names", "digits"), DIGITS)
@pytest.mark.parametrize("form", ["dd", "csr", "dcsr"])
def test_digits_of_a_fused_variable_are_known(form: str, steps: str, names: str, digits: Digits, rng: np.random.Generator) -> None:
    given = conditions("y(i,j) = A(i,j)", f"A:{form}", f"fuse(i,j,f) {steps}")
    notes = visiting(given, f"i j f {names}")
    for shape in SHAPES:
        storage, held = drawn(rng, form, shape)
        total = shape[0] * shape[1]
        visits = [(row, column, value, *digits(value, total), held.get((row, column))) for value, row, column in points(shape, 0, total)]
        assert notes.on({"A": storage}) == [row for row in visits if row[-1] is not None]


@pytest.mark.parametrize("form", ["ddd", "dss", "sss", "coo"])
def test_three_variables_are_fused_twice(form: str, rng: np.random.Generator) -> None:
    notes = visiting(conditions("y(i,j,k) = A(i,j,k)", f"A:{form}", "fuse(i,j,f) fuse(f,k,g) split(g,g0,g1,5)"), "i j k f g g0 g1")
    for shape in ((2, 3, 2), (1, 2, 4), (2, 0, 2)):
        storage, held = drawn(rng, form, shape)
        expected = []
        for (a, b, c), value in sorted(held.items()):
            f = a * shape[1] + b
            g = f * shape[2] + c
            expected.append((a, b, c, f, g, *divmod(g, 5), value))
        assert notes.on({"A": storage}) == expected
