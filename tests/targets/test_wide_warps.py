"""A GPU whose warps have 64 lanes is one value: schedules for it are planned, emitted and checked by the interpreter."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from fuzz.on_gpu import Choose, Tally, at_random, on_gpu, planned
from loops.test_reader import flat
from lower.test_kernels import SCHEDULES, SPMV
from paper.tensors import matrix

import sparseloom as sl
from sparseloom.core.errors import RaceWarning, ScheduleError
from sparseloom.core.trees import walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.reader import read
from sparseloom.loops.rename import alpha_rename
from sparseloom.loops.segments import Segments
from sparseloom.loops.verify import verify
from sparseloom.programs.cuda.nvrtc import compile_cubin
from sparseloom.targets.cuda import CUDA, translation_unit
from sparseloom.targets.interpret import stand_in
from sparseloom.targets.registry import TARGETS

WIDE = replace(CUDA, name="wide", title="a GPU with wide warps", lanes=64)
RUN = stand_in(WIDE, "wide in Python")
POSITIONS = "fuse(i,j,f) pos(f,p,A(i,j))"
UNITS = "parallelize(b,GPUBlock,{}) parallelize(w,GPUWarp,{}) parallelize(t,GPUThread,{})"
# With all lanes of a warp, and groups of which two share one.
WARPS = {
    f"{name}, {lanes} lanes": steps.replace("L", str(lanes)).replace("M", str(4 * lanes)).replace("Q", str(8 * lanes))
    for lanes in (64, 32)
    for name, steps in {
        "a row": "split(i,b,w,2) pos(j,p,A(i,j)) split(p,n,t,L) reorder(b,w,t,n) " + UNITS.format("NoRaces", "NoRaces", "Temporary"),
        "segments": f"{POSITIONS} split(p,b,q,M) split(q,w,t,L) " + UNITS.format("Atomics", "Atomics", "ParallelReduction"),
        "carries": f"{POSITIONS} split(p,b,q,Q) split(q,w,r,M) split(r,t,n,4) " + UNITS.format("Temporary", "Temporary", "Temporary"),
        "rows of a block": f"{POSITIONS} split(p,b,q,Q) split(q,w,c,M) split(c,n,t,L) reorder(b,w,t,n) "
        + UNITS.format("Atomics", "ParallelReduction", "ParallelReduction"),
        "a row of the result": "split(i,b,w,2) split(j,n,t,L) reorder(b,w,t,n) " + UNITS.format("NoRaces", "NoRaces", "ParallelReduction"),
    }.items()
}


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    for target in (WIDE, RUN):
        monkeypatch.setitem(TARGETS, target.name, target)


@pytest.mark.parametrize("name", [*SCHEDULES, *WARPS])
def test_kernels_are_right_and_compile(name: str, rng: np.random.Generator) -> None:
    steps = (SCHEDULES | WARPS)[name]
    A, x = matrix(rng, 37, 150, 0.5), rng.integers(1, 5, 150) * 1.0
    kernel = sl.program(SPMV, {"A": "csr"}, steps, target=RUN.name)
    assert np.array_equal(kernel(A, x).to_numpy(), A @ x)
    made = sl.program(SPMV, {"A": "csr"}, steps, target=WIDE.name)
    function = made.preview().stages.lowered.function
    verify(function)
    assert {n.warp for n in walk(function) if isinstance(n, ir.Launch)} == {64}
    assert read(made.show("loops")) == flat(function)
    assert compile_cubin(made.source)


def test_lanes_of_a_whole_warp_shuffle_and_add_up_segments() -> None:
    text = sl.program(SPMV, {"A": "csr"}, WARPS["a row, 64 lanes"], target=WIDE.name).source
    assert "step < 64; step *= 2" in text and "across_float64(0xffffffffffffffffull, " in text and "__launch_bounds__(128)" in text
    kernel = sl.program(SPMV, {"A": "csr"}, WARPS["segments, 64 lanes"], target=WIDE.name)
    assert any(isinstance(n, Segments) for n in walk(kernel.preview().stages.lowered.function))
    assert "segment_heads<64>" in kernel.source and "enum { WARP = 64 };" in kernel.source and "__ffsll" in kernel.source


def test_groups_of_half_a_warp_have_masks_of_a_whole_one() -> None:
    text = sl.program(SPMV, {"A": "csr"}, WARPS["a row, 32 lanes"], target=WIDE.name).source
    assert "0xffffffffull << (threadIdx.x % 64 / 32 * 32)" in text


def test_the_limits_are_those_of_the_target() -> None:
    steps = "split(i,b,w,2) split(j,n,t,{}) reorder(b,w,t,n) " + UNITS.format("NoRaces", "NoRaces", "Temporary")
    with pytest.raises(ScheduleError, match=r"t has 128 iterations, but a warp has 64 lanes\n(.*\n)*  help: split it by 64"):
        sl.program(SPMV, {}, steps.format(128), target=WIDE.name).preview()
    with pytest.raises(ScheduleError, match=r"t has 64 iterations, but a warp has 32 lanes\n(.*\n)*  help: split it by 32"):
        sl.program(SPMV, {}, steps.format(64), target="cuda").preview()


def test_the_planner_gives_rows_to_whole_warps() -> None:
    kernel = sl.program(SPMV, {"A": "csr"}, target=RUN.name)
    A = matrix(np.random.default_rng(1), 40, 400, 0.7)
    assert np.array_equal(kernel(A, np.ones(400)).to_numpy(), A.sum(axis=1))


@pytest.mark.parametrize("choose", (at_random, planned))
def test_a_random_schedule_never_changes_the_result(choose: Choose, seed: int, case_count: int) -> None:
    tally = Tally()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RaceWarning)
        cases = list(islice(on_gpu(seed, 6400, tally, choose, WIDE), max(case_count // 20, 40)))
        for case in cases:
            case.check("interpret")
    functions = [(alpha_rename(case.stages.lowered.function), f"entry{k}") for k, case in enumerate(cases)]
    assert compile_cubin(translation_unit(functions))
