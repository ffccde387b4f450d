"""Statements of the values alone run in one loop over the entries, whatever levels stand above, and share the structure."""

from __future__ import annotations

import numpy as np
import pytest

import sparseloom as sl
from sparseloom.tensor import Tensor

FORMATS = ("csr", "csc", "coo", "dcsr", "dcsc", "csf")
SIZE = 300


@pytest.fixture(scope="module")
def values() -> np.ndarray:
    rng = np.random.default_rng(5)
    dense = np.where(rng.random((SIZE, SIZE)) < 0.4, rng.integers(1, 9, (SIZE, SIZE)), 0).astype(float)
    dense[SIZE // 2 :: 7] = 0
    return dense


def flat(kernel: object) -> bool:
    return "one loop over the entries" in kernel.explain()  # type: ignore[attr-defined]


@pytest.mark.parametrize("format", FORMATS)
def test_a_map_is_one_loop_and_shares_the_structure(values: np.ndarray, format: str) -> None:
    A = sl.asarray(values).to(format)
    kernel = sl.program("C(i,j) = 2.5 * A(i,j) + A(i,j) * A(i,j)", formats={"A": format, "C": format})
    made = kernel(A)
    assert flat(kernel)
    assert made.format == A.format
    np.testing.assert_array_equal(made.to_numpy(), 2.5 * values + values * values)
    assert all(mine is theirs for mine, theirs in zip(made.storage.indices, A.storage.indices, strict=True))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32"])
def test_a_full_reduction_is_one_loop(values: np.ndarray, format: str, dtype: str) -> None:
    A = sl.asarray(values.astype(dtype)).to(format)
    kernel = sl.program("s = A(i,j) * A(i,j)", formats={"A": format})
    assert kernel(A).item() == (values.astype(dtype) ** 2).sum()
    assert flat(kernel)


def test_a_tensor_of_order_three(values: np.ndarray) -> None:
    dense = values.reshape(SIZE // 10, 10, SIZE)
    T = sl.asarray(dense).to("csf")
    made = sl.evaluate("C(i,j,k) = -T(i,j,k)", T=T)
    assert made.format == T.format
    np.testing.assert_array_equal(made.to_numpy(), -dense)


@pytest.mark.parametrize(
    "statement",
    ("C(i,j) = A(i,j) * x(j)", "C(i,j) = A(i,j) + A(j,i)", "C(i,j) = A(i,j) + 1", "y(i) = A(i,j)", "s = max({i,j}, A(i,j) * x(j))"),
)
def test_what_needs_coordinates_is_no_such_loop(values: np.ndarray, statement: str) -> None:
    x = np.arange(float(SIZE))
    kernel = sl.program(statement, formats={"A": "csr"})
    operands = (sl.asarray(values).to("csr"), x) if "* x(" in statement else (sl.asarray(values).to("csr"),)
    kernel(*operands)
    assert not flat(kernel)


def test_the_same_bits_for_every_number_of_threads(values: np.ndarray) -> None:
    A = sl.asarray(np.sin(values)).to("csr")
    before, found = sl.get_threads(), set()
    for threads in (1, 2, 3):
        sl.set_threads(threads)
        found.add(float(sl.evaluate("s = A(i,j) * A(i,j)", A=A).item()))
    sl.set_threads(before)
    assert len(found) == 1


@pytest.mark.parametrize("name", ["exp", "expm1", "log1p", "sin", "tan", "tanh", "arctan", "cbrt", "log2"])
def test_functions_of_values_are_within_four_units_wherever_a_value_stands(name: str, rng: np.random.Generator) -> None:
    given = np.abs(rng.standard_normal(1003)) + 0.1
    A = Tensor(sl.asarray(given.reshape(17, 59)).to("csr").storage)
    function = getattr(np, name)
    made = function(A)
    exact = function(given.astype(np.longdouble)).astype(float)
    found = made.to_numpy().ravel()
    assert (np.abs(found - exact) <= 4 * np.spacing(np.abs(exact))).all()
    for place in (0, 1, 500, 1002):
        assert function(sl.asarray(given[place:]).to("s")).to_numpy()[0] == found[place]


@pytest.mark.parametrize("format", ["csr", "coo", "dense"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "complex64"])
def test_functions_of_values_keep_dtypes_and_leave_the_operand_alone(format: str, dtype: str) -> None:
    dense = np.array([[0, 1, 0], [2, 0, 3]]).astype(dtype)
    A = sl.asarray(dense).to(format)
    made = np.log1p(A)
    with np.errstate(all="ignore"):
        expected = np.log1p(dense if dtype not in ("bool", "int8") else dense.astype(float))
    assert made.dtype == expected.dtype
    np.testing.assert_allclose(made.to_numpy(), expected, rtol=1e-3 if dtype == "float16" else 1e-6)
    made.arrays["values"][:] = 7
    np.testing.assert_array_equal(A.to_numpy(), dense)
