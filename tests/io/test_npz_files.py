"""Archives of arrays: SciPy's layout both ways, our own for the rest, and single arrays."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from sparseloom.core.dtypes import VALUE_DTYPES
from sparseloom.io import read, write
from sparseloom.tensor import asarray, full, random, zeros


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bcsr(2,2)", "dcsr", "ell", "dense", "dd:1,0", "bcsr(4,3)"])
@pytest.mark.parametrize("dtype", VALUE_DTYPES, ids=str)
def test_every_format_and_dtype_comes_back_as_it_was(tmp_path: Path, format: str, dtype: Any) -> None:
    tensor = random((6, 4), 0.4, format, seed=3, dtype=dtype)
    write(tmp_path / "a.npz", tensor)
    again = read(tmp_path / "a.npz")
    assert (again.format, again.shape, again.dtype, again.fill) == (tensor.format, tensor.shape, tensor.dtype, tensor.fill)
    for name, array in tensor.arrays.items():
        np.testing.assert_array_equal(again.arrays[name], array)
        assert again.arrays[name].dtype == array.dtype


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bcsr(2,2)"])
def test_scipy_reads_what_it_has_a_class_for(tmp_path: Path, format: str) -> None:
    tensor = random((6, 4), 0.4, format, seed=3)
    write(tmp_path / "a.npz", tensor)
    found = sp.load_npz(tmp_path / "a.npz")
    assert isinstance(found, sp.sparray)
    assert found.format == {"bcsr(2,2)": "bsr"}.get(format, format)
    np.testing.assert_array_equal(found.toarray(), tensor.to_numpy())


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("family", ["array", "matrix"])
@pytest.mark.parametrize("compressed", [True, False])
def test_what_scipy_writes_is_read(tmp_path: Path, kind: str, family: str, compressed: bool) -> None:
    matrix = getattr(sp, f"{kind}_{family}")(np.diag([1.0, 2, 3, 0], 1)[:, :4] + np.eye(5, 4))
    sp.save_npz(tmp_path / "a.npz", matrix, compressed=compressed)
    np.testing.assert_array_equal(read(tmp_path / "a.npz").to_numpy(), matrix.toarray())


def test_other_orders_fills_and_names(tmp_path: Path) -> None:
    for tensor in (
        random((3, 4, 5), 0.3, "csf", seed=1), random((3, 4, 5), 0.3, "coo", seed=1), random(9, 0.5, "s", seed=1),
        full((3, 4), np.inf, "csr"), asarray(2.5), zeros((0, 3), "csr"),
    ):  # fmt: skip
        write(tmp_path / "a.npz", tensor)
        again = read(tmp_path / "a.npz", name="A")
        assert (again.format, again.shape, again.fill, again.name) == (tensor.format, tensor.shape, tensor.fill, "A")
        np.testing.assert_array_equal(again.to_numpy(), tensor.to_numpy())
    assert str(read(tmp_path / "a.npz", "csc").format) == "csc"


def test_npy_files(tmp_path: Path) -> None:
    for array in (np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3)), np.array(3), np.zeros((0, 2), np.float32)):
        np.save(tmp_path / "a.npy", array)
        tensor = read(tmp_path / "a.npy")
        assert tensor.dtype == array.dtype
        np.testing.assert_array_equal(tensor.to_numpy(), array)
        write(tmp_path / "b.npy", tensor)
        np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), array)
    assert read(tmp_path / "a.npy", "csr").nnz == 0
    write(tmp_path / "c.npy", sp.csr_array(np.eye(3)))
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), np.eye(3))


def test_archives_hold_plain_arrays_only(tmp_path: Path) -> None:
    write(tmp_path / "a.npz", random((3, 4, 5), 0.3, "csf", seed=1))
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:
        assert set(archive.files) == {"sparseloom_format", "shape", "fill", "pos0", "crd0", "pos1", "crd1", "pos2", "crd2", "values"}
    assert zipfile.is_zipfile(tmp_path / "a.npz")


@pytest.mark.parametrize("name", ["wheelset_elasticity", "rustdoc_term_doc"])
def test_real_matrices(data_dir: Path, name: str) -> None:
    expected = sp.load_npz(data_dir / f"{name}.npz")
    tensor = read(data_dir / f"{name}.npz")
    np.testing.assert_array_equal(tensor.to_scipy().indptr, expected.indptr)
    assert tensor.nnz == expected.nnz
