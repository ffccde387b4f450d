"""Our arrays are SciPy's arrays, and what need not be copied is shared."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from sparseloom.formats.named import bcsr, coo, csc, csr, dcsr, dense
from sparseloom.formats.pack import convert, from_dense, pack, to_dense
from sparseloom.formats.text import parse_format


@pytest.fixture(params=range(5))
def matrix(request):
    rng = np.random.default_rng(request.param)
    shape = (6 * int(rng.integers(1, 9)), 6 * int(rng.integers(1, 9)))
    count = int(rng.integers(0, shape[0] * shape[1]))
    coordinates = np.stack([rng.integers(0, size, count) for size in shape])
    summed = sp.coo_array((rng.integers(1, 9, count).astype(float), tuple(coordinates)), shape)
    return summed, coordinates, summed.data.copy()


@pytest.mark.parametrize(("format", "name"), [(csr, "csr"), (csc, "csc")])
def test_csr_and_csc_are_scipys(matrix, format, name):
    theirs, coordinates, values = matrix
    theirs = theirs.asformat(name)
    theirs.sort_indices()
    ours = pack(format, theirs.shape, coordinates, values)
    np.testing.assert_array_equal(ours.levels[1].arrays["pos"], theirs.indptr)
    np.testing.assert_array_equal(ours.levels[1].arrays["crd"], theirs.indices)
    np.testing.assert_array_equal(ours.values, theirs.data)


def test_coo_is_scipys(matrix):
    theirs, coordinates, values = matrix
    theirs.sum_duplicates()
    order = np.lexsort(theirs.coords[::-1])
    ours = pack(coo(), theirs.shape, coordinates, values)
    np.testing.assert_array_equal(ours.levels[0].arrays["crd"], theirs.coords[0][order])
    np.testing.assert_array_equal(ours.levels[1].arrays["crd"], theirs.coords[1][order])
    np.testing.assert_array_equal(ours.values, theirs.data[order])


@pytest.mark.parametrize("block", [(1, 1), (2, 3), (6, 2)])
def test_bcsr_is_scipys(matrix, block):
    theirs, coordinates, values = matrix
    theirs = theirs.tocsr().tobsr(block)
    theirs.sort_indices()
    ours = pack(bcsr(block), theirs.shape, coordinates, values)
    np.testing.assert_array_equal(ours.levels[1].arrays["pos"], theirs.indptr)
    np.testing.assert_array_equal(ours.levels[1].arrays["crd"], theirs.indices)
    np.testing.assert_array_equal(ours.values, theirs.data.ravel())


def test_what_need_not_be_copied_is_shared(matrix):
    theirs, coordinates, values = matrix
    rows = pack(csr, theirs.shape, coordinates, values)
    assert convert(rows, csr) is rows
    for format in (coo(), dcsr, parse_format("us")):
        other = convert(rows, format)
        back = convert(other, csr)
        for storage in (other, back):
            assert storage.values is rows.values or np.shares_memory(storage.values, rows.values) or not len(rows.values)
            assert np.shares_memory(storage.levels[-1].arrays["crd"], rows.levels[1].arrays["crd"]) or not len(rows.values)
    weaker = convert(rows, parse_format("ds~"))
    assert weaker.levels is rows.levels
    assert str(weaker.format) == "ds~"


def test_dense_arrays_are_shared_in_their_own_order():
    array = np.arange(6.0).reshape(2, 3)
    storage = from_dense(array, dense(2))
    assert np.shares_memory(storage.values, array)
    assert np.shares_memory(to_dense(storage), array)
    columns = parse_format("dd:1,0")
    assert np.shares_memory(from_dense(np.asfortranarray(array), columns).values, array) is False
    turned = convert(storage, columns)
    assert turned.values.tolist() == [0, 3, 1, 4, 2, 5]
    fortran = np.asfortranarray(array)
    assert np.shares_memory(from_dense(fortran, columns).values, fortran)


def test_the_users_arrays_are_not_changed():
    coordinates, values = np.array([[1, 0, 1], [0, 1, 0]], np.int32), np.array([1.0, 2.0, 3.0])
    before = coordinates.copy(), values.copy()
    coordinates.flags.writeable = values.flags.writeable = False
    for format in (csr, coo(), dense(2), bcsr(2)):
        assert to_dense(pack(format, (2, 2), coordinates, values)).tolist() == [[0, 2], [4, 0]]
    np.testing.assert_array_equal(coordinates, before[0])
    np.testing.assert_array_equal(values, before[1])
