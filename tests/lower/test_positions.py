"""Loops over positions: every block of them visits its entries, in the order of storage, and knows their coordinates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from levels.slow_reader import entries_of
from lower.conditions import Conditions, Notes, Row, conditions, note, numbered, valued, visiting

from sparseloom.formats.storage import Storage
from sparseloom.loops import nodes as ir
from sparseloom.lower.forall import find_ranges
from sparseloom.lower.position_nest import PositionNest
from sparseloom.lower.positions import FlatPositions
from sparseloom.lower.walking import settle
from sparseloom.notation.nodes import Forall, IndexVar
from sparseloom.relations.pos import PosRelation
from sparseloom.scope.scope import Asked, Scope
from sparseloom.scope.style import SERIAL

p, low, high = IndexVar("p"), ir.Var("low"), ir.Var("high")
MATRICES = ("csr", "dcsr", "coo", "ell", "db", "bb", "sb", "dd", "sd", "bs", "sp")
TENSORS = ("csf", "coo", "dss", "sds", "ssd", "suq", "duq", "dsb", "ddp")
REPEATING = ("du", "su", "uq+")
FUSED = {2: "fuse(i,j,f) pos(f,p,A(i,j))", 3: "fuse(i,j,e) fuse(e,k,f) pos(f,p,A(i,j,k))"}
NAMES = {2: "i j", 3: "i j k"}


def statement(order: int, left: str | None = None) -> str:
    """A copy of A, or sums into a part of it."""
    inside = NAMES[order].replace(" ", ",")
    return f"y({inside if left is None else left}) = A({inside})"


Make = Callable[[Asked, PosRelation, Scope], ir.Stmt]


def in_every_block(given: Conditions, make: Make, width: int, here: Callable[[Scope], list[ir.Expr]]) -> Notes:
    """What ``make`` makes of the positions p, for every block of them; the block and ``width`` numbers from ``here`` are noted."""

    def noted(scope: Scope) -> list[ir.Expr]:
        return [low, high, *here(scope)]

    first, scope = settle(given.in_ways(noted))
    ranges, scope = find_ranges(p, scope)
    stmt, relation = given.stmt, scope.provenance.made_by(p)
    assert isinstance(stmt, Forall) and isinstance(relation, PosRelation)
    begin, end = scope.ranges.range_of(p)
    made = make(Asked(stmt, p, SERIAL, lambda s: note(*noted(s))), relation, scope.limiting(p, low, high))
    behind = ir.add(end, ir.ONE)
    loops = ir.For(low, begin, behind, ir.For(high, low, behind, made))
    return given.notes(ir.block(first, ranges, loops), 2 + width)


def entries(storage: Storage) -> list[tuple[int, tuple[int, ...], int]]:
    """The entries as they are stored: position, coordinates, value."""
    places = {value: place for place, value in enumerate(storage.values.tolist())}
    return [(places[float(value)], place, int(value)) for place, value in entries_of(storage)]


def blocks(storage: Storage) -> list[tuple[int, int]]:
    """Every block of positions, the empty ones too."""
    end = len(storage.values)
    return [(a, b) for a in range(end + 1) for b in range(a, end + 1)]


def nest(asked: Asked, relation: PosRelation, scope: Scope) -> ir.Stmt:
    return PositionNest(asked, relation).make(scope)


def flat(asked: Asked, relation: PosRelation, scope: Scope) -> ir.Stmt:
    return FlatPositions(asked, relation, searched=True).make(scope)


def last_only(asked: Asked, relation: PosRelation, scope: Scope) -> ir.Stmt:
    return FlatPositions(asked, relation, searched=False).make(scope)


def shapes(order: int) -> tuple[tuple[int, ...], ...]:
    return ((3, 4), (1, 3), (4, 1), (2, 0), (0, 2)) if order == 2 else ((2, 3, 2), (1, 2, 2), (3, 1, 2), (2, 0, 2))


ALL = [*((form, 2, 0) for form in MATRICES), *((form, 3, 0) for form in TENSORS), *((form, 2, 3) for form in REPEATING)]


@pytest.mark.parametrize("make", [nest, flat])
@pytest.mark.parametrize(("form", "order", "repeats"), ALL)
def test_every_block_visits_its_entries(make: Make, form: str, order: int, repeats: int, rng: np.random.Generator) -> None:
    given = conditions(statement(order, "i" if repeats else None), f"A:{form}", FUSED[order])
    names = [IndexVar(name) for name in NAMES[order].split()]

    def here(scope: Scope) -> list[ir.Expr]:
        return [*(scope.coordinates[var] for var in names), valued(given.access("A"), scope)]

    notes = in_every_block(given, make, order + 1, here)
    for shape in shapes(order):
        storage = numbered(rng, form, shape, repeats)
        found = entries(storage)
        expected: list[Row] = [(a, b, *place, value) for a, b in blocks(storage) for at, place, value in found if a <= at < b]
        assert notes.on({"A": storage}) == expected


@pytest.mark.parametrize("form", ["csr", "dcsr", "coo", "csc"])
def test_what_nobody_asks_for_is_not_searched(form: str, rng: np.random.Generator) -> None:
    """A flat loop knows the last coordinate of an entry; those above are found only where they are asked for."""
    order = "j,i" if form == "csc" else "i,j"
    given = conditions("y(i,j) = A(i,j)", f"A:{form}", f"fuse({order},f) pos(f,p,A(i,j))", loops=order.replace(",", " "))
    last = IndexVar(order[-1])

    def here(scope: Scope) -> list[ir.Expr]:
        assert IndexVar(order[0]) not in scope.coordinates
        return [scope.coordinates[last], valued(given.access("A"), scope)]

    notes = in_every_block(given, last_only, 2, here)
    storage = numbered(rng, form, (3, 4))
    mode = "ij".index(last.name)
    expected = [(a, b, place[mode], value) for a, b in blocks(storage) for at, place, value in entries(storage) if a <= at < b]
    assert notes.on({"A": storage}) == expected


EDGES = (
    ("csr", 2, "i", 1),
    ("dcsr", 2, "i", 1),
    ("coo", 2, "i", 1),
    ("csr", 2, "i,j", 2),
    ("coo", 2, "i,j", 2),  # levels that share positions are told apart by all of them
    ("csf", 3, "i", 1),
    ("csf", 3, "i,j", 2),
    ("coo", 3, "i", 1),
    ("coo", 3, "i,j", 2),
    ("coo", 3, "i,j,k", 3),
    ("suq", 3, "i", 1),
    ("suq", 3, "i,j", 2),  # coordinates that repeat come again below other parents
    ("duq", 3, "i,j", 2),
    ("duq", 3, "i,j,k", 3),
    ("dss", 3, "i,j", 2),
    ("sds", 3, "i", 1),
)


@pytest.mark.parametrize(("form", "order", "left", "fixed"), EDGES)
def test_edges_are_the_first_and_the_last_run(form: str, order: int, left: str, fixed: int, rng: np.random.Generator) -> None:
    """Where blocks may share a place, the first and the last run of a block are told apart: entries whose leading coordinates are equal."""
    given = conditions(statement(order, left), f"A:{form}", FUSED[order])
    shared = replace(given, scope=replace(given.scope, atomic=frozenset({(given.lhs.tensor, p)})))

    def here(scope: Scope) -> list[ir.Expr]:
        assert scope.edge is not None
        return [valued(given.access("A"), scope), scope.edge.first, scope.edge.last, scope.edge.either]

    notes = in_every_block(shared, nest, 4, here)
    for _ in range(3):
        storage = numbered(rng, form, (3, 4) if order == 2 else (2, 3, 2))
        expected: list[Row] = []
        for a, b in blocks(storage):
            inside = [(place[:fixed], value) for at, place, value in entries(storage) if a <= at < b]
            told = [(value, run == inside[0][0], run == inside[-1][0]) for run, value in inside]
            expected += [(a, b, value, int(first), int(last), int(first or last)) for value, first, last in told]
        assert notes.on({"A": storage}) == expected


def test_runs_that_come_again_have_no_edges(rng: np.random.Generator) -> None:
    """Where a level above is summed over, the place comes again in the middle of other blocks."""
    given = conditions("y(j) = A(i,j)", "A:csr", FUSED[2])
    shared = replace(given, scope=replace(given.scope, atomic=frozenset({(given.lhs.tensor, p)})))

    def here(scope: Scope) -> list[ir.Expr]:
        assert scope.edge is None
        return [valued(given.access("A"), scope)]

    storage = numbered(rng, "csr", (3, 4))
    expected = [(a, b, value) for a, b in blocks(storage) for at, _, value in entries(storage) if a <= at < b]
    assert in_every_block(shared, nest, 1, here).on({"A": storage}) == expected


Derive = Callable[[int, int], tuple[int, ...]]
SCHEDULES: tuple[tuple[str, str, Derive], ...] = (
    ("fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,3)", "p0 p1", lambda at, end: divmod(at, 3)),
    ("fuse(i,j,f) pos(f,p,A(i,j)) divide(p,p0,p1,3)", "p0 p1", lambda at, end: divmod(at, max(1, -(-end // 3)))),
    ("fuse(i,j,f) pos(f,p,A(i,j)) split(p,a,b,4) split(b,c,d,2)", "a b c d", lambda at, end: (*divmod(at, 4), *divmod(at % 4, 2))),
    ("fuse(i,j,f) pos(f,p,A(i,j)) bound(p,q,99,MaxConstraint)", "q", lambda at, end: (at,)),
    ("fuse(i,j,f) pos(f,p,A(i,j))", "", lambda at, end: ()),
    ("pos(j,p,A(i,j))", "", lambda at, end: ()),
)


@pytest.mark.parametrize(("steps", "digits", "derive"), SCHEDULES)
@pytest.mark.parametrize("form", ["csr", "dcsr", "coo", "ell", "db"])
def test_digits_of_positions_are_known(form: str, steps: str, digits: str, derive: Derive, rng: np.random.Generator) -> None:
    notes = visiting(conditions("y(i,j) = A(i,j)", f"A:{form}", steps), f"i j p {digits}")
    for shape in shapes(2):
        storage = numbered(rng, form, shape)
        end = len(storage.values)
        assert notes.on({"A": storage}) == [(*place, at, *derive(at, end), value) for at, place, value in entries(storage)]


# Where nothing above the last level is asked for, or a digit leaves no interval, there is one flat loop.
FLAT: tuple[tuple[str, str, Derive], ...] = (
    ("y(j) = A(i,j)", "split(p,a,b,3)", lambda at, end: divmod(at, 3)),
    ("y(j) = A(i,j)", "divide(p,a,b,3)", lambda at, end: divmod(at, max(1, -(-end // 3)))),
    ("y(j) = A(i,j)", "split(p,a,b,3) reorder(b,a)", lambda at, end: divmod(at, 3)),
    ("y(i,j) = A(i,j)", "split(p,a,b,3) reorder(b,a)", lambda at, end: divmod(at, 3)),
    ("y(i,j) = A(i,j)", "divide(p,a,b,2) reorder(b,a)", lambda at, end: divmod(at, max(1, -(-end // 2)))),
)


@pytest.mark.parametrize(("text", "steps", "derive"), FLAT)
@pytest.mark.parametrize("form", ["csr", "dcsr", "coo", "ell"])
def test_digits_in_any_order_visit_every_position_once(form: str, text: str, steps: str, derive: Derive, rng: np.random.Generator) -> None:
    notes = visiting(conditions(text, f"A:{form}", f"fuse(i,j,f) pos(f,p,A(i,j)) {steps}"), "j p a b")
    for shape in shapes(2):
        storage = numbered(rng, form, shape)
        rows = [(place[1], at, *derive(at, len(storage.values)), value) for at, place, value in entries(storage)]
        assert notes.on({"A": storage}) == sorted(rows, key=lambda row: row[3:1:-1] if "reorder" in steps else row[2:4])
