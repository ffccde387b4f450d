"""python-graphblas: matrices and vectors are copied in and out."""

from __future__ import annotations

import graphblas as gb
import numpy as np
import pytest

import sparseloom as sl

A = np.array([[1.0, 0, 2], [0, 3, 0]])


def test_matrices_and_vectors_are_read() -> None:
    matrix = gb.Matrix.from_coo([0, 0, 1], [0, 2, 1], [1.0, 2.0, 3.0], nrows=2, ncols=3)
    tensor = sl.asarray(matrix)
    assert tensor.format == sl.csr and tensor.notes == ("copied from GraphBLAS, which keeps its arrays to itself",)
    np.testing.assert_array_equal(tensor.to_numpy(), A)
    same = gb.Matrix.from_coo([0, 1], [2, 0], 7, nrows=2, ncols=3)
    np.testing.assert_array_equal(sl.asarray(same).to_numpy(), [[0, 0, 7], [7, 0, 0]])
    np.testing.assert_array_equal(sl.asarray(gb.Vector.from_coo([1], [2.0], size=3)).to_numpy(), [0, 2, 0])


def test_tensors_are_given_out() -> None:
    for format in ("csr", "csc", "coo", "dense"):
        given = sl.asarray(A, format=format).to_graphblas()
        np.testing.assert_array_equal(given.to_dense(0.0), A)
    row = sl.asarray(A, format="csr")[0].to_graphblas()
    assert (row.size, row.nvals) == (3, 2)
    np.testing.assert_array_equal(row.to_dense(0.0), A[0])
    with pytest.raises(sl.StorageError, match="in GraphBLAS absent entries have no value, and here they are 1"):
        sl.full((2, 3), 1.0, "csr").to_graphblas()
    with pytest.raises(sl.FormatError, match="this tensor has 3 modes"):
        sl.zeros((2, 2, 2), "csf").to_graphblas()
