"""verify refuses loops that break a promise, and says which."""

from __future__ import annotations

import numpy as np
import pytest
from targets.loop_kernels import histogram, i, n, positives, spmv, wide

from sparseloom.core.dtypes import BOOL, FLOAT64, INT32, INT64
from sparseloom.core.errors import CompilerBug
from sparseloom.loops.nodes import (
    ONE,
    TRUE,
    ZERO,
    Allocate,
    Array,
    Assign,
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
    Poll,
    Reduction,
    Role,
    Search,
    Select,
    Shuffle,
    Store,
    Var,
    While,
    add,
    block,
    compare,
    constant,
)
from sparseloom.loops.routines import grow
from sparseloom.loops.verify import verify

x, y, w = (Array(name, FLOAT64) for name in "xyw")
pos = Array("pos", INT32)
s, t = Var("s", FLOAT64), Var("t")
one = constant(1, FLOAT64)


def kernel(*stmts):
    params = (Param(x, Role.INPUT), Param(pos, Role.INPUT), Param(y, Role.OUTPUT), Param(n, Role.SIZE), Param(Var("count"), Role.COUNT))
    return Function("kernel", params, block(*stmts))


def fop(name, *args, dtype=FLOAT64):
    return Op(name, args, dtype)


def warp(*stmts):
    """A warp whose lanes run these statements; ``s`` is known to all of them."""
    lanes = For(t, ZERO, n, block(*stmts), LoopKind.GPU_THREAD)
    return For(i, ZERO, n, block(Declare(s, one), lanes, Store(y, i, s)), LoopKind.GPU_WARP)


mine = Array("w", FLOAT64, MemorySpace.LOCAL)
adding = (Reduction(s, "add"),)
ours = Array("w", FLOAT64, MemorySpace.SHARED)

half = np.dtype(np.float16)
halves = Array("w", half)

