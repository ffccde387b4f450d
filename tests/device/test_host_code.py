"""What the host does for kernels of a device: sizes are worked out once, and what is left is a list of launches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device.stand_in import StandIn

from sparseloom.core.dtypes import BOOL, FLOAT64, INT32
from sparseloom.core.errors import CompilerBug, DeviceError
from sparseloom.loops.nodes import (
    ONE,
    ZERO,
    Allocate,
    Array,
    Cast,
    Declare,
    Expr,
    Fail,
    For,
    Free,
    Function,
    If,
    Launch,
    Literal,
    Load,
    LoopKind,
    Op,
    Param,
    Role,
    Select,
    Status,
    Stmt,
    Store,
    Var,
    add,
    block,
    compare,
    constant,
    multiply,
)
from sparseloom.programs.calling import BoundViolated
from sparseloom.programs.cuda.arrays import copied_in, empty
from sparseloom.programs.cuda.host_code import Argument, HostPlan, Number, StatusWord, Step, Temporary, run_host_code
from sparseloom.programs.cuda.launching import Launches, load_module
from sparseloom.targets.cuda import CudaKernel, kernels_of

y, w, pos = Array("y", FLOAT64), Array("w", FLOAT64), Array("pos", INT32)
n, b, m = Var("n"), Var("b"), Var("m")
PARAMS = (Param(y, Role.OUTPUT), Param(pos, Role.INPUT), Param(n, Role.SIZE))


def launch(array: Array, blocks: Expr, fails: bool = False) -> Launch:
    store = Store(array, b, constant(2, FLOAT64))
    body = block(Fail(Status.BOUND_VIOLATED), store) if fails else store
    return Launch(blocks, Literal(32), For(b, ZERO, blocks, body, LoopKind.GPU_BLOCK))


def planned(*stmts: Stmt, arguments: Any = (None, None, 10)) -> HostPlan:
    function = Function("f", PARAMS, block(*stmts))
    return run_host_code(function, kernels_of(function, "entry"), arguments)


def value(expr: Expr, positions: Any = None) -> int:
    """What the host makes of an expression."""
    plan = planned(Declare(m, expr), launch(y, m), arguments=(None, positions, 10))
    return plan.steps[0].blocks if plan.steps else 0


@pytest.mark.parametrize(("expr", "expected"), [
    (Op("floor_divide", (add(n, Literal(3)), Literal(4))), 3),
    (Op("remainder", (n, Literal(4))), 2),
    (Op("minimum", (n, Literal(4), Literal(7))), 4),
    (Op("maximum", (Op("negative", (n,)), Literal(1))), 1),
    (Select(compare("less", n, Literal(3)), ONE, Literal(2)), 2),
    (Cast(Op("logical_and", (compare("less", n, Literal(30)), compare("greater_equal", n, Literal(10))), BOOL), n.dtype), 1),
    (Cast(Op("logical_not", (compare("equal", n, ZERO),), BOOL), n.dtype), 1),
    (Cast(Op("logical_or", (compare("equal", n, ZERO), compare("not_equal", n, n)), BOOL), n.dtype), 0),
    (multiply(n, Op("subtract", (n, Literal(8)))), 20),
])  # fmt: skip
def test_expressions(expr: Expr, expected: int) -> None:
    assert value(expr) == expected


def test_positions_are_read_where_they_are_not_known(device: StandIn) -> None:
    positions = copied_in(np.array([0, 4, 9], np.int32), is_positions=True)
    device.log.clear()
    assert value(Cast(Load(pos, Literal(2)), n.dtype), positions) == 9
    assert device.log == []
    assert value(Cast(Load(pos, Literal(1)), n.dtype), positions) == 4
    assert device.log == ["copy out 4"]


def test_branches_temporaries_and_launches() -> None:
    wide = compare("less", Literal(5), n)
    plan = planned(Allocate(w, n), launch(w, n), If(wide, launch(y, ONE), launch(y, n)), launch(y, ZERO), Free(w))
    assert plan.temporaries == (80,)
    assert plan.steps == (
        Step("entry_0", 10, 32, (Temporary(0), Number(10))),
        Step("entry_1", 1, 32, (Argument(0),)),
    )


def test_a_status_is_known_before_a_launch(device: StandIn) -> None:
    plan = planned(launch(y, n), Fail(Status.BOUND_VIOLATED))
    assert (plan.failed, plan.steps) == (Status.BOUND_VIOLATED, ())
    with pytest.raises(BoundViolated):
        Launches(load_module("", 0), plan, [], "").start()


def test_a_status_of_a_kernel_is_read(device: StandIn) -> None:
    function = Function("f", PARAMS, launch(y, ONE, fails=True))
    kernels = kernels_of(function, "entry")
    device.kernels["text"] = {kernel.name: kernel for kernel in kernels}
    arguments = [empty(4, FLOAT64), empty(1, INT32), 10]
    plan = run_host_code(function, kernels, arguments)
    assert plan.steps == (Step("entry_0", 1, 32, (Argument(0), StatusWord())),)
    launches = Launches(load_module("text", 0), plan, arguments, "")
    device.log.clear()
    with pytest.raises(BoundViolated):
        launches.start()
    assert device.log == ["allocate 4", "clear 4", "launch entry_0 1 x 32", "copy out 4"]


def test_temporaries_are_made_once_where_a_call_is_bound(device: StandIn) -> None:
    function = Function("f", PARAMS, block(Allocate(w, n), launch(w, n), launch(y, n), Free(w)))
    kernels = kernels_of(function, "entry")
    device.kernels["text"] = {kernel.name: kernel for kernel in kernels}
    arguments = [empty(10, FLOAT64), empty(1, INT32), 10]
    launches = Launches(load_module("text", 0), run_host_code(function, kernels, arguments), arguments, "")
    device.log.clear()
    launches.start()
    launches.start()
    assert device.log.count("allocate 80") == 1
    assert arguments[0].to_host().tolist() == [2.0] * 10
    launches.let_go()
    device.log.clear()
    launches.start_with(0, None)
    assert [line.split()[0] for line in device.log] == ["allocate", "launch", "launch", "free"]


@pytest.mark.parametrize("blocks", [2**31, 2**40])
def test_too_many_blocks_are_refused(blocks: int) -> None:
    with pytest.raises(DeviceError, match=f"a kernel cannot be launched as {blocks} blocks of 32 threads"):
        planned(launch(y, Literal(blocks)))


def test_what_is_no_host_code_is_a_bug() -> None:
    with pytest.raises(CompilerBug, match="everything else is done by kernels"):
        planned(Store(y, ZERO, constant(1, FLOAT64)))
    with pytest.raises(CompilerBug, match="the host works out sizes and positions only"):
        value(Op("sqrt", (n,)))
    with pytest.raises(CompilerBug, match="declares its numbers before it uses them"):
        value(Var("nowhere"))
    with pytest.raises(CompilerBug, match="the host reads operands only"):
        value(Cast(Load(w, ZERO), n.dtype))
    function = Function("f", PARAMS, launch(y, n))
    with pytest.raises(CompilerBug, match="there is one kernel for each of 1 launches, not 2"):
        run_host_code(function, [CudaKernel("k", launch(y, n), (y,), False)] * 2, (None, None, 1))
