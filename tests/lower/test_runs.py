"""Runs of a block of positions: a row that a neighbour may share is made in private, and added atomically at the end of the run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from lower.conditions import Conditions, conditions, stored_at
from lower.filling import maker

from sparseloom.core.dtypes import BOOL
from sparseloom.core.trees import walk
from sparseloom.loops import nodes as ir
from sparseloom.lower.result import DenseResult
from sparseloom.lower.runs import edge_of, in_run
from sparseloom.lower.scope import Scope, Value
from sparseloom.notation.nodes import Forall, IndexVar

i, k = IndexVar("i"), IndexVar("k")
EDGE = ir.Var("edge", BOOL)


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


@pytest.mark.parametrize("edge", [False, True])
def test_a_row_comes_out_the_same_shared_or_not(edge: bool) -> None:
    """Rows 0 and 2 of three; those at the edge are added with one atomic for each element, others are written plainly."""
    given, result, stmt, scope = sharing()
    run = in_run(stmt, scope, lambda inner: twice(result, given, inner))
    rows = ir.For(ir.Var("i"), ir.ZERO, ir.index(3), ir.If(ir.compare("not_equal", ir.Var("i"), ir.ONE), run))
    fresh = result.initialise(replace(given.scope, uninitialised=0))
    body = ir.block(ir.Declare(EDGE, ir.Literal(edge, BOOL)), fresh, rows)
    operands = {"A": stored_at("csr", (3, 1), {}), "X": stored_at("dd", (1, 2), {(0, 0): 1, (0, 1): 1})}
    assert maker(given, result, body).on(operands, room=6) == {"values": [2, 4, 0, 0, 2, 4]}


def test_only_the_private_row_is_added_atomically() -> None:
    given, result, stmt, scope = sharing()
    run = in_run(stmt, scope, lambda inner: twice(result, given, inner))
    assert isinstance(run, ir.If) and run.condition == EDGE
    stores = {n.array.name: n.atomic for n in walk(run.then) if isinstance(n, ir.Store)}
    assert stores == {"Y_vals_row": False, "Y_vals": True}
    assert [n.atomic for n in walk(run.other) if isinstance(n, ir.Store)] == [False, False]


@pytest.mark.parametrize(("text", "known"), [
    ("y(i) = A(i,j) * x(j)", {}),  # no row: one element
    ("Y(i,k) = A(i,j) * X(j,k)", {"edge": None}),  # nothing tells edges apart
    ("Y(i,k) = A(i,j) * X(j,k)", {"atomic": frozenset()}),  # nobody shares it
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


def test_edges_of_what_comes_in_no_order_cannot_be_told() -> None:
    given = conditions("Y(i,j) = A(i,j)", "A:u~q~", loops="i j")
    access = given.access("A")
    assert edge_of(access, 0, ir.Var("p"), given.scope.cutting(access, 0, ir.ZERO, ir.Var("end"))) is None


def test_edges_are_told_by_positions_or_by_their_coordinates() -> None:
    for form, arrays in (("csr", set()), ("dcsr", set()), ("coo", {"A1_crd"})):
        given = conditions("Y(i,j) = A(i,j)", f"A:{form}", loops="i j")
        access = given.access("A")
        edge = edge_of(access, 0, ir.Var("p"), given.scope.cutting(access, 0, ir.Var("low"), ir.Var("high")))
        assert edge is not None
        assert {n.array.name for n in walk(edge) if isinstance(n, ir.Load)} == arrays
        assert edge.dtype == np.dtype(bool)
