"""Walking one operand: positions confined to coordinates, and what follows once a coordinate is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from levels.slow_reader import entries_of
from lower.conditions import Conditions, conditions, drawn, note, numbered, valued

from sparseloom.core.errors import CompilerBug
from sparseloom.loops import nodes as ir
from sparseloom.lower.walking import between, bound_place, find_run, make_walker, settle, step
from sparseloom.notation.nodes import IndexVar
from sparseloom.scope.scope import ABSENT, Place

i, j = IndexVar("i"), IndexVar("j")


def at_every_point(given: Conditions, names: str, body: ir.Stmt) -> ir.Stmt:
    """Plain loops over all coordinates."""
    for name in reversed(names):
        body = ir.For(ir.Var(name), ir.ZERO, given.scope.context.sizes.of(IndexVar(name)), body)
    return body


# How the levels of each format are found: by arithmetic, or by search.
SETTLED = (
    ("d", False),
    ("s", True),
    ("u", True),
    ("b", False),
    ("s~", True),
    ("dd", False),
    ("csr", True),
    ("dcsr", True),
    ("coo", True),
    ("ell", True),
    ("db", False),
    ("bb", False),
    ("sd", True),
    ("du", True),
    ("bs", True),
    ("csc", True),
    ("uq+", True),
    ("ds~", True),
    ("dia", True),
    ("sss", True),
    ("dsd", True),
    ("ddb", False),
    ("uqq", True),
    ("suq", True),
)


@pytest.mark.parametrize(("form", "searches"), SETTLED)
def test_an_operand_is_found_where_all_coordinates_are_known(form: str, searches: bool, rng: np.random.Generator) -> None:
    """Dense levels are located, others searched; what is absent is known to be, and repeated entries are summed."""
    order = {"csr": 2, "dcsr": 2, "coo": 2, "ell": 2, "csc": 2, "dia": 2, "uq+": 2}.get(form, len(form.replace("~", "")))
    names = "ijk"[:order]
    inside = ",".join(names)
    given = conditions(f"y({inside}) = A({inside})", f"A:{form}", loops=" ".join(names))
    known = given.scope
    for name in names:
        known = known.knowing(IndexVar(name), ir.Var(name))
    code, there = settle(known)
    assert there.at(given.access("A")).depth == order
    assert any("searched" in remark.text for remark in given.scope.context.remarks) == searches
    body = ir.block(code, note(*map(ir.Var, names), valued(given.access("A"), there)))
    notes = given.notes(at_every_point(given, names, body), order + 1)
    for shape in ((3, 4, 2)[:order], (1, 2, 3)[:order], (4, 1, 2)[:order]):
        storage, held = drawn(rng, form, shape, repeats="u" in form)
        points = np.ndindex(shape)
        assert notes.on({"A": storage}) == [(*point, held.get(point)) for point in points]


def test_settling_stops_at_what_is_not_known() -> None:
    given = conditions("y(i,j) = A(i,j)", "A:csr")
    code, there = settle(given.scope.knowing(j, ir.Var("j")))
    assert (code, there.at(given.access("A"))) == (ir.block(), Place())
    code, there = settle(given.scope.knowing(i, ir.Var("i")))
    assert code == ir.block()
    assert there.at(given.access("A")).depth == 1


def test_settling_goes_no_further_than_is_needed() -> None:
    given = conditions("y(i,j) = A(i,j)", "A:csr")
    access = given.access("A")
    known = replace(given.scope.knowing(i, ir.Var("i")).knowing(j, ir.Var("j")), reach={access: 1})
    assert settle(known)[1].at(access).depth == 1


def test_what_is_absent_is_not_looked_for() -> None:
    given = conditions("y(i,j) = A(i,j)", "A:csr")
    access = given.access("A")
    gone = given.scope.placing({access: ABSENT}).knowing(i, ir.Var("i")).knowing(j, ir.Var("j"))
    assert settle(gone) == (ir.block(), gone)


def test_the_trail_tells_the_positions_on_the_way() -> None:
    given = conditions("y(i,j) = A(i,j)", "A:dd")
    place = settle(given.scope.knowing(i, ir.Var("i")).knowing(j, ir.Var("j")))[1].at(given.access("A"))
    assert [depth for depth, _, _ in place.trail] == [1, 2]
    assert place.position_at(1) == ir.Var("i")
    assert place.passed(3) is None
    with pytest.raises(CompilerBug, match="the position at depth 3 should be known"):
        place.position_at(3)


@pytest.mark.parametrize("form", ["s", "u", "b"])
def test_a_walker_is_confined_to_coordinates(form: str, rng: np.random.Generator) -> None:
    """For every pair of limits: the entries between them, and none where the limits are the wrong way round."""
    given = conditions("y(i) = x(i)", f"x:{form}")
    access, low, high, size = given.access("x"), ir.Var("low"), ir.Var("high"), given.scope.context.sizes.of(i)
    code, walker = between(given.scope, make_walker(access, given.scope), low, high)
    here = ir.when(walker.is_used, note(low, high, walker.coordinate(), ir.Load(given.scope.view(access).values, walker.slot)))
    body = ir.block(code, ir.For(walker.position, walker.begin, walker.end, here))
    behind = ir.add(size, ir.ONE)
    notes = given.notes(ir.For(low, ir.ZERO, behind, ir.For(high, ir.ZERO, behind, body)), 4)
    for n in (0, 1, 4, 6):
        storage = numbered(rng, form, (n,), repeats=2 if form == "u" else 0)
        found = [(place[0], int(value)) for place, value in entries_of(storage)]
        pairs = [(a, b) for a in range(n + 1) for b in range(n + 1)]
        assert notes.on({"x": storage}) == [(a, b, k, value) for a, b in pairs for k, value in found if a <= k < b]


@pytest.mark.parametrize("form", ["s", "u", "s~", "u~", "b"])
def test_steps_go_from_run_to_run(form: str, rng: np.random.Generator) -> None:
    """A run of equal coordinates is one step, and its values are summed; unused positions are passed over."""
    given = conditions("y(i) = x(i)", f"x:{form}", loops="i")
    walker = make_walker(given.access("x"), given.scope)
    summed, place = bound_place(given.scope, walker)
    there = given.scope.placing({walker.access: place})
    at = ir.Var("i")
    body = ir.block(walker.found(at), find_run(walker, at), summed, note(at, valued(walker.access, there)), step(walker))
    notes = given.notes(ir.block(walker.start(), ir.While(walker.is_live, body)), 2)
    for n in (0, 1, 4, 7):
        storage, _ = drawn(rng, form, (n,), repeats="u" in form)
        expected: list[tuple[int, int]] = []
        for (k,), value in entries_of(storage):
            again = expected and expected[-1][0] == k
            expected[-1:] = [(k, expected[-1][1] + int(value))] if again else [*expected[-1:], (k, int(value))]
        assert notes.on({"x": storage}) == expected


def test_a_level_below_repeated_coordinates_is_not_located() -> None:
    given = conditions("y(i,j) = A(i,j)", "A:ud", loops="i j")
    with pytest.raises(CompilerBug, match="a level below repeated coordinates cannot be located"):
        settle(given.scope.knowing(i, ir.Var("i")).knowing(j, ir.Var("j")))


def test_a_masked_workspace_is_present_where_it_was_written() -> None:
    given = conditions("y(i) = x(i)", "x:d")
    access, mask = given.access("x"), ir.Array("x_set", np.dtype(bool))
    view = replace(given.scope.view(access), mask=mask, starts=(ir.index(2),))
    masked = replace(given.scope, views={**given.scope.views, access.tensor: view})
    place = settle(masked.knowing(i, ir.Var("i")))[1].at(access)
    there = ir.Op("subtract", (ir.Var("i"), ir.index(2)))
    assert (place.position, place.present) == (there, ir.Load(mask, there))
