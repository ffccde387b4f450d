"""Schedules for a GPU: right in the interpreter, with no race and no missing barrier, whichever strategies stand inside each other."""

from __future__ import annotations

import numpy as np
import pytest
from paper.tensors import matrix

import sparseloom as sl
from sparseloom.core.trees import walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.verify import verify

IN_LANES = "split(i,b,w,4) split(j,c,t,4) reorder(b,w,t,c)"
COLUMNS = "reorder(j,i) split(j,b,q,8) split(q,w,t,4)"
WARPS = "parallelize(i,GPUBlock,NoRaces) divide(j,w,q,5) split(q,c,t,2) reorder(w,t,c)"
POSITIONS = "fuse(i,j,f) pos(f,p,A(i,j)) split(p,b,q,16) split(q,w,t,4)"

# What the schedule cuts; the strategies of block, warp and thread, or None where there is no such loop; the nodes that are needed.
CASES = (
    (IN_LANES, ("NoRaces", "NoRaces", "Temporary"), {ir.Shuffle}),
    (IN_LANES, ("NoRaces", "NoRaces", "ParallelReduction"), {ir.Shuffle}),
    (IN_LANES, ("NoRaces", None, "Temporary"), {ir.Shuffle}),
    (WARPS, (None, "Temporary", None), {ir.Shuffle}),
    (WARPS, (None, "Temporary", "ParallelReduction"), {ir.Shuffle}),
    (IN_LANES, ("NoRaces", None, "Atomics"), {ir.Barrier}),
    (IN_LANES, ("NoRaces", "NoRaces", "Atomics"), set()),
    (COLUMNS, ("Atomics", None, "Temporary"), {ir.Barrier}),
    (COLUMNS, ("Atomics", "Temporary", "Temporary"), {ir.Barrier}),
    (COLUMNS, ("Temporary", "Atomics", "Temporary"), set()),
    (COLUMNS, (None, "Temporary", "Atomics"), set()),
    (COLUMNS, ("ParallelReduction", "Temporary", "Atomics"), {ir.Barrier}),
    (POSITIONS, ("IgnoreRaces", "IgnoreRaces", "Atomics"), set()),
    (POSITIONS, ("Temporary", "Temporary", "Temporary"), {ir.Barrier}),
    # a workspace that threads fill and others read: shared by the block, or by the warp, whose lanes meet anyway
    ("split(i,b,t,8) precompute(A(i,j)*x(j),t,tw,v) parallelize(tw,GPUThread,NoRaces)", ("NoRaces", None, "NoRaces"), {ir.Barrier}),
    ("split(i,b,q,8) split(q,w,t,4) precompute(A(i,j)*x(j),t,tw,v)", ("NoRaces", "NoRaces", "NoRaces"), set()),
)


@pytest.mark.parametrize("form", ("csr", "dd"))
@pytest.mark.parametrize(("cuts", "strategies", "needed"), CASES)
def test_units_and_strategies_nest(
    cuts: str, strategies: tuple[str | None, ...], needed: set[type], form: str, rng: np.random.Generator
) -> None:
    named = zip("bwt", ("GPUBlock", "GPUWarp", "GPUThread"), strategies, strict=True)
    check(form, " ".join([cuts, *(f"parallelize({var},{unit},{races})" for var, unit, races in named if races)]), needed, rng)


def test_warps_that_count_stored_entries_wait_for_each_other(rng: np.random.Generator) -> None:
    """The next column gives the same row to another warp."""
    steps = "split(i,d,w,4) split(j,b,c,4) parallelize(b,GPUBlock,ParallelReduction) parallelize(w,GPUWarp,NoRaces)"
    check("csc", steps, {ir.Barrier}, rng)


@pytest.mark.parametrize("races", ("Atomics", "Temporary"))
@pytest.mark.parametrize("unit", ("GPUBlock", "GPUWarp", "GPUThread"))
def test_a_scalar_that_all_reduce_into_is_made_of_private_ones(unit: str, races: str) -> None:
    kernel = sl.program("y = sum(i, b(i)) + 2", schedule=f"divide(i,i0,i1,3) parallelize(i0,{unit},{races})", target="interpret")
    verify(kernel.preview().stages.lowered.function)
    assert kernel(np.arange(7)).to_numpy() == 23


def check(form: str, steps: str, needed: set[type], rng: np.random.Generator) -> None:
    """SpMV is right, and its loops hold these nodes."""
    kernel = sl.program("y(i) = A(i,j) * x(j)", {"A": form}, steps, target="interpret")
    function = kernel.preview().stages.lowered.function
    verify(function)
    assert needed <= {type(n) for n in walk(function)}
    A, x = matrix(rng, 11, 13, 0.3), rng.integers(1, 5, 13) * 1.0
    assert np.array_equal(kernel(A, x).to_numpy(), A @ x)
