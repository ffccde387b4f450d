"""Schedules on a GPU: the paper's, and random ones."""

from __future__ import annotations

import os
import warnings
from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp
from fuzz.on_gpu import Choose, Tally, at_random, on_gpu, planned
from laws.test_gpu_schedules import CASES
from paper.tensors import SHAPES, matrix, operands

import sparseloom as sl
from sparseloom.core.errors import RaceWarning
from sparseloom.explorer.paper import PAPER, PaperSchedule

pytestmark = pytest.mark.gpu
ON_GPU = [paper for paper in PAPER if "_gpu" in paper.name]
CHUNKS = 8


@pytest.mark.parametrize("paper", ON_GPU, ids=lambda paper: paper.name)
def test_a_schedule_of_the_paper_is_right(paper: PaperSchedule, rng: np.random.Generator) -> None:
    made = sl.program(paper.statement, dict(item.split(":", 1) for item in paper.formats.split()), paper.steps, target="cuda")
    for shape in SHAPES:
        given, wanted = operands(paper.name.split("_")[0], rng, *shape)
        assert np.array_equal(made(**given).to_numpy(), wanted), f"{paper.name} is wrong on {shape}"


@pytest.mark.parametrize("form", ("csr", "dd"))
@pytest.mark.parametrize(("cuts", "strategies", "needed"), CASES)
def test_units_and_strategies_nest(
    cuts: str, strategies: tuple[str | None, ...], needed: set[type], form: str, rng: np.random.Generator
) -> None:
    named = zip("bwt", ("GPUBlock", "GPUWarp", "GPUThread"), strategies, strict=True)
    steps = " ".join([cuts, *(f"parallelize({var},{unit},{races})" for var, unit, races in named if races)])
    A, x = matrix(rng, 11, 13, 0.3), rng.integers(1, 5, 13) * 1.0
    assert np.array_equal(sl.program("y(i) = A(i,j) * x(j)", {"A": form}, steps, target="cuda")(A, x).to_numpy(), A @ x)


@pytest.mark.parametrize("dtype", ("bool", "int32", "int64", "float32", "float64", "complex64", "complex128"))
@pytest.mark.parametrize("races", ("Atomics", "Temporary", "ParallelReduction"))
@pytest.mark.parametrize("threads", (5, 32, 100, 256))
def test_every_dtype_is_reduced(dtype: str, threads: int, races: str, rng: np.random.Generator) -> None:
    A, x = (rng.integers(0, 4, shape).astype(dtype) for shape in ((40, 700), 700))
    steps = f"split(j,q,t,{threads}) reorder(i,t,q) parallelize(i,GPUBlock,NoRaces) parallelize(t,GPUThread,{races})"
    got = sl.program("y(i) = A(i,j) * x(j)", {}, steps, target="cuda")(A, x).to_numpy()
    assert np.array_equal(got, np.einsum("ij,j->i", A, x))


@pytest.mark.parametrize(("warps", "lanes"), ((3, 4), (5, 32), (32, 32), (7, 1)))
def test_warps_of_a_block_add_up_in_a_fixed_order(warps: int, lanes: int, rng: np.random.Generator) -> None:
    A, x = matrix(rng, 9, 2000, 0.3), rng.standard_normal(2000)
    steps = f"pos(j,p,A(i,j)) divide(p,w,q,{warps}) split(q,n,t,{lanes}) reorder(i,w,t,n) parallelize(i,GPUBlock,NoRaces) "
    steps += "parallelize(w,GPUWarp,Temporary) parallelize(t,GPUThread,Temporary)"
    made = sl.program("y(i) = A(i,j) * x(j)", {"A": "csr"}, steps, target="cuda")
    first = made(A, x).to_numpy()
    np.testing.assert_allclose(first, A @ x, rtol=1e-12)
    assert all(np.array_equal(made(A, x).to_numpy(), first) for _ in range(20))


@pytest.mark.parametrize("dtype", ("bool", "int8", "int32", "int64", "float32", "float64", "complex64"))
@pytest.mark.parametrize(("each", "lanes"), ((7, 4), (8, 8), (50, 32), (64, 32)))
def test_lanes_that_meet_in_places_add_up(dtype: str, each: int, lanes: int, rng: np.random.Generator) -> None:
    """In the order of rows, where those that lie within a warp are written plainly; and in none."""
    dense = matrix(rng, 300, 90, 0.1).astype(dtype)
    A, x, u = sp.csr_array(dense), rng.integers(0, 3, 90).astype(dtype), rng.integers(0, 3, 300).astype(dtype)
    units = "parallelize(b,GPUBlock,Atomics) parallelize(w,GPUWarp,Atomics) parallelize(t,GPUThread,ParallelReduction)"
    steps = f"fuse(i,j,f) pos(f,p,A(i,j)) split(p,b,q,{4 * each}) split(q,w,r,{each}) split(r,n,t,{lanes}) {units}"
    for statement, given, wanted in (
        ("y(i) = A(i,j) * x(j)", x, np.einsum("ij,j->i", dense, x)),
        ("y(j) = A(i,j) * u(i)", u, np.einsum("ij,i->j", dense, u)),
    ):
        assert np.array_equal(sl.program(statement, {"A": "csr"}, steps, target="cuda")(A, given).to_numpy(), wanted)


@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_a_fixed_order_gives_the_same_bits_every_time(dtype: str, rng: np.random.Generator) -> None:
    """Rows of very different length, which blocks share; and one number of all entries."""
    lengths = np.where(rng.random(30_000) < 0.001, 4000, 8)
    crd = np.concatenate([np.sort(rng.choice(5000, length, replace=False)) for length in lengths]).astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    A = sp.csr_array((rng.standard_normal(len(crd)).astype(dtype), crd, starts), shape=(len(lengths), 5000))
    x = rng.standard_normal(5000).astype(dtype)
    for statement, given in (("y(i) = A(i,j) * x(j)", {"A": A, "x": x}), ("s = A(i,j) * x(j)", {"A": A, "x": x})):
        made = sl.program(statement, {"A": "csr"}, target="cuda", deterministic=True)
        there = {name: sl.asarray(value).to_device() for name, value in given.items()}
        first = made(**there).to_numpy()
        wanted = A.astype(np.float64) @ x
        size = abs(A).astype(np.float64) @ abs(x)
        wanted, size = (wanted, size) if first.ndim else (wanted.sum(), size.sum())
        assert (abs(first - wanted) <= 64 * np.finfo(dtype).eps * size).all()
        assert all(np.array_equal(made(**there).to_numpy(), first) for _ in range(20))


@pytest.mark.parametrize("choose", (at_random, planned))
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_random_schedule_never_changes_the_result(chunk: int, choose: Choose, seed: int) -> None:
    share = int(os.environ.get("SPARSELOOM_GPU_CASES", "64")) // CHUNKS
    tally = Tally()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RaceWarning)
        for case in islice(on_gpu(seed, 4000 + chunk, tally, choose), share):
            case.check("cuda")
