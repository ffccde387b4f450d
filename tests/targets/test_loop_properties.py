"""The text of a kernel says everything that its loops say: reductions, factors, atomic updates and the memory of each thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from targets.c_harness import call, compile_all

from sparseloom.core.dtypes import BOOL, FLOAT64, INT64, DType
from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.interpret import KernelStatus, run
from sparseloom.loops.routines import grow
from sparseloom.loops.verify import verify
from sparseloom.targets import c_clauses, c_stmt
from sparseloom.targets.c import emit
from sparseloom.targets.c_clauses import Clause
from sparseloom.targets.c_stmt import Statements
from sparseloom.targets.cuda import translation_unit
from sparseloom.targets.loop_properties import COUNTDOWN, FACTOR, WrittenProperties, private, properties, reduction

i, k, n = (ir.Var(name) for name in "ikn")
OWN, X, OUT = ir.Array("own", FLOAT64), ir.Array("x", FLOAT64), ir.Array("out", FLOAT64)
ACC = ir.Var("acc", FLOAT64)
DTYPES = [np.dtype(name) for name in "bool int8 int32 uint16 int64 uint64 float32 float64 complex64 complex128".split()]


def kernel(*stmts: ir.Stmt, dtype: DType = FLOAT64) -> ir.Function:
    """A kernel of x, n and out."""
    params = (ir.Param(ir.Array("x", dtype), ir.Role.INPUT), ir.Param(n, ir.Role.SIZE), ir.Param(ir.Array("out", dtype), ir.Role.OUTPUT))
    return ir.Function("kernel", params, ir.block(*stmts))


def team(dtype: DType = FLOAT64, op: str = "add", factor: int = 0) -> ir.Function:
    """Threads that keep a workspace reduce what they put there into one scalar."""
    own, x, out, acc = ir.Array("own", dtype), ir.Array("x", dtype), ir.Array("out", dtype), ir.Var("acc", dtype)
    adds = ir.Assign(acc, ir.Op(op, (acc, ir.Load(own, ir.ZERO)), dtype))
    body = ir.block(ir.Poll(), ir.Store(own, ir.ZERO, ir.Load(x, i)), adds)
    loop = ir.For(i, ir.ONE, n, body, ir.LoopKind.THREADS, factor, (ir.Reduction(acc, op),))
    made = ir.Team(ir.Allocate(own, ir.ONE), loop, ir.Free(own))
    return kernel(ir.Declare(acc, ir.Load(x, ir.ZERO)), made, ir.Store(out, ir.ZERO, acc), dtype=dtype)


def team_of(function: ir.Function) -> ir.Team:
    """The team of a kernel."""
    (found,) = (one for one in walk(function) if isinstance(one, ir.Team))
    return found


def combining(dtype: DType) -> Sequence[str]:
    """The operators that reduce a dtype."""
    if dtype == BOOL:
        return "add", "multiply", "minimum", "maximum", "logical_or", "logical_and", "logical_xor"
    return ("add", "multiply") if dtype.kind == "c" else ("add", "multiply", "minimum", "maximum")


def test_threads_that_keep_a_workspace_reduce(tmp_path: Path) -> None:
    """Every operator of every dtype, many times: without its clause, partial sums are lost now and then."""
    cases = [(team(dtype, op, factor), dtype) for dtype in DTYPES for op in combining(dtype) for factor in (0, 3)]
    generator = np.random.default_rng(1)
    for (function, dtype), entry in zip(cases, compile_all([function for function, _ in cases], tmp_path), strict=True):
        values = generator.integers(0, 3, 41).astype(dtype)
        wanted = run(function, [values, 41, np.empty(1, dtype)])[-1]
        for _ in range(20):
            np.testing.assert_array_equal(call(entry, function, [values, 41, np.empty(1, dtype)])[-1], wanted)


def test_a_team_says_what_its_loop_says() -> None:
    text = emit(team(factor=3))
    assert "#pragma omp parallel firstprivate(poll, countdown)\n" in text
    assert "#pragma omp for schedule(dynamic, 3) reduction(+:acc)\n" in text


@pytest.mark.parametrize("lost", [reduction(ir.Reduction(ACC, "add")), FACTOR, COUNTDOWN])
@pytest.mark.parametrize("in_team", [True, False])
def test_a_clause_that_is_lost_is_a_bug(lost: str, in_team: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    function = team(factor=3)
    if not in_team:
        body = ir.block(ir.Poll(), ir.Assign(ACC, ir.Op("add", (ACC, ir.Load(X, i)), FLOAT64)))
        function = kernel(ir.Declare(ACC, ir.Load(X, ir.ZERO)), replace(team_of(function).loop, body=body), ir.Store(OUT, ir.ZERO, ACC))
    emit(function)

    def losing(name: str) -> None:
        whole = getattr(c_clauses, name)

        def some(*args: object) -> list[Clause]:
            return [clause for clause in whole(*args) if clause.says != lost]

        monkeypatch.setattr(c_stmt, name, some)

    losing("of_iterations")
    losing("of_region")
    with pytest.raises(CompilerBug, match=f"the text of a kernel says {lost}"):
        emit(function)


def test_memory_that_threads_would_share_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c_stmt, "heap_arrays", lambda stmt: [])
    with pytest.raises(CompilerBug, match="the text of a kernel says a own of each thread"):
        emit(team())


@pytest.mark.parametrize("size", [ir.index(4), n])
@pytest.mark.parametrize("kind", [ir.LoopKind.THREADS, ir.LoopKind.SERIAL])
def test_memory_of_an_iteration_is_private_among_threads_alone(size: ir.Expr, kind: ir.LoopKind) -> None:
    space = ir.MemorySpace.LOCAL if isinstance(size, ir.Literal) else ir.MemorySpace.GLOBAL
    own = replace(OWN, space=space)
    body = ir.block(ir.Allocate(own, size), ir.Store(own, ir.ZERO, ir.Load(X, i)), ir.Store(OUT, i, ir.Load(own, ir.ZERO)), ir.Free(own))
    function = kernel(ir.For(i, ir.ZERO, n, body, kind))
    said = {what for _, what in properties(function.body)}
    assert (private(own) in said) is (kind is ir.LoopKind.THREADS)
    emit(function)


def test_an_atomic_update_that_is_lost_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    function = kernel(ir.For(i, ir.ZERO, n, ir.Store(OUT, ir.ZERO, ir.Load(X, i), "add", atomic=True), ir.LoopKind.THREADS))
    assert "omp atomic" in emit(function)
    with pytest.raises(CompilerBug, match="its atomic update"):
        emit(kernel(ir.For(i, ir.ZERO, n, ir.Store(OUT, ir.ZERO, ir.Load(X, i), atomic=True), ir.LoopKind.THREADS)))
    plainly = Statements._store
    monkeypatch.setattr(Statements, "_store", lambda self, store: plainly(self, replace(store, atomic=False)))
    with pytest.raises(CompilerBug, match="its atomic update"):
        emit(function)


def test_every_property_of_equal_loops_is_asked_for() -> None:
    first, second = (team_of(team()) for _ in range(2))
    assert first == second
    written = WrittenProperties()
    for node, said in properties(first):
        written.note(node, said)
    written.check(first)
    with pytest.raises(CompilerBug):
        written.check(second)


def test_units_of_a_gpu_do_not_reduce_into_scalars_of_all() -> None:
    acc = ir.Var("acc", FLOAT64)
    adds = ir.Assign(acc, ir.Op("add", (acc, ir.Load(X, i)), FLOAT64))
    lanes = ir.For(i, ir.ZERO, ir.index(32), adds, ir.LoopKind.GPU_THREAD, 32, (ir.Reduction(acc, "add"),))
    body = ir.block(ir.Declare(acc, ir.constant(0, FLOAT64)), lanes, ir.Store(OUT, k, acc))

    def text(loop: ir.Stmt) -> str:
        block = ir.For(k, ir.ZERO, n, loop, ir.LoopKind.GPU_BLOCK)
        return translation_unit([(kernel(ir.Launch(n, ir.index(32), block, 32, 32, True)), "entry")])

    with pytest.raises(CompilerBug, match="the reduction add of acc"):
        text(body)
    with pytest.raises(CompilerBug, match="runs on a CPU"):
        text(ir.block(ir.Declare(acc, ir.constant(0, FLOAT64)), replace(lanes, kind=ir.LoopKind.VECTOR), ir.Store(OUT, k, acc)))
    assert "threadIdx" in text(ir.For(i, ir.ZERO, ir.index(32), ir.Store(OUT, i, ir.Load(X, i)), ir.LoopKind.GPU_THREAD, 32))


def test_where_threads_begin_is_held(tmp_path: Path) -> None:
    """A thread that comes late would begin where the body of the first iteration has moved the bound."""
    there = ir.Array("there", INT64)
    body = ir.Store(there, i, ir.index(30))
    bounds = [ir.Load(there, ir.ZERO), ir.Search(there, ir.ZERO, ir.ONE, ir.index(7))]
    kernels = [
        ir.Function(f"kernel{number}", (ir.Param(there, ir.Role.OUTPUT), ir.Param(n, ir.Role.SIZE)), loop)
        for number, loop in enumerate(ir.For(i, bound, n, body, ir.LoopKind.THREADS) for bound in bounds)
    ]
    assert all("i_begin" in emit(one) for one in kernels)
    entries = compile_all(kernels, tmp_path)
    for _ in range(50):
        assert call(entries[0], kernels[0], [np.zeros(40, np.int64), 40])[0].tolist() == [30] * 40


def test_threads_that_fail_behind_their_loop_fail_cleanly(tmp_path: Path) -> None:
    """Each gives its memory back; none runs its iterations again."""
    room, huge = ir.Var("room"), ir.multiply(n, ir.index(2**55))
    first = ir.block(ir.Declare(room, ir.ONE), ir.Allocate(OWN, ir.ONE))
    loop = ir.For(i, ir.ZERO, n, ir.block(ir.Store(OWN, ir.ZERO, ir.Load(X, i)), ir.Store(OUT, i, ir.Load(X, i))), ir.LoopKind.THREADS)
    behind = kernel(ir.Team(first, loop, ir.block(grow(OWN, room, huge), ir.Free(OWN))))
    before = kernel(ir.Team(ir.Allocate(OWN, huge), loop, ir.block(ir.Fill(OWN, ir.ZERO, ir.ONE, ir.constant(1, FLOAT64)), ir.Free(OWN))))
    for function, entry in zip((behind, before), compile_all([behind, before], tmp_path), strict=True):
        with pytest.raises(KernelStatus) as failed:
            call(entry, function, [np.ones(40), 40, np.zeros(40)])
        assert failed.value.status is ir.Status.OUT_OF_MEMORY
    call(entry, function, [np.ones(40), 0, np.zeros(40)])


def test_a_team_of_small_arrays_alone_has_a_status(tmp_path: Path) -> None:
    own = replace(OWN, space=ir.MemorySpace.LOCAL)
    loop = ir.For(i, ir.ZERO, n, ir.Store(OUT, i, ir.Load(X, i)), ir.LoopKind.THREADS)
    function = kernel(ir.Team(ir.Allocate(own, ir.ONE), loop, ir.Free(own)))
    (entry,) = compile_all([function], tmp_path)
    assert call(entry, function, [np.arange(9.0), 9, np.zeros(9)])[-1].tolist() == list(range(9))


def test_threads_assign_no_scalar_of_others() -> None:
    """Neither around their loop nor by a call in it."""
    loop = ir.For(i, ir.ZERO, n, ir.Store(OUT, i, ir.Load(X, i)), ir.LoopKind.THREADS)
    outside = ir.Declare(k, ir.ZERO)
    for around in (ir.Team(ir.Assign(k, ir.ONE), loop, ir.block()), ir.Team(ir.block(), loop, ir.Assign(k, ir.ONE))):
        with pytest.raises(CompilerBug, match="assigns its own scalars only, not k"):
            verify(kernel(outside, around))
    shared = ir.block(outside, ir.Allocate(OWN, ir.ONE), replace(loop, body=grow(OWN, k, i)), ir.Free(OWN))
    with pytest.raises(CompilerBug, match="hands a call no scalar"):
        verify(kernel(shared))


def test_a_loop_in_a_team_looks_at_the_countdown_of_its_thread() -> None:
    said = [(type(node).__name__, what) for node, what in properties(team().body)]
    assert ("Team", COUNTDOWN) in said
    assert ("For", COUNTDOWN) not in said
