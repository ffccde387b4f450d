"""Results in halves are rounded once, whatever loops make them: in memory, in registers, in private copies, on threads and on a GPU."""

from __future__ import annotations

from itertools import product

import ml_dtypes
import numpy as np
import pytest

import sparseloom as sl
from sparseloom.core.dtypes import DType
from sparseloom.loops import nodes as ir
from sparseloom.lower.rounding import rounds_early
from sparseloom.programs.cuda.nvrtc import compile_cubin

HALVES: tuple[DType, ...] = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
SPMV, BY_COLUMNS, SPMM = "y(i) = A(i,j) * x(j)", "y(j) = A(i,j) * x(i)", "Y(i,k) = A(i,j) * X(j,k)"
# Statements, what A is stored in, how they run, and whether sums go through memory.
CASES = (
    (SPMV, "csr", "", False),
    (SPMV, "csr", "parallelize(j,CPUVector,ParallelReduction)", False),
    (SPMV, "csr", "split(i,i0,i1,4) parallelize(i0,CPUThread,NoRaces)", False),
    (SPMV, "csr", "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,16) parallelize(p0,CPUThread,Atomics)", True),
    (SPMV, "csr", "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,16) parallelize(p0,CPUThread,Temporary)", True),
    (SPMV, "csr", "precompute(A(i,j) * x(j),j,jw,w)", False),
    (SPMV, "dense", "", False),
    (SPMV, "dense", "reorder(j,i)", True),
    (BY_COLUMNS, "csr", "", True),
    (BY_COLUMNS, "csr", "parallelize(i,CPUThread,Atomics)", True),
    (BY_COLUMNS, "csr", "parallelize(i,CPUThread,Temporary)", True),
    (BY_COLUMNS, "csc", "", False),
    (SPMM, "csr", "", True),
    (SPMM, "csr", "reorder(i,k,j)", False),
    (SPMM, "csr", None, None),
    (SPMV, "csr", None, None),
)
ON_GPU = (
    (SPMV, "csr", "split(i,b,t,32) parallelize(b,GPUBlock,NoRaces) parallelize(t,GPUThread,NoRaces)"),
    (SPMV, "csr", "fuse(i,j,f) pos(f,p,A(i,j)) split(p,b,t,32) parallelize(b,GPUBlock,Atomics) parallelize(t,GPUThread,Atomics)"),
    (BY_COLUMNS, "csr", "split(i,b,t,32) parallelize(b,GPUBlock,Atomics) parallelize(t,GPUThread,Atomics)"),
    (SPMM, "csr", "split(i,b,w,4) split(k,k0,k1,32) parallelize(b,GPUBlock,NoRaces) parallelize(k1,GPUThread,NoRaces)"),
)


def operands(text: str, format: str, half: DType) -> tuple[dict[str, object], np.ndarray]:
    """Whole numbers of which sums are exact in float32, and not in a half; and what the statement makes of them in float32."""
    rng = np.random.default_rng(5)
    A = rng.integers(-15, 40, (48, 40)) * (rng.random((48, 40)) < 0.5)
    rows, columns = A.shape
    given: dict[str, object] = {"A": sl.asarray(A.astype(half)).to(format)}
    match text:
        case _ if text == SPMV:
            given["x"], exact = (x := rng.integers(-15, 40, columns)).astype(half), A @ x
        case _ if text == BY_COLUMNS:
            given["x"], exact = (x := rng.integers(-15, 40, rows)).astype(half), A.T @ x
        case _:
            given["X"], exact = (x := rng.integers(-15, 40, (columns, 6))).astype(half), A @ x
    return given, exact.astype(np.float32)


@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize("number", range(len(CASES)))
def test_no_schedule_rounds_more_than_once(number: int, half: DType) -> None:
    text, format, schedule, sums = CASES[number]
    given, exact = operands(text, format, half)
    want = exact.astype(half)
    assert not np.array_equal(want.astype(np.float32), exact)  # something is rounded
    for target in ("c", "interpret"):
        k = sl.program(text, formats={"A": format}, schedule=schedule, target=target)
        made = k(**given)
        assert made.dtype == half
        np.testing.assert_array_equal(made.to_numpy().view(np.uint16), want.view(np.uint16))
        assert sums is None or ("rounded to" in k.explain()) == sums


@pytest.mark.parametrize(("case", "half"), list(product(ON_GPU, HALVES)), ids=lambda value: str(value)[:40])
def test_loops_for_a_gpu_round_once_and_compile(case: tuple[str, str, str], half: DType) -> None:
    text, format, schedule = case
    given, exact = operands(text, format, half)
    made = sl.program(text, formats={"A": format}, schedule=schedule, target="interpret")(**given)
    np.testing.assert_array_equal(made.to_numpy().view(np.uint16), exact.astype(half).view(np.uint16))
    source = sl.program(text, formats={"A": format}, schedule=schedule, target="cuda").preview(dict.fromkeys(given, half)).source
    assert f"{half}_of_float32(" in source and f"float32_of_{half}(" in source
    assert compile_cubin(source).startswith(b"\x7fELF")


@pytest.mark.parametrize("format", ("csr", "csc", "dcsr", "coo", "bcsr(2,2)", "ell", "dense"))
@pytest.mark.parametrize("half", HALVES, ids=str)
def test_sparse_products_round_once(format: str, half: DType) -> None:
    rng = np.random.default_rng(7)
    A, B = (rng.integers(-15, 40, (20, 20)) * (rng.random((20, 20)) < 0.3) for _ in range(2))
    want = (A @ B).astype(np.float32).astype(half)
    for target in ("c", "interpret"):
        given = {"A": sl.asarray(A.astype(half)).to("csr"), "B": sl.asarray(B.astype(half)).to("csr")}
        made = sl.evaluate("C(i,k) = A(i,j) * B(j,k)", format=format, target=target, **given)
        assert made.dtype == half and made.to_numpy().tolist() == want.tolist()
    again = sl.evaluate("C(i,k) = A(i,j) * B(j,k)", format=format, out=made, **given)
    assert again.to_numpy().tolist() == want.tolist()


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_statements_that_are_cut_keep_their_temporaries_in_float32(half: DType) -> None:
    rng = np.random.default_rng(9)
    A, x = rng.integers(0, 12, (300, 300)), rng.integers(0, 3, 300)
    want = (A @ (A @ x)).astype(np.float32)
    scale = half.type(2.0**-13)
    made = sl.evaluate("y(i) = s * A(i,j) * A(j,k) * x(k)", A=A.astype(half), x=x.astype(half), s=scale)
    assert made.dtype == half
    assert made.to_numpy().tolist() == (want * np.float32(scale)).astype(half).tolist()
    assert "t1" in str(sl.plan("y(i) = A(i,j) * A(j,k) * x(k)", A=A.astype(half), x=x.astype(half)))


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_what_adds_in_a_half_is_found(half: DType) -> None:
    y, n, k = ir.Array("y", half), ir.Var("n"), ir.Var("k")
    one = ir.constant(1, half)

    def function(*stmts: ir.Stmt) -> ir.Function:
        return ir.Function("f", (ir.Param(y, ir.Role.OUTPUT), ir.Param(n, ir.Role.SIZE)), ir.For(k, ir.ZERO, n, ir.block(*stmts)))

    assert not rounds_early(function(ir.Store(y, k, one)))
    assert rounds_early(function(ir.Store(y, k, one, "add")))
    assert rounds_early(function(ir.Store(y, k, ir.Load(y, k))))
    assert rounds_early(function(ir.Declare(ir.Var("t", half), one)))
