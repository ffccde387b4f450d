"""Carries: which loops over blocks of positions only meet in their first and last run, and what they share, joined in order."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

import numpy as np
import pytest
from levels.slow_reader import entries_of
from lower.conditions import Conditions, conditions, numbered
from lower.filling import Maker, maker
from lower.test_passes import operands_of, run
from primitives.statements import schedule

from sparseloom.assemble.result import DenseResult
from sparseloom.compiler import lower_concrete
from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import walk
from sparseloom.formats.pack import to_dense
from sparseloom.formats.storage import Storage
from sparseloom.loops import nodes as ir
from sparseloom.lower.carries import carried_by, in_carries
from sparseloom.lower.forall import find_ranges
from sparseloom.lower.walking import settle
from sparseloom.notation.interpret import evaluate
from sparseloom.notation.nodes import Assign, Forall, IndexVar, Stmt
from sparseloom.relations.pos import PosRelation
from sparseloom.scope.scope import Scope
from sparseloom.targets.interpret import INTERPRET

PAIRS, TRIPLES = "fuse(i,j,f) pos(f,p,A(i,j))", "fuse(i,j,e) fuse(e,k,f) pos(f,p,A(i,j,k))"
SPMV, SPMM, ACROSS = "y(i) = A(i,j) * x(j)", "Y(i,l) = A(i,j) * X(j,l)", "Y(l,i) = A(i,j) * X(j,l)"
TTV, TTM = "Y(i,j) = A(i,j,k) * x(k)", "Y(i,j,l) = A(i,j,k) * X(k,l)"
SPLIT, THREADS = "split(p,p0,p1,3)", "parallelize(p0,CPUThread,Temporary)"

# The loop over p0 counts blocks of positions, each of which one nest inside runs through.
CARRIED = (
    (SPMV, "A:csr", f"{PAIRS} {SPLIT}"),
    (SPMV, "A:dcsr", f"{PAIRS} {SPLIT}"),
    (SPMV, "A:coo", f"{PAIRS} {SPLIT}"),
    (SPMV, "A:ell", f"{PAIRS} {SPLIT}"),
    (SPMV, "A:csr x:s", f"{PAIRS} {SPLIT}"),
    (SPMV, "A:csr", f"{PAIRS} divide(p,p0,p1,4)"),
    (SPMV, "A:csr", f"{PAIRS} split(p,p0,q,4) bound(q,p1,4,MaxConstraint)"),
    (SPMM, "A:csr", f"{PAIRS} {SPLIT}"),
    (SPMM, "A:coo", f"{PAIRS} {SPLIT}"),  # no loop lies between a run and its row
    (SPMM, "A:csr", f"reorder(l,i,j) {PAIRS} {SPLIT}"),
    (ACROSS, "A:csr", f"reorder(l,i,j) {PAIRS} {SPLIT}"),  # one column at a time
    (ACROSS, "A:csr Y:dd:1,0", f"reorder(i,j,l) {PAIRS} {SPLIT}"),
    (TTV, "A:csf", f"{TRIPLES} {SPLIT}"),
    (TTV, "A:coo", f"{TRIPLES} {SPLIT}"),
    (TTV, "A:suq", f"{TRIPLES} {SPLIT}"),  # a coordinate of j that repeats below another i is another run
    (TTV, "A:duq", f"{TRIPLES} {SPLIT}"),
    (TTV, "A:csf", f"fuse(j,k,f) pos(f,p,A(i,j,k)) {SPLIT}"),
    ("Y(j,i) = A(i,j,k) * x(k)", "A:csf", f"{TRIPLES} {SPLIT}"),
    (TTM, "A:csf", f"{TRIPLES} {SPLIT}"),
    (TTM, "A:coo", f"{TRIPLES} {SPLIT}"),
    (TTM, "A:duq", f"{TRIPLES} {SPLIT}"),
    ("Y(i,l) = A(i,j,k) * X(k,l)", "A:csf", f"{TRIPLES} {SPLIT}"),
    ("y(i) = A(i,j,k) * x(k)", "A:suq", f"{TRIPLES} {SPLIT}"),
)


def loop_over(given: Conditions, name: str) -> tuple[Forall, set[IndexVar]]:
    """A loop, and the variables of those outside it."""
    outer, stmt = set[IndexVar](), given.stmt
    while isinstance(stmt, Forall) and stmt.var.name != name:
        outer, stmt = {*outer, stmt.var}, stmt.body
    assert isinstance(stmt, Forall)
    return stmt, outer


def carried(given: Conditions, name: str = "p0") -> PosRelation | None:
    return carried_by(*loop_over(given, name), given.scope.provenance)


@pytest.mark.parametrize(("text", "formats", "steps"), CARRIED)
def test_blocks_that_only_meet_in_their_first_and_last_run_carry(text: str, formats: str, steps: str) -> None:
    found = carried(conditions(text, formats, steps))
    assert found is not None
    assert (found.position.name, found.access.tensor.name) == ("p", "A")


NOT_CARRIED = (
    (SPMV, "A:csr", PAIRS, "p"),  # positions, not blocks of them
    (SPMV, "A:csr", f"{PAIRS} {SPLIT}", "p1"),  # not a loop over blocks either
    (SPMV, "A:csr", "split(i,i0,i1,2)", "i0"),
    (SPMV, "A:csr", f"{PAIRS} {SPLIT} reorder(p1,p0)", "p1"),  # its positions do not follow each other
    (SPMV, "A:csr", f"{PAIRS} {SPLIT} split(p1,q,r,2)", "p0"),  # two loops run through a block
    (SPMV, "A:csr", f"{PAIRS} {SPLIT} unroll(p1,2)", "p0"),
    (SPMV, "A:csr", f"{PAIRS} {SPLIT} precompute(A(i,j)*x(j),p1,pw,w)", "p0"),
    (SPMV, "A:csr", f"pos(j,p,A(i,j)) {SPLIT}", "p0"),  # one run, and nothing above it is asked for
    ("y = A(i,j) * x(j)", "A:csr", f"{PAIRS} {SPLIT}", "p0"),
    ("y(j) = A(i,j) * x(i)", "A:csr", f"{PAIRS} {SPLIT}", "p0"),  # places come again in the middle of other blocks
    ("Y(i,k) = A(i,j,k) * x(j)", "A:csf", f"{TRIPLES} {SPLIT}", "p0"),
    (ACROSS, "A:csr", f"reorder(i,j,l) {PAIRS} {SPLIT}", "p0"),  # the places of a run do not follow each other
    ("Y(i,l,j) = A(i,j,k) * X(k,l)", "A:csf", f"{TRIPLES} {SPLIT}", "p0"),
)


@pytest.mark.parametrize(("text", "formats", "steps", "name"), NOT_CARRIED)
def test_other_loops_do_not(text: str, formats: str, steps: str, name: str) -> None:
    assert carried(conditions(text, formats, steps), name) is None


@pytest.mark.parametrize(("form", "left", "is_carried"), [
    ("uq", "i", True),
    ("u~q~", "i", False),
    ("uq~", "i", True),
    ("coo", "i,j", True),
    ("ds~", "i", True),
    ("ds~", "i,j", True),  # each position of a level without repetitions is a run
])  # fmt: skip
def test_runs_must_be_told_apart(form: str, left: str, is_carried: bool) -> None:
    """Where coordinates repeat, by their order: down to the level that fixes the place."""
    given = conditions(f"y({left}) = A(i,j) * x(j)", f"A:{form}", f"{PAIRS} {SPLIT}", loops="i j")
    assert (carried(given) is not None) == is_carried


def within(given: Conditions) -> tuple[Forall, PosRelation, DenseResult, Scope, list[ir.Stmt]]:
    """The first loop of a statement, which carries, and what is known before it."""
    stmt, relation = given.stmt, carried(given)
    assert isinstance(stmt, Forall) and stmt.var.name == "p0" and relation is not None
    result = DenseResult(given.scope, given.lhs, 0, 0)
    settled, scope = settle(replace(given.scope, sink=result, result=result, uninitialised=0))
    ranges, scope = find_ranges(stmt.var, scope)
    return stmt, relation, result, scope, [settled, ranges]


def carrying(given: Conditions) -> Maker:
    """The loop with its carries, ready to run."""
    stmt, relation, result, scope, before = within(given)
    return maker(given, result, ir.block(*before, in_carries(stmt, relation, scope)))


ALONE = [case for case in CARRIED if case[2].startswith("fuse(i,j")]
SIZES = [dict(zip("ijkl", sizes, strict=True)) for sizes in ((4, 3, 3, 2), (1, 4, 1, 1), (5, 1, 2, 3), (2, 0, 2, 2), (0, 3, 2, 2))]


@pytest.mark.parametrize(("text", "formats", "steps"), ALONE)
def test_what_blocks_share_is_joined(text: str, formats: str, steps: str, rng: np.random.Generator) -> None:
    """By the interpreter, which would tell of iterations that meet."""
    given = conditions(text, formats, f"{steps} {THREADS}")
    made, assign = carrying(given), given.concrete.assign
    for sizes in SIZES * 2:
        operands, dense = operands_of(assign, sizes, rng)
        wanted = evaluate(assign, dense, sizes).values
        assert made.on(operands, room=wanted.size, **sizes) == {"values": wanted.ravel().tolist()}


@pytest.mark.parametrize(("text", "formats", "steps"), CARRIED)
def test_a_whole_kernel_with_carries_is_right(text: str, formats: str, steps: str, rng: np.random.Generator) -> None:
    concrete = schedule(text, formats, f"{steps} {THREADS}").concrete
    lowered = lower_concrete(concrete.assign, concrete, 2**31 - 1, False, INTERPRET).lowered
    assert any("carries" in remark.text for remark in lowered.remarks)
    for sizes in SIZES * 2:
        operands, dense = operands_of(concrete.assign, sizes, rng)
        wanted = evaluate(concrete.assign, dense, sizes).values
        np.testing.assert_array_equal(to_dense(run(lowered, operands, sizes, wanted.size)), wanted)


def joined_by_hand(storage: Storage, x: np.ndarray, size: int) -> list[float]:
    """Blocks of so many positions: what is carried is added in the order of the blocks, when all else is there."""
    y, entries = np.zeros(storage.shape[0]), list(entries_of(storage))
    shares: list[tuple[int, float]] = []
    for begin in range(0, len(entries), size):
        runs = [(row, list(found)) for row, found in groupby(entries[begin : begin + size], key=lambda entry: entry[0][0])]
        for number, (row, found) in enumerate(runs):
            total = 0.0
            for (_, column), value in found:
                total += float(value) * float(x[column])
            if number in (0, len(runs) - 1):
                shares.append((row, total))
            else:
                y[row] += total
    for row, total in shares:
        y[row] += total
    return [float(value) for value in y]


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("form", ["csr", "dcsr", "coo"])
def test_a_result_has_the_bits_of_its_blocks(form: str, size: int, rng: np.random.Generator) -> None:
    """Values of unlike magnitude, so that another order of adding gives another sum."""
    made = carrying(conditions(SPMV, f"A:{form}", f"{PAIRS} split(p,p0,p1,{size}) {THREADS}"))
    for shape in ((4, 6), (1, 9), (9, 1), (3, 4)):
        storage = numbered(rng, form, shape)
        storage = replace(storage, values=rng.standard_normal(len(storage.values)) * 10.0 ** rng.integers(-9, 9, len(storage.values)))
        x = replace(numbered(rng, "d", shape[1:]), values=rng.standard_normal(shape[1]))
        assert made.on({"A": storage, "x": x}, room=shape[0])["values"] == joined_by_hand(storage, x.values, size)


@pytest.mark.parametrize(("text", "formats", "steps"), ALONE)
def test_carries_need_no_atomics_and_their_memory_is_given_back(text: str, formats: str, steps: str) -> None:
    function = carrying(conditions(text, formats, f"{steps} {THREADS}")).lowered.function
    stores = [n for n in walk(function.body) if isinstance(n, ir.Store)]
    assert stores and not any(store.atomic for store in stores)
    allocated = {n.array.name for n in walk(function.body) if isinstance(n, ir.Allocate)}
    assert allocated == {n.array.name for n in walk(function.body) if isinstance(n, ir.Free)}
    assert {name.split("_")[1] for name in allocated} == {"carries", "carried"}
    assert any(isinstance(n, ir.For) and n.kind is ir.LoopKind.THREADS for n in walk(function.body))


def test_a_carry_has_as_much_room_as_a_run_has_places() -> None:
    """Two for each block: one value where the place is fixed, else what the open modes have."""
    for text, open_size in ((SPMV, ir.ONE), (SPMM, "l"), (TTM, "l")):
        order = 3 if text == TTM else 2
        given = conditions(text, "A:csf" if order == 3 else "A:csr", f"{TRIPLES if order == 3 else PAIRS} {SPLIT} {THREADS}")
        stmt, relation, _, scope, _ = within(given)
        made = in_carries(stmt, relation, scope)
        room = {n.array.name.split("_")[1]: n.size for n in walk(made) if isinstance(n, ir.Allocate)}
        slots = ir.multiply(ir.index(2), scope.ranges.extent(stmt.var))
        assert room["carried"] == slots
        declared = {n.var: n.value for n in walk(made) if isinstance(n, ir.Declare)}
        size = next((var for var in declared if var.name.endswith("carry_size")), ir.ONE)
        assert room["carries"] == ir.multiply(slots, size)
        assert declared.get(size, size) == (open_size if isinstance(open_size, ir.Expr) else scope.context.sizes.of(IndexVar(open_size)))


def test_the_result_is_initialised_before_the_blocks_and_not_by_them() -> None:
    stmt, relation, result, scope, _ = within(conditions(SPMV, "A:csr", f"{PAIRS} {SPLIT} {THREADS}"))
    made = in_carries(stmt, relation, scope)
    assert isinstance(made, ir.Block)
    filled = [(k, n.array) for k, part in enumerate(made.stmts) for n in walk(part) if isinstance(n, ir.Fill)]
    assert [k for k, array in filled if array == result.view.values] == [0]


def test_what_does_not_reduce_is_not_carried() -> None:
    stmt, relation, _, scope, _ = within(conditions(SPMV, "A:csr", f"{PAIRS} {SPLIT} {THREADS}"))

    def set_only(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Forall):
            return replace(stmt, body=set_only(stmt.body))
        assert isinstance(stmt, Assign)
        return replace(stmt, op=None)

    plain = set_only(stmt)
    assert isinstance(plain, Forall)
    with pytest.raises(CompilerBug, match="must reduce"):
        in_carries(plain, relation, scope)
