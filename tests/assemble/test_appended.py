"""Results whose entries come in the order of storage, each alone: appended, counted, made in parts, or filled in again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from lower.conditions import Conditions, conditions, numbered, stored_at
from lower.filling import Arrays, Maker, Passing, filled, maker, packed, without_counts

from sparseloom.assemble.appended import AppendedResult, Stage, Visits
from sparseloom.assemble.parts import JoinedParts, arranged, begin_counted, end_counted
from sparseloom.formats.pack import convert
from sparseloom.formats.storage import Storage
from sparseloom.loops import nodes as ir
from sparseloom.loops.interpret import KernelStatus
from sparseloom.notation.nodes import Assign
from sparseloom.scope.ranges import Range, least
from sparseloom.scope.scope import Scope, Sharing, Value

COPY = {1: "C(i) = A(i)", 2: "C(i,j) = A(i,j)", 3: "C(i,j,k) = A(i,j,k)"}
SHAPES = {1: ((7,), (1,), (0,)), 2: ((4, 5), (1, 3), (5, 1), (3, 0), (0, 2)), 3: ((3, 2, 4), (1, 2, 2), (2, 0, 3))}

# What is copied to what: the loops are those of the first format.
IN_ORDER = (
    (1, "s", "s"),
    (1, "d", "s"),
    (1, "u", "u"),
    (2, "csr", "csr"),
    (2, "csr", "dcsr"),
    (2, "csr", "coo"),
    (2, "dcsr", "dcsr"),
    (2, "dcsr", "coo"),
    (2, "coo", "coo"),
    (2, "csc", "csc"),
    (2, "sd", "sd"),
    (2, "du", "du"),
    (2, "bcsr(2,2)", "bcsr(2,2)"),
    (3, "csf", "csf"),
    (3, "csf", "coo"),
    (3, "dss", "sss"),
    (3, "dds", "dss"),
    (3, "dds", "dds"),
    (3, "dds", "suq"),
    (3, "dsd", "dsd"),
    (3, "ssd", "ssd"),
    (3, "dsd", "ssd"),
    (3, "sds", "sds"),
)
# Rows of full levels that the loops pass over are ended by those behind them.
WITH_GAPS = (
    (2, "dcsr", "csr"),
    (2, "coo", "csr"),
    (3, "csf", "dss"),
    (3, "csf", "dds"),
    (3, "sss", "sds"),
    (3, "ssd", "dsd"),
)
ALL = [*((*case, False) for case in IN_ORDER), *((*case, True) for case in WITH_GAPS)]


def copying(order: int, source: str, target: str) -> Conditions:
    """A copy from one format to another, in the loops of the first."""
    names = "i j k".split()[:order]
    loops = None if "bcsr" in source else " ".join(names[::-1] if source == "csc" else names)
    return conditions(COPY[order], f"A:{source} C:{target}", loops=loops)


def drawn_for(order: int, form: str, rng: np.random.Generator) -> list[Storage]:
    return [numbered(rng, form, shape, repeats=2 if "u" in form and form != "suq" else 0) for shape in SHAPES[order]]


def check_copies(made: Maker, storages: list[Storage]) -> None:
    """What a kernel makes of storages is what packing makes."""
    for storage in storages:
        assert without_counts(made.on({"A": storage})) == packed(made.given, storage)


def result_of(
    given: Conditions, stage: Stage = Stage.GROW, gaps: bool = False, certain: bool = False, leaves: bool = False, parts: int | None = None
) -> AppendedResult:
    """A result of entries that come in order."""
    count = None if parts is None else ir.index(parts)
    return AppendedResult(given.scope, given.lhs, 0, Visits(gaps, certain), stage, leaves, count)


def twice(given: Conditions, counting: AppendedResult) -> ir.Stmt:
    """Loops that count, and loops that fill in."""
    filling = counting.at(Stage.FILL)
    counted = ir.block(begin_counted(counting, ir.ZERO), filled(given, counting), end_counted(counting, ir.ZERO), arranged(counting))
    return ir.block(counted, begin_counted(filling, ir.ZERO), filled(given, filling), end_counted(filling, ir.ZERO))


@pytest.mark.parametrize(("order", "source", "target", "gaps"), ALL)
def test_entries_are_appended(order: int, source: str, target: str, gaps: bool, rng: np.random.Generator) -> None:
    """What stands there afterwards is what packing makes; arrays grow from room for one entry."""
    given = copying(order, source, target)
    result = result_of(given, gaps=gaps)
    check_copies(maker(given, result, filled(given, result)), drawn_for(order, source, rng))


@pytest.mark.parametrize(("order", "source", "target", "gaps"), ALL)
def test_entries_are_counted_and_then_filled_in(order: int, source: str, target: str, gaps: bool, rng: np.random.Generator) -> None:
    """The same loops twice: nothing grows."""
    given = copying(order, source, target)
    result = result_of(given, Stage.COUNT, gaps)
    check_copies(maker(given, result, twice(given, result)), drawn_for(order, source, rng))


PARTED = [case for case in ALL if case[1] in ("csr", "dcsr", "csf", "dss", "dds", "dsd", "ssd", "sds", "s", "d", "sss")]


def part_of(given: Conditions, part: ir.Expr, count: int) -> Range:
    """The positions of a part of the first level of A."""
    access = given.access("A")
    begin, end = access.tensor.format.levels[0].bounds(given.scope.view(access).levels[0], ir.ZERO)
    size = ir.Op("floor_divide", (ir.add(ir.Op("subtract", (end, begin)), ir.index(count - 1)), ir.index(count)))
    first = ir.add(begin, ir.multiply(part, size))
    return least(first, end), least(ir.add(first, size), end)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(("order", "source", "target", "gaps"), PARTED)
def test_parts_are_counted_and_filled(order: int, source: str, target: str, gaps: bool, count: int, rng: np.random.Generator) -> None:
    """Every part is counted and filled by whoever comes, and stands where it belongs."""
    given = copying(order, source, target)
    counting, part = result_of(given, Stage.COUNT, gaps, parts=count), ir.Var("part")
    runs: list[ir.Stmt] = []
    for result in (counting, counting.at(Stage.FILL)):
        loops = filled(given, result, rows=part_of(given, part, count))
        body = ir.block(begin_counted(result, part), loops, end_counted(result, part))
        runs += [ir.For(part, ir.ZERO, ir.index(count), body, ir.LoopKind.THREADS)]
        runs += [arranged(counting)] if result is counting else []
    check_copies(maker(given, counting, ir.block(*runs)), drawn_for(order, source, rng))


def in_parts(given: Conditions, whole: AppendedResult, count: int) -> ir.Stmt:
    """Loops of threads that append so many parts, which are then joined."""
    part, parts = ir.Var("part"), JoinedParts(whole, ir.index(count))
    thread = parts.thread
    loops = filled(given, thread, rows=part_of(given, part, count))
    body = ir.block(parts.begin_part(part), loops, parts.end_part(part))
    team = ir.Team(thread.begin(), ir.For(part, ir.ZERO, ir.index(count), body, ir.LoopKind.THREADS), parts.keep())
    return ir.block(parts.open(), team, parts.join())


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(("order", "source", "target", "gaps"), PARTED)
def test_parts_are_appended_and_joined(order: int, source: str, target: str, gaps: bool, count: int, rng: np.random.Generator) -> None:
    """Each thread has arrays of its own, which are put behind each other in the order of the parts."""
    given = copying(order, source, target)
    whole = result_of(given, gaps=gaps, parts=count)
    check_copies(maker(given, whole, in_parts(given, whole, count)), drawn_for(order, source, rng))


REFILLED = (*((*case, False) for case in IN_ORDER if case[1] == case[2]), (2, "csr", "dcsr", False), (2, "dcsr", "csr", True))


@pytest.mark.parametrize(("order", "source", "target", "gaps"), REFILLED)
def test_a_structure_that_is_known_gets_its_values(order: int, source: str, target: str, gaps: bool, rng: np.random.Generator) -> None:
    given = copying(order, source, target)
    result = result_of(given, Stage.REFILL, gaps)
    made = maker(given, result, filled(given, result))
    for storage in drawn_for(order, source, rng):
        structure = convert(storage, given.lhs.tensor.format)
        assert made.on({"A": storage, "C": structure}, room=len(structure.values)) == {"values": structure.values.tolist()}


STRUCTURES = (("csr", "coo", False), ("coo", "csr", True), ("dcsr", "csr", True), ("csr", "dcsr", False))


@pytest.mark.parametrize(("source", "target", "gaps"), STRUCTURES)
def test_what_stands_above_the_last_level_is_made(source: str, target: str, gaps: bool, rng: np.random.Generator) -> None:
    """The last coordinates and the values are the operand's own."""
    given = copying(2, source, target)
    result = result_of(given, gaps=gaps, leaves=True)
    made = maker(given, result, filled(given, result))
    for storage in drawn_for(2, source, rng):
        found = without_counts(made.on({"A": storage}))
        assert found == {name: array for name, array in packed(given, storage).items() if name not in ("values", "crd2")}


