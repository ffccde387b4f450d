"""Workspaces, each alone: what is put into them in any order is read in order, and the next row finds them empty."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from levels.slow_reader import entries_of
from lower.conditions import Row, conditions, drawn, note, stored_at, valued
from lower.filling import Passing, filled, maker

from sparseloom.assemble import hashed, listing
from sparseloom.assemble.accumulated import Accumulated
from sparseloom.assemble.appended import AppendedResult, Stage, Visits
from sparseloom.assemble.block_row import block_row
from sparseloom.assemble.hashed import HashRow
from sparseloom.assemble.listing import ListWorkspace, unsorted_levels
from sparseloom.assemble.row_list import RowList, scattered_row
from sparseloom.assemble.workspace import Workspace
from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import walk
from sparseloom.formats.format import Format
from sparseloom.formats.levels.dense import Dense
from sparseloom.formats.levels.listed import Listed
from sparseloom.formats.levels.scattered import Scattered
from sparseloom.formats.levels.singleton import Singleton
from sparseloom.formats.storage import Storage
from sparseloom.formats.text import parse_format
from sparseloom.iteration.region import written
from sparseloom.iteration.rows import RowChoice, RowKind
from sparseloom.loops import nodes as ir
from sparseloom.lower.walking import settle
from sparseloom.notation.nodes import Access, Assign, Forall, IndexVar, Stmt, TensorVar, Where
from sparseloom.scope.ranges import least
from sparseloom.scope.scope import Scope, Sink, Value
from sparseloom.scope.views import TensorView

i, j, k = IndexVar("i"), IndexVar("j"), IndexVar("k")
SHAPES = ((3, 6), (1, 4), (4, 1), (2, 0), (0, 3))
REDUCE: dict[str, tuple[int, Callable[[float, float], float]]] = {"add": (0, operator.add), "multiply": (1, operator.mul)}


def temporary(*levels: object, indices: tuple[IndexVar, ...] = (j,)) -> Access:
    """An access to a workspace w of these levels."""
    return Access(TensorVar("w", len(indices), Format(tuple(levels), tuple(range(len(indices)))), partial=True), indices)  # type: ignore[arg-type]


class RowByRow(Passing):
    """Fills and reads a workspace once for each i."""

    def __init__(self, sink: Sink, read: Callable[[], ir.Stmt]) -> None:
        super().__init__(sink)
        self.read = read

    def around(self, var: IndexVar, body: ir.Stmt, scope: Scope) -> ir.Stmt:
        if var != i:
            return body
        return ir.block(self.other.begin(), body, self.other.ready(), self.read(), self.other.finish())

    def after(self, var: IndexVar, scope: Scope) -> ir.Stmt:
        return ir.block()


def read_list(view: TensorView) -> ir.Stmt:
    """Notes of the entries of a list, below the i at hand."""
    level, at = view.tensor.format.levels[0], ir.Var("entry")
    value = ir.Load(view.values, level.slot(view.levels[0], ir.ZERO, at))
    return ir.For(at, *level.bounds(view.levels[0], ir.ZERO), note(ir.Var("i"), level.coordinate(view.levels[0], ir.ZERO, at), value))


def rows_met(storage: Storage, op: str) -> dict[int, dict[int, int]]:
    """What each row has at its coordinates, in the order in which they are met."""
    rows: dict[int, dict[int, int]] = {}
    for (row, column), value in entries_of(storage):
        met = rows.setdefault(row, {})
        met[column] = int(REDUCE[op][1](met[column], value)) if column in met else int(value)
    return rows


def repeating(rng: np.random.Generator, shape: tuple[int, int]) -> Storage:
    """Rows in no order, with coordinates that repeat."""
    return drawn(rng, "du~", shape, repeats=True)[0]


def prepared(scope: Scope, written: Access, op: str = "add") -> RowList:
    """A row whose places hold what changes nothing before it begins."""
    rows = RowChoice(RowKind.DENSE, "as asked", prepared=True)
    row = scattered_row(replace(scope, context=replace(scope.context, rows=rows)), written, op)
    assert row.is_prepared
    return row


Maker = Callable[..., RowList | HashRow]
KINDS: tuple[tuple[Maker, Scattered], ...] = (
    (scattered_row, Scattered()),
    (scattered_row, Scattered(ordered=False)),
    (prepared, Scattered()),
    (prepared, Scattered(ordered=False)),
    (HashRow, Scattered(hashed=True)),
    (HashRow, Scattered(ordered=False, hashed=True)),
)


@pytest.mark.parametrize("op", REDUCE)
@pytest.mark.parametrize(("kind", "level"), KINDS)
def test_a_row_is_built_in_any_order(
    kind: Maker, level: Scattered, op: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Coordinates come once each, sorted or as they were met. A hash table begins with four places, and grows as it is filled."""
    monkeypatch.setattr(hashed, "FIRST_BITS", 2)
    given, access = conditions("y(i,j) = A(i,j)", "A:du~", loops="i j"), temporary(level)
    row = prepared(given.scope, access, op) if kind is prepared else kind(given.scope, access)
    assert row.needs_presence and row.is_sorted == level.ordered
    loops = filled(given, RowByRow(row, lambda: read_list(row.view)), assign=Assign(access, given.concrete.assign.rhs, op))
    notes = given.notes(loops, 3)
    for shape in (*SHAPES, (2, 40)):
        storage = repeating(rng, shape)
        expected: list[Row] = []
        for at, met in sorted(rows_met(storage, op).items()):
            expected += [(at, column, met[column]) for column in (sorted(met) if level.ordered else met)]
        assert notes.on({"A": storage}) == expected


