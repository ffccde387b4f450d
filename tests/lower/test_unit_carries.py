"""Carries of the units of a GPU: runs that several units share are joined in order, with no atomics and no copies of the result."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from lower.conditions import conditions
from lower.test_carries import CARRIED, PAIRS, SIZES, SPMM, SPMV, carried, joined_by_hand, loop_over
from lower.test_passes import operands_of, run
from primitives.statements import schedule

import sparseloom as sl
from sparseloom.compiler import lower_concrete
from sparseloom.core.trees import walk
from sparseloom.formats.pack import to_dense
from sparseloom.loops import nodes as ir
from sparseloom.lower.kernel import Lowered
from sparseloom.lower.unit_carries import carried_by_units
from sparseloom.notation.interpret import evaluate
from sparseloom.targets.interpret import INTERPRET

BLOCKS = "parallelize(p0,GPUBlock,Temporary)"
THREADS = f"split(p1,t,r,2) {BLOCKS} parallelize(t,GPUThread,Temporary)"
WARPS = f"split(p1,w,s,2) split(s,t,r,1) {BLOCKS} parallelize(w,GPUWarp,Temporary) parallelize(t,GPUThread,Temporary)"
OUTERMOST = [case for case in CARRIED if case[2].startswith("fuse(i,j,") and "bound" not in case[2]]


def lowered(text: str, formats: str, steps: str) -> Lowered:
    """A statement's loops, in which units carry."""
    concrete = schedule(text, formats, steps).concrete
    made = lower_concrete(concrete.assign, concrete, 2**31 - 1, False, INTERPRET).lowered
    assert any("carries what its first and last run share" in remark.text for remark in made.remarks)
    stores = [n for n in walk(made.function.body) if isinstance(n, ir.Store)]
    assert stores and not any(store.atomic for store in stores)
    return made


@pytest.mark.parametrize(("text", "formats", "steps"), OUTERMOST)
def test_what_units_share_is_joined(text: str, formats: str, steps: str, rng: np.random.Generator) -> None:
    """By the interpreter, which would tell of units that meet, and of a barrier that is missing."""
    assign = schedule(text, formats, steps).concrete.assign
    for units in (BLOCKS,) if "divide" in steps else (BLOCKS, THREADS, WARPS):
        made = lowered(text, formats, f"{steps} {units}")
        for sizes in SIZES:
            operands, dense = operands_of(assign, sizes, rng)
            wanted = evaluate(assign, dense, sizes).values
            np.testing.assert_array_equal(to_dense(run(made, operands, sizes, wanted.size)), wanted)


@pytest.mark.parametrize("form", ["csr", "coo"])
def test_blocks_that_have_their_positions_alone_add_in_order(form: str, rng: np.random.Generator) -> None:
    """Values of unlike magnitude, so that another order of adding gives another sum."""
    made = sl.program(SPMV, {"A": form}, f"{PAIRS} split(p,p0,p1,3) {BLOCKS}", target="interpret")
    for shape in ((4, 6), (1, 9), (9, 1), (0, 4)):
        dense = rng.standard_normal(shape) * 10.0 ** rng.integers(-9, 9, shape) * (rng.random(shape) < 0.7)
        A, x = sl.asarray(dense).to(form), rng.standard_normal(shape[1])
        assert made(A, x).to_numpy().tolist() == joined_by_hand(A.storage, x, 3)


def test_rows_of_any_length_are_joined(rng: np.random.Generator) -> None:
    """Empty ones, some within a thread, and some that span threads, groups of them and blocks."""
    lengths = np.array([0, 3, 500, 0, 0, 1, 1, 1, 40, 7, 2, 300, 5, 0])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    crd = np.concatenate([np.sort(rng.permutation(512)[:length]) for length in lengths]).astype(np.int64)
    A = sp.csr_array((rng.integers(1, 5, starts[-1]) * 1.0, crd, starts), shape=(len(lengths), 512))
    x = rng.integers(1, 5, 512) * 1.0
    for threads, each in ((64, 3), (1, 5), (7, 1)):
        steps = f"{PAIRS} split(p,p0,p1,{threads * each}) split(p1,t,r,{each}) {BLOCKS} parallelize(t,GPUThread,Temporary)"
        assert np.array_equal(sl.program(SPMV, {"A": "csr"}, steps, target="interpret")(A, x).to_numpy(), A @ x)


def test_what_units_of_a_block_carry_is_grouped_in_shared_memory() -> None:
    function = lowered(SPMV, "A:csr", f"{PAIRS} split(p,p0,p1,256) split(p1,t,r,2) {BLOCKS} parallelize(t,GPUThread,Temporary)").function
    sizes = [n.size.value for n in walk(function.body) if isinstance(n, ir.Allocate) and n.array.space is ir.MemorySpace.SHARED]  # type: ignore[attr-defined]
    assert sizes == [256, 256, 32, 32, 4, 4]  # two for each of 128 threads, sixteen of which one thread adds up


NOT_CARRIED = (
    (SPMV, "A:csr", f"{PAIRS} split(p,p0,p1,8) split(p1,q,r,2) reorder(q,p0)", "q"),  # blocks would not be in the order of positions
    (SPMV, "A:csr", f"{PAIRS} split(p,p0,t,8) parallelize(t,GPUThread,Temporary) {BLOCKS}", "p0"),  # one position each: nothing is a run
    (SPMM, "A:csr", f"{PAIRS} split(p,p0,p1,8) split(l,v,t,4) parallelize(t,GPUThread,NoRaces) {BLOCKS}", "p0"),  # several have one run
    (SPMV, "A:csr", f"{PAIRS} split(p,p0,p1,8)", "p0"),  # no units
)


@pytest.mark.parametrize(("text", "formats", "steps", "name"), NOT_CARRIED)
def test_other_units_do_not_carry(text: str, formats: str, steps: str, name: str) -> None:
    given = conditions(text, formats, steps)
    assert carried_by_units(*loop_over(given, name), given.scope.provenance) is None


def test_units_carry_where_threads_would() -> None:
    given = conditions(SPMV, "A:csr", f"{PAIRS} split(p,p0,p1,8) {BLOCKS}")
    assert carried_by_units(*loop_over(given, "p0"), given.scope.provenance) == carried(given)
