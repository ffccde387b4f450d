"""Simplifying never changes a result, renaming never changes a kernel, and the printer shows both."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from targets.loop_kernels import i, j, n, positives, spmv

from sparseloom.core.algebra import OPERATORS, compute_dtype, result_dtype
from sparseloom.core.dtypes import BOOL, FLOAT64, INT32, INT64
from sparseloom.core.errors import DTypeError
from sparseloom.core.trees import walk
from sparseloom.loops.interpret import run
from sparseloom.loops.nodes import (
    FALSE,
    ONE,
    TRUE,
    ZERO,
    Allocate,
    Array,
    Assign,
    Block,
    Cast,
    Declare,
    Fail,
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
    Role,
    Search,
    Select,
    Status,
    Store,
    Var,
    While,
    add,
    block,
    compare,
    constant,
)
from sparseloom.loops.printer import show
from sparseloom.loops.rename import alpha_rename
from sparseloom.loops.routines import grow
from sparseloom.loops.simplify import simplify
from sparseloom.loops.verify import verify

x, y = Array("x", FLOAT64), Array("y", FLOAT64)
t, flag = Var("t"), Var("flag", BOOL)
DTYPES = [np.dtype(name) for name in ("bool", "int8", "int64", "uint64", "float32", "float64", "complex64")]
NUMBERS = {
    "b": [True, False],
    "i": [0, 1, -1, 5, 127, -128],
    "u": [0, 1, 5, 255],
    "f": [0.0, -0.0, 1.0, -1.0, np.inf, np.nan, 0.5],
    "c": [0j, complex(-0.0, 0.0), 1 + 0j, complex(np.inf, 0), complex(np.nan, 1), 2 - 3j],
}


@st.composite
def expressions(draw, dtype, depth=3):
    """A typed expression over the arrays in_<dtype> of one element, full of constants."""
    if depth == 0 or draw(st.booleans()):
        if draw(st.booleans()):
            return Load(Array(f"in_{dtype}", dtype), ZERO)
        return constant(draw(st.sampled_from(NUMBERS[dtype.kind])), dtype)
    match draw(st.sampled_from(["op", "op", "op", "cast", "select"])):
        case "cast":
            source = draw(st.sampled_from([d for d in DTYPES if not (d.kind in "fc" and dtype.kind in "iu")]))
            return Cast(draw(expressions(source, depth - 1)), dtype)
        case "select":
            branches = draw(expressions(dtype, depth - 1)), draw(expressions(dtype, depth - 1))
            return Select(draw(expressions(BOOL, depth - 1)), *branches)
    name, source = draw(st.sampled_from(operators_giving(dtype)))
    count = draw(st.integers(2, 4)) if OPERATORS[name].associative else OPERATORS[name].arity
    return Op(name, tuple(draw(expressions(source, depth - 1)) for _ in range(count)), dtype)


def operators_giving(dtype):
    """The (operator, argument dtype) pairs with this result."""
    found = []
    for name, op in OPERATORS.items():
        for source in DTYPES:
            try:
                fits = compute_dtype(name, [source] * op.arity) == source and result_dtype(name, [source] * op.arity) == dtype
            except DTypeError:
                continue
            if fits and op.rule != "select":
                found.append((name, source))
    return found


@given(st.data())
def test_simplified_expressions_have_the_same_bits(data):
    dtype = data.draw(st.sampled_from(DTYPES))
    expr = data.draw(expressions(dtype))
    out = Array("out", dtype)
    inputs = {d: np.array([data.draw(st.sampled_from(NUMBERS[d.kind]))], d) for d in DTYPES}
    params = (*(Param(Array(f"in_{d}", d), Role.INPUT) for d in DTYPES), Param(out, Role.OUTPUT))
    function = Function("f", params, Store(out, ZERO, expr))
    verify(function)
    simpler = simplify(function)
    verify(simpler)
    before = run(function, [*inputs.values(), np.empty(1, dtype)])[-1]
    after = run(simpler, [*inputs.values(), np.empty(1, dtype)])[-1]
    parts = [(part(before)[0], part(after)[0]) for part in (np.real, np.imag)]
    assert all((a != a and b != b) or a.tobytes() == b.tobytes() for a, b in parts), (show(expr), show(simplify(expr)))


FOLDED = {
    "constants": (Op("multiply", (Literal(6), Literal(7))), Literal(42)),
    "wrapping constants": (Op("add", (Literal(2**63 - 1), ONE)), Literal(-(2**63))),
    "float constants": (Op("add", (constant(0.1, FLOAT64), constant(0.2, FLOAT64)), FLOAT64), Literal(0.1 + 0.2, FLOAT64)),
    "x + 0": (Op("add", (i, ZERO)), i),
    "0 + x": (Op("add", (ZERO, i)), i),
    "x - 0": (Op("subtract", (i, ZERO)), i),
    "x * 1": (Op("multiply", (i, ONE)), i),
    "x * 0": (Op("multiply", (i, ZERO)), ZERO),
    "(x + 1) + 2": (Op("add", (Op("add", (i, ONE)), Literal(2))), Op("add", (i, Literal(3)))),
    "(x + 1) - 1 as a sum": (Op("add", (Op("add", (i, ONE)), Literal(-1))), i),
    "(x + 1) - 1": (Op("subtract", (add(i, ONE), ONE)), i),
    "(x - 1) + 1": (add(Op("subtract", (i, ONE)), ONE), i),
    "(x + 1) - 3": (Op("subtract", (add(i, ONE), Literal(3))), Op("subtract", (i, Literal(2)))),
    "(x - 1) - 3": (Op("subtract", (Op("subtract", (i, ONE)), Literal(3))), Op("subtract", (i, Literal(4)))),
    "(x - 1) + y + 3": (Op("add", (Op("subtract", (i, ONE)), j, Literal(3))), Op("add", (i, j, Literal(2)))),
    "x // 1": (Op("floor_divide", (i, ONE)), i),
    "-7 // 2": (Op("floor_divide", (Literal(-7), Literal(2))), Literal(-4)),
    "a float times 1": (Op("multiply", (Load(x, i), constant(1, FLOAT64)), FLOAT64), Load(x, i)),
    "a cast to the same dtype": (Cast(i, INT64), i),
    "a cast of a constant": (Cast(Literal(3), FLOAT64), Literal(3.0, FLOAT64)),
    "a decided choice": (Select(TRUE, i, j), i),
    "true and c": (Op("logical_and", (TRUE, flag, TRUE), BOOL), flag),
    "false and c": (Op("logical_and", (flag, FALSE), BOOL), FALSE),
    "c or true": (Op("logical_or", (flag, TRUE), BOOL), TRUE),
    "not not c": (Op("logical_not", (Op("logical_not", (flag,), BOOL),), BOOL), flag),
    "i == i": (compare("equal", i, i), TRUE),
    "i < i": (compare("less", i, i), FALSE),
}


@pytest.mark.parametrize("name", FOLDED)
def test_what_is_folded(name):
    expr, folded = FOLDED[name]
    assert simplify(expr) == folded


KEPT = {
    "0.0 + x makes -0.0 positive": Op("add", (Load(x, i), constant(0, FLOAT64)), FLOAT64),
    "x * 0.0 may be nan": Op("multiply", (Load(x, i), constant(0, FLOAT64)), FLOAT64),
    "x == x may be false": Op("equal", (Load(x, i), Load(x, i)), BOOL),
    "a sine is the target's": Op("sin", (constant(1, FLOAT64),), FLOAT64),
    "a float out of range": Cast(constant(1e300, FLOAT64), INT64),
    "an unknown sum": Op("add", (i, j)),
    "a lane stays last": Op("add", (Op("subtract", (i, ONE)), j)),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_stays(name):
    assert simplify(KEPT[name]) is KEPT[name]


store = Store(y, i, constant(1, FLOAT64))
DROPPED = {
    "an empty range": (For(i, Literal(3), Literal(3), store), Block(())),
    "an empty body": (For(i, ZERO, n, Block(())), Block(())),
    "a decided branch": (If(TRUE, store, Poll()), store),
    "a branch that does nothing": (If(flag, Block(())), Block(())),
    "an empty first branch": (If(flag, Block(()), store), If(Op("logical_not", (flag,), BOOL), store)),
    "a loop that never runs": (While(FALSE, store), Block(())),
    "nested blocks": (Block((Block((store,)), Block((Block((Poll(),)),)))), Block((store, Poll()))),
    "a branch that becomes decided": (If(compare("less", ZERO, ONE), store), store),
    "a decided branch with its names": (block(If(TRUE, block(Declare(t, ZERO), store)), Poll()), Block((Declare(t, ZERO), store, Poll()))),
    "a decided body": (For(i, ZERO, n, If(TRUE, Declare(t, i))), For(i, ZERO, n, Declare(t, i))),
}


@pytest.mark.parametrize("name", DROPPED)
def test_what_is_dropped(name):
    stmt, left = DROPPED[name]
    assert simplify(stmt) == left


def test_two_decided_branches_keep_their_names_apart():
    twice = If(TRUE, block(Declare(t, ZERO), Store(y, t, constant(1, FLOAT64))))
    function = Function("f", (Param(y, Role.OUTPUT),), block(twice, twice))
    verify(simplify(function))


def test_nothing_to_do_gives_the_same_object():
    for function in (spmv(), positives()):
        assert simplify(function) is function


def test_kernels_that_differ_in_names_become_equal():
    other = spmv(("p", "i", "λ", "for", "é", "x", "y", "z", "w", "v"))
    assert other != spmv()
    assert alpha_rename(other) == alpha_rename(spmv())
    assert alpha_rename(alpha_rename(other)) == alpha_rename(other)
    assert not any(n.why for n in walk(alpha_rename(other)) if isinstance(n, Declare))
    verify(alpha_rename(other))


def test_renaming_follows_scopes():
    """Two loops over one name and over two names are the same kernel; swapped uses are not."""

    def twice(first, second):
        loops = [For(var, ZERO, n, Store(y, var, constant(1, FLOAT64))) for var in (first, second)]
        return Function("f", (Param(n, Role.SIZE), Param(y, Role.OUTPUT)), block(*loops))

    def nested(used):
        loops = For(i, ZERO, n, For(j, ZERO, n, Store(y, used, constant(1, FLOAT64))))
        return Function("f", (Param(n, Role.SIZE), Param(y, Role.OUTPUT)), loops)

    assert alpha_rename(twice(i, i)) == alpha_rename(twice(i, j)) == alpha_rename(twice(j, i))
    assert alpha_rename(nested(i)) != alpha_rename(nested(j))


def test_renamed_kernels_run_alike():
    values = np.array([1.0, -1.0, 2.0])
    assert run(alpha_rename(positives()), [values, 3, None, None])[3] == 2


def test_the_printer_shows_every_node():
    crd, w, capacity = Array("crd", INT32), Array("w", FLOAT64, MemorySpace.LOCAL), Var("capacity")
    body = block(
        Declare(capacity, Op("minimum", (n, Literal(8))), "remark"),
        Allocate(w, capacity),
        grow(w, capacity, add(n, ONE)),
        Fill(w, ONE, n, constant(0, FLOAT64)),
        For(
            i,
            ZERO,
            n,
            block(
                Declare(t, Cast(Load(crd, add(i, ONE)), INT64)),
                If(
                    Op("logical_and", (compare("less", t, i), Op("logical_not", (compare("equal", t, ONE),), BOOL)), BOOL),
                    Store(y, Search(crd, ZERO, n, t), Op("negative", (Load(x, i),), FLOAT64), "add", True),
                    If(compare("greater", t, i), Fail(Status.INDEX_OVERFLOW), Poll()),
                ),
                While(FALSE, Assign(t, Op("multiply", (Op("add", (t, ONE)), Op("floor_divide", (t, Literal(2))))))),
            ),
            LoopKind.VECTOR,
            4,
        ),
        Store(y, ZERO, Select(compare("less", n, ONE), Cast(n, FLOAT64), Op("sqrt", (Load(x, ZERO),), FLOAT64)), "maximum"),
        Free(w),
    )
    params = (Param(x, Role.INPUT), Param(crd, Role.INPUT), Param(n, Role.SIZE), Param(y, Role.OUTPUT))
    assert show(Function("everything", params, body)) == (
        """\
def everything(input x: float64[], input crd: int32[], size n, output y: float64[])
  capacity: int64 = min(n, 8)  # remark
  allocate w: float64[capacity] local
  grow(w, capacity, n + 1)
  w[1 : +n] = 0.0
  for i in 0 : n  [vector 4]
    t: int64 = crd[i + 1]
    if t < i and logical_not(t == 1)
      atomic y[search(crd, 0, n, t)] += -x[i]
    elif t > i
      fail INDEX_OVERFLOW
    else
      poll
    while False
      t = (t + 1) * (t // 2)
  y[0] max= float64(n) if n < 1 else sqrt(x[0])
  free w
"""
    )
