"""Vector loops that sum: a sum for each lane, added in a fixed order, and everything else as it was."""

from __future__ import annotations

import re

import numpy as np
import pytest

import sparseloom as sl
from sparseloom.core.trees import walk
from sparseloom.loops import nodes as ir
from sparseloom.passes.vectorize import vectorize

SPMV, SDDMM, SPMM = "y(i) = A(i,j) * x(j)", "C(i,j) = A(i,j) * B(i,k) * D(j,k)", "C(i,k) = A(i,j) * B(j,k)"
SUMS = "parallelize(j,CPUVector,ParallelReduction)"
DTYPES = ("float64", "float32", "int64", "int32", "uint64", "uint32")


def matrix(rng: np.random.Generator, rows: int, columns: int, density: float, dtype: str) -> np.ndarray:
    return np.where(rng.random((rows, columns)) < density, rng.integers(1, 9, (rows, columns)), 0).astype(dtype)


def kinds(kernel: sl.Kernel) -> list[str]:
    """The kinds of loops that are not serial."""
    return re.findall(r"  \[(\w+ ?\d*).*\]$", kernel.show("loops"), re.MULTILINE)


@pytest.mark.parametrize("target", ["c", "interpret"])
@pytest.mark.parametrize("dtype", [*DTYPES, "int16", "complex128", "bool"])
@pytest.mark.parametrize("rows, columns, density", [(6, 90, 0.5), (3, 7, 0.5), (1, 40, 1.0), (5, 5, 0.0), (0, 4, 1.0)])
def test_sums_of_entries_are_right(rng, target: str, dtype: str, rows: int, columns: int, density: float) -> None:
    A, x = matrix(rng, rows, columns, density, dtype), matrix(rng, 1, columns, 0.8, dtype)[0]
    assert (sl.program(SPMV, {"A": "csr"}, SUMS, target=target)(A, x).to_numpy() == A @ x).all()


