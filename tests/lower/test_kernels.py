"""What a GPU runs: the host is left with sizes, memory and launches, and kernels with what they can do themselves."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from paper.tensors import matrix

import sparseloom as sl
from sparseloom.core.dtypes import FLOAT64
from sparseloom.core.trees import walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.in_memory import in_memory
from sparseloom.loops.printer import show
from sparseloom.loops.verify import verify
from sparseloom.passes.launch import add_launches, without_unused
from sparseloom.passes.localise import keep_in_registers
from sparseloom.passes.uniform import share_among_lanes
from sparseloom.programs.cuda.nvrtc import compile_cubin

UNITS = "parallelize(b,GPUBlock,{0}) parallelize(w,GPUWarp,{0}) parallelize(t,GPUThread,{1})"
SPMV, SPMM = "y(i) = A(i,j) * x(j)", "C(i,k) = A(i,j) * B(j,k)"
ON_HOST = (ir.Declare, ir.Allocate, ir.Free, ir.Launch, ir.If, ir.Fail, ir.Block)


def lowered(statement: str, steps: str) -> ir.Function:
    """The loops of a statement for a GPU."""
    function = sl.program(statement, {"A": "csr"} if "A(" in statement else {}, steps, target="cuda").preview().stages.lowered.function
    verify(function)
    return function


def outside(function: ir.Function) -> list[ir.Stmt]:
    """What the host runs."""
    found: list[ir.Stmt] = []
    stack = [function.body]
    while stack:
        stmt = stack.pop()
        found.append(stmt)
        match stmt:
            case ir.Block(stmts):
                stack += stmts
            case ir.If(_, then, other):
                stack += [then, other]
    return found


SCHEDULES = {
    "plain": "",
    "a thread for every row": "split(i,b,t,64) parallelize(b,GPUBlock,NoRaces) parallelize(t,GPUThread,NoRaces)",
    "threads alone": "split(i,i0,t,8) parallelize(t,GPUThread,NoRaces)",
    "copies": "reorder(j,i) split(j,b,t,8) parallelize(b,GPUBlock,Temporary) parallelize(t,GPUThread,Atomics)",
    "lanes": "split(i,b,w,8) pos(j,p,A(i,j)) split(p,n,t,4) reorder(b,w,t,n) " + UNITS.format("NoRaces", "Temporary"),
    "positions": "fuse(i,j,f) pos(f,p,A(i,j)) split(p,b,p1,32) split(p1,t,n,4) "
    "parallelize(b,GPUBlock,IgnoreRaces) parallelize(t,GPUThread,Atomics)",
    "carries": "fuse(i,j,f) pos(f,p,A(i,j)) split(p,b,p1,64) split(p1,t,n,2) "
    "parallelize(b,GPUBlock,Temporary) parallelize(t,GPUThread,Temporary)",
    "carries, staged": "fuse(i,j,f) pos(f,p,A(i,j)) split(p,b,p1,64) precompute(A(i,j)*x(j),p1,pw,v) split(pw,n,tw,16) "
    "parallelize(tw,GPUThread,NoRaces) split(p1,t,q,4) parallelize(b,GPUBlock,Temporary) parallelize(t,GPUThread,Temporary)",
    "staged": "fuse(i,j,f) pos(f,p,A(i,j)) split(p,b,p1,64) precompute(A(i,j)*x(j),p1,pw,v) split(pw,n,tw,16) "
    "parallelize(tw,GPUThread,NoRaces) split(p1,t,q,4) parallelize(b,GPUBlock,IgnoreRaces) parallelize(t,GPUThread,Atomics)",
    "rows of a block": "fuse(i,j,f) pos(f,p,A(i,j)) split(p,b,p1,64) split(p1,w,c,16) split(c,n,t,4) reorder(b,w,t,n) "
    "parallelize(b,GPUBlock,Atomics) parallelize(w,GPUWarp,ParallelReduction) parallelize(t,GPUThread,ParallelReduction)",
    "rows of a block, staged": "fuse(i,j,f) pos(f,p,A(i,j)) split(p,b,p1,64) precompute(A(i,j)*x(j),p1,pw,v) split(pw,m,tw,16) "
    "parallelize(tw,GPUThread,NoRaces) split(p1,w,c,8) split(c,n,t,2) reorder(w,t,n) "
    "parallelize(b,GPUBlock,Atomics) parallelize(w,GPUWarp,ParallelReduction) parallelize(t,GPUThread,ParallelReduction)",
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_host_allocates_and_launches_and_nothing_else(name: str) -> None:
    function = lowered(SPMV, SCHEDULES[name])
    assert all(isinstance(stmt, ON_HOST) for stmt in outside(function))
    assert any(isinstance(n, ir.Launch) for n in walk(function))


@pytest.mark.parametrize("name", SCHEDULES)
def test_kernels_are_right_and_compile(name: str, rng: np.random.Generator) -> None:
    A, x = matrix(rng, 37, 29, 0.2), rng.integers(1, 5, 29) * 1.0
    assert np.array_equal(sl.program(SPMV, {"A": "csr"}, SCHEDULES[name], target="interpret")(A, x).to_numpy(), A @ x)
    assert compile_cubin(sl.program(SPMV, {"A": "csr"}, SCHEDULES[name], target="cuda").source)


def test_lanes_that_are_a_group_make_small_blocks() -> None:
    (launch,) = (n for n in walk(lowered(SPMV, SCHEDULES["lanes"])) if isinstance(n, ir.Launch))
    assert launch.lanes == 4
    assert launch.threads == ir.index(32)


@pytest.mark.parametrize(("threads", "launched"), [(5, 8), (32, 32), (100, 128), (1024, 1024)])
def test_threads_of_a_block_add_up_by_shuffles(threads: int, launched: int) -> None:
    """There are so many that each has a neighbour at every step; more than a warp meet in shared memory, one value of each warp."""
    steps = f"split(j,q,t,{threads}) reorder(i,t,q) parallelize(i,GPUBlock,NoRaces) parallelize(t,GPUThread,Temporary)"
    source = sl.program(SPMV, {"A": "csr"}, steps, target="cuda").source
    assert f"__launch_bounds__({launched})" in source and compile_cubin(source)
    assert source.count("across_float64(0x") == 1 + (launched > 32)
    assert (f"__shared__ double y_acc_of_warps[{launched // 32}];" in source) == (launched > 32) == ("__syncthreads" in source)


def test_warps_of_a_block_add_up_by_shuffles() -> None:
    steps = "pos(j,p,A(i,j)) divide(p,w,q,6) split(q,n,t,8) reorder(i,w,t,n) parallelize(i,GPUBlock,NoRaces) "
    source = sl.program(SPMV, {"A": "csr"}, steps + UNITS.format("Temporary", "Temporary").split(" ", 1)[1], target="cuda").source
    assert "__launch_bounds__(64)" in source and compile_cubin(source)  # six groups of eight lanes, in whole warps
    assert "for (int step1 = 8; step1 < 32; step1 *= 2)" in source  # lanes of a group have the same
    assert "__shared__ double y_acc_of_warps[2];" in source


def test_a_block_searches_once_and_its_threads_among_its_rows() -> None:
    text = show(lowered(SPMV, SCHEDULES["positions"]))
    assert "search(A2_pos, p_1_begin + 1, p_1_end + 1, p_block_low + 1)" in text
    assert "search(A2_pos, pA1_first + 1, pA1_last + 2, p_low + 1)" in text


def test_products_are_staged_in_shared_memory_without_looking_for_rows() -> None:
    function = lowered(SPMV, SCHEDULES["staged"])
    text = show(function)
    assert "allocate v_vals: float64[64] shared" in text
    assert text.count("search(") == 4  # of the block, and of its threads when they add up


def test_rows_of_results_stay_in_registers() -> None:
    rows = "bound(k,kb,64,MaxExact) split(i,b,w,8) split(kb,v,t,32) reorder(b,w,t,v,j) unroll(v,2) " + UNITS.format("NoRaces", "NoRaces")
    runs = (
        "reorder(i,j,k) fuse(i,j,f) pos(f,p,A(i,j)) bound(k,kb,64,MaxExact) split(p,b,p1,64) split(p1,w,n,8) split(kb,v,t,32) "
        "reorder(b,w,t,n,v) unroll(v,2) " + UNITS.format("IgnoreRaces", "Atomics")
    )
    assert "C_acc_of: float64[2] local" in show(lowered(SPMM, rows))
    assert "C_vals_kept: float64[2] local" in show(lowered(SPMM, runs))


RUNS = (
    "reorder(i,j,k) fuse(i,j,f) pos(f,p,A(i,j)) bound(k,kb,64,MaxExact) split(kb,u,c,32) split(c,t,v,4) split(p,b,p1,64) split(p1,w,n,16) "
    "reorder(b,w,t,u,v,n) unroll(u,2) unroll(v,4) " + UNITS.format("IgnoreRaces", "Atomics")
)


def test_unrolled_loops_go_through_runs_together_and_move_neighbours_at_once(rng: np.random.Generator) -> None:
    text = show(lowered(SPMM, RUNS))
    assert "C_acc_of_of: float64[8] local" in text
    assert "B_vals_wide[q] = B_vals[j * 64 + u * 32 + t * 4 + q]" in text  # and 64 columns were promised
    assert text.count("[wide 4]") == 2  # they are read so, and written
    A, B = matrix(rng, 37, 29, 0.2), rng.integers(1, 5, (29, 64)) * 1.0
    assert np.array_equal(sl.program(SPMM, {"A": "csr"}, RUNS, target="interpret")(A, B).to_numpy(), A @ B)
    assert compile_cubin("#define ANYWHERE\n" + sl.program(SPMM, {"A": "csr"}, RUNS, target="cuda").source)


def test_neighbours_that_begin_anywhere_are_moved_one_by_one() -> None:
    width = "bound(k,kb,66,MaxExact) split(i,b,w,8) split(kb,t,v,3) reorder(b,w,t,v,j) unroll(v,3) " + UNITS.format("NoRaces", "NoRaces")
    assert "wide" not in show(lowered(SPMM, width))


@pytest.mark.parametrize("name", ["rows of a block", "rows of a block, staged"])
def test_rows_of_a_block_are_shared_out_among_lanes(name: str) -> None:
    text = show(lowered(SPMV, SCHEDULES[name]))
    assert "copies" not in text  # one for every warp and lane, of the whole result, is what others have
    assert "y_acc += shuffle y_acc_own" in text
    assert text.count("search(") == 2


@pytest.mark.parametrize(
    ("statement", "form", "order", "sign"),
    [
        (SPMV, "csr", "", " = "),
        (SPMV, "coo", "", " += "),  # entry by entry
        ("y(i) += A(i,j) * x(j)", "csr", "", " += "),  # there is something already
        ("y(i) = A(i,j) * x(j) * z(l)", "csr", " reorder(b,l,t,n)", " += "),  # a loop outside comes again
    ],
)
def test_only_what_is_the_whole_of_its_place_is_stored_plainly(
    statement: str, form: str, order: str, sign: str, rng: np.random.Generator
) -> None:
    """Runs within a block of positions need not be combined with anything, unless something else goes to their places."""
    cuts, tags = SCHEDULES["positions"].split(" parallelize", 1)
    steps = f"{cuts}{order} parallelize{tags}"
    A, x, z, y = matrix(rng, 29, 29, 0.3), rng.integers(1, 5, 29) * 1.0, np.array([1.0, 2.0]), rng.integers(1, 5, 29) * 1.0
    given = {"A": A, "x": x} | ({"z": z} if "z(" in statement else {}) | ({"y": y} if "+=" in statement else {})
    expected = (A @ x) * (3 if "z(" in statement else 1) + (y if "+=" in statement else 0)
    kernel = sl.program(statement, {"A": form}, steps, target="interpret")
    assert np.array_equal(kernel(**given).to_numpy(), expected)
    assert any(line.strip().startswith(f"y_vals[i]{sign}") for line in kernel.show("loops").splitlines())


def test_threads_that_walk_entries_go_on_until_there_are_none() -> None:
    """A digit of two values that is not the leading one is found entry by entry, of which there may be more than two."""
    steps = "reorder(i,j) divide(j,j0,j1,2) reorder(j1,j0) parallelize(i,GPUBlock,Atomics) parallelize(j0,GPUThread,Atomics)"
    source = sl.program("y(j) = A(i,j) * x(i)", {"A": "csr"}, steps, target="cuda").source
    assert "int64_t pA2 = A2_pos[i] + pA2_unit;" in source and "while (pA2 < pA2_last)" in source and "pA2 += 2;" in source
    steps = "divide(j,j0,j1,2) reorder(i,j1,j0) parallelize(i,GPUBlock,NoRaces) parallelize(j0,GPUThread,Temporary)"
    added = sl.program(SPMV, {"A": "csr"}, steps, target="cuda").source
    assert "y_acc_sum += y_acc_own;" in added  # what several iterations of a thread bring is added up
    rows = sl.program(SPMV, {"A": "csr"}, SCHEDULES["a thread for every row"], target="cuda").source
    assert "if (const int64_t t = threadIdx.x; t <" in rows


def test_a_scalar_that_several_kernels_need_lives_in_memory() -> None:
    function = lowered("y(i) = x(i) - max(j, x(j))", "split(i,b,t,8) parallelize(b,GPUBlock,NoRaces) parallelize(t,GPUThread,NoRaces)")
    assert any("kept" in n.array.name for n in walk(function) if isinstance(n, ir.Allocate))


def test_the_host_reads_positions_and_no_values() -> None:
    """It reads them once for many calls, between which values may change."""
    special = sl.program("y(i) = A(i,j) * number", {"A": "csr"}, SCHEDULES["positions"], target="cuda").preview({"number": "int64"})
    function = special.stages.lowered.function
    read = {n.array.name for stmt in outside(function) if isinstance(stmt, ir.Declare) for n in walk(stmt) if isinstance(n, ir.Load)}
    assert read == {"A2_pos"}


def test_a_sparse_result_is_refused() -> None:
    with pytest.raises(sl.DeviceError, match="a sparse result cannot be made on a GPU yet"):
        sl.program("C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr", "C": "csr"}, target="cuda").preview().show("loops")


def test_what_nobody_reads_is_not_worked_out() -> None:
    used, unused = ir.Var("used"), ir.Var("unused")
    array = ir.Array("a", FLOAT64)
    body = ir.block(ir.Declare(unused, ir.ONE), ir.Declare(used, ir.ZERO), ir.Store(array, used, ir.constant(1, FLOAT64)))
    assert [type(stmt) for stmt in ir.stmts_of(without_unused(body))] == [ir.Declare, ir.Store]


def test_a_scalar_in_memory_is_loaded_and_stored() -> None:
    total, array = ir.Var("total", FLOAT64), ir.Array("kept", FLOAT64)
    one = ir.constant(1, FLOAT64)
    body = ir.block(ir.Declare(total, one), ir.Assign(total, ir.Op("add", (total, one), FLOAT64)))
    first, second = ir.stmts_of(in_memory(body, total, ir.Load(array, ir.ZERO)))
    assert first == ir.Store(array, ir.ZERO, one)
    assert second == ir.Store(array, ir.ZERO, one, "add")


LAUNCHED = partial(add_launches, lanes=32, indices=(), always=False)


@pytest.mark.parametrize("improve", (keep_in_registers, share_among_lanes, LAUNCHED))
def test_loops_of_a_cpu_are_left_alone(improve: object) -> None:
    function = sl.program(SPMV, {"A": "csr"}, "", target="c").preview().stages.lowered.function
    assert improve(function) is function  # type: ignore[operator]