@pytest.mark.parametrize(("kind", "level"), KINDS)
def test_what_is_not_reduced_has_no_row(kind: Maker, level: Scattered) -> None:
    given, access = conditions("y(i,j) = A(i,j)", "A:csr"), temporary(level)
    with pytest.raises(CompilerBug, match="is reduced into"):
        kind(given.scope, access).write(Assign(access, access), Value(ir.ONE, ir.TRUE, 0), given.scope)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("op", [*REDUCE, None])
def test_a_workspace_has_a_place_for_every_coordinate(op: str | None, masked: bool, rng: np.random.Generator) -> None:
    """Without a mask, what was never written holds the first value: the identity of the reduction, or the fill."""
    given, access = conditions("y(i,j) = A(i,j)", "A:du~" if op else "A:csr", loops="i j"), temporary(Dense())
    made = Assign(access, given.concrete.assign.rhs, op)
    row = Workspace(access, given.scope, masked, given.stmt, Forall(j, made))
    scope = replace(given.scope.holding(row.view, row), operands=(*given.scope.operands, access))
    assert row.needs_presence == masked and row.mark is None

    class Located(RowByRow):
        def write(self, assign: Assign, value: Value, scope: Scope) -> ir.Stmt:
            settled, there = settle(scope)
            return ir.block(settled, row.write(assign, value, there))

    def read() -> ir.Stmt:
        settled, there = settle(scope.knowing(j, ir.Var("j")))
        body = ir.block(settled, note(ir.Var("i"), ir.Var("j"), valued(access, there)))
        return ir.For(ir.Var("j"), ir.ZERO, scope.context.sizes.of(j), body)

    notes = given.notes(filled(given, Located(row, read), scope, assign=made), 3)
    for shape in SHAPES:
        storage = drawn(rng, "csr", shape)[0] if op is None else repeating(rng, shape)
        met = rows_met(storage, op or "add")
        nothing = None if masked else 0 if op is None else REDUCE[op][0]
        expected = [(at, column, met.get(at, {}).get(column, nothing)) for at in range(shape[0]) for column in range(shape[1])]
        assert notes.on({"A": storage}) == expected


def test_a_workspace_begins_where_its_variable_does() -> None:
    """Of a range that outer code has narrowed, only that much is there."""
    given, access = conditions("y(i,j) = A(i,j)", "A:csr", loops="i j"), temporary(Dense())
    narrowed = given.scope.limiting(j, ir.index(2), ir.index(5))
    row = Workspace(access, narrowed, False, given.stmt, Forall(j, Assign(access, given.concrete.assign.rhs)))
    assert row.view.starts == (ir.index(2),)
    assert row.view.levels[0].size == row.row(narrowed).count == ir.index(3)


def test_a_mask_is_shared_where_values_are_not() -> None:
    given, access = conditions("y(i,j) = A(i,j)", "A:csr", loops="i j"), temporary(Dense())
    made = Assign(access, given.concrete.assign.rhs, "add")
    row = Workspace(access, given.scope, True, given.stmt, Forall(j, made))
    there = replace(given.scope, atomic=frozenset({(access.tensor, i)}))
    stored = row.write(made, Value(ir.constant(1.0, access.tensor.dtype), ir.TRUE, 0), there)
    assert [n.atomic for n in walk(stored) if isinstance(n, ir.Store)] == [True, True]


LISTS = (
    ("csr", "i j", "i j", True, False),  # in order already: nothing is sorted
    ("csc", "j i", "i j", True, False),
    ("du~", "i j", "i j", False, True),
    ("u~q~+", "i j", "i j", False, True),
    ("u~q~+", "i j", "j i", False, True),
    ("uq+", "i j", "j i", False, True),
)