@pytest.mark.parametrize("target", ["c", "interpret"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduction, combine", [("min", np.minimum), ("max", np.maximum), ("prod", np.multiply)])
@pytest.mark.parametrize("columns", [1, 8, 50])
def test_lanes_find_extremes_and_products(rng, target: str, dtype: str, reduction: str, combine: np.ufunc, columns: int) -> None:
    A, x = rng.integers(0, 9, (6, columns)).astype(dtype), rng.integers(1, 4, columns).astype(dtype)
    A -= np.asarray(0 if dtype.startswith("u") else 4, dtype)  # signs count
    kernel = sl.program(f"y(i) = {reduction}(j, A(i,j) * x(j))", {}, SUMS, target=target)
    assert kinds(kernel)[-1] == "lanes 2"  # as it is for float64
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(kernel(A, x).to_numpy(), combine.reduce(A * x, axis=1))


@pytest.mark.parametrize("semiring, combine", [("min_plus", np.minimum), ("max_plus", np.maximum)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_what_is_no_number_stays_in_every_lane(rng, semiring: str, combine: np.ufunc, dtype: str) -> None:
    A, x = sl.random((40, 60), 0.4, "csr", seed=7).astype(dtype), rng.standard_normal(60).astype(dtype)
    x[11] = np.nan
    made = {t: sl.program(SPMV, {"A": "csr"}, SUMS, semiring=semiring, target=t)(A, x).to_numpy() for t in ("c", "interpret")}
    csr = A.to_scipy()
    wanted = combine.reduceat(csr.data + x[csr.indices], csr.indptr[:-1])
    assert np.isnan(wanted).any() and not np.isnan(wanted).all()
    np.testing.assert_array_equal(made["c"], wanted)
    np.testing.assert_array_equal(made["interpret"], wanted)


@pytest.mark.parametrize("target", ["c", "interpret"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("loop, bound", [("k", ""), ("kb", "bound(k,kb,37,MaxExact)")])
def test_sums_of_rows_are_right(rng, target: str, dtype: str, loop: str, bound: str) -> None:
    steps = f"{bound} parallelize({loop},CPUVector,ParallelReduction)"
    A, B, D = matrix(rng, 6, 8, 0.4, dtype), matrix(rng, 6, 37, 0.9, dtype), matrix(rng, 8, 37, 0.9, dtype)
    assert (sl.program(SDDMM, {"A": "csr", "C": "csr"}, steps, target=target)(A, B, D).to_numpy() == A * (B @ D.T)).all()


@pytest.mark.parametrize("target", ["c", "interpret"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [1, 8, 37, 64, 100])
def test_rows_in_lanes_are_right(rng, target: str, dtype: str, width: int) -> None:
    A, B = matrix(rng, 4, 6, 0.5, dtype), matrix(rng, 6, width, 0.9, dtype)
    for loop, bound in (("k", ""), ("kb", f"bound(k,kb,{width},MaxExact)")):
        steps = f"{bound} reorder({loop},j) parallelize({loop},CPUVector,NoRaces)"
        assert (sl.program(SPMM, {"A": "csr"}, steps, target=target)(A, B).to_numpy() == A @ B).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_order_of_a_sum_is_fixed(rng, dtype: str) -> None:
    """The products are exact, so only the order decides on the last bits: the interpreter and C, whatever its registers, agree on them."""
    A, x = rng.standard_normal((20, 300)).astype(dtype), np.ones(300, dtype)
    A[rng.random(A.shape) < 0.4] = 0
    compiled, interpreted = (sl.program(SPMV, {"A": "csr"}, SUMS, target=target)(A, x).to_numpy() for target in ("c", "interpret"))
    assert compiled.tobytes() == interpreted.tobytes()
    row = A[0][A[0] != 0]
    lanes = 64 // row.itemsize
    sums = np.zeros(lanes, dtype)
    for first in range(0, len(row), lanes):
        block = row[first : first + lanes]
        sums[: len(block)] += block
    while len(sums) > 1:
        sums = sums[: len(sums) // 2] + sums[len(sums) // 2 :]
    assert compiled[0] == sums[0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_rows_of_every_length_are_right_up_to_the_last(rng, dtype: str, index: str) -> None:
    """What is left of a row is read together with what follows it, except at the end of the arrays."""
    for last in range(1, 20):
        lengths = [*rng.integers(0, 20, 6), last]
        coordinates = [np.sort(rng.choice(40, length, replace=False)) for length in lengths]
        arrays = {
            "pos1": np.concatenate([[0], np.cumsum(lengths)]).astype(index), "crd1": np.concatenate(coordinates).astype(index),
            "values": rng.integers(1, 9, sum(lengths)).astype(dtype),
        }  # fmt: skip
        A, x = sl.from_arrays("csr", (len(lengths), 40), arrays), rng.integers(1, 9, 40).astype(dtype)
        made = {target: sl.program(SPMV, {"A": "csr"}, SUMS, target=target)(A, x).to_numpy() for target in ("c", "interpret")}
        assert (made["c"] == A.to_numpy() @ x).all() and (made["interpret"] == made["c"]).all()


def test_what_stands_in_the_next_row_changes_nothing() -> None:
    """Not even where it is no number."""
    A, x = np.array([[1.0, 0.0, 2.0], [np.nan, np.inf, 3.0], [4.0, 5.0, 0.0]] * 5), np.array([1.0, np.inf, 2.0])
    A[:, 1] = 0
    made = sl.program(SPMV, {"A": "csr"}, SUMS)(A, x).to_numpy()
    np.testing.assert_array_equal(made, [5.0, np.nan, 4.0] * 5)


def test_a_block_asks_ahead_once() -> None:
    kernel = sl.program(SPMV, {"A": "csr"}, f"{SUMS} prefetch(A(i,j),j,64)")
    assert kernel.source.count("__builtin_prefetch(A_vals") == 2  # in a block, and in what is left
    assert "gather_float64_int32" in kernel.source
    other = sl.program("y(i) = A(i,j) * exp(x(j))", {"A": "csr"}, f"{SUMS} prefetch(A(i,j),j,64)")
    assert "__builtin_prefetch" not in other.source
    A = np.arange(400.0).reshape(4, 100) % 7
    assert (kernel(A, np.ones(100)).to_numpy() == A.sum(axis=1)).all() and (other(A, np.zeros(100)).to_numpy() == A.sum(axis=1)).all()


def test_entries_are_gathered_and_rows_are_read_in_lanes() -> None:
    assert kinds(sl.program(SPMV, {"A": "csr"}, SUMS)) == ["lanes 8"] * 5 + ["lanes 2"]
    fixed = sl.program(SDDMM, {"A": "csr", "C": "csr"}, "bound(k,kb,16,MaxExact) parallelize(kb,CPUVector,ParallelReduction)")
    assert kinds(fixed) == ["lanes 8", "lanes 8", "lanes 2"]
    assert "for kb in" not in fixed.show("loops")
    rows = sl.program(SPMM, {"A": "csr"}, "bound(k,kb,48,MaxExact) reorder(kb,j) parallelize(kb,CPUVector,NoRaces)")
    assert kinds(rows) == ["lanes 32"] * 3 + ["lanes 16"] * 3
    assert "gather_float64_int32(x_vals, A2_crd + " in sl.program(SPMV, {"A": "csr"}, SUMS).source


@pytest.mark.parametrize(
    "statement, formats, steps",
    [
        (SPMV, {"A": "csr"}, f"{SUMS} unroll(j,4)"),  # the user says how wide
        ("y(i) = any(j, A(i,j) < x(j))", {}, SUMS),  # truth values
        ("y(i) = A(i,j) * exp(x(j))", {"A": "csr"}, SUMS),
        ("y(i) = A(i,j) * B(j,i)", {}, SUMS),  # a column: neither neighbours nor gathered
    ],
)
def test_other_loops_stay_as_they_are(statement: str, formats: dict[str, str], steps: str) -> None:
    assert any(kind.startswith("vector") for kind in kinds(sl.program(statement, formats, steps)))


i, OUT = ir.Var("i"), ir.Array("out", np.dtype("float64"))
VALUES = ir.Array("v", np.dtype("float64"))


def test_a_loop_shorter_than_a_block_is_left_alone() -> None:
    total = ir.Var("total", VALUES.dtype)
    added = ir.Assign(total, ir.Op("add", (total, ir.Load(VALUES, i)), VALUES.dtype))
    short = ir.For(i, ir.ZERO, ir.index(7), added, ir.LoopKind.VECTOR, 0, (ir.Reduction(total, "add"),))
    body = ir.block(ir.Declare(total, ir.constant(0, total.dtype)), short, ir.Store(OUT, ir.ZERO, total))
    function = ir.Function("f", (ir.Param(VALUES, ir.Role.INPUT), ir.Param(OUT, ir.Role.OUTPUT)), body)
    left, (why,) = vectorize(function, 64)
    assert left is function and str(why) == "i: vector loop, left to the C compiler: it is shorter than the 8 lanes of a vector"
    made, (done,) = vectorize(function, 32)
    assert any(isinstance(n, ir.For) and n.kind is ir.LoopKind.LANES for n in walk(made))
    assert done.done and str(done) == "i: vector loop, 4 lanes at a time, each with a sum of its own"
