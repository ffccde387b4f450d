"""Memory, copies and validation on a real device, and arrays shared with CuPy and PyTorch."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparseloom as sl
from sparseloom.core.errors import StorageError
from sparseloom.programs.calling import OutOfMemory
from sparseloom.programs.cuda.arrays import copied_in, empty

pytestmark = pytest.mark.gpu
DTYPES = ("bool", "int32", "int64", "float32", "float64", "complex64", "complex128")


@pytest.fixture
def matrix() -> Any:
    return sp.random_array((2000, 3000), density=0.01, format="csr", rng=np.random.default_rng(3))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [0, 1, 1000, 1 << 20])
def test_copies(dtype: str, count: int) -> None:
    given = (np.arange(count) % 7).astype(dtype)
    there = copied_in(given)
    np.testing.assert_array_equal(there.to_host(), given)
    np.testing.assert_array_equal(there.copy().to_host(), given)
    if count:
        assert there[count // 2] == given[count // 2]


def test_memory_comes_back(gpu: Any) -> None:
    much = gpu.room() // 4
    for _ in range(16):
        empty(much, np.dtype(np.uint8))  # and gone
    with pytest.raises(OutOfMemory, match="has no room for"):
        empty(1 << 45, np.dtype(np.uint8))


@pytest.mark.parametrize("format", ["dense", "csr", "csc", "coo", "dcsr", "bcsr(2,3)", "ell"])
def test_tensors_go_and_come_back(format: str) -> None:
    tensor = sl.random((70, 60), 0.2, format, seed=5)
    np.testing.assert_array_equal(tensor.to_device().to_host().to_numpy(), tensor.to_numpy())


def test_arrays_of_cupy_are_shared() -> None:
    cupy = pytest.importorskip("cupy")
    for order in "CF":
        theirs = cupy.asarray(np.arange(6.0).reshape(2, 3), order=order)
        ours = sl.asarray(theirs)
        assert ours.storage.values.address == theirs.data.ptr
        np.testing.assert_array_equal(ours.to_numpy(), theirs.get())
        back = ours.to_cupy()
        assert (back.data.ptr, back.shape, back.strides) == (theirs.data.ptr, theirs.shape, theirs.strides)
        for again in (cupy.asarray(ours), cupy.from_dlpack(ours)):
            assert again.data.ptr == theirs.data.ptr
            np.testing.assert_array_equal(again.get(), theirs.get())


def test_what_cupy_is_given_outlives_the_tensor() -> None:
    cupy = pytest.importorskip("cupy")
    kept = sl.asarray(np.arange(1000.0)).to_device().to_cupy()
    gc.collect()
    others = [empty(1000, np.dtype(np.float64)) for _ in range(8)]
    np.testing.assert_array_equal(kept.get(), np.arange(1000.0))
    assert all(other.address != kept.data.ptr for other in others)
    assert cupy.asarray(kept) is kept


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_matrices_of_cupyx_are_shared(matrix: Any, format: str) -> None:
    sparse = pytest.importorskip("cupyx.scipy.sparse")
    theirs = sparse.csr_matrix(sp.csr_matrix(matrix)).asformat(format)
    ours = sl.asarray(theirs)
    assert ours.storage.values.address == theirs.data.data.ptr
    assert sl.asarray(theirs).storage is ours.storage
    np.testing.assert_array_equal(ours.to_numpy(), matrix.toarray())
    back = ours.to_cupy()
    assert back.data.data.ptr == theirs.data.data.ptr
    np.testing.assert_array_equal(back.get().toarray(), matrix.toarray())


def test_a_broken_matrix_of_cupyx_is_refused(matrix: Any) -> None:
    sparse = pytest.importorskip("cupyx.scipy.sparse")
    for part, place, value, what in (
        ("indices", 5, 3000, "is outside the level's size 3000"),
        ("indices", 5, -1, "is outside the level's size 3000"),
        ("indptr", 7, -1, "is less than pos"),
        ("indptr", 2000, 10**6, "is beyond the end of crd"),
        ("indptr", 0, 1, "the first segment starts at 0"),
    ):
        theirs = sparse.csr_matrix(sp.csr_matrix(matrix))
        getattr(theirs, part)[place] = value
        with pytest.raises(StorageError, match=what):
            sl.asarray(theirs)


def test_dense_tensors_of_torch_are_shared() -> None:
    torch = pytest.importorskip("torch")
    for theirs in (torch.arange(6.0, device="cuda").reshape(2, 3), torch.arange(6.0, device="cuda").reshape(3, 2).T):
        ours = sl.asarray(theirs)
        assert ours.storage.values.address == theirs.data_ptr()
        np.testing.assert_array_equal(ours.to_numpy(), theirs.cpu().numpy())
        for back in (ours.to_torch(), torch.from_dlpack(ours), torch.as_tensor(ours, device="cuda")):
            assert (back.data_ptr(), back.stride()) == (theirs.data_ptr(), theirs.stride())
            assert torch.equal(back, theirs)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_sparse_tensors_of_torch_are_shared(matrix: Any, layout: str) -> None:
    torch = pytest.importorskip("torch")
    theirs = getattr(torch.tensor(matrix.toarray(), device="cuda"), "to_sparse" if layout == "coo" else f"to_sparse_{layout}")()
    ours = sl.asarray(theirs)
    np.testing.assert_array_equal(ours.to_numpy(), matrix.toarray())
    back = ours.to_torch()
    assert str(back.layout) == str(theirs.layout)
    np.testing.assert_array_equal(back.to_dense().cpu().numpy(), matrix.toarray())
    if layout != "coo":
        assert back.values().data_ptr() == theirs.values().data_ptr()