PICTURES: tuple[tuple[str, str, bool, Arrays], ...] = (
    ("csr", "csr", False, {"pos2": [0, 2, 2, 3], "crd2": [1, 4, 0], "values": [1, 2, 3], "count2": [3]}),
    ("dcsr", "csr", True, {"pos2": [0, 2, 2, 3], "crd2": [1, 4, 0], "values": [1, 2, 3], "count2": [3]}),
    (
        "csr",
        "dcsr",
        False,
        {"pos1": [0, 2], "crd1": [0, 2], "pos2": [0, 2, 3], "crd2": [1, 4, 0], "values": [1, 2, 3], "count1": [2], "count2": [3]},
    ),
    ("csr", "coo", False, {"pos1": [0, 3], "crd1": [0, 0, 2], "crd2": [1, 4, 0], "values": [1, 2, 3], "count1": [3]}),
    ("csr", "sd", False, {"pos1": [0, 2], "crd1": [0, 2], "values": [0, 1, 0, 0, 2, 3, 0, 0, 0, 0], "count1": [2]}),
)


@pytest.mark.parametrize(("source", "target", "gaps", "picture"), PICTURES)
def test_appended_arrays_look_like_this(source: str, target: str, gaps: bool, picture: Arrays) -> None:
    given = copying(2, source, target)
    result = result_of(given, gaps=gaps)
    storage = stored_at(source, (3, 5), {(0, 1): 1, (0, 4): 2, (2, 0): 3})
    assert maker(given, result, filled(given, result)).on({"A": storage}) == picture