@pytest.mark.parametrize("long", [1 << 20, 4])
@pytest.mark.parametrize(("form", "loops", "levels", "ordered", "repeats"), LISTS)
def test_a_list_is_sorted_and_combined(
    form: str, loops: str, levels: str, ordered: bool, repeats: bool, long: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It grows from room for one entry; one that is long is combined before it grows."""
    monkeypatch.setattr(listing, "LONG", long)
    given = conditions("y(i,j) = A(i,j)", f"A:{form}", loops=loops)
    access = temporary(Listed(), Singleton(), indices=tuple(IndexVar(name) for name in levels.split()))
    producer: Stmt = Assign(access, given.concrete.assign.rhs, "add")
    for name in reversed(loops.split()):
        producer = Forall(IndexVar(name), producer)
    entries = ListWorkspace(given.scope, producer, ir.ZERO, repeats, ordered)
    at, view = ir.Var("entry"), entries.view
    crds = [view.tensor.format.levels[n].coordinate(view.levels[n], at, at) for n in range(2)]
    read = ir.For(at, ir.ZERO, view.levels[0].scalars["count"], note(*crds, ir.Load(view.values, at)))
    body = ir.block(entries.begin(), filled(given, entries, assign=written_assign(producer)), entries.ready(), read, entries.finish())
    notes = given.notes(body, 3)
    for shape in (*SHAPES, (5, 7)):
        storage = drawn(rng, form, shape, repeats=repeats)[0]
        held: dict[tuple[int, ...], int] = {}
        for (row, column), value in entries_of(storage):
            place = (row, column) if levels == "i j" else (column, row)
            held[place] = held.get(place, 0) + int(value)
        assert notes.on({"A": storage}) == [(*place, value) for place, value in sorted(held.items())]


def written_assign(producer: Stmt) -> Assign:
    (found,) = [n for n in walk(producer) if isinstance(n, Assign)]
    return found


@pytest.mark.parametrize("loops", list(permutations("ijk")))
def test_only_what_is_out_of_order_is_sorted_by(loops: tuple[str, ...]) -> None:
    """As few leading coordinates as a sort needs that keeps the order of entries which are equal in them."""
    target = Access(TensorVar("w", 3, parse_format("coo", 3)), (i, j, k))
    producer: Stmt = Assign(target, target, "add")
    for name in reversed(loops):
        producer = Forall(IndexVar(name), producer)
    listed = [tuple(dict(zip(loops, met, strict=True))[name] for name in "ijk") for met in product(range(2), repeat=3)]
    keys = next(keys for keys in range(4) if sorted(listed, key=lambda entry: entry[:keys]) == sorted(listed))
    assert unsorted_levels(producer, target) == keys
    # What is summed over outside makes all coordinates come again.
    assert unsorted_levels(Forall(IndexVar("l"), producer), target) == 3


def test_blocks_are_built_a_row_at_a_time(rng: np.random.Generator) -> None:
    """Blocks of 2 x 3 in any order, sorted before they are read; the first entry of a block gives the others their first value."""
    given = conditions("C(i,j) = A(i,j)", "A:csr C:bcsr(2,3)")
    (where,) = [n for n in walk(given.concrete.stmt) if isinstance(n, Where)]
    row = block_row(given.scope, written(where.producer), 9)
    at, element, block = ir.Var("entry"), ir.Var("element"), ir.Var("block")
    size, sizes = ir.index(6), given.scope.context.sizes
    value = ir.Load(row.view.values, ir.add(ir.multiply(ir.Var("number"), size), element))
    listed = row.view.levels[1]
    number = ir.Declare(ir.Var("number"), Scattered().coordinate(listed, ir.ZERO, at))
    noted = ir.For(element, ir.ZERO, size, note(block, ir.Var("number"), value))
    read = ir.For(at, ir.ZERO, listed.scalars["count"], ir.block(number, noted))
    first = ir.multiply(block, ir.index(2))
    rows = (first, least(ir.add(first, ir.index(2)), sizes.of(i)))
    body = ir.block(row.begin(), filled(given, row, rows=rows), row.ready(), read, row.finish())
    notes = given.notes(ir.For(block, ir.ZERO, ir.Op("floor_divide", (ir.add(sizes.of(i), ir.ONE), ir.index(2))), body), 3)
    for shape in ((4, 6), (3, 5), (1, 1), (5, 7), (0, 3)):
        storage, held = drawn(rng, "csr", shape)
        expected = []
        for across, down in sorted({(row // 2, column // 3) for row, column in held}):
            inside = [(across * 2 + r, down * 3 + c) for r in range(2) for c in range(3)]
            expected += [(across, down, held.get(place, 9)) for place in inside]
        assert notes.on({"A": storage}) == expected


def test_a_row_is_added_up_and_taken_at_the_coordinates_that_a_result_has(rng: np.random.Generator) -> None:
    """What a row has is reset as it is taken, so that the next one begins with nothing."""
    given = conditions("C(i,j) = A(i,j)", "A:du~ C:csr", loops="i j")
    access = temporary(Scattered())
    result = AppendedResult(given.scope, given.lhs, 0, Visits(), Stage.REFILL)
    added = Assign(access, given.concrete.assign.rhs, "add")
    row = Accumulated(given.scope, access, added)

    class Taking(RowByRow):
        def around(self, var: IndexVar, body: ir.Stmt, scope: Scope) -> ir.Stmt:
            return ir.block(body, row.take(result, scope)) if var == i else body

    made = maker(given, result, filled(given, Taking(row, ir.block), assign=added))
    for shape in SHAPES:
        storage = repeating(rng, shape)
        met = rows_met(storage, "add")
        there = {place for place in np.ndindex(shape) if place[1] in met.get(place[0], {}) or rng.random() < 0.3}
        structure = stored_at("csr", shape, dict.fromkeys(sorted(there), 1.0))
        found = made.on({"A": storage, "C": structure}, room=len(there))
        assert found == {"values": [met.get(row, {}).get(column, 0) for row, column in sorted(there)]}
