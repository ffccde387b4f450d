"""Element-wise functions that NumPy computes on stored values, and operators on integers, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from surface.against_numpy import check

import sparseloom as sl
from sparseloom.core.errors import DTypeError, NotationError, ShapeError

SHAPES = {"A": (6, 5), "B": (6, 5), "P": (6, 5), "T": (3, 4, 5), "R": (5,), "C": (6, 1), "N": ()}
WHOLE = ("int64", "int8", "uint16")
NUMBERS = [
    "xp.round(A)", "A.round(1)", "xp.rint(A)", "xp.arcsinh(A)", "xp.arctanh(A)", "xp.arccosh(P)", "xp.signbit(A)", "xp.fabs(A)",
    "xp.deg2rad(A)", "xp.heaviside(A, 0)", "xp.heaviside(A, B)", "xp.copysign(A, B)", "xp.fmax(A, B)", "xp.fmin(A, R)",
    "xp.logaddexp(A, B)", "A // 2", "A % 3", "A // P", "P // 2", "7 // P", "A % P", "xp.remainder(A, 3)", "xp.floor_divide(A, 2)",
    "divmod(A, 2)", "xp.fmod(A, 3)", "xp.nan_to_num(A)", "xp.allclose(A, A)", "xp.allclose(A, B)", "xp.array_equal(A, A)",
    "xp.array_equal(A, R)", "xp.isin(A, [1, 2])", "xp.isin(A, [0, 2], invert=True)", "xp.positive(A)", "xp.angle(A)",
]  # fmt: skip
BITS = [
    "A & B", "A | B", "A ^ B", "~A", "A & 1", "A | 1", "1 ^ A", "A << 1", "A >> 1", "A & R", "xp.bitwise_and(A, C)",
    "xp.bitwise_xor(A, B)", "xp.left_shift(A, 2)", "xp.gcd(A, B)", "T & T", "A << (B & 1)",
]  # fmt: skip
# Kernels are compiled for these, so each runs on one dtype.
COMPILED = [
    "xp.clip(A, -1, 1)", "A.clip(0, 2)", "xp.clip(A, 1, 2)", "xp.where(A > 0, A, 0)", "xp.fix(A)", "xp.isclose(A, B)", "xp.diff(A)",
    "xp.diff(A, n=2, axis=0)",
]  # fmt: skip


def test_numbers_as_in_numpy(rng: np.random.Generator) -> None:
    check(rng, NUMBERS, SHAPES, ("float64", "int64"))
    check(rng, [case for case in NUMBERS if not set("/%").intersection(case)], SHAPES, ("float32",))
    assert sl.rint(sl.asarray(np.int8([1, 2]))).dtype == np.float64  # of integers, in float64, as kernels compute


def test_bits_as_in_numpy(rng: np.random.Generator) -> None:
    check(rng, BITS, SHAPES, WHOLE)


def test_choices_as_in_numpy(rng: np.random.Generator) -> None:
    check(rng, COMPILED, SHAPES, ("float64",))


def test_truth_values_are_stored_where_they_are_true(rng: np.random.Generator) -> None:
    a = sl.random((20, 20), 0.3, "csr", seed=1)
    assert ((a != a).nnz, (a > 0.5).nnz, (a < 0).nnz) == (0, int((a.to_numpy() > 0.5).sum()), 0)
    assert (np.isnan(a).nnz, np.signbit(a).nnz, sl.isin(a, [7.0]).nnz) == (0, 0, 0)
    assert (sl.evaluate("C(i,j) = A(i,j) != A(i,j)", A=a)).nnz == a.nnz  # a statement stores what its operands store


def test_what_is_sparse_stays_sparse() -> None:
    a = sl.random((6, 5), 0.3, "csr", seed=1, dtype=int)
    for made in (a // 2, a % 3, a & 1, a | a, a << 1, a.round(), sl.arcsinh(a), a // np.arange(1, 6), a & np.ones((6, 5), int), sl.diff(a)):
        assert str(made.format) == "csr", made
    assert str((a | 1).format) == str((~a).format) == "dense(2)"  # not zero where nothing is stored
    huge = sl.from_coo([[0, 10**9], [1, 2]], [3, 5], shape=(2**40, 2**20), format="dcsr")
    assert sl.allclose(huge, huge) and sl.array_equal(huge, huge + huge - huge)
    assert (huge // 2).nnz == 2 and (huge & (huge * 2)).nnz == 2


def test_ufuncs_write_to_out(rng: np.random.Generator) -> None:
    a = sl.random((6, 5), 0.5, "csr", seed=1)
    x, out = a.to_numpy(), np.full((6, 5), 9.0)
    assert np.multiply(a, 2, out=out) is out
    np.testing.assert_array_equal(out, 2 * x)
    np.add(a, 1, out=out, where=x > 0.5)
    np.testing.assert_array_equal(out, np.where(x > 0.5, x + 1, 2 * x))
    target = sl.zeros((6, 5))
    np.sin(a, out=target)
    np.testing.assert_allclose(target.to_numpy(), np.sin(x))
    assert np.add(a, a, dtype=np.float32).dtype == np.float32
    with pytest.raises(DTypeError, match="out= cannot hold the result"):
        np.multiply(a, 2, out=np.zeros((6, 5), int))
    with pytest.raises(ShapeError, match="out= cannot hold the result"):
        np.multiply(a, 2, out=np.zeros((5, 6)))
    with pytest.raises(DTypeError, match="out= cannot hold the result"):
        np.multiply(a, 2, out="x")
    with pytest.raises(DTypeError, match="without out="):
        np.add(a, 1, where=x > 0)
    assert np.multiply(a, 2, out=a) is a
    np.testing.assert_array_equal(a.to_numpy(), 2 * x)


def test_functions_that_are_refused() -> None:
    i, j = sl.indices("i j")
    a = sl.random((6, 5), 0.5, "csr", seed=1)
    with pytest.raises(NotationError, match="heaviside is not offered in index notation"):
        sl.heaviside(a[i, j], 1)
    with pytest.raises(DTypeError, match="bitwise_and is not defined on these dtypes"):
        a & 1
    with pytest.raises(TypeError):
        a // "text"
