"""Lanes that reduce into places which change with the lane: neighbours combine, and the last of each segment updates its place."""

from __future__ import annotations

import numpy as np
import pytest
from lower.test_carries import PAIRS, SIZES, SPMV, TRIPLES, TTV
from lower.test_passes import operands_of, run
from primitives.statements import schedule

from sparseloom.compiler import Stages, lower_concrete
from sparseloom.core.dtypes import FLOAT64, INT64
from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import walk
from sparseloom.formats.pack import to_dense
from sparseloom.loops import interpret
from sparseloom.loops import nodes as ir
from sparseloom.loops.printer import show
from sparseloom.loops.segments import Segments
from sparseloom.loops.verify import verify
from sparseloom.notation.interpret import evaluate
from sparseloom.programs.cuda.nvrtc import compile_cubin
from sparseloom.targets.cuda import CUDA, translation_unit
from sparseloom.targets.interpret import INTERPRET

Y, PLACES, VALUES = ir.Array("y", FLOAT64), ir.Array("places", INT64), ir.Array("values", FLOAT64)
COUNT, LANE = ir.Var("n"), ir.Var("t")
OTHERS = "parallelize(b,GPUBlock,Atomics) parallelize(w,GPUWarp,Atomics) parallelize(t,GPUThread,ParallelReduction)"
LANES = f"split(p,b,q,12) split(q,w,t,4) {OTHERS}"
TURNS = f"split(p,b,q,14) split(q,w,r,7) split(r,n,t,4) {OTHERS}"  # three of the last four lanes have a position


def warps(*stmts: ir.Stmt, count: int = 1) -> ir.Function:
    """Warps whose lanes run these statements, each on entries of its own."""
    lanes = ir.For(LANE, ir.ZERO, COUNT, ir.block(*stmts), ir.LoopKind.GPU_THREAD, 32)
    body = ir.For(ir.Var("w"), ir.ZERO, ir.index(count), lanes, ir.LoopKind.GPU_WARP, count)
    params = [(Y, ir.Role.OUTPUT), (PLACES, ir.Role.INPUT), (VALUES, ir.Role.INPUT), (COUNT, ir.Role.SIZE)]
    return ir.Function("kernel", tuple(ir.Param(*one) for one in params), body)


def updating(scattered: bool) -> Segments:
    entry = ir.add(ir.multiply(ir.Var("w"), COUNT), LANE)
    return Segments(Y, ir.Load(PLACES, entry), ir.Load(VALUES, entry), "add", True, scattered)


def updated(places: list[int], scattered: bool = False, warp_count: int = 1) -> list[float]:
    """What lanes that bring 1, 2, 4, ... for these places make of zeros."""
    function = warps(updating(scattered), count=warp_count)
    verify(function)
    given = [np.zeros(4), np.array(places, np.int64), 2.0 ** np.arange(len(places)), len(places) // warp_count]
    made: list[float] = interpret.run(function, given, outputs_initialised=True)[0].tolist()
    return made


def test_neighbours_with_one_place_combine() -> None:
    assert updated([0, 0, 1, 2, 2, 2, 3]) == [3, 4, 8 + 16 + 32, 64]
    assert updated([-1, 1, 1, 1, -1, -1]) == [0, 14, 0, 0]  # some have nothing
    assert updated([-1, -1]) == [0, 0, 0, 0] == updated([])
    assert updated([2, 0, 2, 1, 0], scattered=True) == [2 + 16, 8, 1 + 4, 0]


def test_the_first_and_the_last_segment_may_be_shared_and_others_may_not() -> None:
    assert updated([0, 1, 2, 2, 3, 3], warp_count=2) == [1, 2, 12, 48]
    assert updated([0, 1, 1, 1, 3, 3], warp_count=2) == [1, 14, 0, 48]
    with pytest.raises(interpret.RaceFound, match=r"y\[1\]"):
        updated([0, 1, 2, 0, 1, 3], warp_count=2)
    assert updated([0, 1, 2, 0, 1, 3], scattered=True, warp_count=2) == [9, 18, 4, 32]


def test_what_comes_again_is_scattered() -> None:
    with pytest.raises(CompilerBug, match="each place has one segment"):
        updated([0, 1, 0, 2])


def test_lanes_reach_segments_in_lock_step_and_in_a_warp() -> None:
    some = ir.If(ir.compare("less", LANE, ir.ONE), updating(True))
    with pytest.raises(CompilerBug, match="stand at the end"):
        verify(warps(some))
    with pytest.raises(CompilerBug, match="reached by all 2 lanes in lock step, not by 1"):
        interpret.run(warps(some), [np.zeros(4), np.array([0, 1]), np.ones(2), 2], outputs_initialised=True)
    function = warps(updating(True))
    alone = ir.Function("kernel", function.params, ir.block(ir.Declare(ir.Var("w"), ir.ZERO), function.body.body))  # type: ignore[attr-defined]
    with pytest.raises(CompilerBug, match="the lanes of a warp have segments"):
        verify(alone)
    assert "y[places[w * n + t]] += scattered segments of values[w * n + t]" in show(function)


# Whether places come in no order.
CASES = (
    (SPMV, "A:csr", f"{PAIRS} {LANES}", False),
    (SPMV, "A:csr", f"{PAIRS} {TURNS}", False),
    (SPMV, "A:dcsr", f"{PAIRS} {LANES}", False),
    (SPMV, "A:coo", f"{PAIRS} {TURNS}", False),
    (SPMV, "A:csr x:s", f"{PAIRS} {LANES}", False),  # what x lacks adds nothing to a row, and does not end it
    (SPMV, "A:ell", f"{PAIRS} {LANES}", True),  # unused positions do
    ("y(j) = A(i,j) * x(i)", "A:csr", f"{PAIRS} {LANES}", True),
    (TTV, "A:csf", f"{TRIPLES} {TURNS}", False),
    ("Y(i,k) = A(i,j,k) * x(j)", "A:csf", f"{TRIPLES} {LANES}", True),
    ("y(i) = A(i,j,k) * x(k)", "A:csf", f"{TRIPLES} {LANES}", False),
    (SPMV, "A:csr", f"{PAIRS} split(p,b,q,12) split(q,t,w,3) reorder(b,w,t) {OTHERS}", True),  # lanes are three positions apart
)


def test_lanes_that_meet_in_places_add_up(rng: np.random.Generator) -> None:
    """The interpreter would tell of warps that meet; NVRTC compiles all of it."""
    made: list[Stages] = []
    for text, formats, steps, scattered in CASES:
        concrete = schedule(text, formats, steps).concrete
        lowered = lower_concrete(concrete.assign, concrete, 2**31 - 1, False, INTERPRET).lowered
        found = [n for n in walk(lowered.function) if isinstance(n, Segments)]
        assert [n.scattered for n in found] == [scattered], (text, formats, steps)
        for sizes in SIZES * 2:
            operands, dense = operands_of(concrete.assign, sizes, rng)
            wanted = evaluate(concrete.assign, dense, sizes).values
            np.testing.assert_array_equal(to_dense(run(lowered, operands, sizes, wanted.size)), wanted)
        made.append(lower_concrete(concrete.assign, concrete, 2**31 - 1, False, CUDA))
    assert compile_cubin(translation_unit([(stages.lowered.function, f"entry{k}") for k, stages in enumerate(made)]))
