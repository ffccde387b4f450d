"""Dense workspaces of a schedule: which are written whole, which once, what tells whether they were, and where their memory is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from levels.slow_reader import entries_of
from lower.conditions import Conditions, conditions, stored_at
from lower.test_passes import operands_of, run
from primitives.statements import schedule

from sparseloom.assemble.workspace import Workspace, fills_whole, is_written_once
from sparseloom.compiler import lower_concrete
from sparseloom.core.dtypes import BOOL, FLOAT64
from sparseloom.core.trees import walk
from sparseloom.formats.pack import to_dense
from sparseloom.iteration.region import written
from sparseloom.loops import nodes as ir
from sparseloom.loops.printer import show
from sparseloom.lower.forall import find_extents, over, with_team
from sparseloom.lower.kernel import lower
from sparseloom.lower.walking import settle
from sparseloom.notation.interpret import evaluate
from sparseloom.notation.nodes import Access, Forall, IndexVar, Tag, Unit, Where
from sparseloom.scope.context import Home
from sparseloom.scope.scope import Accumulator, Scope
from sparseloom.targets.c import C
from sparseloom.targets.interpret import INTERPRET

SPMV, SPMM, SCALED = "y(i) = A(i,j) * x(j)", "C(i,k) = A(i,j) * B(j,k)", "C(i,j) = d(i) * b(j) * E(i,j)"
MASKED = "C(i,k) = A(i,j) * B(j,k) * E(i,k)"
ALONG_J, ALONG_K = "precompute(A(i,j)*x(j),j,jw,w)", "precompute(A(i,j)*B(j,k),k,kw,w)"
ROW, SCALE = f"reorder(k,j) {ALONG_K} reorder(j,kw)", "precompute(d(i)*b(j),j,jw,w)"

# A schedule; the loop that writes all elements of w whenever it runs; whether each element is assigned once.
WHOLE: tuple[tuple[str, str, str, str | None, bool], ...] = (
    (SPMV, "", ALONG_J, "jw", True),
    (SPMV, "A:sd", ALONG_J, "jw", True),  # rows may be absent, but not a part of one
    (SPMV, "A:csr", ALONG_J, None, True),
    (SPMV, "A:db", ALONG_J, None, True),
    (SPMV, "A:sd x:s", ALONG_J, None, True),
    (SPMV, "", f"{ALONG_J} split(jw,j0,j1,4)", "j0", False),
    (SPMV, "", f"{ALONG_J} parallelize(jw,CPUVector,NoRaces)", "jw", True),
    (SPMV, "", f"{ALONG_J} parallelize(jw,CPUThread,NoRaces)", None, True),  # threads have no flag in common
    (SPMV, "", "split(j,j0,j1,4) precompute(A(i,j)*x(j),j1,jw,w)", "jw", True),  # of the last block, only what it has is read
    (SPMV, "", "divide(j,j0,j1,4) precompute(A(i,j)*x(j),j1,jw,w)", "jw", True),
    (SPMV, "A:csr", "pos(j,p,A(i,j)) precompute(A(i,j)*x(j),p,pw,w)", None, True),
    (SPMV, "A:csr", "precompute(x(j),j,jw,w)", "jw", True),
    (SPMV, "A:csr x:s", "precompute(x(j),j,jw,w)", None, True),
    (SPMM, "A:csr", ALONG_K, "kw", True),
    (SPMM, "A:csr B:csr", ALONG_K, None, True),
    (SPMM, "A:csr", ROW, "kw", False),  # added to for every j
    (SPMM, "A:csr B:csr", ROW, None, False),
    (SPMM, "A:csr", f"reorder(k,j) {ALONG_K}", None, False),  # the loop over j inside may be empty
    (SPMM, "A:csr", f"{ROW} split(kw,k0,k1,2)", "k0", False),
    (SPMM, "A:csr", f"{ROW} parallelize(kw,CPUVector,NoRaces)", "kw", False),
    (SPMM, "A:csr", f"{ROW} parallelize(j,CPUThread,Atomics)", None, False),
    (SPMM, "A:csr", f"{ROW} parallelize(i,CPUThread,NoRaces)", "kw", False),
    (SPMM, "A:csr C:csr", ROW, "kw", False),
    (MASKED, "A:csr", ROW, "kw", False),
    (MASKED, "A:csr E:csr", ROW, "kw", False),
    (MASKED, "A:dcsr B:csr E:csr", ROW, None, False),
    (SCALED, "d:b E:csr", SCALE, "jw", True),
    (SCALED, "d:s E:csr", SCALE, "jw", True),
    (SCALED, "d:b b:s E:csr", SCALE, None, True),
    ("C(i,j) = A(i,j) * B(i,j)", "", "precompute(A(i,j)*B(i,j),{i,j},{iw,jw},w)", "iw", True),
    ("C(i,j) = A(i,j) * B(i,j)", "A:csr", "precompute(A(i,j)*B(i,j),{i,j},{iw,jw},w)", None, True),
)


def where_of(given: Conditions) -> Where:
    (found,) = [n for n in walk(given.stmt) if isinstance(n, Where)]
    return found


def within(given: Conditions) -> Scope:
    """What is known where the workspace is made: the loops outside have begun."""
    scope, stmt = given.scope, given.stmt
    while isinstance(stmt, Forall):
        _, scope = settle(scope.knowing(stmt.var, ir.Var(stmt.var.name)))
        stmt = stmt.body
    return scope


def whole(given: Conditions, scope: Scope) -> str | None:
    producer = where_of(given).producer
    found = fills_whole(producer, scope.provenance.within(producer, scope.coordinates), scope)
    return None if found is None else found.name


@pytest.mark.parametrize(("text", "formats", "steps", "loop", "once"), WHOLE)
def test_a_workspace_is_written_whole_or_not(text: str, formats: str, steps: str, loop: str | None, once: bool) -> None:
    given = conditions(text, formats, steps)
    assert whole(given, within(given)) == loop
    assert is_written_once(where_of(given).producer) == once


def test_what_is_not_there_everywhere_fills_nothing_whole() -> None:
    """A scalar that is being reduced into, a workspace with a mask, a private copy."""
    given = conditions(SPMV, "", ALONG_J)
    scope, x = within(given), given.access("x")
    assert whole(given, scope) == "jw"
    assert whole(given, scope.accumulating(x, Accumulator(ir.Var("x_acc", FLOAT64), "add"))) is None
    masked = replace(scope.view(x), mask=ir.Array("x_set", BOOL))
    assert whole(given, replace(scope, views={**scope.views, x.tensor: masked})) is None
    assert whole(given, replace(scope, copy=(x.tensor, ir.Array("own", FLOAT64), ir.ZERO))) is None


SIZES = ({"i": 3, "j": 5, "k": 3}, {"i": 1, "j": 1, "k": 1}, {"i": 2, "j": 0, "k": 2}, {"i": 2, "j": 9, "k": 0})


@pytest.mark.parametrize(("text", "formats", "steps", "loop", "once"), WHOLE)
def test_whatever_was_left_out_nothing_is_read_that_was_not_written(
    text: str, formats: str, steps: str, loop: str | None, once: bool, rng: np.random.Generator
) -> None:
    """The interpreter ends a kernel that reads what nobody wrote; rows that stand in the same memory must not see each other."""
    concrete = schedule(text, formats, steps).concrete
    lowered = lower_concrete(concrete.assign, concrete, 2**31 - 1, False, INTERPRET).lowered
    for sizes in SIZES * 2:
        operands, dense = operands_of(concrete.assign, sizes, rng)
        wanted = evaluate(concrete.assign, dense, sizes).values
        room = None if lowered.hands_out else wanted.size
        np.testing.assert_array_equal(to_dense(run(lowered, operands, sizes, room)), wanted)


def workspace(given: Conditions, masked: bool, change: Callable[[Scope], Scope] = lambda scope: scope) -> tuple[Workspace, Scope]:
    """The workspace of a statement, and the scope in which it was made."""
    where, scope = where_of(given), change(within(given))
    read = next(n for n in walk(where.consumer) if isinstance(n, Access) and n.tensor == written(where.producer).tensor)
    _, scope = find_extents(read.indices, scope)
    return Workspace(read, scope, masked, where.consumer, where.producer), scope


# Whether absence matters; whether a mask, a flag, or first values are there.
TOLD: tuple[tuple[str, str, str, bool, bool, bool, bool], ...] = (
    (SPMV, "A:csr", ALONG_J, True, True, False, True),
    (SPMV, "A:csr", ALONG_J, False, False, False, True),
    (SPMV, "A:sd", ALONG_J, True, False, True, False),
    (SPMV, "A:sd", ALONG_J, False, False, False, True),  # it is read where the row is absent, too
    (SPMV, "", ALONG_J, False, False, False, False),
    (SPMM, "A:csr", ROW, True, False, True, True),
    (SPMM, "A:csr", ROW, False, False, False, True),
    (SPMM, "A:csr B:csr", ROW, True, True, False, True),
    (SCALED, "d:b E:csr", SCALE, True, False, True, False),
)


@pytest.mark.parametrize(("text", "formats", "steps", "masked", "mask", "mark", "cleared"), TOLD)
def test_a_flag_takes_the_place_of_a_mask_and_of_first_values(
    text: str, formats: str, steps: str, masked: bool, mask: bool, mark: bool, cleared: bool
) -> None:
    """One flag tells whether all elements were written; where each is assigned before it is read, none has a first value."""
    given = conditions(text, formats, steps)
    made, scope = workspace(given, masked)
    assert made.needs_presence == masked
    assert (made.view.mask is not None) == mask
    assert (made.mark is not None) == mark
    assert made.mark is None or (made.mark[0].name == whole(given, scope) and made.mark[1].dtype == BOOL)
    begun = made.begin()
    filled = {n.array for n in walk(begun) if isinstance(n, ir.Fill)}
    assert filled == {array for array, is_filled in ((made.view.values, cleared), (made.view.mask, mask)) if is_filled}
    assert [n for n in walk(begun) if isinstance(n, ir.Declare)] == ([] if made.mark is None else [ir.Declare(made.mark[1], ir.FALSE)])


def test_a_row_that_was_not_written_is_absent(rng: np.random.Generator) -> None:
    """The flag is set where the loop over the row runs, for every row anew: of C, only rows of A that are there have entries."""
    concrete = schedule(SPMM, "A:csr C:csr", ROW).concrete
    lowered = lower_concrete(concrete.assign, concrete, 2**31 - 1, False, INTERPRET).lowered
    lines = [line.strip() for line in show(lowered.function).splitlines()]
    assert "w_seen: bool = False" in lines and not any("w_set" in line for line in lines)
    assert lines[lines.index("w_seen = True") + 1].startswith("for kw in 0 : k_size")
    operands, _ = operands_of(concrete.assign, {"i": 4, "j": 3, "k": 2}, rng)
    operands["A"] = stored_at("csr", (4, 3), {(0, 1): 1, (2, 0): 2, (2, 2): 3})
    made = run(lowered, operands, {"i": 4, "j": 3, "k": 2}, None)
    assert [place for place, _ in entries_of(made)] == [(0, 0), (0, 1), (2, 0), (2, 1)]


KEPT = (
    (SPMV, "A:csr", ALONG_J, False, ["w_vals"]),
    (SPMV, "A:csr", ALONG_J, True, ["w_vals", "w_set"]),
    (SPMV, "A:sd", ALONG_J, True, ["w_vals"]),
    (SPMM, "A:csr", ROW, False, ["w_vals"]),
    (SPMV, "", "divide(j,j0,j1,4) precompute(A(i,j)*x(j),j1,jw,w)", False, ["w_vals"]),
    (SPMV, "", "split(j,j0,j1,4096) precompute(A(i,j)*x(j),j1,jw,w)", False, ["w_vals"]),  # too large for the stack
    (SPMV, "", "split(j,j0,j1,4) precompute(A(i,j)*x(j),j1,jw,w)", False, []),  # on the stack
    (SPMV, "A:csr", "pos(j,p,A(i,j)) precompute(A(i,j)*x(j),p,pw,w)", False, []),  # as long as a row
)


@pytest.mark.parametrize(("text", "formats", "steps", "masked", "kept"), KEPT)
def test_memory_whose_size_follows_from_extents_is_made_at_home(
    text: str, formats: str, steps: str, masked: bool, kept: list[str]
) -> None:
    """Once, before the loops; any other is made and given back where the workspace is filled."""
    given = conditions(text, formats, steps)
    made, scope = workspace(given, masked)
    size, arrays = made.row(scope).count, [made.view.values, *([] if made.view.mask is None else [made.view.mask])]
    here = [] if kept else arrays
    assert [array.name for array in arrays if array not in here] == kept
    assert scope.home.first == [ir.Allocate(array, size) for array in arrays if array not in here]
    assert scope.home.last == [ir.Free(array) for array in arrays if array not in here]
    assert [n for n in walk(made.begin()) if isinstance(n, ir.Allocate)] == [ir.Allocate(array, size) for array in here]
    assert [n for n in walk(made.finish()) if isinstance(n, ir.Free)] == [ir.Free(array) for array in here]


def test_units_of_a_gpu_make_their_memory_themselves() -> None:
    made, scope = workspace(conditions(SPMV, "A:csr", ALONG_J), False, lambda scope: replace(scope, units=(Unit.GPUBlock, Unit.GPUThread)))
    assert scope.home == Home()
    assert [n.array for n in walk(made.begin()) if isinstance(n, ir.Allocate)] == [made.view.values]


i = IndexVar("i")
OWN = ir.Array("own", FLOAT64)


def threads(body: Callable[[Scope], ir.Stmt], unit: Unit | None) -> tuple[ir.Stmt, Scope]:
    """A loop over i, run by a unit."""
    given = conditions("y(i) = x(i)")
    stmt = given.stmt
    assert isinstance(stmt, Forall)
    return over(replace(stmt, tag=Tag(unit)), given.scope, body), given.scope


def hoisting(scope: Scope) -> ir.Stmt:
    """A body that has memory made at home."""
    scope.home.first.append(ir.Allocate(OWN, ir.ONE))
    scope.home.last.append(ir.Free(OWN))
    return ir.Store(OWN, ir.ZERO, ir.constant(1.0, FLOAT64))


def test_threads_have_a_home_of_their_own() -> None:
    """Each thread makes its memory before its first iteration and gives it back after its last."""
    made, outside = threads(hoisting, Unit.CPUThread)
    assert outside.home == Home()
    (team,) = [n for n in walk(made) if isinstance(n, ir.Team)]
    assert (team.first, team.last) == (ir.Allocate(OWN, ir.ONE), ir.Free(OWN))
    assert isinstance(team.loop, ir.For) and team.loop.kind is ir.LoopKind.THREADS and team.loop.factor == 0
    assert ir.Allocate(OWN, ir.ONE) not in walk(team.loop)


def test_threads_that_need_no_memory_are_no_team() -> None:
    homes: list[Home] = []

    def body(scope: Scope) -> ir.Stmt:
        homes.append(scope.home)
        return ir.Store(OWN, scope.coordinates[i], ir.constant(1.0, FLOAT64))

    made, outside = threads(body, Unit.CPUThread)
    assert not any(isinstance(n, ir.Team) for n in walk(made))
    assert any(isinstance(n, ir.For) and n.kind is ir.LoopKind.THREADS for n in walk(made))
    assert all(home is not outside.home for home in homes)


@pytest.mark.parametrize("unit", [None, Unit.CPUVector])
def test_other_loops_have_the_home_outside(unit: Unit | None) -> None:
    made, outside = threads(hoisting, unit)
    assert outside.home == Home([ir.Allocate(OWN, ir.ONE)], [ir.Free(OWN)])
    assert not any(isinstance(n, ir.Team | ir.Allocate) for n in walk(made))


def test_a_team_may_hand_out_iterations_a_few_at_a_time() -> None:
    loop = ir.For(ir.Var("i"), ir.ZERO, ir.ONE, ir.Poll(), ir.LoopKind.THREADS)
    before, home = ir.Declare(ir.Var("n"), ir.ONE), Home([ir.Allocate(OWN, ir.ONE)], [ir.Free(OWN)])
    team = ir.Team(ir.Allocate(OWN, ir.ONE), replace(loop, factor=3), ir.Free(OWN))
    assert with_team(ir.block(before, loop), home, 3) == ir.block(before, team)


@pytest.mark.parametrize(("steps", "teams"), [(ROW, 0), (f"{ROW} parallelize(i,CPUThread,NoRaces)", 1)])
def test_a_row_is_made_once_for_the_kernel_or_for_each_thread(steps: str, teams: int) -> None:
    function = lower(conditions(SPMM, "A:csr", steps).concrete, C).function
    found = [n for n in walk(function.body) if isinstance(n, ir.Team)]
    assert len(found) == teams
    loops = [n for n in walk(function.body) if isinstance(n, ir.For)]
    assert not any(isinstance(n, ir.Allocate | ir.Free) for loop in loops for n in walk(loop))
    allocated = [n.array.name for n in walk(found[0].first if found else function.body) if isinstance(n, ir.Allocate)]
    assert allocated == ["w_vals"]
