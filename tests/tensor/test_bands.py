"""Banded matrices: SciPy's dia_array comes in and goes out without a copy, and is computed with as it is."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import sparseloom as sl

SHAPES = [(3, 4), (4, 3), (6, 2), (2, 7), (5, 5), (0, 3), (3, 0)]
OFFSETS = np.array([-5, -2, 0, 1, 6])


def bands(shape: tuple[int, int], width: int) -> sp.dia_array:
    data = np.arange(1.0, 1 + len(OFFSETS) * width).reshape(len(OFFSETS), width)
    return sp.dia_array((data, OFFSETS), shape=shape)


def test_arrays_are_shared_both_ways() -> None:
    matrix = bands((5, 5), 5)
    tensor = sl.asarray(matrix)
    assert tensor.format == sl.dia
    assert np.shares_memory(tensor.arrays["values"], matrix.data)
    assert np.shares_memory(tensor.arrays["offsets1"], matrix.offsets)
    again = tensor.to_scipy()
    assert isinstance(again, sp.dia_array)
    assert np.shares_memory(again.data, matrix.data)
    assert np.shares_memory(again.offsets, matrix.offsets)
    np.testing.assert_array_equal(again.toarray(), matrix.toarray())


@pytest.mark.parametrize("target", ["interpret", "c"])
@pytest.mark.parametrize("width", [1, 3, 8])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_band_is_read_and_written(shape: tuple[int, int], width: int, target: str) -> None:
    matrix = bands(shape, width)
    dense, x = matrix.toarray(), np.arange(1.0, 1 + shape[1])
    np.testing.assert_array_equal(sl.asarray(matrix).to_numpy(), dense)
    formats = {"A": "dia", "R": "dia"}
    product = sl.program("y(i) = A(i,j) * x(j)", formats={"A": "dia"}, target=target)(matrix, x)
    np.testing.assert_array_equal(product.to_numpy(), dense @ x)
    scaled = sl.program("R(i,j) = 2 * A(i,j)", formats=formats, target=target)(matrix)
    np.testing.assert_array_equal(scaled.to_numpy(), 2 * dense)
    moved = sl.program("R(j,i) = A(i,j)", formats=formats, target=target)(matrix)
    assert moved.format == sl.dia
    np.testing.assert_array_equal(moved.to_numpy(), dense.T)


@pytest.mark.parametrize(
    "schedule",
    [
        "pos(j,p,A(i,j))",
        "split(j,j0,j1,3) pos(j1,p,A(i,j))",
        "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,4)",
        "fuse(i,j,f) split(f,f0,f1,7) pos(f1,p,A(i,j))",
        "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,3) reorder(p1,p0)",
        "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,4) parallelize(p0,CPUThread,Atomics)",
    ],
)
@pytest.mark.parametrize("target", ["interpret", "c"])
def test_a_band_under_a_schedule(schedule: str, target: str) -> None:
    kernel = sl.program("y(i) = A(i,j) * x(j)", formats={"A": "dia"}, schedule=schedule, target=target)
    for shape in SHAPES[:5]:
        matrix, x = bands(shape, 3), np.arange(1.0, 1 + shape[1])
        np.testing.assert_array_equal(kernel(matrix, x).to_numpy(), matrix.toarray() @ x)


def test_unsorted_diagonals_are_sorted_in_a_copy() -> None:
    matrix = sp.dia_array((np.arange(8.0).reshape(2, 4), [1, -1]), shape=(4, 4))
    with pytest.warns(sl.ConversionWarning, match="its diagonals are not sorted"):
        tensor = sl.asarray(matrix)
    np.testing.assert_array_equal(tensor.to_numpy(), matrix.toarray())
    assert matrix.offsets.tolist() == [1, -1]


def test_diagonals_that_repeat_are_refused() -> None:
    matrix = sp.dia_array((np.ones((2, 3)), [0, 1]), shape=(3, 3))
    matrix.offsets[1] = 0
    with pytest.raises(sl.StorageError, match="the offsets of diagonals must differ from each other"):
        sl.asarray(matrix)


def test_a_changed_offset_is_seen() -> None:
    matrix = sp.dia_array((np.ones((2, 3)), [0, 1]), shape=(3, 3))
    tensor = sl.asarray(matrix)
    matrix.offsets[1] = 0
    with pytest.raises(sl.StorageError, match="offsets\\[1\\] = 0 repeats offsets\\[0\\]; diagonals must differ"):
        sl.evaluate("y(i) = A(i,j)", A=tensor)
