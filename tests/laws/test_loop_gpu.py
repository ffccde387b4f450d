"""The loop interpreter models blocks, warps and lanes: shuffles in lock step, shared memory, and barriers where they are needed."""

from __future__ import annotations

import numpy as np
import pytest
from targets.loop_kernels import i, j, n

from sparseloom.core.dtypes import FLOAT64
from sparseloom.core.errors import CompilerBug
from sparseloom.loops.interpret import RaceFound, run
from sparseloom.loops.nodes import (
    ONE,
    ZERO,
    Allocate,
    Array,
    Barrier,
    Cast,
    Declare,
    Fill,
    For,
    Free,
    Function,
    If,
    Literal,
    Load,
    LoopKind,
    MemorySpace,
    Op,
    Param,
    Role,
    Shuffle,
    Store,
    Var,
    block,
    compare,
    constant,
)
from sparseloom.loops.simplify import simplify

y, k = Array("y", FLOAT64), Var("k")
one = constant(1, FLOAT64)
shared = Array("w", FLOAT64, MemorySpace.SHARED)
own, total = Store(shared, j, one), Var("total", FLOAT64)
others = Declare(Var("seen", FLOAT64), Load(shared, Op("subtract", (Literal(2), j))))
first = Store(y, i, Load(shared, ZERO))


def go(stmt, length=3):
    """What a kernel writes to y, which has this many elements."""
    kernel = Function("kernel", (Param(y, Role.OUTPUT), Param(n, Role.SIZE)), stmt)
    return run(kernel, [np.full(length, -1.0), length])[0].tolist()


def in_block(*stmts):
    """One block for each element of y: it shares w, which has a place for each of three threads."""
    return For(i, ZERO, n, block(Allocate(shared, Literal(3)), *stmts, Free(shared)), LoopKind.GPU_BLOCK)


def threads(stmt, kind=LoopKind.GPU_THREAD):
    return For(j, ZERO, Literal(3), stmt, kind)


@pytest.mark.parametrize("kind", [LoopKind.GPU_THREAD, LoopKind.GPU_WARP])
def test_threads_see_what_others_wrote_behind_a_barrier(kind):
    assert go(in_block(threads(own, kind), Barrier(), threads(others, kind), Barrier(), first)) == [1.0, 1.0, 1.0]


UNSYNCHRONISED = {
    "another thread reads": (in_block(threads(own), threads(others)), r"w\[2\] .* thread = 2 \(writer\) and by iteration thread = 0"),
    "the code around the threads reads": (in_block(threads(own), first), r"\(writer\) and by the code around its threads \(reader\)"),
    "the code around the threads wrote": (in_block(Fill(shared, ZERO, Literal(3), one), threads(others)), "the code around its threads"),
    "memory is used again before it was read": (
        in_block(For(k, ZERO, Literal(2), block(threads(own), Barrier(), threads(others)))),
        r"w\[.\] .*\(reader\) and by iteration thread = . \(writer\) of one block, with no barrier between",
    ),
    "a warp and a thread of one number": (in_block(threads(own, LoopKind.GPU_WARP), threads(own)), "iteration warp = 0"),
}


@pytest.mark.parametrize("name", UNSYNCHRONISED)
def test_a_missing_barrier_is_found(name):
    stmt, message = UNSYNCHRONISED[name]
    with pytest.raises(RaceFound, match=message):
        go(stmt)


def test_a_barrier_that_only_some_threads_reach_is_found():
    with pytest.raises(CompilerBug, match="reached by all threads of a block, not by some of them"):
        go(in_block(threads(If(compare("less", j, ONE), Barrier()))))


def warp(*stmts):
    """One warp per element of y; its lanes, as many as elements, run these statements and know ``total``."""
    lanes = For(j, ZERO, n, block(*stmts), LoopKind.GPU_THREAD)
    return For(i, ZERO, n, block(Declare(total, constant(10, FLOAT64)), lanes, Store(y, i, total)), LoopKind.GPU_WARP)


@pytest.mark.parametrize("length", [0, 1, 2, 3, 7, 32])
def test_shuffles_add_up_what_lanes_hold(length):
    value = Op("add", (Cast(j, FLOAT64), Cast(i, FLOAT64)), FLOAT64)
    found = go(warp(Declare(Var("own", FLOAT64), value), Shuffle(total, "add", Var("own", FLOAT64))), length)
    assert found == [10 + sum(lane + row for lane in range(length)) for row in range(length)]


def in_pairs(values):
    """A sum: neighbours first, then pairs of pairs."""
    while len(values) > 1:
        values = [sum(values[k : k + 2]) for k in range(0, len(values), 2)]
    return values[0]


@pytest.mark.parametrize("kind", [LoopKind.GPU_THREAD, LoopKind.GPU_WARP])
@pytest.mark.parametrize("length", [1, 5, 32, 33, 100])
def test_shuffles_add_up_what_the_units_of_a_block_hold_in_a_fixed_order(length, kind):
    """Numbers of unlike magnitude, so that another order gives another sum."""
    given = Array("x", FLOAT64)
    units = For(j, ZERO, n, Shuffle(total, "add", Load(given, j)), kind)
    body = For(i, ZERO, ONE, block(Declare(total, constant(0, FLOAT64)), units, Store(y, i, total)), LoopKind.GPU_BLOCK)
    values = np.random.default_rng(length).standard_normal(length) * 10.0 ** (np.arange(length) * 7 % 12)
    kernel = Function("kernel", (Param(y, Role.OUTPUT), Param(given, Role.INPUT), Param(n, Role.SIZE)), body)
    assert run(kernel, [np.zeros(1), values, length])[0].tolist() == [in_pairs(values.tolist())]


def test_a_shuffle_is_no_barrier():
    written = block(Store(shared, j, one), Shuffle(total, "add", one))
    with pytest.raises(RaceFound, match="the code around its threads"):
        go(in_block(Declare(total, one), threads(written), first))


def test_a_shuffle_that_only_some_lanes_reach_is_found():
    with pytest.raises(CompilerBug, match="reached by all 3 lanes in lock step, not by 1 of them"):
        go(warp(If(compare("less", j, ONE), Shuffle(total, "add", one))))


def test_barriers_in_a_row_are_one_and_a_block_without_threads_has_none():
    stmt = in_block(Barrier(), Barrier(), threads(own), Barrier())
    assert simplify(stmt) == in_block(Barrier(), threads(own), Barrier())
    assert simplify(in_block(Barrier(), Fill(shared, ZERO, Literal(3), one), Barrier())) == in_block(Fill(shared, ZERO, Literal(3), one))
