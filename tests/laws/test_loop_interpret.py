"""The loop interpreter notices what C would not: stray accesses, unwritten memory, leaks and races."""

from __future__ import annotations

import numpy as np
import pytest
from targets.loop_kernels import histogram, i, j, n, positives, spmv

from sparseloom.core.dtypes import FLOAT64, INT32, INT64
from sparseloom.core.errors import CompilerBug
from sparseloom.loops.interpret import KernelStatus, RaceFound, run
from sparseloom.loops.nodes import (
    ONE,
    ZERO,
    Allocate,
    Array,
    Declare,
    Fail,
    Fill,
    For,
    Free,
    Function,
    Literal,
    Load,
    LoopKind,
    Op,
    Param,
    Role,
    Search,
    Status,
    Store,
    Var,
    block,
    constant,
)
from sparseloom.loops.routines import grow

x, y, w = (Array(name, FLOAT64) for name in "xyw")
crd = Array("crd", INT32)
capacity = Var("capacity")
one = constant(1, FLOAT64)


def kernel(*stmts):
    """A kernel with an input x, an output y and a size n."""
    return Function("kernel", (Param(x, Role.INPUT), Param(y, Role.OUTPUT), Param(n, Role.SIZE)), block(*stmts))


def go(*stmts, length=3, **how):
    return run(kernel(*stmts), [np.arange(3.0), np.full(length, -1.0), length], **how)


