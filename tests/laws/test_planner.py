"""What the planner chooses without a schedule: threads, vectors, constants; it says why, it is text, and results keep their bits."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from primitives.statements import concrete

import sparseloom as sl
from sparseloom.core.names import Names
from sparseloom.plan.choose import choices
from sparseloom.plan.machine import Machine, this_machine
from sparseloom.plan.space import Space
from sparseloom.plan.statistics import Evenness, Statistics, known_of
from sparseloom.plan.vectors import choose_vectors

LANES = "parallelize(j,CPUVector,ParallelReduction)"
SPMV, SPMM = "y(i) = A(i,j) * x(j)", "C(i,k) = A(i,j) * B(j,k)"


def rows(lengths: np.ndarray, columns: int) -> sl.Tensor:
    """A matrix with rows of these lengths."""
    random = np.random.default_rng(len(lengths))
    coordinates = np.concatenate([np.sort(random.choice(columns, length, replace=False)) for length in lengths])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    arrays = (random.random(len(coordinates)), coordinates.astype(np.int32), starts.astype(np.int32))
    return sl.asarray(sp.csr_array(arrays, shape=(len(lengths), columns)))


EVEN = np.full(6000, 20)
UNEVEN = np.linspace(1, 39, 6000).astype(int)
SHORT = np.concatenate([np.full(26_000, 2), np.zeros(40_000, int)])  # most rows are empty, and all of them at the end
HEAVY = np.concatenate([[5900], np.full(5999, 12)])


def planned(statement: str, formats: dict[str, str], *operands: object) -> sl.Kernel:
    kernel = sl.program(statement, formats)
    kernel(*operands)
    return kernel


@pytest.mark.parametrize(
    ("lengths", "spread", "wanted"),
    [
        (EVEN, Evenness.EVEN, "divide(i,i0,i1,64)\nparallelize(i0,CPUThread,NoRaces)"),
        (UNEVEN, Evenness.UNEVEN, "divide(i,i0,i1,64,A(i,j))\nparallelize(i0,CPUThread,NoRaces)"),
        (SHORT, Evenness.UNEVEN, "divide(i,i0,i1,64,A(i,j),2)\nparallelize(i0,CPUThread,NoRaces)"),
        (HEAVY, Evenness.HEAVY, "fuse(i,j,f)\npos(f,p,A(i,j))\ndivide(p,p0,p1,64)\nparallelize(p0,CPUThread,Temporary)"),
    ],
)
def test_rows_decide_how_threads_share_them(lengths: np.ndarray, spread: Evenness, wanted: str) -> None:
    matrix, x = rows(lengths, 6000), np.ones(6000)
    assert known_of(matrix.storage).spread is spread
    kernel = planned(SPMV, {"A": "csr"}, matrix, x)
    assert kernel.schedule.removeprefix(f"{LANES}\n") == wanted  # with masks, these rows are summed in vectors
    assert "\n  threads take 64 pieces of" in kernel.explain().partition("\nplan")[2]
    np.testing.assert_allclose(kernel(matrix, x).to_numpy(), matrix.to_scipy() @ x)


def test_a_row_of_results_stays_in_registers() -> None:
    matrix, dense = rows(EVEN, 6000), np.ones((6000, 16))
    kernel = planned(SPMM, {"A": "csr"}, matrix, dense)
    assert kernel.schedule.split("\n")[:3] == ["bound(k,kb,16,MaxExact)", "reorder(i,kb,j)", "parallelize(kb,CPUVector,NoRaces)"]
    np.testing.assert_allclose(kernel(matrix, dense).to_numpy(), matrix.to_scipy() @ dense)


def test_wide_rows_of_results_stay_in_registers_strip_by_strip() -> None:
    matrix, dense = rows(np.full(400, 12), 400), np.random.default_rng(3).integers(0, 9, (400, 300)).astype(float)
    kernel = planned(SPMM, {"A": "csr"}, matrix, dense)
    assert kernel.schedule.split("\n")[:2] == ["reorder(i,k,j)", "parallelize(k,CPUVector,NoRaces)"]
    np.testing.assert_array_equal(kernel(matrix, dense).to_numpy(), matrix.to_scipy() @ dense)


def test_panels_of_columns_where_a_cache_holds_one_of_them() -> None:
    matrix, width = rows(np.full(2000, 20), 2000), 300
    loops, sizes = concrete(SPMM, "A:csr"), {"i": 2000, "j": 2000, "k": width}
    statistics = Statistics.of({"A": matrix.storage, "B": sl.zeros((2000, width)).storage})

    def steps(cache: int) -> tuple[str, ...]:
        space = Space(loops.stmt, sizes, statistics, replace(this_machine(), cache=cache))
        return tuple(step.compact for step in choose_vectors(space, Names(("i", "j", "k")))[0].steps)

    panels = ("split(k,k0,k1,128)", "reorder(k0,i,k1,j)", "parallelize(k1,CPUVector,NoRaces)")
    assert steps(18 << 20) == panels  # B has 4.8 MB, a quarter of the cache 4.5, and a panel of 128 columns 2.0
    assert steps(1 << 25) == steps(1 << 22) == ("reorder(i,k,j)", "parallelize(k,CPUVector,NoRaces)")
    small, dense = rows(np.full(9, 3), 40), np.random.default_rng(4).integers(0, 9, (40, 141)).astype(float)
    for target in ("interpret", "c"):
        kernel = sl.program(SPMM, {"A": "csr"}, " ".join(panels), target=target)
        np.testing.assert_array_equal(kernel(small, dense).to_numpy(), small.to_scipy() @ dense)


def in_blocks(per_row: int) -> sl.Tensor:
    """A matrix of blocks of 4 by 4, the last of which are cut off."""
    random, n = np.random.default_rng(per_row), 4002
    cells = np.unique(np.repeat(np.arange(1001), per_row) * 1001 + random.integers(0, 1001, 1001 * per_row))
    within = np.arange(4)
    i, j = (cells // 1001)[:, None, None] * 4 + within[:, None], (cells % 1001)[:, None, None] * 4 + within
    i, j = np.broadcast_arrays(i, j)
    inside = (i < n) & (j < n)
    at = np.array([i[inside], j[inside]])
    return sl.from_coo(at, random.integers(1, 9, at.shape[1]).astype(float), (n, n), format="csr")


@pytest.mark.parametrize(
    ("per_row", "wanted"),
    [
        (8, "i_block,i_within,kb,j_block,j_within"),  # what is summed is near when the next row of a block reads it again
        (60, "i_block,j_block,i_within,kb,j_within"),
    ],
)
def test_rows_of_blocks_are_shared_and_a_row_of_results_stays_in_registers(per_row: int, wanted: str) -> None:
    matrix, dense = in_blocks(per_row), np.random.default_rng(2).integers(0, 9, (4002, 16)).astype(float)
    blocks = matrix.to("bcsr(4,4)")
    kernel = planned(SPMM, {"A": "bcsr(4,4)"}, blocks, dense)
    steps = kernel.schedule.split("\n")
    assert steps[:3] == ["bound(k,kb,16,MaxExact)", f"reorder({wanted})", "parallelize(kb,CPUVector,NoRaces)"]
    assert steps[3].startswith("divide(i_block,i_block0,i_block1,")
    assert steps[4:] == ["parallelize(i_block0,CPUThread,NoRaces)"]
    np.testing.assert_array_equal(kernel(blocks, dense).to_numpy(), matrix.to_scipy().toarray() @ dense)
    again = sl.program(kernel.plan)
    again(blocks, dense)
    assert again.source == kernel.source


def test_plain_loops_over_blocks_read_dense_operands_along_their_rows() -> None:
    kernel = sl.program(SPMM, {"A": "bcsr(4,4)"}, "")
    blocks, dense = in_blocks(2).to("bcsr(4,4)"), np.ones((4002, 16))
    made = kernel(blocks, dense).to_numpy()
    loops = [line.split(":")[0].strip() for line in kernel.explain().partition("loops\n")[2].partition("\n\n")[0].split("\n")]
    assert loops == ["i_block", "j_block", "i", "j", "k"]
    np.testing.assert_array_equal(made, blocks.to("csr").to_scipy() @ dense)


def test_sums_of_neighbours_run_in_vectors() -> None:
    matrix, dense = rows(EVEN, 60_000), np.random.default_rng(1).random((60_000, 16))
    kernel = planned("S(i,j) = A(i,j) * P(i,k) * Q(j,k)", {"A": "csr", "S": "csr"}, matrix, dense[:6000], dense)
    assert "parallelize(kb,CPUVector,ParallelReduction)" in kernel.schedule
    assert "prefetch(Q(j,k),j,4)" in kernel.schedule  # entries are anywhere
    made, pattern = kernel(matrix, dense[:6000], dense).to_scipy().tocoo(), matrix.to_scipy().tocoo()
    wanted = pattern.data * np.einsum("ek,ek->e", dense[pattern.row], dense[pattern.col])
    np.testing.assert_allclose(made.data, wanted)


@pytest.mark.parametrize(("semiring", "first"), [(None, LANES), ("min_plus", LANES), ("or_and", "unroll(j,4)")])
def test_long_rows_are_summed_in_vectors_and_reductions_that_have_no_lanes_are_unrolled(semiring: str | None, first: str) -> None:
    matrix, x = rows(60 + np.arange(3000) % 4, 6000), np.random.default_rng(1).random(6000)
    kernel = sl.program(SPMV, {"A": "csr"}, semiring=semiring)
    found = kernel(matrix, x).to_numpy()
    assert kernel.schedule.split("\n") == [first, "divide(i,i0,i1,64)", "parallelize(i0,CPUThread,NoRaces)"]
    csr = matrix.to_scipy()
    least = np.minimum.reduceat(csr.data + x[csr.indices], csr.indptr[:-1])
    np.testing.assert_allclose(found, {None: csr @ x, "min_plus": least, "or_and": np.ones(3000)}[semiring])


@pytest.mark.parametrize(
    ("count", "length", "dtype", "with_masks", "without"),
    [
        (20_000, 4, "float64", False, False), (20_000, 8, "float64", True, False), (20_000, 40, "float64", True, True),
        (20_000, 8, "float32", False, False), (20_000, 20, "float32", True, False),
        (100, 4, "float64", False, False), (100, 40, "float64", True, False), (100, 40, "float32", True, False),
    ],
)  # fmt: skip
def test_rows_that_fill_a_vector_are_summed_in_vectors_where_processors_have_masks(
    count: int, length: int, dtype: str, with_masks: bool, without: bool
) -> None:
    """In small operands, too, which stay on one thread, and of which only the number of entries is known, rounded down."""
    matrix, x = rows(np.full(count, length), 6000).astype(dtype), np.ones(6000, dtype)
    kernel = sl.program(SPMV, {"A": "csr"}, "")
    kernel(matrix, x)
    loops, statistics = kernel._last.stages.concrete, Statistics.of({"A": matrix.storage, "x": sl.asarray(x).storage})
    for masks, wanted in ((True, with_masks), (False, without)):
        chosen = next(choices(loops, Space(loops.stmt, {"i": count, "j": 6000}, statistics, Machine(masks, gathers=True))))
        assert (LANES in chosen.schedule.split("\n")) == wanted


@pytest.mark.parametrize(("length", "wanted"), [(20, False), (40, True)])
def test_minima_run_in_vectors_from_long_rows_on_whatever_the_processor_has(length: int, wanted: bool) -> None:
    matrix, x = rows(np.full(20_000, length), 6000), np.ones(6000)
    kernel = sl.program(SPMV, {"A": "csr"}, "", semiring="min_plus")
    kernel(matrix, x)
    loops, statistics = kernel._last.stages.concrete, Statistics.of({"A": matrix.storage, "x": sl.asarray(x).storage})
    for masks in (True, False):
        chosen = next(choices(loops, Space(loops.stmt, {"i": 20_000, "j": 6000}, statistics, Machine(masks, gathers=True))))
        assert (LANES in chosen.schedule.split("\n")) == wanted


@pytest.mark.parametrize(("lengths", "steady"), [(np.full(20_000, 7), True), (np.arange(20_000) % 4 + 5, False)])
def test_rows_of_one_length_are_summed_one_by_one_where_gathers_are_slow(lengths: np.ndarray, steady: bool) -> None:
    matrix, x = rows(lengths, 6000), np.ones(6000)
    assert known_of(matrix.storage).steady == steady
    kernel = sl.program(SPMV, {"A": "csr"}, "")
    kernel(matrix, x)
    loops, statistics = kernel._last.stages.concrete, Statistics.of({"A": matrix.storage, "x": sl.asarray(x).storage})
    for gathers in (True, False):
        chosen = next(choices(loops, Space(loops.stmt, {"i": 20_000, "j": 6000}, statistics, Machine(True, gathers=gathers))))
        assert (LANES in chosen.schedule.split("\n")) == (gathers or not steady)


SAMPLED = "Y(i,l) = S(i,j) * C(i,k) * D(j,k) * E(j,l)"


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("steps", [1, 2])
def test_a_sampled_product_goes_on_into_a_dense_one_in_one_nest_if_its_rows_fit_into_registers(steps: int, dtype: str) -> None:
    random, width = np.random.default_rng(1), 32 if steps == 1 else 96
    matrix = rows(EVEN, 600).astype(dtype)
    C, D, E = (random.integers(0, 3, (n, width)).astype(dtype) for n in (6000, 600, 600))
    kernel = planned(SAMPLED, {"S": "csr"}, matrix, C, D, E)
    assert kernel.plan.count(" = ") == steps
    if steps == 1:
        first = ["bound(l,lb,32,MaxExact)", "reorder(i,lb,j,k)", "precompute(C(i,k) * D(j,k),{},{},t)", "parallelize(lb,CPUVector,NoRaces)"]
        assert kernel.schedule.split("\n")[:6] == [*first, "bound(k,kb,32,MaxExact)", "parallelize(kb,CPUVector,ParallelReduction)"]
        assert kernel.schedule.endswith("divide(i,i0,i1,256)\nparallelize(i0,CPUThread,NoRaces)")
        assert "C(i,k) * D(j,k) is summed over k first, and a row of results stays in registers" in kernel.explain()
    S = matrix.to_scipy().toarray().astype(float)
    wanted = (S * (C.astype(float) @ D.astype(float).T)) @ E.astype(float)
    np.testing.assert_allclose(kernel(matrix, C, D, E).to_numpy(), wanted, rtol=1e-13 if dtype == "float64" else 1e-5)
    again = sl.program(kernel.plan)
    again(matrix, C, D, E)
    assert again.source == kernel.source
    assert again.plan == kernel.plan


def test_a_sum_inside_has_the_numbers_of_one_nest_and_of_the_dense_product() -> None:
    random, matrix = np.random.default_rng(2), rows(UNEVEN, 500)
    values = [random.integers(-3, 4, (n, 16)).astype(float) for n in (6000, 500, 500)]
    S = sl.asarray(sp.csr_array((random.integers(1, 4, matrix.nnz).astype(float), matrix.to_scipy().indices, matrix.to_scipy().indptr)))
    kernel = planned(SAMPLED, {"S": "csr"}, S, *values)
    assert "precompute" in kernel.schedule
    C, D, E = values
    np.testing.assert_array_equal(kernel(S, *values).to_numpy(), (S.to_scipy().toarray() * (C @ D.T)) @ E)
    np.testing.assert_array_equal(kernel(S, *values).to_numpy(), sl.program(SAMPLED, {"S": "csr"}, "")(S, *values).to_numpy())


def test_small_problems_stay_plain() -> None:
    kernel = planned(SPMV, {"A": "csr"}, np.eye(50), np.ones(50))
    assert kernel.schedule == ""
    assert "\nplan\n" not in kernel.explain()


def test_the_planner_can_be_switched_off() -> None:
    matrix, x = rows(EVEN, 6000), np.ones(6000)
    plain = sl.program(SPMV, {"A": "csr"}, "")
    plain(matrix, x)
    assert plain.schedule == ""
    assert "omp" not in plain.source
    own = sl.program(SPMV, {"A": "csr"}, "split(i,i0,i1,8)")
    own(matrix, x)
    assert own.schedule == "split(i,i0,i1,8)"


@pytest.mark.parametrize("lengths", [EVEN, UNEVEN, HEAVY])
def test_a_plan_is_a_program_that_makes_the_same_code(lengths: np.ndarray) -> None:
    matrix, x = rows(lengths, 6000), np.ones(6000)
    kernel = planned(SPMV, {"A": "csr"}, matrix, x)
    again = sl.program(kernel.plan)
    again(matrix, x)
    assert again.source == kernel.source
    assert again.plan == kernel.plan


def test_statistics_are_kept_with_the_storage() -> None:
    matrix = rows(UNEVEN, 6000)
    assert known_of(matrix.storage) is known_of(matrix.storage)
    known = Statistics.of({"A": matrix.storage}).known("A")
    assert known is known_of(matrix.storage)
    assert known.fans == (4096.0, 16.0)


BITS = """
import hashlib, sys
import numpy as np, sparseloom as sl
sl.set_threads(int(sys.argv[1]))
random = np.random.default_rng(3)
lengths = [5900, *random.integers(0, 40, 5999)]
cells = [np.sort(random.choice(6000, n, replace=False)) for n in lengths]
at = np.array([np.repeat(np.arange(6000), lengths), np.concatenate(cells)])
A = sl.from_coo(at, random.random(at.shape[1]), (6000, 6000), format="csr")
x, B = random.random(6000), random.random((6000, 24))
found = [
    sl.einsum("ij,j->i", A, x), sl.einsum("ij,jk->ik", A, B), sl.einsum("ij,i,j->", A, x, x), sl.einsum("ij,i->j", A, x),
    sl.einsum("ij,jk->ik", A.to("bcsr(4,4)"), B), sl.einsum("ij,ik,jk,jl->il", A, B[:, :16], B[:, :16], B[:, :16]),
    sl.einsum("ij,jk,k->i", A, A, x), sl.einsum("ij,ik,jk->ij", A, B, B), A @ A, A + A.T, sl.einsum("ik,jk->ij", B[:500], B[:500]),
]
print(hashlib.sha256(b"".join(one.storage.values.tobytes() for one in found)).hexdigest())
"""


def test_results_have_the_same_bits_for_any_number_of_threads() -> None:
    seen = {
        subprocess.run([sys.executable, "-c", textwrap.dedent(BITS), count], capture_output=True, text=True, check=True).stdout
        for count in ("1", "2", "7", "2")
    }
    assert len(seen) == 1


@pytest.mark.parametrize("extent", [0, 1, 100_000])
def test_a_sum_of_everything_has_no_row(extent: int) -> None:
    """All loops are sums over what one factor has: there is nothing to keep in registers meanwhile."""
    kernel = sl.program("R = sum(r, (0 + A) * B(r))", dtype="float64")
    assert kernel(2.0, np.ones(extent, np.float32)).to_numpy() == 2.0 * extent


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("C(i,k) = A(i,j) * B(j,k) + D(i,k)", lambda a, b, d: a @ b + d),
        ("C(i,k) = D(i,k) - A(i,j) * B(j,k)", lambda a, b, d: d - a @ b),
        ("C(i,k) = D(i,k) * A(i,j) * B(j,k) + D(i,k)", lambda a, b, d: d * (a @ b) + d),
    ],
)
@pytest.mark.parametrize("columns", [8, 32, 300])
def test_a_sum_with_an_added_dense_term_keeps_its_vectors(statement, wanted, columns):
    random = np.random.default_rng(columns)
    left = sp.random_array((3000, 400), density=0.05, format="csr", rng=random)
    right, term = random.random((400, columns)), random.random((3000, columns))
    kernel = sl.program(statement, formats={"A": "csr"})
    found = kernel(A=left, B=right, D=term).to_numpy()
    assert "CPUVector,NoRaces" in kernel.schedule
    assert np.allclose(found, wanted(left.toarray(), right, term))