REFUSED = {
    "a scalar in a half": (Declare(Var("s", half), constant(1, half)), "s is a float32: float16 is for arrays alone"),
    "a sum in a half": (
        block(Allocate(halves, n), Store(y, ZERO, Cast(fop("add", Load(halves, ZERO), Load(halves, ZERO), dtype=half), FLOAT64))),
        "add is computed in float32, not in float16, float16",
    ),
    "a sum into a half": (block(Allocate(halves, n), Store(halves, ZERO, constant(1, half), "add")), "add is computed in float32"),
    "a half that becomes a float64": (
        block(Allocate(halves, n), Store(y, ZERO, Cast(Load(halves, ZERO), FLOAT64))),
        "a float16 is converted from and to float32 only",
    ),
    "an unknown scalar": (Store(y, t, one), "t is declared where it is used"),
    "a scalar out of scope": (block(If(TRUE, Declare(t, ZERO)), Store(y, t, one)), "t is declared where it is used"),
    "a loop variable after its loop": (block(For(i, ZERO, n, Store(y, i, one)), Store(y, i, one)), "i is declared where it is used"),
    "a scalar in its own value": (Declare(t, add(t, ONE)), "t is declared where it is used"),
    "another dtype than declared": (block(Declare(t, ZERO), Store(y, ZERO, Var("t", FLOAT64))), "t keeps its dtype int64"),
    "a declaration twice": (block(Declare(t, ZERO), Declare(t, ZERO)), "t is declared once"),
    "a loop variable twice": (For(i, ZERO, n, For(i, ZERO, n, Store(y, i, one))), "i is declared once"),
    "a name of an array": (Declare(Var("x"), ZERO), "x is declared once"),
    "a size that is assigned": (Assign(n, ZERO), "n is not a size or a loop variable"),
    "a loop variable that is assigned": (For(i, ZERO, n, Assign(i, ZERO)), "i is not a size or a loop variable"),
    "an unknown array": (Store(w, ZERO, one), "the array w is a parameter or allocated"),
    "an array out of scope": (block(If(TRUE, Allocate(w, n)), Store(w, ZERO, one)), "the array w is a parameter or allocated"),
    "an array after it is freed": (block(Allocate(w, n), Free(w), Store(w, ZERO, one)), "the array w is a parameter or allocated"),
    "an array allocated twice": (block(Allocate(w, n), Allocate(w, n)), "w is declared once"),
    "an array of another dtype": (Store(Array("y", INT64), ZERO, ONE), "the array y is the one declared"),
    "a store into an input": (Store(x, ZERO, one), "the input x is never written"),
    "a fill of an input": (Fill(x, ZERO, n, one), "the input x is never written"),
    "a stored value of another dtype": (Store(y, ZERO, ZERO), "has dtype float64, not int64"),
    "an assigned value of another dtype": (block(Declare(s, one), Assign(s, ZERO)), "has dtype float64, not int64"),
    "an index that is not int64": (Store(y, Load(pos, ZERO), one), "has dtype int64, not int32"),
    "an index that is a value": (Store(y, ZERO, Load(x, one)), "has dtype int64, not float64"),
    "a condition that is a number": (If(ONE, Store(y, ZERO, one)), "has dtype bool, not int64"),
    "a while on a number": (While(n, Store(y, ZERO, one)), "has dtype bool, not int64"),
    "a bound that is int32": (For(i, Load(pos, ZERO), n, Store(y, i, one)), "has dtype int64, not int32"),
    "mixed dtypes in a sum": (Store(y, ZERO, fop("add", one, ZERO)), "the arguments of add have dtype float64, not float64, int64"),
    "a result of another dtype": (Store(y, ZERO, fop("add", ONE, ONE)), "add of its arguments has dtype float64"),
    "a comparison of two dtypes": (If(compare("less", one, ONE), Store(y, ZERO, one)), "the arguments of less"),
    "a comparison that is a number": (Store(y, ZERO, fop("less", one, one)), "less of its arguments has dtype float64"),
    "logic on numbers": (If(Op("logical_and", (ONE, ONE), BOOL), Store(y, ZERO, one)), "the arguments of logical_and have dtype bool"),
    "a root of an integer": (Store(y, ZERO, fop("sqrt", ONE)), "the arguments of sqrt have dtype float64"),
    "a difference of truth values": (If(Op("subtract", (TRUE, TRUE), BOOL), Store(y, ZERO, one)), "not defined on truth values"),
    "an unknown operator": (Store(y, ZERO, fop("frobnicate", one)), "there is an operator frobnicate"),
    "too many arguments": (Store(y, ZERO, fop("sqrt", one, one)), "sqrt takes 1 arguments"),
    "too few arguments": (Store(y, ZERO, fop("add", one)), "add takes 2 arguments"),
    "a floor division of values": (Store(y, ZERO, fop("floor_divide", one, one)), "floor_divide takes two int64"),
    "an update of another dtype": (Store(y, ZERO, one, "less"), "less of the array's dtype gives that dtype"),
    "a choice of two dtypes": (Store(y, ZERO, Select(TRUE, one, ONE)), "has dtype float64, not int64"),
    "a search among values": (Store(y, Search(x, ZERO, n, ONE), one), "x holds int32 or int64 coordinates"),
    "a constant that does not fit": (Store(y, Literal(2**63), one), "is a int64"),
    "a truth value as a number": (Store(y, Literal(True), one), "is a int64"),
    "a growth without capacity": (block(Allocate(w, n), grow(w, t, n)), "t is declared where it is used"),
    "a growth with a size": (block(Allocate(w, n), grow(w, n, n)), "n is not a size or a loop variable, which are never assigned"),
    "an unrolled loop without a count": (For(i, ZERO, n, Store(y, i, one), LoopKind.UNROLLED), "says how often"),
    "a loop over blocks with a count": (For(i, ZERO, n, Store(y, i, one), LoopKind.GPU_BLOCK, 3), "by its ends alone"),
    "a vector loop that assigns": (
        block(Declare(s, one), For(i, ZERO, n, Assign(s, Load(x, i)), LoopKind.VECTOR, 0, adding)),
        "a vector loop assigns s, declared outside it, only as s = s op ..., as it declares",
    ),
    "a vector loop that does not say what it reduces": (
        block(Declare(s, one), For(i, ZERO, n, Assign(s, fop("add", s, one)), LoopKind.VECTOR)),
        "a vector loop assigns s, declared outside it, only as s = s op ..., as it declares",
    ),
    "a reduction that is not associative": (
        block(Declare(s, one), For(i, ZERO, n, Assign(s, fop("subtract", s, one)), LoopKind.THREADS, 0, (Reduction(s, "subtract"),))),
        "subtract is associative and combines copies of s, which is declared outside",
    ),
    "a vector loop that can end the kernel": (For(i, ZERO, n, Poll(), LoopKind.VECTOR), "nothing in a vector loop ends the kernel"),
    "a threads loop with two operators": (
        block(
            Declare(s, one),
            For(i, ZERO, n, block(Assign(s, fop("add", s, one)), Assign(s, fop("multiply", s, one))), LoopKind.THREADS, 0, adding),
        ),
        "a threads loop assigns s, declared outside it, only as s = s op ..., as it declares",
    ),
    "a GPU loop that assigns": (
        block(Declare(s, one), For(i, ZERO, n, Assign(s, one), LoopKind.GPU_THREAD)),
        "a GPU loop changes s, declared outside it, only by a shuffle",
    ),
    "a block inside a warp": (
        For(i, ZERO, n, For(t, ZERO, n, Store(y, t, one), LoopKind.GPU_BLOCK), LoopKind.GPU_WARP),
        "blocks hold warps, and both hold threads",
    ),
    "a shuffle between blocks": (
        block(Declare(s, one), For(t, ZERO, n, Shuffle(s, "add", one), LoopKind.GPU_BLOCK)),
        "lanes, threads and warps shuffle",
    ),
    "a shuffle into what only one thread knows": (
        For(i, ZERO, n, For(t, ZERO, n, block(Declare(s, one), Shuffle(s, "add", one)), LoopKind.GPU_THREAD), LoopKind.GPU_BLOCK),
        "s is declared outside the loop over lanes",
    ),
    "a shuffle that some lanes skip": (warp(If(compare("less", t, ONE), Shuffle(s, "add", one))), "shuffles stand at the end"),
    "a shuffle before the end": (warp(Shuffle(s, "add", one), Store(y, t, one)), "shuffles stand at the end"),
    "a shuffle of another dtype": (warp(Shuffle(s, "add", ONE)), "has dtype float64, not int64"),
    "a barrier that lanes reach alone": (For(i, ZERO, n, Barrier(), LoopKind.GPU_THREAD), "a barrier stands in a block"),
    "a barrier outside a block": (Barrier(), "a barrier stands in a block"),
    "shared memory outside a kernel": (Allocate(ours, n), "w is shared by the threads of a block or warp"),
    "private memory of several threads": (
        block(Allocate(mine, n), For(i, ZERO, n, Store(mine, i, one), LoopKind.GPU_THREAD)),
        "w is private to one thread",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_broken_promises_are_refused(name):
    stmt, message = REFUSED[name]
    with pytest.raises(CompilerBug, match="(?s)" + message.replace("(", r"\(").replace(")", r"\)").replace("...", r"\.\.\.")):
        verify(kernel(stmt))


@pytest.mark.parametrize(
    "function", [spmv(), positives(), histogram(FLOAT64, "maximum", True), histogram(np.dtype(bool), "add", True)], ids=lambda f: f.name
)
def test_sound_kernels_pass(function):
    verify(function)


def test_lanes_that_shuffle_at_their_end_pass():
    verify(kernel(warp(Declare(Var("own", FLOAT64), one), Shuffle(s, "add", Var("own", FLOAT64)))))


@pytest.mark.parametrize("kind", [LoopKind.GPU_THREAD, LoopKind.GPU_WARP])
def test_units_of_a_block_that_shuffle_at_their_end_pass(kind):
    verify(kernel(For(i, ZERO, n, block(Declare(s, one), For(t, ZERO, n, Shuffle(s, "add", one), kind)), LoopKind.GPU_BLOCK)))


def test_scopes_end_with_their_body():
    """A name may be declared again in another branch or loop, and after the array is freed."""
    verify(
        kernel(
            If(TRUE, block(Declare(t, ZERO), Store(y, t, one)), block(Declare(t, ONE), Store(y, t, one))),
            For(i, ZERO, n, Store(y, i, one)),
            For(i, wide(pos, ZERO), n, block(Declare(s, Load(x, i)), Allocate(w, n), Free(w))),
            Allocate(w, n),
            Free(w),
            Allocate(w, n),
            Free(w),
            Assign(Var("count"), Cast(Load(x, ZERO), INT64)),
        )
    )


@pytest.mark.parametrize(
    "param", [Param(Var("n", FLOAT64), Role.SIZE), Param(Var("n"), Role.INPUT), Param(x, Role.SIZE), Param(x, Role.COUNT)], ids=str
)
def test_parameters_fit_their_roles(param):
    with pytest.raises(CompilerBug, match="parameter is an"):
        verify(Function("kernel", (param,), block()))


def test_a_grown_array_is_not_freed():
    with pytest.raises(CompilerBug, match="a grown array belongs to the caller"):
        verify(Function("kernel", (Param(w, Role.GROWN),), block(Allocate(w, ONE), Free(w))))
