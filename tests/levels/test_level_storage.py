"""The storage that each level's docstring draws."""

from __future__ import annotations

import numpy as np
import pytest

from sparseloom.formats.level import Level
from sparseloom.formats.levels import Bitmap, Compressed, Dense, Offset, Padded, Singleton
from sparseloom.formats.named import bcsr, coo, csc, csf, csr, dcsr, ell
from sparseloom.formats.pack import pack, to_dense

INT32 = np.dtype(np.int32)
PARENTS, COORDINATES = np.array([0, 0, 2, 2, 2]), np.array([1, 4, 0, 2, 3])


def packed(level: Level, parents: np.ndarray, coordinates: np.ndarray, size: int, parent_count: int):
    """The arrays and scalars as lists, the positions as a list, and their number."""
    data, positions, count = level.pack(parents, coordinates, size, parent_count, INT32)
    return {name: array.tolist() for name, array in data.arrays.items()} | data.scalars, positions.tolist(), count


def test_dense_stores_nothing_and_computes_positions():
    assert packed(Dense(), np.array([0, 1, 1]), np.array([3, 0, 2]), 4, 2) == ({}, [3, 4, 6], 8)


def test_compressed_stores_segments():
    drawn = {"pos": [0, 2, 2, 5], "crd": [1, 4, 0, 2, 3]}
    assert packed(Compressed(), PARENTS, COORDINATES, 5, 3) == (drawn, [0, 1, 2, 3, 4], 5)


def test_singleton_stores_one_coordinate_per_parent():
    assert packed(Singleton(), np.arange(4), np.array([1, 4, 0, 2]), 5, 4) == ({"crd": [1, 4, 0, 2]}, [0, 1, 2, 3], 4)


def test_padded_stores_places_of_one_width():
    drawn = {"len": [2, 0, 3], "crd": [1, 4, 0, 0, 0, 0, 0, 2, 3], "width": 3}
    assert packed(Padded(), PARENTS, COORDINATES, 5, 3) == (drawn, [0, 1, 6, 7, 8], 9)


def test_bitmap_stores_a_truth_value_per_coordinate():
    drawn = {"present": [False, True, False, True, True, False, False, False]}
    assert packed(Bitmap(), np.array([0, 0, 1]), np.array([1, 3, 0]), 4, 2) == (drawn, [1, 3, 4], 8)


def test_offset_stores_diagonals():
    parents, coordinates = np.array([0, 0, 1, 1, 1, 2, 2, 2]), np.array([0, 1, 0, 1, 2, 1, 2, 3])
    drawn = {"offsets": [-1, 0, 1], "diagonals": 3, "width": 4}
    assert packed(Offset(), parents, coordinates, 4, 3) == (drawn, [4, 9, 0, 5, 10, 1, 6, 11], 12)


@pytest.mark.parametrize("level", [Dense(), Compressed(), Padded(), Bitmap(), Offset()], ids=lambda level: level.letter)
def test_unpacking_gives_parents_and_coordinates(level):
    data, positions, count = level.pack(PARENTS, COORDINATES, 5, 3, INT32)
    parents, coordinates = level.unpack(data, 5, 3)
    assert level.count(data, 5, 3) == count == len(parents) == len(coordinates)
    np.testing.assert_array_equal(parents[positions], PARENTS)
    np.testing.assert_array_equal(coordinates[positions], COORDINATES)
    unused = np.setdiff1d(np.arange(count), positions)
    stored = isinstance(level, Dense | Offset)  # all of a row, or all of a diagonal, is stored with one entry of it
    assert stored or (parents[unused] == -1).all()


def arrays(format, shape, coordinates, values):
    """Every array of a packed tensor by level, and the values."""
    storage = pack(format, shape, coordinates, values)
    return [{name: array.tolist() for name, array in data.arrays.items()} for data in storage.levels], storage.values.tolist()


MATRIX = np.array([[2, 0, 2, 0], [2, 4, 0, 1]]), np.array([3.0, 1.0, 4.0, 2.0])


def test_csr_and_csc():
    assert arrays(csr, (3, 5), *MATRIX) == ([{}, {"pos": [0, 2, 2, 4], "crd": [1, 4, 0, 2]}], [2, 1, 4, 3])
    assert arrays(csc, (3, 5), *MATRIX) == ([{}, {"pos": [0, 1, 2, 3, 3, 4], "crd": [2, 0, 2, 0]}], [4, 2, 3, 1])


def test_dcsr_leaves_out_empty_rows():
    assert arrays(dcsr, (3, 5), *MATRIX) == ([{"pos": [0, 2], "crd": [0, 2]}, {"pos": [0, 2, 4], "crd": [1, 4, 0, 2]}], [2, 1, 4, 3])


def test_coo_stores_one_tuple_per_entry():
    assert arrays(coo(), (3, 5), *MATRIX) == ([{"pos": [0, 4], "crd": [0, 0, 2, 2]}, {"crd": [1, 4, 0, 2]}], [2, 1, 4, 3])


def test_csf_shares_prefixes():
    coordinates = np.array([[0, 0, 0, 2], [1, 1, 3, 0], [0, 2, 2, 1]])
    levels = [{"pos": [0, 2], "crd": [0, 2]}, {"pos": [0, 2, 3], "crd": [1, 3, 0]}, {"pos": [0, 2, 3, 4], "crd": [0, 2, 2, 1]}]
    assert arrays(csf(3), (3, 4, 3), coordinates, np.arange(4.0)) == (levels, [0, 1, 2, 3])


def test_ell_fills_unused_places():
    storage = pack(ell, (3, 5), *MATRIX, fill=9.0)
    assert storage.values.tolist() == [2, 1, 9, 9, 4, 3]
    assert storage.levels[1].scalars == {"width": 2}


def test_bcsr_fills_ragged_blocks():
    storage = pack(bcsr((2, 3)), (3, 5), *MATRIX, fill=7.0)
    assert storage.levels[1].arrays["crd"].tolist() == [0, 1, 0]
    assert storage.values.reshape(-1, 2, 3).tolist() == [[[7, 2, 7], [7, 7, 7]], [[7, 1, 7], [7, 7, 7]], [[4, 7, 3], [7, 7, 7]]]
    np.testing.assert_array_equal(to_dense(storage), to_dense(pack(csr, (3, 5), *MATRIX, fill=7.0)))
