"""Runs of a block of positions: a row that a neighbour may share is made in private, and added at the end of the run or of the loop."""

from __future__ import annotations

from dataclasses import replace

import pytest
from lower.conditions import Conditions, conditions, stored_at
from lower.filling import maker

from sparseloom.assemble.result import DenseResult
from sparseloom.core.dtypes import BOOL, FLOAT64, INT64
from sparseloom.core.trees import walk
from sparseloom.loops import nodes as ir
from sparseloom.lower.runs import edge_of, in_run
from sparseloom.notation.nodes import Forall, IndexVar, Unit
from sparseloom.scope.scope import Carry, Edge, Scope, Value

i, k = IndexVar("i"), IndexVar("k")
ENDPOINTS = (ir.Var("is_first", BOOL), ir.Var("is_last", BOOL))
EDGE = Edge(*ENDPOINTS)
ENDS = [(False, False), (False, True), (True, False), (True, True)]


def sharing(text: str = "Y(i,k) = A(i,j) * X(j,k)") -> tuple[Conditions, DenseResult, Forall, Scope]:
    """A run below an i that is known: its rows are a dense result's, which others write too."""
    given = conditions(text, "A:csr")
    result = DenseResult(given.scope, given.lhs, 0, 0)
    shared = frozenset({(given.lhs.tensor, IndexVar("p"))})
    scope = replace(given.scope, sink=result, result=result, combines=True, atomic=shared, edge=EDGE).knowing(i, ir.Var("i"))
    stmt = given.stmt
    assert isinstance(stmt, Forall)
    return given, result, stmt, scope


def twice(result: DenseResult, given: Conditions, inner: Scope) -> ir.Stmt:
    """Add k + 1 to every element of the row, two times."""
    at = ir.Var("k")
    value = Value(ir.Cast(ir.add(at, ir.ONE), result.view.values.dtype), ir.TRUE, 0)
    added = replace(given.concrete.assign, op="add")
    written = result.write(added, value, inner.knowing(k, at))
    return ir.For(at, ir.ZERO, given.scope.context.sizes.of(k), ir.block(written, written))


def told(first: bool, last: bool) -> ir.Stmt:
    """Whether a run is the first or the last, known before it."""
    return ir.block(*(ir.Declare(end, ir.Literal(is_there, BOOL)) for end, is_there in zip(ENDPOINTS, (first, last), strict=True)))


@pytest.mark.parametrize(("first", "last"), ENDS)
def test_a_row_comes_out_the_same_shared_or_not(first: bool, last: bool) -> None:
    """Rows 0 and 2 of three; those at the edge are added with one atomic for each element, others are written plainly."""
    given, result, stmt, scope = sharing()
    run = in_run(stmt, scope, lambda inner: twice(result, given, inner))
    rows = ir.For(ir.Var("i"), ir.ZERO, ir.index(3), ir.If(ir.compare("not_equal", ir.Var("i"), ir.ONE), run))
    fresh = result.initialise(replace(given.scope, uninitialised=0))
    body = ir.block(told(first, last), fresh, rows)
    operands = {"A": stored_at("csr", (3, 1), {}), "X": stored_at("dd", (1, 2), {(0, 0): 1, (0, 1): 1})}
    assert maker(given, result, body).on(operands, room=6) == {"values": [2, 4, 0, 0, 2, 4]}


def test_only_the_private_row_is_added_atomically() -> None:
    given, result, stmt, scope = sharing()
    run = in_run(stmt, scope, lambda inner: twice(result, given, inner))
    assert isinstance(run, ir.If) and run.condition == EDGE.either
    stores = {n.array.name: n.atomic for n in walk(run.then) if isinstance(n, ir.Store)}
    assert stores == {"Y_vals_row": False, "Y_vals": True}
    assert [n.atomic for n in walk(run.other) if isinstance(n, ir.Store)] == [False, False]


CARRIES, BEGINS = ir.Array("carries", FLOAT64), ir.Array("begins", INT64)


def carrying(given: Conditions, scope: Scope) -> Scope:
    """The same, where the first and the last row of a block have places of their own instead."""
    size = given.scope.context.sizes.of(k)
    return replace(scope, atomic=frozenset(), carry=Carry(given.lhs.tensor, IndexVar("p"), CARRIES, BEGINS, ir.ZERO, size))


@pytest.mark.parametrize(("begin", "end", "wanted"), [
    (0, 3, [200, 400, 2, 4, 200, 400]),
    (1, 3, [0, 0, 200, 400, 200, 400]),
    (1, 2, [0, 0, 200, 400, 0, 0]),  # the first and the last in one
])  # fmt: skip
def test_the_first_and_the_last_row_are_carried(begin: int, end: int, wanted: list[int]) -> None:
    """What is carried is added here a hundredfold, to tell it from what is written to its place."""
    given, result, stmt, scope = sharing()
    run = in_run(stmt, carrying(given, scope), lambda inner: twice(result, given, inner))
    assert not any(n.atomic for n in walk(run) if isinstance(n, ir.Store))
    at, size, slot, place = ir.Var("i"), given.scope.context.sizes.of(k), ir.Var("slot"), ir.Var("place")
    ends = [ir.Declare(var, ir.compare("equal", at, ir.index(n))) for var, n in zip(ENDPOINTS, (begin, end - 1), strict=True)]
    room = ir.multiply(ir.index(2), size)
    carried = ir.Op("multiply", (ir.constant(100.0, FLOAT64), ir.Load(CARRIES, ir.add(ir.multiply(slot, size), place))), FLOAT64)
    joined = ir.Store(result.view.values, ir.add(ir.Load(BEGINS, slot), place), carried, "add")
    there = ir.If(ir.compare("greater_equal", ir.Load(BEGINS, slot), ir.ZERO), ir.For(place, ir.ZERO, size, joined))
    body = ir.block(
        ir.Allocate(CARRIES, room),
        ir.Allocate(BEGINS, ir.index(2)),
        ir.Fill(CARRIES, ir.ZERO, room, ir.constant(0.0, FLOAT64)),
        ir.Fill(BEGINS, ir.ZERO, ir.index(2), ir.index(-1)),
        result.initialise(replace(given.scope, uninitialised=0)),
        ir.For(at, ir.index(begin), ir.index(end), ir.block(*ends, run)),
        ir.For(slot, ir.ZERO, ir.index(2), there),
        ir.Free(CARRIES),
        ir.Free(BEGINS),
    )
    operands = {"A": stored_at("csr", (3, 1), {}), "X": stored_at("dd", (1, 2), {(0, 0): 1, (0, 1): 1})}
    assert maker(given, result, body).on(operands, room=6) == {"values": wanted}


