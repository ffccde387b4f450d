"""Facts about loops, against what the interpreter sees: where values differ, what indices are multiples of, which places a nest touches."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparseloom as sl
from sparseloom.core.dtypes import INT64
from sparseloom.core.trees import walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.facts import (
    at_most,
    expression,
    is_short,
    meanings,
    multiple_of,
    order_of,
    polynomial,
    reads_memory,
    stride,
    trip_count,
    uses,
    varying,
    without_addend,
)
from sparseloom.loops.footprint import Image, Interval, footprint
from sparseloom.loops.interpret import run
from sparseloom.loops.memory import Cells
from sparseloom.loops.reader import read
from sparseloom.loops.roles import nonnegative_names

VAR, J, N = ir.Var("i"), ir.Var("j"), ir.Var("n")


def indices() -> st.SearchStrategy[ir.Expr]:
    """Sums and products of two variables and small constants."""
    leaves: st.SearchStrategy[ir.Expr] = st.one_of(st.sampled_from([VAR, J]), st.integers(-6, 6).map(ir.index))
    names = st.sampled_from(["add", "subtract", "multiply"])
    return st.recursive(leaves, lambda inner: st.tuples(names, st.tuples(inner, inner)).map(lambda made: ir.Op(*made)), max_leaves=8)


def worth(index: ir.Expr, values: dict[str, int]) -> int:
    match index:
        case ir.Literal(value):
            return int(value.real)
        case ir.Var(name):
            return values[name]
        case ir.Op(name, (left, right)):
            a, b = worth(left, values), worth(right, values)
            return {"add": a + b, "subtract": a - b, "multiply": a * b, "minimum": min(a, b)}[name]
    raise AssertionError(index)


@given(indices(), st.integers(-9, 9), st.integers(-9, 9))
def test_a_polynomial_is_the_index(index: ir.Expr, i: int, j: int) -> None:
    assert worth(expression(polynomial(index)), {"i": i, "j": j}) == worth(index, {"i": i, "j": j})


@given(indices(), st.integers(-9, 9), st.integers(-9, 9))
def test_an_index_is_a_multiple_of_what_it_is_said_to_be(index: ir.Expr, i: int, j: int) -> None:
    divisor = multiple_of(index, {"i": 4})
    value = worth(index, {"i": 4 * i, "j": j})
    assert value % divisor == 0 if divisor else value == 0


@given(indices(), st.integers(-9, 9), st.integers(-9, 9))
def test_an_index_grows_by_its_stride(index: ir.Expr, i: int, j: int) -> None:
    step = stride(index, VAR)
    grown = worth(index, {"i": i + 1, "j": j}) - worth(index, {"i": i, "j": j})
    if step is None:
        assert any(factors.count(VAR) > 1 for factors in polynomial(index))
    else:
        assert worth(step, {"j": j}) == grown


@given(st.integers(0, 9), st.integers(0, 40), st.integers(1, 5))
def test_what_is_left_of_a_split_is_at_most_a_block(block: int, extent: int, size: int) -> None:
    first = ir.Op("multiply", (VAR, ir.index(size)))
    left = ir.Op("subtract", (ir.Op("minimum", (ir.Op("add", (first, ir.index(size))), N)), first))
    assert at_most(left) == size >= worth(left, {"i": block, "n": extent})
    assert at_most(N) is None


def test_an_index_counts_up_with_a_variable() -> None:
    index = ir.Op("add", (ir.Op("multiply", (VAR, N)), ir.Op("add", (J, ir.index(3)))))
    assert without_addend(index, J) == ir.Op("add", (ir.Op("multiply", (VAR, N)), ir.index(3)))
    assert without_addend(index, VAR) is None


NEST = """def nest(input pos: int64[], input crd: int64[], input v: float64[], input x: float64[], size n, size m, output y: float64[])
  for i in 0 : n
    first: int64 = i * 4
    allocate row: float64[4] local
    row[0] = v[i]
    last: float64 = 0.0
    if v[i] < 1.0
      last = 1.0
    same: int64 = m * 2
    for p in 0 : m
      j: int64 = crd[p]
      last = last + x[j] * v[first]
      k: int64 = j + same
    y[i * m + 1] = last + row[0]
    free row
