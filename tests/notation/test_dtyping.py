"""Dtypes follow NumPy's; fills follow the algebra."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from sparseloom.core.algebra import SEMIRINGS
from sparseloom.core.dtypes import VALUE_DTYPES, DType
from sparseloom.core.errors import DTypeError
from sparseloom.formats.named import csf, dense
from sparseloom.notation.dtyping import compute_dtype_of, constant_of, dtype_of, fill_of
from sparseloom.notation.nodes import Access, Apply, Assign, IndexVar, Literal, Reduce, TensorVar
from sparseloom.notation.terms import close_over, tensors_of
from sparseloom.notation.text import declare, parse

i = IndexVar("i")


def tensor(name: str, dtype: str | DType) -> Access:
    return Access(TensorVar(name, 1, dense(1), np.dtype(dtype)), (i,))


def declared(text: str, **fills: float) -> Assign:
    """A statement in which the tensors with a fill are sparse."""
    assign = parse(text).assign
    orders = {tensor.name: tensor.order for tensor in tensors_of(assign)}
    return close_over(declare(assign, {name: TensorVar(name, orders[name], csf(orders[name]), fill=fill) for name, fill in fills.items()}))


@pytest.mark.parametrize(("op", "function"), [("add", np.add), ("multiply", np.multiply), ("less", np.less), ("equal", np.equal)])
def test_two_tensors_promote_as_in_numpy(op: str, function: np.ufunc) -> None:
    for left, right in itertools.product(VALUE_DTYPES, repeat=2):
        if op == "less" and "c" in left.kind + right.kind:
            continue
        expected = function(np.ones(1, left), np.ones(1, right)).dtype
        assert dtype_of(Apply(op, (tensor("a", left), tensor("b", right)))) == expected


@pytest.mark.parametrize("number", [True, 2, 0.5, 2j])
def test_numbers_promote_weakly_as_in_numpy(number: complex) -> None:
    for dtype in VALUE_DTYPES:
        expected = (np.ones(1, dtype) * number).dtype
        assert dtype_of(Apply("multiply", (tensor("a", dtype), Literal(number)))) == expected
        assert dtype_of(Apply("multiply", (Literal(number), tensor("a", dtype)))) == expected


def test_an_expression_of_numbers_promotes_weakly_too() -> None:
    ratio = Apply("divide", (Literal(1), Literal(3)))
    assert constant_of(ratio) == 1 / 3
    assert dtype_of(Apply("multiply", (ratio, tensor("a", "f4")))) == np.float32
    assert dtype_of(Apply("add", (Apply("negative", (Literal(3),)), tensor("a", "i1")))) == np.int8
    assert constant_of(tensor("a", "f4")) is None


DTYPES = [
    ("divide", ("i4", "i4"), "f8"),
    ("divide", ("f4", "f4"), "f4"),
    ("sqrt", ("i2",), "f8"),
    ("exp", ("f4",), "f4"),
    ("absolute", ("c8",), "f4"),
    ("absolute", ("i4",), "i4"),
    ("real", ("c16",), "f8"),
    ("negative", ("i1",), "i1"),
    ("minimum", ("u1", "i1"), "i2"),
    ("logical_and", ("f8", "i4"), "?"),
    ("isnan", ("f8",), "?"),
    ("where", ("f8", "i2", "i4"), "i4"),
    ("power", ("i4", "f4"), "f8"),
]


@pytest.mark.parametrize(("op", "arguments", "expected"), DTYPES, ids=[f"{op} {' '.join(args)}" for op, args, _ in DTYPES])
def test_operator(op: str, arguments: tuple[str, ...], expected: str) -> None:
    assert dtype_of(Apply(op, tuple(tensor(f"a{n}", dtype) for n, dtype in enumerate(arguments)))) == np.dtype(expected)


def test_arguments_are_compared_in_their_common_dtype() -> None:
    assert compute_dtype_of(Apply("less", (tensor("a", "i4"), tensor("b", "f4")))) == np.float64
    assert compute_dtype_of(Apply("less", (tensor("a", "f4"), Literal(2)))) == np.float32


def test_reductions_keep_the_dtype() -> None:
    for dtype in VALUE_DTYPES:
        assert dtype_of(Reduce("add", (i,), tensor("a", dtype))) == dtype
        assert dtype_of(Reduce("logical_or", (i,), tensor("a", dtype))) == np.bool_
    assert dtype_of(Reduce("add", (i,), Literal(2))) == np.int64
    with pytest.raises(DTypeError, match="minimum is not defined on complex numbers"):
        dtype_of(Reduce("minimum", (i,), tensor("a", "c16")))


def test_a_number_that_does_not_fit_is_refused() -> None:
    assert dtype_of(Literal(2**63)) == np.uint64
    with pytest.raises(DTypeError) as caught:
        dtype_of(Literal(2**70))
    assert str(caught.value) == f"the number {2**70} does not fit in 64 bits; write it as a float: {float(2**70)!r}"


FILLS = [
    ("y(i) = A(i)", {"A": 0}, 0.0),
    ("y(i) = A(i)", {"A": 3}, 3.0),
    ("y(i) = A(i)", {}, None),
    ("y(i) = A(i) * x(i)", {"A": 0}, 0.0),
    ("y(i) = A(i) * x(i)", {"A": 1}, None),
    ("y(i) = A(i) + x(i)", {"A": 0}, None),
    ("y(i) = A(i) + B(i)", {"A": 1, "B": 2}, 3.0),
    ("y(i) = A(i) + 2", {"A": 0}, 2.0),
    ("y(i) = 0 * x(i)", {}, None),
    ("y(i) = exp(A(i))", {"A": 0}, 1.0),
    ("y(i) = A(i) / x(i)", {"A": 0}, 0.0),
    ("y(i) = A(i) / B(i)", {"A": 0, "B": 0}, 0.0),
    ("y(i) = x(i) / A(i)", {"A": 0}, None),
    ("y(i) = 1 / A(i)", {"A": 0}, math.inf),
    ("y(i) = A(i) > 0", {"A": 0}, False),
    ("y(i) = where(A(i) > 0, A(i), 5)", {"A": 0}, 5.0),
    ("y(i) = 3", {}, 3),
    ("y(i) = A(i,j) * x(j)", {"A": 0}, 0.0),
    ("y(i) = A(i,j) + 1", {"A": 0}, 1.0),
    ("y(i) = (A(i,j) + 1) * 2", {"A": 0}, None),
    ("y(i) = max(j, A(i,j))", {"A": -math.inf}, -math.inf),
    ("y(i) = max(j, A(i,j))", {"A": 0}, 0.0),
    ("y(i) = max(j, A(i,j) + x(j))", {"A": 0}, None),
    ("y(i) = prod(j, A(i,j))", {"A": 0}, 0.0),
    ("y(i) = prod(j, A(i,j))", {"A": 2}, None),
    ("y(i) = sum(j, A(i,j))", {"A": 7}, None),
    ("y(i) = sum(j, A(i,j))", {"A": math.inf}, math.inf),
    ("y(i) = xor(j, A(i,j))", {"A": 1}, None),
    ("y(i) = any(j, A(i,j))", {"A": 0}, False),
    ("y(i) = all(j, A(i,j))", {"A": 0}, False),
    ("y(i) = sum({j}, 0)", {}, None),
    ("y(i) = -(A(i) - B(i)) * 2", {"A": 1, "B": 3}, 4.0),
]


@pytest.mark.parametrize(("text", "fills", "expected"), FILLS, ids=[f"{text} {fills}" for text, fills, _ in FILLS])
def test_fill(text: str, fills: dict[str, float], expected: float | None) -> None:
    found = fill_of(declared(text, **fills).rhs)
    assert (found, type(found)) == (expected, type(expected))


def test_fill_under_a_semiring() -> None:
    sparse = {"A": TensorVar("A", 2, csf(2), fill=math.inf)}
    closed = close_over(declare(parse("y(i) = A(i,j) * x(j)").assign, sparse), SEMIRINGS["min_plus"])
    assert fill_of(closed.rhs) == math.inf
