"""Sums and products that are written out are as wide as NumPy's; implicit sums, ``einsum`` and semirings keep the dtype."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from laws.test_promotion import CASTS_TO_NOTHING, draw, orders_complex

import sparseloom as sl
from sparseloom.core.dtypes import VALUE_DTYPES
from sparseloom.core.errors import DTypeError

TARGETS = ("c", "interpret")
REDUCE = {"sum": np.sum, "prod": np.prod}
X = np.array([[0, 100, 100], [3, 0, 100], [0, 0, 100]])
i, j, jw = sl.indices("i j jw")


def same(got: sl.Tensor, expected: Any) -> None:
    expected = np.asarray(expected)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got.to_numpy(), expected)


@pytest.mark.parametrize("form", ["dense(2)", "csr", "csc", "coo"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint32", "int64", "float32"])
@pytest.mark.parametrize("word", REDUCE)
def test_a_written_reduction_has_numpys_dtype(word: str, dtype: str, form: str) -> None:
    values = X.astype(dtype)
    for target in TARGETS:
        given = {"X": sl.asarray(values).to(form)}
        same(sl.evaluate(f"y(i) = {word}(j, X(i,j))", **given, target=target), REDUCE[word](values, axis=1))
        same(sl.evaluate(f"y(j) = {word}(i, X(i,j) != 0)", **given, target=target), REDUCE[word](values != 0, axis=0))
        assert sl.evaluate("y(i) = X(i,j)", **given, target=target).dtype == values.dtype
        assert sl.evaluate("y(i) = max(j, X(i,j))", **given, target=target).dtype == values.dtype
        assert sl.evaluate("y(i) = any(j, X(i,j))", **given, target=target).dtype == np.bool_


def test_what_numpy_computes_of_the_same_text(seed: int) -> None:
    """Random expressions of mixed dtypes inside a sum or a product; those of integers are compared bit by bit."""
    compared = 0
    for number in range(60):
        case = draw(f"{seed}/sums/{number}")
        word = Random(number).choice(list(REDUCE))
        text = case.statement.replace("R(i) = ", f"R = {word}({{i}}, ") + ")"
        try:
            whole = np.broadcast_to(case.by_numpy(), (7,))
            with np.errstate(all="ignore"):
                expected = REDUCE[word](whole)
        except CASTS_TO_NOTHING:
            continue
        if expected.dtype not in VALUE_DTYPES or whole.dtype not in VALUE_DTYPES:
            continue
        try:
            got = sl.evaluate(text, **case.operands, sizes={"i": 7}, target="interpret")
        except DTypeError:
            assert orders_complex(case), str(case)
            continue
        assert got.dtype == expected.dtype, f"{text}\n{case}"
        if not any(array.dtype.kind in "fc" for array in case.operands.values()) and expected.dtype.kind in "iu":
            floats = "/" in case.text or "." in case.text or "2j" in case.text
            assert floats or got.item() == expected.item(), f"{text}\n{case}"
        compared += 1
    assert compared > 20


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint64", "float32", "float64", "complex128"])
@pytest.mark.parametrize("word", REDUCE)
def test_a_given_dtype_is_that_of_the_sum(word: str, dtype: str) -> None:
    values = np.array([100, 100, 3, 7, 100, 100, 100, 100, 100, 100, 100, 100], np.int8)
    for target in TARGETS:
        made = sl.evaluate(f"y = {word}(i, x(i))", x=values, dtype=dtype, target=target)
        np.testing.assert_allclose(made.to_numpy(), REDUCE[word](values, dtype=dtype), rtol=1e-6)
        assert made.dtype == np.dtype(dtype)
    same(sl.evaluate("y = sum(i, x(i) > 5)", x=values, dtype="int8"), np.sum(values > 5, dtype="int8"))


def test_semirings_and_einsum_keep_the_dtype() -> None:
    values = X.astype(np.int8)
    assert sl.evaluate("y(i) = sum(j, X(i,j))", X=values, semiring="min_plus").dtype == np.int8
    assert sl.evaluate("y(i) = sum(j, X(i,j))", X=values != 0, semiring="or_and").dtype == np.bool_
    same(sl.evaluate("y(i) = sum(j, X(i,j))", X=values, semiring="plus_times"), values.sum(axis=1))
    same(sl.einsum("ij->i", values), np.einsum("ij->i", values))


def test_programs_schedules_and_python_agree() -> None:
    values, x = X.astype(np.int8), np.array([1, 2, 3], np.int8)
    both = (values * x).sum(axis=1)
    same(sl.evaluate("t(i) = sum(j, X(i,j) * x(j))\ns = sum(i, t(i) != 0)", X=values, x=x), np.int64((both != 0).sum()))
    for steps in ("precompute(X(i,j) * x(j), j, jw, ws)", "precompute(sum(j, X(i,j) * x(j)), i, iw, ws)", "split(j, j0, j1, 2)"):
        for target in TARGETS:
            kernel = sl.program("y(i) = sum(j, X(i,j) * x(j))", {"X": "csr"}, steps, target=target)
            same(kernel(sp.csr_array(values), x), both)
    kernel = sl.program("y(i) = sum(j, X(i,j) * x(j))", {"X": "csr"}, "parallelize(i, CPUThread, NoRaces)")
    same(kernel(values, x), both)
    assert kernel.explain().startswith("y(i) = sum(j, as_int64(X(i,j) * x(j)))")
    y, A = sl.zeros(3, dtype="int64"), sl.asarray(values)
    y[i] = sl.sum(j, sl.not_equal(A[i, j], 0))
    same(y, (values != 0).sum(axis=1))
    y[i] += sl.prod(j, A[i, j])
    same(y, (values != 0).sum(axis=1) + values.prod(axis=1))


def test_cut_products_agree_with_whole_ones() -> None:
    rng = np.random.default_rng(5)
    A, B = (rng.integers(-100, 100, (6, 6)).astype(np.int8) for _ in range(2))
    x = rng.integers(-100, 100, 6).astype(np.int8)
    expected = (A[:, :, None] * B[None, :, :] * x).sum(axis=(1, 2))
    for optimize in (True, False):
        same(sl.evaluate("y(i) = sum({j,k}, A(i,j) * B(j,k) * x(k))", A=A, B=B, x=x, optimize=optimize), expected)