MISTAKES = {
    "a load past the end": (Store(y, ZERO, Load(x, Literal(3))), r"x\[3\] has length 3"),
    "a load before the start": (Store(y, ZERO, Load(x, Literal(-1))), r"x\[-1\] has length 3"),
    "a store past the end": (Store(y, n, one), r"y\[3\] has length 3"),
    "a store into an input": (Store(x, ZERO, one), "the input x is never written"),
    "a read of unwritten output": (Store(y, ZERO, Load(y, ONE)), r"y\[1\] was never written"),
    "an update of unwritten output": (Store(y, ZERO, one, "add"), r"y\[0\] was never written"),
    "a read of unwritten memory": (block(Allocate(w, n), Store(y, ZERO, Load(w, ZERO))), r"w\[0\] was never written"),
    "a read of memory that grew": (
        block(Declare(capacity, ZERO), Allocate(w, capacity), grow(w, capacity, n), Store(y, ZERO, Load(w, ONE))),
        r"w\[1\] was never written",
    ),
    "a read of freed memory": (
        block(Allocate(w, n), Fill(w, ZERO, n, one), Free(w), Store(y, ZERO, Load(w, ZERO))),
        r"w\[0\] has length 0 \(it is not allocated\)",
    ),
    "memory that is not freed": (Allocate(w, n), "w is freed before the kernel ends"),
    "memory that is freed twice": (block(Allocate(w, n), Free(w), Free(w)), "w is allocated when it is freed"),
    "memory that is allocated twice": (block(Allocate(w, n), Allocate(w, n)), "w is freed before it is allocated again"),
    "a capacity that lies": (
        block(Declare(capacity, ONE), Allocate(w, n), grow(w, capacity, n)),
        "the capacity 1 of w is its length, 3",
    ),
    "a fill past the end": (Fill(y, ONE, n, one), r"y\[3\] has length 3"),
    "a fill of less than nothing": (Fill(y, ONE, Literal(-1), one), "a count of at least 0, not -1"),
    "a division by zero": (Store(y, Op("floor_divide", (ONE, ZERO)), one), "no index is divided by zero"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_noticed(name):
    stmt, message = MISTAKES[name]
    with pytest.raises(CompilerBug, match=message):
        go(stmt)


def test_outputs_may_come_with_values():
    assert go(Store(y, ZERO, one, "add"), outputs_initialised=True)[1].tolist() == [0.0, -1.0, -1.0]


@pytest.mark.parametrize(("begin", "end"), [(0, 4), (-1, 2), (2, 1)])
def test_a_search_stays_inside(begin, end):
    found = Array("found", INT64)
    searching = Function(
        "searching",
        (Param(crd, Role.INPUT), Param(found, Role.OUTPUT)),
        Store(found, ZERO, Search(crd, Literal(begin), Literal(end), ONE)),
    )
    with pytest.raises(CompilerBug, match=r"a search of crd stays in its length 3"):
        run(searching, [np.arange(3, dtype=np.int32), np.zeros(1, np.int64)])


def test_a_search_needs_order():
    found = Array("found", INT64)
    search = Store(found, ZERO, Search(crd, ZERO, Literal(3), ONE))
    searching = Function("searching", (Param(crd, Role.INPUT), Param(found, Role.OUTPUT)), search)
    with pytest.raises(CompilerBug, match="crd ascends"):
        run(searching, [np.array([2, 1, 3], np.int32), np.zeros(1, np.int64)])


def test_statuses_are_raised():
    with pytest.raises(KernelStatus) as failed:
        go(Fail(Status.BOUND_VIOLATED))
    assert failed.value.status is Status.BOUND_VIOLATED
    with pytest.raises(KernelStatus) as failed:
        go(Allocate(w, Literal(2**60)))
    assert failed.value.status is Status.OUT_OF_MEMORY


def test_grown_arrays_come_back_as_they_were_grown():
    _, _, kept, count = run(positives(), [np.array([1.0, -1, 2, 3, -4, 5, 6]), 7, None, None])
    assert count == 5
    assert kept[:5].tolist() == [1, 2, 3, 5, 6]
    assert len(kept) == 8
    assert np.isnan(kept[5:]).all()


def test_arguments_are_checked_against_their_parameters():
    with pytest.raises(CompilerBug, match="A_vals is a 1-D array of float64"):
        run(spmv(), [np.zeros(1, np.int32), np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(0), 0, np.zeros(0)])


def parallel(body, kind=LoopKind.THREADS):
    return For(i, ZERO, n, body, kind)


RACES = {
    "two writes": (Store(y, ZERO, one), r"y\[0\] is touched by iteration i = 0 \(writer\) and by iteration i = 1 \(writer\)"),
    "a write and a read": (block(Store(y, i, one), Store(y, i, Load(y, ZERO))), r"y\[0\] is touched by iteration i = 0 \(writer\)"),
    "many reads and a write": (
        Store(y, Op("subtract", (Literal(2), i)), Load(y, ZERO)),
        r"y\[0\] is touched by several iterations \(reader\) and by iteration i = 2 \(writer\)",
    ),
    "an atomic and a plain write": (
        block(Store(y, ZERO, one, "add", True), Store(y, i, one)),
        r"y\[0\] is touched by iteration i = 0",
    ),
    "an outer array in an inner loop": (
        For(j, ZERO, n, Store(y, j, one)),
        r"y\[0\] is touched by iteration i = 0 \(writer\) and by iteration i = 1 \(writer\)",
    ),
}


@pytest.mark.parametrize("name", RACES)
@pytest.mark.parametrize("kind", [LoopKind.THREADS, LoopKind.GPU_BLOCK, LoopKind.GPU_THREAD])
def test_races_are_found(name, kind):
    body, message = RACES[name]
    with pytest.raises(RaceFound, match=message):
        go(parallel(body, kind), length=4, outputs_initialised=True)


NO_RACES = {
    "each its own place": Store(y, i, Load(x, ZERO)),
    "atomics only": Store(y, ZERO, one, "add", True),
    "private memory": block(Allocate(w, ONE), Store(w, ZERO, one), Store(y, i, Load(w, ZERO)), Free(w)),
    "private memory in a nested loop": block(
        Allocate(w, n), For(j, ZERO, n, Store(w, j, one), LoopKind.GPU_THREAD), Store(y, i, Load(w, ZERO)), Free(w)
    ),
}


@pytest.mark.parametrize("name", NO_RACES)
def test_what_is_no_race_runs(name):
    go(parallel(NO_RACES[name]), outputs_initialised=True)


def test_private_memory_can_race_in_an_inner_loop():
    body = block(Allocate(w, n), For(j, ZERO, n, Store(w, ZERO, one), LoopKind.GPU_THREAD), Free(w))
    with pytest.raises(RaceFound, match=r"w\[0\] is touched by iteration j = 0 \(writer\) and by iteration j = 1"):
        go(parallel(body))


@pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.VECTOR, LoopKind.UNROLLED])
def test_serial_loops_do_not_race(kind):
    go(For(i, ZERO, n, Store(y, ZERO, one), kind, 2))


def test_an_atomic_histogram_counts():
    keys, ones = np.array([0, 1, 1, 2, 1]), np.ones(5, np.int64)
    counted = run(histogram(INT64, "add", True), [keys, ones, 5, np.zeros(3, np.int64)], outputs_initialised=True)
    assert counted[-1].tolist() == [1, 3, 1]
    with pytest.raises(RaceFound):
        run(histogram(INT64, "add", False), [keys, ones, 5, np.zeros(3, np.int64)], outputs_initialised=True)
