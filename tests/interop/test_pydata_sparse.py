"""PyData/Sparse: COO and GCXS over the same memory in both directions, with their fill value."""

from __future__ import annotations

import numpy as np
import sparse

import sparseloom as sl

A = np.array([[1.0, 0, 2], [0, 3, 0], [4, 0, 0]])


def test_arrays_are_read_where_they_are() -> None:
    coo = sparse.COO.from_numpy(A)
    tensor = sl.asarray(coo)
    assert tensor.format == sl.coo(2) and np.shares_memory(tensor.arrays["values"], coo.data)
    rows = sparse.GCXS.from_numpy(A, compressed_axes=(0,))
    assert sl.asarray(rows).format == sl.csr and np.shares_memory(sl.asarray(rows).arrays["crd1"], rows.indices)
    assert sl.asarray(sparse.GCXS.from_numpy(A, compressed_axes=(1,))).format == sl.csc
    cube = np.multiply.outer(A, [0, 2.0])
    for given in (coo, rows, sparse.DOK.from_numpy(A)):
        np.testing.assert_array_equal(sl.asarray(given).to_numpy(), A)
    for given in (sparse.COO.from_numpy(cube), sparse.GCXS.from_numpy(cube)):
        np.testing.assert_array_equal(sl.asarray(given).to_numpy(), cube)
    assert sl.asarray(sparse.COO.from_numpy(np.array(2.0))).item() == 2


def test_the_fill_value_is_kept_both_ways() -> None:
    holes = np.where(A == 0, np.inf, A)
    tensor = sl.asarray(sparse.COO.from_numpy(holes, fill_value=np.inf))
    assert (tensor.fill, tensor.nnz) == (np.inf, 4)
    back = tensor.to_sparse()
    assert back.fill_value == np.inf
    np.testing.assert_array_equal(back.todense(), holes)


def test_tensors_are_given_out() -> None:
    kinds = {"csr": sparse.GCXS, "csc": sparse.GCXS, "coo": sparse.COO, "dcsr": sparse.COO, "dense": sparse.COO}
    for format, kind in kinds.items():
        given = sl.asarray(A, format=format).to_sparse()
        assert isinstance(given, kind)
        np.testing.assert_array_equal(given.todense(), A)
        np.testing.assert_array_equal((given + given).todense(), 2 * A)


def test_it_stands_beside_tensors() -> None:
    tensor, given = sl.asarray(A, format="csr"), sparse.COO.from_numpy(A)
    np.testing.assert_array_equal((tensor @ given).to_numpy(), A @ A)
    np.testing.assert_array_equal((given + tensor).to_numpy(), 2 * A)
