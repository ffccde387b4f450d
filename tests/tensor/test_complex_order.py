"""Complex numbers in NumPy's order: compared, the larger of two, the largest along modes, and where it is."""

from __future__ import annotations

import numpy as np
import pytest

import sparseloom as sl

FORMATS = [("csr", "csr"), ("dense", "coo"), ("csc", "dense"), ("dense", "dense")]
pytestmark = pytest.mark.filterwarnings("ignore:invalid value")  # NumPy's, of NaN
OPERATORS = "maximum minimum less less_equal greater greater_equal".split()


def numbers(rng: np.random.Generator, dtype: str) -> np.ndarray:
    """Small parts, so that real parts are often equal; NaN in either part of some."""
    values = rng.integers(-1, 2, (4, 5)) * (rng.random((4, 5)) < 0.7)
    if not dtype.startswith("complex"):
        return values.astype(dtype)
    made = (values + 1j * rng.integers(-1, 2, (4, 5)) * (values != 0)).astype(dtype)
    made[0, :3] = np.nan, complex(1, np.nan), complex(np.nan, 1)
    return made


def same(found: object, expected: object) -> None:
    values = found.to_numpy() if isinstance(found, sl.Tensor) else np.asarray(found)
    assert values.dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("dtypes", [("complex128", "complex128"), ("bool", "complex64"), ("complex64", "int64")], ids=str)
def test_pairs(rng: np.random.Generator, op: str, dtypes: tuple[str, str]) -> None:
    a, b = (numbers(rng, dtype) for dtype in dtypes)
    for one, other in FORMATS:
        same(getattr(sl, op)(sl.asarray(a, format=one), sl.asarray(b, format=other)), getattr(np, op)(a, b))


@pytest.mark.parametrize("op", OPERATORS)
def test_beside_a_number(rng: np.random.Generator, op: str) -> None:
    a = numbers(rng, "complex128")
    real = numbers(rng, "float64")
    for number in (1j, np.complex64(1 - 1j), 0, True):
        for format in ("csr", "dense"):
            same(getattr(np, op)(sl.asarray(a, format=format), number), getattr(np, op)(a, number))
    same(getattr(np, op)(sl.asarray(real, format="csr"), 1j), getattr(np, op)(real, 1j))


@pytest.mark.parametrize("name", "max min nanmax nanmin argmax argmin".split())
@pytest.mark.parametrize("format", ["csr", "coo", "dense"])
def test_reductions(rng: np.random.Generator, name: str, format: str) -> None:
    for a in (numbers(rng, "complex128"), np.nan_to_num(numbers(rng, "complex64"))):
        for axis in (None, 0, 1):
            same(getattr(np, name)(sl.asarray(a, format=format), axis=axis), getattr(np, name)(a, axis=axis))


def test_the_largest_of_nothing_is_refused() -> None:
    with pytest.raises(sl.ShapeError, match="no entries: the largest value"):
        sl.asarray(np.zeros((0, 3), complex), format="csr").max(axis=0)
