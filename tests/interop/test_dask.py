"""Dask: arrays of sparse chunks, computed block by block."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

import sparseloom as sl

SOURCE = Path(__file__).resolve().parents[2] / "src"
A = np.arange(1.0, 49.0).reshape(6, 8) * (np.arange(48).reshape(6, 8) % 3 == 0)


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    with dask.config.set(scheduler="synchronous"):
        yield


def test_chunks_are_tensors() -> None:
    array = sl.asarray(A, format="csr").to_dask(chunks=(4, 3))
    assert "chunktype=sparseloom.Tensor" in repr(array)
    whole = array.compute()
    assert whole.format == sl.csr
    np.testing.assert_array_equal(whole.to_numpy(), A)
    np.testing.assert_array_equal((array + array).compute().to_numpy(), 2 * A)
    np.testing.assert_array_equal(array.sum(axis=0).compute().to_numpy(), A.sum(0))
    assert sl.asarray(array).notes[0] == "computed by Dask from 6 chunks"
    made = da.from_array(A, chunks=(4, 8)).map_blocks(lambda chunk: sl.asarray(chunk, format="csr"))
    np.testing.assert_array_equal(made.compute().to_numpy(), A)


def test_a_product_in_blocks() -> None:
    array = sl.asarray(A, format="csr").to_dask(chunks=(4, 3))
    other = sl.asarray(A.T.copy(), format="csr").to_dask(chunks=(3, 4))
    np.testing.assert_array_equal(da.tensordot(array, other, 1).compute().to_numpy(), A @ A.T)
    np.testing.assert_array_equal(array.dot(A.T.copy()).compute().to_numpy(), A @ A.T)


def test_what_dask_does_with_arrays_it_does_with_tensors() -> None:
    array, like = sl.asarray(A, format="csr").to_dask(chunks=(4, 3)), da.from_array(A, chunks=(4, 3))
    reductions = "sum mean max std argmax cumsum".split()
    uses = [(lambda a, name=name: getattr(a, name)(axis=0)) for name in reductions]
    uses += [
        lambda a: a @ a.T, lambda a: a.T @ a, lambda a: a.T, lambda a: a @ A.T.copy(), lambda a: a @ np.ones(8), lambda a: a.sum(),
        lambda a: da.einsum("ij,kj->ik", a, a), lambda a: da.concatenate([a, a], axis=1),
        lambda a: da.stack([a, a]), lambda a: da.where(a > 3, a, 0), lambda a: a[1:5, ::2], lambda a: a[[0, 2, 5]], lambda a: a[a > 3],
        lambda a: a.reshape(48), lambda a: a.rechunk((2, 8)), lambda a: da.flip(a, 0), lambda a: da.pad(a, 1),
    ]  # fmt: skip
    for number, use in enumerate(uses):
        found, expected = use(array).compute(), use(like).compute()
        np.testing.assert_allclose(found.to_numpy() if isinstance(found, sl.Tensor) else found, expected, err_msg=str(number))
    for made in (array @ array.T, array.T, da.einsum("ij,kj->ik", array, array)):
        assert not made.compute().format.is_dense


def test_chunks_are_joined_though_dask_was_never_met() -> None:
    ours = (
        "import dask.array as da, sparseloom as sl; "
        "A = da.map_blocks(lambda block_info=None: sl.random((5, 5), 0.5, 'csr', seed=1), chunks=((5, 5), (5, 5)), dtype=float, "
        "meta=sl.zeros((0, 0), 'csr')); print(A.compute().shape, da.tensordot(A, A, 1).sum(axis=1).compute().shape)"
    )
    done = subprocess.run([sys.executable, "-c", ours], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(SOURCE)})
    assert done.stdout == "(10, 10) (10,)\n", done.stderr


def test_joined_tensors_are_those_of_numpy() -> None:
    tensor, dense = sl.asarray(A, format="csr"), sl.asarray(A)
    for parts in ([tensor, tensor], [tensor, dense], (dense, tensor.to("csc"))):
        for axis in (0, 1, -1):
            joined = np.concatenate(parts, axis=axis)
            assert not joined.format.is_dense
            np.testing.assert_array_equal(joined.to_numpy(), np.concatenate([A, A], axis=axis))
    with pytest.raises(sl.ShapeError, match="concatenate cannot join the shapes"):
        np.concatenate([tensor, tensor.T])


def test_beside_a_tensor_dask_decides() -> None:
    tensor, array = sl.asarray(A, format="csr"), da.from_array(A, chunks=(4, 8))
    for made, expected in ((array + tensor, A + A), (tensor - array, A - A), (array == tensor, A == A), (tensor <= array, A <= A)):
        assert isinstance(made, da.Array)
        found = made.compute()
        np.testing.assert_array_equal(found if isinstance(found, np.ndarray) else found.to_numpy(), expected)