@pytest.mark.parametrize(("text", "known"), [
    ("y(i) = A(i,j) * x(j)", {}),  # no row: one element
    ("Y(i,k) = A(i,j) * X(j,k)", {"edge": None}),  # nothing tells edges apart
    ("Y(i,k) = A(i,j) * X(j,k)", {"atomic": frozenset()}),  # nobody shares it
    ("Y(i,k) = A(i,j) * X(j,k)", {"units": (Unit.CPUVector,)}),  # a lane has no room for a row
    ("Y(i,k) = A(i,j) * X(j,k)", {"units": (Unit.GPUBlock, Unit.GPUThread)}),  # nor a thread of a GPU, for one of any size
    ("Y(k,i) = A(i,j) * X(j,k)", {}),  # the open mode is not the last
])  # fmt: skip
def test_otherwise_a_run_goes_on_as_any_loop(text: str, known: dict[str, object]) -> None:
    _, _, stmt, scope = sharing(text)
    seen: list[Scope] = []

    def go(inner: Scope) -> ir.Stmt:
        seen.append(inner)
        return ir.block()

    scope = replace(scope, ways=replace(scope.ways, reduced=lambda stmt, inner, then: then(inner)), **known)
    assert in_run(stmt, scope, go) == ir.block()
    assert seen == [scope]


@pytest.mark.parametrize(("text", "known"), [
    ("y(i) = A(i,j) * x(j)", {}),
    ("Y(i,k) = A(i,j) * X(j,k)", {"edge": None}),
    ("Y(k,i) = A(i,j) * X(j,k)", {}),
])  # fmt: skip
def test_otherwise_nothing_is_carried_here(text: str, known: dict[str, object]) -> None:
    given, _, stmt, scope = sharing(text)
    size = given.scope.context.sizes.of(given.lhs.indices[-1])
    carry = Carry(given.lhs.tensor, IndexVar("p"), CARRIES, BEGINS, ir.ZERO, size)
    ways = replace(scope.ways, reduced=lambda stmt, inner, then: then(inner))
    scope = replace(scope, ways=ways, atomic=frozenset(), carry=carry)
    scope, seen = replace(scope, **known), list[Scope]()

    def go(inner: Scope) -> ir.Stmt:
        seen.append(inner)
        return ir.block()

    assert in_run(stmt, scope, go) == ir.block()
    assert seen == [scope]


LOW, HIGH, POSITION = ir.Var("low"), ir.Var("high"), ir.Var("p")


def edge(form: str, levels: range) -> Edge | None:
    """The edge of a block of positions of some levels."""
    given = conditions("Y(i,j) = A(i,j)", f"A:{form}", loops="i j")
    access = given.access("A")
    return edge_of(access, levels, POSITION, given.scope.cutting(access, levels[0], LOW, HIGH))


@pytest.mark.parametrize(("form", "levels"), [("u~q~", range(1)), ("u~q~", range(2)), ("uq~", range(2))])
def test_edges_of_what_comes_in_no_order_cannot_be_told(form: str, levels: range) -> None:
    assert edge(form, levels) is None


@pytest.mark.parametrize("form", ["csr", "dcsr"])
@pytest.mark.parametrize("levels", [range(1), range(1, 2)])
def test_edges_are_told_by_positions(form: str, levels: range) -> None:
    last = ir.Op("subtract", (HIGH, ir.ONE))
    assert edge(form, levels) == Edge(ir.compare("equal", POSITION, LOW), ir.compare("equal", POSITION, last))


@pytest.mark.parametrize(("form", "levels", "arrays"), [
    ("coo", range(1), {"A1_crd"}),
    ("coo", range(2), {"A1_crd", "A2_crd"}),
    ("uq~", range(1), {"A1_crd"}),
])  # fmt: skip
def test_where_coordinates_repeat_edges_are_told_by_those_of_all_levels(form: str, levels: range, arrays: set[str]) -> None:
    found = edge(form, levels)
    assert found is not None
    for told_by, end in ((found.first, LOW), (found.last, HIGH)):
        loads = [n for n in walk(told_by) if isinstance(n, ir.Load)]
        assert {load.array.name for load in loads} == arrays and len(loads) == 2 * len(arrays)
        assert {n for load in loads for n in walk(load.index) if isinstance(n, ir.Var)} == {POSITION, end}
        assert told_by.dtype == BOOL


def test_an_edge_below_another_is_one_of_both() -> None:
    above = Edge(ir.Var("first_above", BOOL), ir.Var("last_above", BOOL))
    below = EDGE.below(above)
    assert (below.first, below.last) == (ir.both(above.first, EDGE.first), ir.both(above.last, EDGE.last))
    assert EDGE.either == ir.either(EDGE.first, EDGE.last)
