"""``dot`` and ``mean`` as NumPy has them: beyond two modes, and in every dtype."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import sparseloom as sl
from sparseloom.core.errors import NotationError, ShapeError

SHAPES = [
    ((2, 3, 4), (5, 4, 6)), ((3,), (2, 3, 4)), ((2, 3, 4), (4,)), ((4,), (4,)), ((2, 3), (3, 2)), ((2, 3, 4), (4, 2)), ((3, 4), (2, 4, 3)),
    ((2, 2, 3, 4), (1, 4, 2)), ((0, 3, 4), (5, 4, 6)),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), SHAPES)
@pytest.mark.parametrize("formats", ["dd", "ds", "sd", "ss"])
def test_dot_sums_over_the_last_and_the_last_but_one(
    left: tuple[int, ...], right: tuple[int, ...], formats: str, rng: np.random.Generator
) -> None:
    a, b = (rng.integers(-3, 4, shape) * (rng.random(shape) < 0.6) for shape in (left, right))
    got = sl.asarray(a).to(formats[0] * a.ndim).dot(sl.asarray(b).to(formats[1] * b.ndim))
    np.testing.assert_array_equal(got.to_numpy(), np.dot(a, b))


def test_dot_of_numbers_and_of_sizes_that_disagree() -> None:
    a = sl.asarray(np.ones((2, 3, 4)))
    np.testing.assert_array_equal(a.dot(2).to_numpy(), np.full((2, 3, 4), 2.0))
    np.testing.assert_array_equal(sl.asarray(np.array(3.0)).dot(np.ones(2)).to_numpy(), [3, 3])
    with pytest.raises(ShapeError, match=r"dot of \(2, 3, 4\) and \(2, 3, 4\): the last mode of the left has size 4, but 3 is needed"):
        a.dot(np.ones((2, 3, 4)))


@pytest.mark.parametrize("wanted", [None, "bool", "int8", "uint8", "int64", "float32", "float64", "complex128"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float32"])
def test_mean_has_the_dtype_that_numpys_has(dtype: str, wanted: str | None, rng: np.random.Generator) -> None:
    a = rng.integers(0, 4, (300, 3)).astype(dtype)
    a[:200] = 0
    for axis in (None, 0, 1, (0, 1), ()):
        for tensor in (sl.asarray(a), sl.asarray(a).to("csr")):
            expected, got = a.mean(axis=axis, dtype=wanted), tensor.mean(axis=axis, dtype=wanted)
            found = np.asarray(got.to_numpy() if isinstance(got, sl.Tensor) else got)
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
            np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_mean_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isnan(sl.asarray(np.ones((0, 2))).mean())
        assert np.isnan(sl.asarray(np.ones((0, 2))).mean(axis=0).to_numpy()).all()


@pytest.mark.parametrize("labels", [[0, -1], [True, 0], [0, 52], [0.5, 1], [slice(0, 1), 0], ["i", "j"], 5])
def test_labels_that_numpy_refuses(labels: object) -> None:
    with pytest.raises(NotationError, match="must be whole numbers from 0 to 51, or Ellipsis"):
        sl.einsum(np.eye(2), labels)
