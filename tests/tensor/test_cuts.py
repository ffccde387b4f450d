"""Parts of tensors that are cut out level by level: every format, compared with NumPy, and made of arrays that a level accepts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import sparseloom as sl
from sparseloom.interop.arrays import arrays_of, storage_of
from sparseloom.tensor import Tensor

FORMATS = {
    1: ("s",),
    2: ("csr", "csc", "coo", "dcsr", "dcsc"),
    3: ("csf", "coo", "dss", "dds", "ssd", "sss:2,0,1", "uqq:1,0,2", "dsd", "sds"),
    4: ("csf", "coo", "ddss"),
}
SHAPES = ((7, 9), (1, 5), (6, 0), (4, 5, 6), (3, 1, 4, 5), (12,))
CASES = [(shape, format) for shape in SHAPES for format in FORMATS[len(shape)]]


def numbers(shape: tuple[int, ...], density: float, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(shape) < density, rng.integers(1, 9, shape), 0).astype(float)


def check(part: Tensor, expected: np.ndarray) -> None:
    """The same numbers, in arrays that keep the format's promises; no coordinate is stored with nothing below it."""
    assert part.shape == expected.shape
    np.testing.assert_array_equal(part.to_numpy(), expected)
    storage = part.storage
    if not storage.format.is_dense:
        storage_of(storage.format, storage.shape, {name: array.copy() for name, array in arrays_of(storage).items()}, storage.fill)
        again = sl.from_arrays("s" * part.ndim, part.shape, arrays_of(part.to("s" * part.ndim).storage)) if part.ndim else part
        assert again.nnz == part.to("s" * part.ndim).nnz


def keys(shape: tuple[int, ...], count: int, rng: np.random.Generator) -> list[tuple[object, ...]]:
    slices = [np.s_[:], np.s_[1:3], np.s_[::2], np.s_[::-1], np.s_[2:2], np.s_[5:1:-2], np.s_[1:100:3], np.s_[-2:]]
    every = list(itertools.product(*((*slices, *((0, size - 1, size // 2) if size else ())) for size in shape)))
    return [every[k] for k in rng.permutation(len(every))[:count]]


@pytest.mark.parametrize(("shape", "format"), CASES)
def test_integers_and_slices(shape: tuple[int, ...], format: str, rng: np.random.Generator) -> None:
    for density in (0, 0.1, 0.5, 1):
        dense = numbers(shape, density, rng)
        tensor = sl.asarray(dense).to(format)
        for key in keys(shape, 25, rng):
            expected, found = dense[key], tensor[key]
            if np.ndim(expected):
                check(found, expected)
            else:
                assert found == expected, (key, format)


@pytest.mark.parametrize("format", FORMATS[3][:6])
def test_what_is_not_stored_is_the_fill_of_the_part(format: str, rng: np.random.Generator) -> None:
    dense = np.where(rng.random((4, 5, 6)) < 0.5, 7.0, -1.0)
    tensor = sl.from_coo(np.array(np.nonzero(dense > 0)), 7.0, (4, 5, 6), format, -1.0)
    for key in (np.s_[1], np.s_[:, 2], np.s_[1:3, ::2, 4], np.s_[0, 0, 0], np.s_[3, 4, 5]):
        np.testing.assert_array_equal(tensor[key].to_numpy() if np.ndim(dense[key]) else tensor[key], dense[key])


@pytest.mark.parametrize(("shape", "format"), CASES)
def test_dropping_zeros_leaves_no_coordinate_with_nothing_below_it(shape: tuple[int, ...], format: str, rng: np.random.Generator) -> None:
    tensor = sl.asarray(numbers(shape, 0.6, rng)).to(format).copy()
    values = tensor.arrays["values"]
    values[::3] = 0
    values[: len(values) // 2] = 0
    made = tensor.to(format, drop_zeros=True)
    check(made, tensor.to_numpy())
    if not made.format.levels[-1].full:
        assert made.nnz == np.count_nonzero(tensor.to_numpy())


def test_a_part_does_not_change_with_the_tensor_nor_the_other_way_round(rng: np.random.Generator) -> None:
    dense = numbers((4, 5, 6), 0.5, rng)
    tensor = sl.asarray(dense).to("csf")
    part, row = tensor[1:3], tensor[2]
    part.arrays["values"][:] = 99
    np.testing.assert_array_equal(tensor.to_numpy(), dense)
    tensor.arrays["values"][:] = 55
    np.testing.assert_array_equal(row.to_numpy(), dense[2])


def test_coordinates_beyond_the_width_of_indices() -> None:
    tensor = sl.from_coo([[0, 2**40], [1, 5]], [1.0, 2.0], (2**41, 2**33), "dcsr")
    assert tensor[2**40, 5] == 2.0
    assert tensor[2**40 : 2**40 + 4, 2:9].nnz == 1
    assert tensor[2**39 :, : 2**32].nnz == 1