@pytest.mark.parametrize("stage", [Stage.GROW, Stage.COUNT])
@pytest.mark.parametrize(("certain", "rows"), [(False, [0, 2]), (True, [0, 1, 2])])
def test_a_block_is_kept_if_something_was_written_or_must_be(stage: Stage, certain: bool, rows: list[int]) -> None:
    """Below each row stands a block of values; where nothing is written, it is left out, unless it has its first values in any case."""
    given = copying(2, "csr", "sd")
    result = AppendedResult(given.scope, given.lhs, 7, Visits(certain=certain), stage)
    body = twice(given, result) if stage is Stage.COUNT else filled(given, result)
    found = maker(given, result, body).on({"A": stored_at("csr", (3, 2), {(0, 1): 1, (2, 0): 3})})
    blocks = {0: [7, 1], 1: [7, 7], 2: [3, 7]}
    assert found["crd1"] == rows
    assert found["values"] == [value for row in rows for value in blocks[row]]


@pytest.mark.parametrize("stage", [Stage.GROW, Stage.COUNT])
@pytest.mark.parametrize("limit", [2, 3])
def test_too_many_entries_for_narrow_positions_end_the_kernel(stage: Stage, limit: int) -> None:
    """Three entries: one more than the limit, or just as many."""
    given = copying(2, "csr", "csr")
    narrow = replace(given, scope=replace(given.scope, context=replace(given.scope.context, int32_limit=limit)))
    result = AppendedResult(narrow.scope, given.lhs, 0, Visits(), stage)
    made = maker(narrow, result, twice(narrow, result) if stage is Stage.COUNT else filled(narrow, result))
    storage = stored_at("csr", (2, 3), {(0, 1): 1, (1, 0): 2, (1, 2): 3})
    if limit == 3:
        assert without_counts(made.on({"A": storage})) == packed(given, storage)
        return
    with pytest.raises(KernelStatus, match="INDEX_OVERFLOW"):
        made.on({"A": storage})


