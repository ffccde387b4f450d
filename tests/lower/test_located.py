"""Results whose entries have places, each alone: dense, beside an operand's structure, filled in any order, or inserted into rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from levels.slow_reader import entries_of
from lower.conditions import Conditions, conditions, note, number, numbered, stored_at
from lower.filling import Passing, filled, maker, packed, without_counts

from sparseloom.assemble.inserted import InsertedResult
from sparseloom.assemble.result import DenseResult, SharedResult, combine, placed
from sparseloom.core.dtypes import BOOL, FLOAT64, INT64
from sparseloom.formats.pack import to_dense
from sparseloom.iteration.making import Shared
from sparseloom.loops import nodes as ir
from sparseloom.loops.interpret import KernelStatus
from sparseloom.notation.nodes import Assign, IndexVar
from sparseloom.scope.scope import Carry, Edge, Place, Row, Scope, Sharing, Value

i, j = IndexVar("i"), IndexVar("j")
SHAPES = ((3, 4), (1, 3), (4, 1), (2, 0), (0, 2))


def dense(text: str, formats: str, loops: str, fill: float = 0, **known: object) -> tuple[Conditions, DenseResult]:
    """A dense result, and a scope in which more is known."""
    given = conditions(text, formats, loops=loops)
    given = replace(given, scope=replace(given.scope, **known))
    return given, DenseResult(given.scope, given.lhs, fill, 0)


@pytest.mark.parametrize("target", ["dd", "dd:1,0"])
@pytest.mark.parametrize("source", ["csr", "dcsr", "coo", "csc"])
def test_a_dense_result_is_initialised_and_written_where_entries_are(source: str, target: str, rng: np.random.Generator) -> None:
    given, result = dense("C(i,j) = A(i,j)", f"A:{source} C:{target}", "j i" if source == "csc" else "i j", fill=5)
    fresh = replace(given.scope, uninitialised=0)
    made = maker(given, result, ir.block(result.initialise(fresh), filled(given, result)))
    for shape in SHAPES:
        storage = numbered(rng, source, shape)
        expected = np.where(to_dense(storage) == 0, 5, to_dense(storage))
        stored = expected.T if target.endswith("1,0") else expected
        assert made.on({"A": storage}, room=shape[0] * shape[1]) == {"values": stored.ravel().tolist()}


def test_rows_are_initialised_just_before_they_are_reduced_into() -> None:
    """Of two leading modes one is covered by a full loop: each of its rows is filled there, and then added to."""
    given, result = dense("C(i,j) = A(i,j)", "A:csr", "i j", combines=True)

    class ByRows(Passing):
        def around(self, var: IndexVar, body: ir.Stmt, scope: Scope) -> ir.Stmt:
            return ir.block(result.initialise(replace(scope, uninitialised=1)), body) if var == i else body

    added = Assign(given.lhs, given.concrete.assign.rhs, "add")
    once_more = filled(given, result, assign=added)
    made = maker(given, result, ir.block(filled(given, ByRows(result), assign=added), once_more))
    storage = stored_at("csr", (3, 2), {(0, 1): 1, (2, 0): 4})
    assert made.on({"A": storage}, room=6) == {"values": [0, 2, 0, 0, 8, 0]}


@pytest.mark.parametrize(("op", "wanted"), [("add", [5, 7]), ("maximum", [3, 4]), (None, [2, 3])])
def test_a_write_is_combined_with_what_is_there_where_loops_outside_reduce(op: str | None, wanted: list[float]) -> None:
    """Rows (3, 4) and (2, 3) are written to one row, one after the other."""
    given, result = dense("y(j) = A(i,j)", "A:dd", "i j", combines=True)
    assign = Assign(given.lhs, given.concrete.assign.rhs, op)
    made = maker(given, result, ir.block(result.initialise(replace(given.scope, uninitialised=0)), filled(given, result, assign=assign)))
    assert made.on({"A": stored_at("dd", (2, 2), {(0, 0): 3, (0, 1): 4, (1, 0): 2, (1, 1): 3})}, room=2) == {"values": wanted}


def test_a_repeated_variable_reaches_only_the_diagonal() -> None:
    """B(i,i) is reduced from 1; what it does not reach is worth 0."""
    given, result = dense("B(i,i) = A(i)", "A:s", "i", fill=1)
    made = maker(given, result, ir.block(result.initialise(replace(given.scope, uninitialised=0)), filled(given, result)))
    assert made.on({"A": stored_at("s", (3,), {(1,): 7})}, room=9) == {"values": [1, 0, 0, 0, 7, 0, 0, 0, 1]}


def test_the_open_part_of_a_dense_result_is_a_row() -> None:
    given, result = dense("C(i,j) = A(i,j)", "A:csr", "i j")
    size = given.scope.context.sizes.of
    values = result.view.values
    assert result.row(given.scope) == Row(values, ir.ZERO, ir.multiply(size(i), size(j)))
    assert result.row(given.scope.knowing(i, ir.Var("i"))) == Row(values, ir.multiply(ir.Var("i"), size(j)), size(j))
    both = given.scope.knowing(i, ir.Var("i")).knowing(j, ir.Var("j"))
    assert result.row(both) == Row(values, result.location(both), ir.ONE)


def test_nothing_is_written_where_a_value_is_absent() -> None:
    given, result = dense("y(i) = x(i)", "x:s", "i")
    absent = Value(ir.constant(3.0, result.view.values.dtype), ir.Var("there", np.dtype(bool)), 0)
    scope = given.scope.knowing(i, ir.Var("i"))
    written = result.write(given.concrete.assign, absent, scope)
    assert written == ir.If(absent.present, ir.Store(result.view.values, ir.Var("i"), absent.computed))
    # A place that has no value yet gets one in any case.
    assert isinstance(result.write(given.concrete.assign, absent, replace(scope, uninitialised=1)), ir.Store)


EDGE = Edge(ir.Var("is_first", BOOL), ir.Var("is_last", BOOL))
WRITES = (
    ({}, ir.Store, False),
    ({"edge": EDGE}, ir.Store, False),
    ({"atomic": True}, ir.Store, True),
    ({"atomic": True, "edge": EDGE}, ir.If, True),
)


@pytest.mark.parametrize(("shared", "kind", "atomic"), WRITES)
def test_places_that_others_write_too_are_combined_atomically(shared: dict[str, object], kind: type, atomic: bool) -> None:
    """In a block of positions that is so only at its edges."""
    given = conditions("y(i) = x(i)")
    tensor, array = given.lhs.tensor, given.scope.view(given.lhs).values
    known = {**shared, "atomic": frozenset({(tensor, i)} if "atomic" in shared else ())}
    made = combine(tensor, array, ir.ZERO, ir.constant(1.0, array.dtype), "add", replace(given.scope, **known))
    assert isinstance(made, kind)
    first = made.then if isinstance(made, ir.If) else made
    assert isinstance(first, ir.Store) and first.atomic == atomic
    assert not isinstance(made, ir.If) or (made.condition, made.other) == (EDGE.either, replace(first, atomic=False))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_first_and_the_last_run_are_combined_in_places_of_their_own(size: int) -> None:
    """Two iterations add 1, 2, 3, ... to six places: the first and the last ``size`` of them are carried, with where they begin."""
    given = conditions("y(i) = x(i)")
    tensor, width = given.lhs.tensor, ir.index(size)
    array, values, begins = ir.Array("own", FLOAT64), ir.Array("carries", FLOAT64), ir.Array("begins", INT64)
    at, turn, k = ir.Var("at"), ir.Var("turn"), ir.Var("k")
    edge = Edge(ir.compare("less", at, width), ir.compare("greater_equal", at, ir.index(6 - size)))
    carry = Carry(tensor, i, values, begins, ir.multiply(ir.index(2), turn), width)
    added = combine(tensor, array, at, ir.Cast(ir.add(at, ir.ONE), FLOAT64), "add", replace(given.scope, edge=edge, carry=carry))
    slots = (ir.index(4), ir.multiply(ir.index(4), width))
    made = [ir.Allocate(a, n) for a, n in ((array, ir.index(6)), (begins, slots[0]), (values, slots[1]))]
    cleared = [ir.Fill(a, ir.ZERO, n, ir.constant(0.0, FLOAT64)) for a, n in ((array, ir.index(6)), (values, slots[1]))]
    run = ir.For(turn, ir.ZERO, ir.index(2), ir.For(at, ir.ZERO, ir.index(6), added))
    noted = [ir.For(k, ir.ZERO, n, note(ir.Load(a, k))) for a, n in ((begins, slots[0]), (values, slots[1]), (array, ir.index(6)))]
    freed = [ir.Free(a) for a in (array, begins, values)]
    found = given.notes(ir.block(*made, *cleared, run, *noted, *freed), 1).on({"x": stored_at("d", (6,), {})})
    first, last = [n + 1 for n in range(size)], [n + 1 for n in range(6 - size, 6)]
    between = [2 * (n + 1) if size <= n < 6 - size else 0 for n in range(6)]
    assert [n for (n,) in found] == [0, 6 - size, 0, 6 - size, *first, *last, *first, *last, *between]


def test_only_the_tensor_that_is_carried_has_places_of_its_own() -> None:
    """And only where runs can be told apart. Of a run that is the first and the last, the first place is the one."""
    given = conditions("y(i) = x(i)")
    tensor, array, one = given.lhs.tensor, given.scope.view(given.lhs).values, ir.constant(1.0, FLOAT64)
    carry = Carry(tensor, i, ir.Array("carries", FLOAT64), ir.Array("begins", INT64), ir.Var("mine"), ir.ONE)
    there, plain = replace(given.scope, edge=EDGE, carry=carry), ir.Store(array, ir.ZERO, one, "add")
    assert isinstance(combine(tensor, array, ir.ZERO, one, "add", there), ir.If)
    assert combine(tensor, array, ir.ZERO, one, "add", replace(there, edge=None)) == plain
    assert combine(given.access("x").tensor, array, ir.ZERO, one, "add", there) == plain
    slots = [number(carry.slot(Edge(first, last)), {"mine": 6}) for first in (ir.FALSE, ir.TRUE) for last in (ir.FALSE, ir.TRUE)]
    assert slots[1:] == [7, 6, 6]


def test_a_private_copy_takes_the_place_of_an_array() -> None:
    given = conditions("y(i) = x(i)")
    array, own = given.scope.view(given.lhs).values, ir.Array("own", np.dtype(float))
    there = replace(given.scope, copy=(given.lhs.tensor, own, ir.index(10)))
    assert placed(given.lhs.tensor, array, ir.index(3), given.scope) == (array, ir.index(3))
    assert placed(given.lhs.tensor, array, ir.index(3), there) == (own, ir.index(13))


@pytest.mark.parametrize("form", ["csr", "dcsr", "coo", "ell", "db", "bcsr(2,2)", "ds~"])
def test_values_are_written_beside_an_operands_structure(form: str, rng: np.random.Generator) -> None:
    """Places that nobody writes to, as those of padding, hold the first value."""
    given = conditions("C(i,j) = A(i,j)", f"A:{form} C:{form}", loops=None if "bcsr" in form else "i j")
    access = given.access("A")
    result = SharedResult(given.scope, given.lhs, 9, Shared(access, len(access.tensor.format.levels)))
    made = maker(given, result, filled(given, result))
    for shape in SHAPES:
        storage = numbered(rng, form.replace("~", ""), shape)
        found = made.on({"A": storage}, room=len(storage.values))["values"]
        unused = not all(level.compact for level in access.tensor.format.levels)
        kept = {float(value) for _, value in entries_of(storage)}
        assert found == [value if not unused or value in kept else 9 for value in storage.values.tolist()]


def test_values_that_several_loops_reduce_into_begin_with_the_first_value() -> None:
    given = conditions("C(i,j) = A(i,j)", "A:csr C:csr", loops="i j")
    given = replace(given, scope=replace(given.scope, combines=True))
    result = SharedResult(given.scope, given.lhs, 10, Shared(given.access("A"), 2))
    added = Assign(given.lhs, given.concrete.assign.rhs, "add")
    made = maker(given, result, ir.block(filled(given, result, assign=added), filled(given, result, assign=added)))
    assert made.on({"A": stored_at("csr", (2, 2), {(0, 1): 1, (1, 0): 2})}, room=2) == {"values": [12, 14]}


def test_where_the_operand_has_no_entry_there_is_no_place() -> None:
    given = conditions("C(i,j) = A(i,j)", "A:csr C:csr", loops="i j")
    result, there = SharedResult(given.scope, given.lhs, 0, Shared(given.access("A"), 2)), ir.Var("there", np.dtype(bool))
    scope = given.scope.placing({given.access("A"): Place(2, ir.Var("p"), present=there)})
    value = Value(ir.constant(1.0, result.view.values.dtype), ir.TRUE, 0)
    stored = ir.Store(result.view.values, ir.Var("p"), value.computed)
    assert result.write(given.concrete.assign, value, scope) == ir.If(there, stored)


IN_ANY_ORDER = (
    ("csr", "db", "i j"),
    ("csc", "db", "j i"),
    ("csc", "bb", "j i"),
    ("csr", "bb:1,0", "i j"),
    ("csc", "bd", "j i"),
    ("coo", "db", "i j"),
)


@pytest.mark.parametrize(("source", "target", "loops"), IN_ANY_ORDER)
def test_entries_are_put_in_their_places_in_any_order(source: str, target: str, loops: str, rng: np.random.Generator) -> None:
    given = conditions("C(i,j) = A(i,j)", f"A:{source} C:{target}", loops=loops)
    result = InsertedResult(given.scope, given.lhs)
    made = maker(given, result, filled(given, result))
    for shape in SHAPES:
        storage = numbered(rng, source, shape)
        assert made.on({"A": storage}) == packed(given, storage)


# The last of these tell the row of each entry by themselves, and may drive.
INSERTED = (
    (2, "csr", "ell", "i j", False),
    (2, "coo", "dp:1,0", "i j", False),
    (2, "csr", "bs:1,0", "i j", False),
    (2, "dcsr", "bp", "i j", False),
    (2, "dcsr", "csc", "i j", False),
    (2, "ell", "csc", "i j", False),
    (2, "csr", "csc", "i j", False),
    (3, "dds", "dds:1,0,2", "i j k", False),
    (3, "csf", "dds:2,1,0", "i j k", False),
    (2, "csr", "csc", "i j", True),
    (2, "csc", "csr", "j i", True),
    (2, "coo", "csc", "i j", True),
    (3, "duq", "dds:2,1,0", "i j k", True),
    (3, "coo", "dds:2,0,1", "i j k", True),
)


@pytest.mark.parametrize(("order", "source", "target", "loops", "driven"), INSERTED)
def test_rows_are_counted_and_filled(order: int, source: str, target: str, loops: str, driven: bool, rng: np.random.Generator) -> None:
    """The rows of the result come in any order. With a driver the places of later entries are fetched ahead, which changes nothing."""
    inside = ",".join("ijk"[:order])
    given = conditions(f"C({inside}) = A({inside})", f"A:{source} C:{target}", loops=loops)
    result = InsertedResult(given.scope, given.lhs, given.access("A") if driven else None)
    assert (result.variables, result.sharing) == ((), Sharing.ROWS)
    made = maker(given, result, ir.block(filled(given, result), result.arranged(), filled(given, result.filling())))
    for shape in SHAPES if order == 2 else ((2, 3, 2), (1, 2, 3), (3, 0, 2)):
        storage = numbered(rng, source, shape)
        assert without_counts(made.on({"A": storage})) == packed(given, storage)


@pytest.mark.parametrize("limit", [1, 2])
def test_more_entries_than_narrow_positions_hold_end_the_kernel(limit: int) -> None:
    """Two entries: one more than the limit, or just as many."""
    given = conditions("C(i,j) = A(i,j)", "A:csr C:csc", loops="i j")
    given = replace(given, scope=replace(given.scope, context=replace(given.scope.context, int32_limit=limit)))
    result = InsertedResult(given.scope, given.lhs)
    made = maker(given, result, ir.block(filled(given, result), result.arranged(), filled(given, result.filling())))
    storage = stored_at("csr", (2, 2), {(0, 1): 1, (1, 0): 2})
    if limit == 2:
        assert without_counts(made.on({"A": storage})) == packed(given, storage)
        return
    with pytest.raises(KernelStatus, match="INDEX_OVERFLOW"):
        made.on({"A": storage})
