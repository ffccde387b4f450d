"""pandas: sparse frames and series stay sparse, in both directions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sparseloom as sl

A = np.array([[1.0, 0, 2], [0, 3, 0], [4, 0, 0]])


def test_sparse_frames_stay_sparse() -> None:
    tensor = sl.asarray(pd.DataFrame(A).astype(pd.SparseDtype(float, 0)))
    assert (tensor.format, tensor.nnz, tensor.fill) == (sl.csc, 4, 0)
    assert tensor.notes == ("copied from pandas, 3 of whose 3 columns are sparse",)
    np.testing.assert_array_equal(tensor.to_numpy(), A)
    holes = sl.asarray(pd.DataFrame(np.where(A == 0, np.nan, A)).astype("Sparse[float]"))
    assert holes.nnz == 4 and np.isnan(holes.fill)
    mixed = pd.DataFrame({"a": pd.arrays.SparseArray([0, 5, 0]), "b": [1, 0, 2]})
    assert (sl.asarray(mixed).nnz, sl.asarray(mixed).dtype) == (3, np.int64)
    np.testing.assert_array_equal(sl.asarray(mixed).to_numpy(), [[0, 1], [5, 0], [0, 2]])
    row = sl.asarray(pd.Series(A[0]).astype(pd.SparseDtype(float, 0)))
    assert row.nnz == 2
    np.testing.assert_array_equal(row.to_numpy(), A[0])


def test_dense_frames_are_dense_and_others_are_refused() -> None:
    np.testing.assert_array_equal(sl.asarray(pd.DataFrame(A)).to_numpy(), A)
    np.testing.assert_array_equal(sl.asarray(pd.Series(A[0])).to_numpy(), A[0])
    with pytest.raises(sl.DTypeError, match="are not supported"):
        sl.asarray(pd.DataFrame({"a": ["x"]}))
    uneven = pd.DataFrame({"a": pd.arrays.SparseArray([0, 5.0], fill_value=0.0), "b": pd.arrays.SparseArray([1.0, 2], fill_value=1.0)})
    with pytest.raises(sl.StorageError, match=r"leave out different values, 0.0 and 1.0"):
        sl.asarray(uneven)


def test_tensors_are_given_out() -> None:
    frame = sl.asarray(A, format="csr").to_pandas(index=list("abc"), columns=list("xyz"))
    assert all(isinstance(dtype, pd.SparseDtype) for dtype in frame.dtypes) and frame.loc["a", "z"] == 2
    np.testing.assert_array_equal(frame.to_numpy(), A)
    np.testing.assert_array_equal(sl.asarray(frame).to_numpy(), A)
    holes = np.where(A == 0, np.nan, A)
    again = sl.asarray(pd.DataFrame(holes).astype("Sparse[float]")).to_pandas()
    np.testing.assert_array_equal(again.to_numpy(), holes)
    assert again.sparse.density == pytest.approx(4 / 9)
    row = sl.asarray(A, format="csr")[0].to_pandas()
    assert isinstance(row.dtype, pd.SparseDtype)
    np.testing.assert_array_equal(row.to_numpy(), A[0])
    pd.testing.assert_frame_equal(sl.asarray(A).to_pandas(columns=list("xyz")), pd.DataFrame(A, columns=list("xyz")))
    with pytest.raises(sl.FormatError, match="this tensor has 3 modes"):
        sl.zeros((2, 2, 2)).to_pandas()