"""


def loop_of(text: str, var: str = "i") -> ir.For:
    return next(n for n in walk(read(text)) if isinstance(n, ir.For) and n.var.name == var)


def test_what_differs_between_iterations() -> None:
    loop = loop_of(NEST)
    assert varying(loop.body, ("i",)) == {"i", "first", "row", "last"}
    assert varying(loop.body, ("p",)) == {"p", "j", "k", "last"}


def test_a_scalar_from_outside_that_changes_differs() -> None:
    loop = loop_of("def f(size n, output y: int64[])\n  t: int64 = 0\n  for i in 0 : n\n    t = t + 2\n  y[0] = t\n")
    assert varying(loop.body, ("i",)) == {"i", "t"}
    assert order_of(loop) == "each goes on with t where the one before it left it"


def test_uses_are_told_apart() -> None:
    found = uses(loop_of(NEST))
    assert {array.name for array in found.loaded} == {"v", "x", "crd", "row"}
    assert {array.name for array in found.stored_outside} == {"y"} and {array.name for array in found.allocated} == {"row"}
    assert found.assigned == {"last"} and not found.changed and "n" in found.read
    assert reads_memory(loop_of(NEST)) and not reads_memory(VAR)
    assert meanings(ir.stmts_of(loop_of(NEST).body))["first"] == ir.Op("multiply", (VAR, ir.index(4)))
    assert trip_count(ir.For(VAR, ir.index(2), ir.index(9), ir.block())) == 7 and trip_count(loop_of(NEST)) is None
    assert is_short(ir.For(VAR, ir.ZERO, ir.index(4), ir.block(), ir.LoopKind.UNROLLED, 4), 4)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("y[i * 4 + 1] = x[i]", None),
        ("y[i] += x[0]", None),
        ("y[i * 2 + 1] = y[i * 2 + 1] + x[i]", None),
        ("y[0] += x[i]", "they write one place of y"),
        ("y[i] = y[n - i]", "they read y, which they write"),
        ("y[i + 1] = y[i]", "they read y, which they write"),
        ("y[0 : +n] = 0.0", "they change y as a whole"),
        ("y[i] = 0.0\n    y[n - i] += x[i]", "they write several places of y, in more than one way"),
        ("for p in 0 : n\n      y[i + p] = y[i + p] + 1.0", "they read y, which they write"),
        ("poll", "they may end the kernel or wait for others"),
        ("for t in 0 : 4  [gpu thread 4]\n      y[i * 4 + t] = 0.0", "they share the loop over t out"),
    ],
)
def test_the_order_of_iterations_matters_if_they_meet(body: str, why: str | None) -> None:
    assert order_of(loop_of(f"def f(input x: float64[], size n, output y: float64[])\n  for i in 0 : n\n    {body}\n")) == why


def test_a_nest_touches_rows_and_images() -> None:
    text = """def f(input pos: int64[], input crd: int32[], input v: float64[], input x: float64[], size i, size n, output y: float64[])
  for p in pos[i] : pos[i + 1]
    j: int64 = crd[p]
    for k in 0 : n
      y[i * n + k] += v[p] * x[j * n + k]
