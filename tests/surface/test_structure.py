"""Functions that move entries, on every format whose levels they work on, beside NumPy: values, shapes, dtypes, and operands left alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparseloom as sl
from sparseloom.tensor import Tensor

FORMATS = {1: ("s", "dense"), 2: ("csr", "csc", "coo", "dcsr", "dcsc"), 3: ("csf", "coo", "dss", "sss:2,0,1"), 4: ("csf", "ddss")}
SHAPES = ((7, 9), (9, 7), (1, 5), (6, 0), (0, 3), (4, 6, 6), (2, 3, 4, 5), (8,))
CASES = [(shape, format, density) for shape in SHAPES for format in FORMATS[len(shape)] for density in (0.0, 0.3, 1.0)]


def made(shape: tuple[int, ...], format: str, density: float, rng: np.random.Generator) -> tuple[Tensor, np.ndarray]:
    dense = np.where(rng.random(shape) < density, rng.integers(1, 9, shape), 0).astype(float)
    return sl.asarray(dense).to(format), dense


def same(found: Tensor, expected: Any) -> None:
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.to_numpy(), expected)


@pytest.mark.parametrize(("shape", "format", "density"), CASES)
def test_moved_entries(shape: tuple[int, ...], format: str, density: float, rng: np.random.Generator) -> None:
    tensor, dense = made(shape, format, density, rng)
    for axis in range(len(shape)):
        same(sl.flip(tensor, axis), np.flip(dense, axis))
        for by in (-100, -1, 0, 3):
            same(sl.roll(tensor, by, axis), np.roll(dense, by, axis))
        for others in ((tensor,), (tensor, tensor.astype(int), tensor)):
            arrays = [other.to_numpy() for other in others]
            same(sl.concatenate(others, axis), np.concatenate(arrays, axis))
            same(sl.stack(others, axis), np.stack(arrays, axis))
    same(sl.flip(tensor), np.flip(dense))
    assert tensor.count_nonzero() == np.count_nonzero(dense)
    for function in (lambda x: sl.flip(x, 0), lambda x: sl.roll(x, 0, 0), lambda x: sl.expand_dims(x, 0), lambda x: sl.concatenate([x], 0)):
        if (result := function(tensor)).nnz:
            result.arrays["values"][:] = 77
    np.testing.assert_array_equal(tensor.to_numpy(), dense)


@pytest.mark.parametrize(("shape", "format", "density"), [case for case in CASES if len(case[0]) > 1])
def test_triangles_and_diagonals(shape: tuple[int, ...], format: str, density: float, rng: np.random.Generator) -> None:
    tensor, dense = made(shape, format, density, rng)
    for k in (-3, -1, 0, 2, 60):
        same(sl.tril(tensor, k), np.tril(dense, k))
        same(sl.triu(tensor, k), np.triu(dense, k))
        for axes in ((0, 1), (1, 0)):
            same(sl.diagonal(tensor, k, *axes), np.diagonal(dense, k, *axes))
    assert sl.tril(tensor, -(2**40)).nnz == 0


@pytest.mark.parametrize("left", FORMATS[2])
@pytest.mark.parametrize("right", ["csr", "csc", "coo", "dense"])
@pytest.mark.parametrize("dtype", ["float64", "int32", "bool", "complex128"])
def test_kron(left: str, right: str, dtype: str, rng: np.random.Generator) -> None:
    for shape, other in (((4, 5), (3, 2)), ((1, 3), (2, 2)), ((3, 0), (2, 2)), ((20, 20), (5, 4))):
        (a, first), (b, second) = made(shape, left, 0.4, rng), made(other, right, 0.6, rng)
        a, b, first, second = a.astype(dtype), b.astype(dtype), first.astype(dtype), second.astype(dtype)
        same(sl.kron(a, b), np.kron(first, second))
        same(sl.kron(b, a), np.kron(second, first))


@pytest.mark.parametrize("format", FORMATS[2])
def test_rows_put_behind_each_other(format: str, rng: np.random.Generator) -> None:
    tensor, dense = made((12, 5), format, 0.4, rng)
    for shape in ((6, 10), (4, 15), (1, 60), (12, 5), (3, -1), (20, 3), (60,), (2, 3, 10)):
        same(sl.reshape(tensor, shape), dense.reshape(shape))


@pytest.mark.parametrize(("shape", "format", "density"), CASES)
def test_masks_that_are_tensors(shape: tuple[int, ...], format: str, density: float, rng: np.random.Generator) -> None:
    tensor, dense = made(shape, format, density, rng)
    same(tensor[tensor > 3], dense[dense > 3])
    mask = rng.random(shape) < 0.4
    same(tensor[sl.asarray(mask).to(format)], dense[mask])
    assert tensor[tensor > 3].format == tensor[dense > 3].format


def test_a_mask_that_is_true_where_nothing_is_stored() -> None:
    tensor = sl.from_coo([[1], [2]], [5.0], (3, 4), "csr", 1.0)
    dense = tensor.to_numpy()
    same(tensor[tensor == 1], dense[dense == 1])
    same(tensor[tensor != 0], dense[dense != 0])