def test_what_is_absent_is_not_appended() -> None:
    """Every second entry is there: a level above is appended only if something was appended below it."""
    given = copying(2, "csr", "dcsr")
    result = result_of(given)
    even = ir.compare("equal", ir.Op("remainder", (ir.Var("j"), ir.index(2))), ir.ZERO)

    class Even(Passing):
        def write(self, assign: Assign, value: Value, scope: Scope) -> ir.Stmt:
            return result.write(assign, replace(value, present=even), scope)

    storage = stored_at("csr", (3, 5), {(0, 1): 1, (0, 4): 2, (1, 3): 3, (2, 0): 4})
    found = maker(given, result, filled(given, Even(result))).on({"A": storage})
    assert without_counts(found) == packed(given, stored_at("csr", (3, 5), {(0, 4): 2, (2, 0): 4}))


@pytest.mark.parametrize(("gaps", "demands"), [(False, "i"), (True, "")])
def test_rows_that_cannot_be_left_out_are_demanded_unless_others_end_them(gaps: bool, demands: str) -> None:
    given = copying(2, "csr", "csr")
    result = result_of(given, gaps=gaps)
    assert [var.name for var in result.variables if result.demands_all(var)] == list(demands)


def test_a_variable_that_repeats_is_appended_at_both_levels() -> None:
    """B(i,i): each level has its coordinate, and rows that nothing was written to end too."""
    for form in ("csr", "dcsr", "coo"):
        given = conditions("B(i,i) = A(i)", f"A:s B:{form}", loops="i")
        result = result_of(given, gaps=True)
        found = maker(given, result, filled(given, result)).on({"A": stored_at("s", (4,), {(1,): 5, (3,): 6})})
        assert without_counts(found) == packed(given, stored_at(form, (4, 4), {(1, 1): 5, (3, 3): 6}))


@pytest.mark.parametrize(
    ("stage", "leaves", "sharing"),
    [
        (Stage.GROW, False, Sharing.PARTS),
        (Stage.GROW, True, Sharing.NOT),
        (Stage.COUNT, False, Sharing.COUNTED),
        (Stage.FILL, False, Sharing.COUNTED),
        (Stage.REFILL, False, Sharing.ROWS),
    ],
)
def test_threads_share_it_so(stage: Stage, leaves: bool, sharing: Sharing) -> None:
    assert result_of(copying(2, "csr", "csr"), stage, leaves=leaves).sharing is sharing


@pytest.mark.parametrize(("target", "sharing"), [("csr", Sharing.ROWS), ("dcsr", Sharing.NOT), ("coo", Sharing.NOT)])
def test_rows_are_refilled_by_whoever_comes_where_each_has_a_place(target: str, sharing: Sharing) -> None:
    given = copying(2, "csr", target)
    assert result_of(given, Stage.REFILL).sharing is sharing
