"""Targets are values that say what they have; a toy one, registered in one line, can be named and reaches its emitter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import sparseloom as sl
from sparseloom.core.dtypes import FLOAT64
from sparseloom.core.errors import CompilerBug, DeviceError, NotationError
from sparseloom.loops.interpret import run
from sparseloom.loops.nodes import (
    ONE,
    ZERO,
    Array,
    Declare,
    For,
    Function,
    Launch,
    Literal,
    LoopKind,
    Param,
    Role,
    Shuffle,
    Store,
    Var,
    block,
    constant,
)
from sparseloom.loops.printer import show
from sparseloom.loops.verify import verify
from sparseloom.targets.c import C, emit, translation_unit
from sparseloom.targets.interpret import INTERPRET, stand_in
from sparseloom.targets.registry import TARGETS
from sparseloom.targets.target import CPU_UNITS

TOY = replace(C, name="toy", title="the toy", units=CPU_UNITS[:1], parts=3, emit=lambda kernels: "// a toy\n" + translation_unit(kernels))
WARPS = "split(i,b,w,4) parallelize(b,GPUBlock,NoRaces) parallelize(w,GPUWarp,NoRaces) split(j,j0,t,32) parallelize(t,GPUThread,Temporary)"


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TARGETS, "toy", TOY)


def test_a_toy_target_reaches_its_emitter(toy: None) -> None:
    kernel = sl.program("y(i) = A(i,j) * x(j)", {"A": "csr"}, target="toy")
    assert kernel.source.startswith("// a toy\n")
    assert kernel.show("toy") == kernel.source
    assert kernel(np.eye(3), np.arange(3.0)).to_numpy().tolist() == [0, 1, 2]


def test_lowering_asks_the_target(toy: None) -> None:
    schedule = "parallelize(i,CPUThread,NoRaces)"
    loops = [sl.program("y(i) = b(i) + c(i)", {"b": "s", "c": "s"}, schedule, target=name).show("loops") for name in ("c", "toy")]
    assert ["0 : 64  [threads]" in text for text in loops] == [True, False]
    assert "0 : 3  [threads]" in loops[1]


def test_a_unit_that_a_target_lacks_is_refused(toy: None) -> None:
    kernel = sl.program("y(i) = 2 * b(i)", schedule="parallelize(i,CPUVector,NoRaces)", target="toy")
    with pytest.raises(DeviceError, match="the schedule runs a loop on CPUVector, and the toy has none"):
        kernel(np.ones(3))


def test_an_atomic_that_a_target_lacks_is_refused(toy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = "parallelize(i,CPUThread,Atomics)"
    assert sl.program("y(j) = A(i,j)", schedule=schedule, target="toy")(np.eye(2)).to_numpy().tolist() == [1, 1]
    monkeypatch.setitem(TARGETS, "toy", replace(TOY, atomic=lambda op, dtype: None))
    with pytest.raises(DeviceError, match="the toy has no atomic add of float64"):
        sl.program("y(j) = A(i,j)", schedule=schedule, target="toy")(np.eye(2))


def test_memory_that_a_target_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TARGETS, "toy", replace(TOY, spaces=frozenset()))
    with pytest.raises(DeviceError, match="the toy has no global memory"):
        sl.program("y(i) = 2 * b(i)", target="toy")(np.ones(3))


def test_the_interpreter_stands_in_for_any_target() -> None:
    assert INTERPRET.model is C
    assert stand_in(TOY, "toy in Python").model is TOY
    assert INTERPRET.lacking(one.unit for one in INTERPRET.units) is None


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(NotationError, match="there is no target 'toy'; there are c, cuda, interpret"):
        sl.program("y(i) = b(i)", target="toy")


def test_kernels_of_a_gpu_are_launched() -> None:
    kernel = sl.program("y(i) = A(i,j) * x(j)", schedule=WARPS, target="interpret")
    assert "launch (i_size + 3) // 4 blocks of 128 threads, in warps of 32, settled\n" in kernel.show("loops")
    A = np.arange(50.0).reshape(5, 10)
    assert kernel(A, np.ones(10)).to_numpy().tolist() == A.sum(axis=1).tolist()


y, i, t, s = Array("y", FLOAT64), Var("i"), Var("t"), Var("s", FLOAT64)
PARAMS = (Param(y, Role.OUTPUT),)


def launched(body: For) -> Function:
    return Function("kernel", PARAMS, Launch(ONE, Literal(64), body, 32, 32))


def test_a_launch_is_shown_verified_and_run_but_not_in_c() -> None:
    function = launched(For(i, ZERO, Literal(3), Store(y, i, constant(2, FLOAT64)), LoopKind.GPU_BLOCK))
    verify(function)
    assert "  launch 1 blocks of 64 threads, in warps of 32\n    for i in 0 : 3  [gpu block]\n" in show(function)
    assert run(function, [np.zeros(3)])[0].tolist() == [2, 2, 2]
    with pytest.raises(CompilerBug, match="a gpu block loop runs on a device, not in C"):
        emit(function)
    with pytest.raises(CompilerBug, match="what is launched is an outermost loop over units of a GPU"):
        verify(launched(For(i, ZERO, Literal(3), Store(y, i, constant(2, FLOAT64)))))


def test_the_interpreter_asks_for_lanes() -> None:
    lanes = For(t, ZERO, Literal(32), Shuffle(s, "add", constant(1, FLOAT64)), LoopKind.GPU_THREAD)
    warp = For(i, ZERO, ONE, block(Declare(s, constant(0, FLOAT64)), lanes, Store(y, i, s)), LoopKind.GPU_WARP)
    verify(launched(warp))
    assert run(launched(warp), [np.zeros(1)])[0].tolist() == [32]
    few = Function("kernel", PARAMS, Launch(ONE, Literal(64), warp, 16, 32))
    verify(few)
    with pytest.raises(CompilerBug, match="a warp has 16 lanes, not 32"):
        run(few, [np.zeros(1)])
    with pytest.raises(CompilerBug, match="a warp is cut into equal groups of lanes"):
        verify(Function("kernel", PARAMS, Launch(ONE, Literal(64), warp, 32, 16)))
