"""Loops are read from the text that the printer writes: nothing of a kernel is lost, whichever pass made it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from fuzz.schedules import Drawn, with_a_step
from primitives.statements import MANY, concrete, schedule

from sparseloom.compiler import run_passes
from sparseloom.core.dtypes import BOOL, FLOAT32, FLOAT64, INT32, INT64, value_dtype
from sparseloom.core.errors import NotationError
from sparseloom.core.trees import rewrite
from sparseloom.explorer.paper import PAPER, PaperSchedule
from sparseloom.iteration.concretize import Concrete
from sparseloom.loops import nodes as ir
from sparseloom.loops.printer import JOINED, show
from sparseloom.loops.reader import read
from sparseloom.lower.kernel import Lowered
from sparseloom.schedule.schedule import Schedule
from sparseloom.targets.c import C
from sparseloom.targets.cuda import CUDA
from sparseloom.targets.interpret import INTERPRET
from sparseloom.targets.target import Target


def kernels(start: Concrete, target: Target) -> Iterator[ir.Function]:
    """The loops of a statement after each pass."""
    for passed in run_passes(start, 2**31 - 1, False, target):
        if isinstance(passed.made, Lowered) and passed.changed:
            yield passed.made.function


def flat(function: ir.Function) -> ir.Function:
    """Blocks in blocks, and sums of sums from the left, are no part of the text."""

    def rule(n: object) -> ir.Stmt | ir.Op | None:
        match n:
            case ir.Block(stmts):
                return ir.block(*stmts)
            case ir.Op(name, (ir.Op(inner, first), *rest)) if name == inner and name in JOINED:
                return replace(n, args=(*first, *rest))
        return None

    return rewrite(function, rule)


def check(function: ir.Function) -> None:
    text = show(function)
    assert read(text) == flat(function), text
    assert show(read(text)) == text


@pytest.mark.parametrize("paper", PAPER, ids=lambda paper: paper.name)
def test_schedules_of_the_paper_are_read_after_every_pass(paper: PaperSchedule) -> None:
    for function in kernels(schedule(paper.statement, paper.formats, paper.steps).concrete, CUDA if "_gpu" in paper.name else C):
        check(function)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "int64", "uint8", "bool", "complex64", "float16"])
def test_random_schedules_are_read_after_every_pass(dtype: str, rng: np.random.Generator) -> None:
    random, drawn, many = Random(int(rng.integers(2**31))), Drawn(), 0
    for case in MANY[:: 2 if dtype == "float64" else 4]:
        made = Schedule(concrete(*case, dtype=value_dtype(dtype)))
        for _ in range(4):
            made = with_a_step(made, random, drawn)
        for function in kernels(made.concrete, INTERPRET):
            check(function)
            many += 1
    assert many > 5


x, y, i = ir.Var("x", FLOAT32), ir.Var("y", FLOAT64), ir.Var("i")
crd, flags = ir.Array("A2_crd", INT32), ir.Array("flags", BOOL)
element = ir.Load(crd, i)
EXPRESSIONS = [
    ir.Literal(1), ir.Literal(-1), ir.Literal(1, INT32), ir.Literal(-0.0, FLOAT64), ir.Literal(float("-inf"), FLOAT32),
    ir.Literal(True, BOOL),
    ir.Literal(complex(-0.0, float("inf")), value_dtype("complex64")), ir.Literal(1j, value_dtype("complex128")),
    ir.Op("negative", (ir.Literal(2.5, FLOAT64),), FLOAT64), ir.Op("negative", (ir.Op("negative", (x,), FLOAT32),), FLOAT32),
    ir.Op("power", (ir.Op("negative", (y,), FLOAT64), ir.Literal(-2.0, FLOAT64)), FLOAT64),
    ir.Op("negative", (ir.Op("power", (ir.Literal(1.0, FLOAT64), y), FLOAT64),), FLOAT64),
    ir.Op("add", (ir.Op("add", (i, i)), i)), ir.Op("add", (i, i, i)), ir.Op("add", (i, ir.Op("add", (i, i)))),
    ir.Op("subtract", (i, ir.Op("subtract", (i, ir.Literal(3))))), ir.Op("minimum", (i, ir.Literal(4), i)),
    ir.Op("add", (element, element), INT32), ir.Op("add", (ir.Cast(element, INT64), ir.Cast(element, INT64))),
    ir.Cast(ir.Op("add", (element, element), INT32), INT64), ir.Cast(ir.Cast(element, INT64), FLOAT32),
    ir.Op("equal", (element, element), BOOL), ir.Op("equal", (ir.Cast(element, INT64), ir.Cast(element, INT64)), BOOL),
    ir.Op("less", (ir.Cast(element, INT64), i), BOOL), ir.Op("less", (ir.Literal(1.5, FLOAT32), ir.Literal(2.5, FLOAT32)), BOOL),
    ir.Op("logical_and", (ir.Op("logical_and", (ir.TRUE, ir.Load(flags, i)), BOOL), ir.FALSE), BOOL),
    ir.Op("logical_or", (ir.Op("logical_and", (ir.TRUE, ir.FALSE), BOOL), ir.Op("logical_not", (ir.TRUE,), BOOL)), BOOL),
    ir.Op("logical_xor", (ir.TRUE, ir.Op("less", (i, i), BOOL)), BOOL), ir.Op("hash", (i, ir.Literal(8))), ir.Op("floor_divide", (i, i)),
    ir.Op("where", (ir.TRUE, x, ir.Literal(0.0, FLOAT32)), FLOAT32), ir.Op("absolute", (ir.Cast(x, value_dtype("complex64")),), FLOAT32),
    ir.Select(ir.TRUE, ir.Select(ir.FALSE, x, x), ir.Op("add", (x, ir.Literal(1.0, FLOAT32)), FLOAT32)),
    ir.Search(crd, ir.ZERO, ir.Cast(element, INT64), ir.Op("add", (i, ir.ONE))), ir.Op("multiply", (ir.Thread(), ir.Literal(4))),
]  # fmt: skip


@pytest.mark.parametrize("value", EXPRESSIONS, ids=show)
@pytest.mark.parametrize("name", ["z", "if", "free", "nan", "thread", "min", "search", "float64"])
def test_every_expression_and_every_name_is_read(value: ir.Expr, name: str) -> None:
    declared = [ir.Declare(var, ir.constant(0, var.dtype)) for var in (x, y)]
    made = ir.Var(name, value.dtype)
    body = ir.block(*declared, ir.Declare(made, value, "a reason, with = and # signs"), ir.If(ir.TRUE, ir.Assign(made, made)))
    params = (ir.Param(crd, ir.Role.INPUT), ir.Param(flags, ir.Role.GROWN), ir.Param(i, ir.Role.SIZE))
    check(ir.Function("kernel", params, body))


def test_loops_that_no_schedule_made_are_read() -> None:
    total, n = ir.Var("total", INT64), ir.Var("n")
    room = ir.For(i, ir.ZERO, n, ir.block(), ir.LoopKind.VECTOR, 8, (ir.Reduction(total, "add"),), ir.Op("minimum", (n, ir.index(9))))
    body = ir.block(ir.Declare(total, ir.ZERO), room, ir.While(ir.TRUE, ir.Poll(), 4), ir.Fail(ir.Status.INDEX_OVERFLOW))
    check(ir.Function("free", (ir.Param(n, ir.Role.SIZE),), body))


def test_an_index_that_compares_is_read() -> None:
    n, x = ir.Var("n"), ir.Array("x_vals", FLOAT64)
    chosen = ir.Select(ir.compare("equal", n, ir.ONE), ir.ZERO, ir.ONE)
    for op in (None, "add"):
        store = ir.Store(x, chosen, ir.Load(x, chosen), op)
        check(ir.Function("choose", (ir.Param(x, ir.Role.OUTPUT), ir.Param(n, ir.Role.SIZE)), store))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("y_vals[0] = 1.0", "there is no array 'y_vals' here; there are x_vals"),
        ("x_vals[0] = z", "there is no scalar 'z' here; there are n"),
        ("x_vals[0] = 1.0 +", "expected more, not ''"),
        ("x_vals[0] = sine(1.0)", "there is no function 'sine'"),
        ("x_vals[0 = 1.0", r"there is no scalar 'x_vals\[0'"),
        ("for i in 0 : n  [sideways]", "there is no kind of loop 'sideways'"),
        ("   free x_vals", "indented too far"),
        ("x_vals[0) = 1.0]", "cannot read the line"),
        ("nonsense", "cannot read the line 'nonsense'"),
    ],
)
def test_text_that_is_no_kernel_is_rejected_with_the_line(line: str, message: str) -> None:
    with pytest.raises(NotationError, match=message):
        read(f"def kernel(output x_vals: float64[], size n)\n  {line}\n")


def test_text_without_a_kernel_is_rejected() -> None:
    with pytest.raises(NotationError, match="a kernel begins with 'def name"):
        read("")