"""
    function = read(text)
    arrays = {param.target.name: param.target for param in function.params if isinstance(param.target, ir.Array)}
    found = {name: footprint(function.body, arrays[name], {"n", "i"}) for name in ("v", "x", "y")}
    size = ir.Op("multiply", (ir.Var("i"), N))
    below, above = (ir.Load(arrays["pos"], place) for place in (ir.Var("i"), ir.Op("add", (ir.Var("i"), ir.ONE))))
    assert found["v"] == {Interval(below, above)}
    assert found["x"] == {Image(arrays["crd"], Interval(below, above), N, Interval(ir.ZERO, N))}
    (row,) = found["y"] or ()
    assert isinstance(row, Interval) and polynomial(row.low) == polynomial(size) and polynomial(row.high) == polynomial(ir.add(size, N))


KERNELS = [
    ("y(i) = A(i,j) * x(j)", {"A": "csr"}, ""),
    ("y(i) = A(i,j) * x(j)", {"A": "coo"}, ""),
    ("C(i,k) = A(i,j) * B(j,k)", {"A": "csr"}, "split(k,k0,k1,4)"),
    ("C(i,k) = A(i,j) * B(j,k)", {}, "split(i,i0,i1,3) reorder(i0,k,i1,j) unroll(i1,3)"),
    ("y(i) = A(i,j) + B(i,j)", {"A": "csr", "B": "csr"}, ""),
    ("y(j) = A(i,j) * x(i)", {"A": "dcsr"}, ""),
]


# Where cursors advance as the data tell, nothing is known yet.
UNKNOWN = {
    "y(i) = A(i,j) * x(j)coo": {"A1_crd", "A2_crd", "A_vals", "x_vals", "y_vals"},
    "y(i) = A(i,j) + B(i,j)csr": {"A2_crd", "A_vals", "B2_crd", "B_vals"},
}


@pytest.mark.parametrize(("statement", "formats", "steps"), KERNELS)
def test_what_the_interpreter_touches_is_in_the_footprint(
    statement: str, formats: dict[str, str], steps: str, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """Every place that a kernel reads or writes lies in what is known of it before it runs."""
    touched: dict[str, set[int]] = defaultdict(set)

    def watched(method: Any) -> Any:
        def call(self: Cells, place: int, *rest: Any) -> Any:
            touched[self.name].add(place)
            return method(self, place, *rest)

        return call

    shapes = {"i": 5, "j": 7, "k": 9}
    kernel = sl.program(statement, formats, steps, target="interpret")
    function = kernel.preview().stages.lowered.function
    given: dict[str, Any] = {}
    for name, modes in re.findall(r"(\w)\(([\w,]+)\)", statement.split("=")[1]):
        dense = np.where(rng.random([shapes[mode] for mode in modes.split(",")]) < 0.5, 1.0, 0.0)
        given[name] = sl.asarray(dense).to(formats[name]) if name in formats else dense
    for name in ("load", "load_number", "store"):
        monkeypatch.setattr(Cells, name, watched(getattr(Cells, name)))
    kernel(**given)
    sizes = {f"{name}_size": extent for name, extent in shapes.items()}
    unknown, targets = set(), [param.target for param in function.params]
    ascending = {array for array in targets if isinstance(array, ir.Array) and array.name.endswith("_pos")}
    for param in function.params:
        if isinstance(param.target, ir.Array):
            places = footprint(function.body, param.target, nonnegative_names(function), ascending)
            if places is None:
                unknown.add(param.target.name)
            else:
                allowed = {place for one in places for place in _members(one, sizes, given)}
                assert touched[param.target.name] <= allowed, (param.target.name, places)
    assert unknown == UNKNOWN.get(statement + formats.get("A", ""), set()), unknown


def _members(one: Interval | Image, sizes: dict[str, int], given: dict[str, Any]) -> set[int]:
    """The places of a footprint on given operands."""
    if isinstance(one, Interval):
        return set(range(_value(one.low, sizes, given), _value(one.high, sizes, given)))
    held, reach = _stored(one.array.name, given), _members(one.reach, sizes, given)
    scale = _value(one.scale, sizes, given)
    return {int(held[p]) * scale + r for p in _members(one.positions, sizes, given) for r in reach}


def _stored(name: str, given: dict[str, Any]) -> Any:
    """The array of an operand that a parameter such as ``A2_pos`` stands for."""
    tensor, part = name.rsplit("_", 1)
    return given[tensor[0]].arrays["values" if part == "vals" else f"{part}{int(tensor[1:]) - 1}"]


def _value(index: ir.Expr, sizes: dict[str, int], given: dict[str, Any]) -> int:
    """What an index is worth, worked out by the interpreter."""
    loaded = sorted({n.array for n in walk(index) if isinstance(n, ir.Load)}, key=repr)
    out, names = ir.Array("out", INT64), sorted({n.name for n in walk(index) if isinstance(n, ir.Var)})
    inputs = [*(ir.Param(ir.Var(name), ir.Role.SIZE) for name in names), *(ir.Param(array, ir.Role.INPUT) for array in loaded)]
    function = ir.Function("f", (*inputs, ir.Param(out, ir.Role.OUTPUT)), ir.Store(out, ir.ZERO, index))
    arrays = [_stored(array.name, given) for array in loaded]
    (*_, made) = run(function, [*(sizes[name] for name in names), *arrays, np.zeros(1, np.int64)])
    return int(made[0])

