"""Binsparse in HDF5 and NumPy's archives, and MATLAB's files, written and read by the real packages on the other side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import sparseloom as sl

A = np.array([[1.0, 0, 2], [0, 0, 0], [0, 3, 0]])
FORMATS = {"csr": "CSR", "csc": "CSC", "coo": "COOR", "dcsr": "DCSR", "dcsc": "DCSC", "dense": "DMATR", "dd:1,0": "DMATC"}


@pytest.mark.parametrize("suffix", [".h5", ".bsp.npz"])
def test_binsparse_keeps_format_dtype_and_fill(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    for format in FORMATS:
        for dtype in (np.float32, np.int16, np.bool_, np.complex128):
            tensor = sl.asarray(A, format=format, dtype=dtype)
            sl.write(path, tensor)
            found = sl.read(path)
            assert (found.format, found.dtype) == (tensor.format, tensor.dtype)
            np.testing.assert_array_equal(found.to_numpy(), A.astype(dtype))
    for vector in (sl.asarray(A[0]), sl.asarray(A[0], format="s")):
        sl.write(path, vector)
        assert sl.read(path).format == vector.format
    sl.write(path, sl.asarray(A, format="csr", fill=np.inf))
    assert sl.read(path).fill == np.inf
    with pytest.raises(sl.StorageError, match=r"binsparse has no word for bcsr\(1,1\)"):
        sl.write(path, sl.asarray(A, format="bcsr(1,1)"))


class Described:
    """An object of a library that we do not know, which describes itself."""

    def __init__(self, tensor: sl.Tensor) -> None:
        self.description, self.arrays = tensor.__binsparse_descriptor__(), tensor.__binsparse__()

    def __binsparse_descriptor__(self) -> dict[str, Any]:
        return self.description

    def __binsparse__(self) -> dict[str, Any]:
        return self.arrays


def test_objects_that_describe_themselves_are_read_over_their_memory() -> None:
    for format, name in FORMATS.items():
        tensor = sl.asarray(A, format=format)
        other = Described(tensor)
        assert other.description["binsparse"]["format"] == name
        found = sl.asarray(other)
        assert found.format == tensor.format and np.shares_memory(found.storage.values, tensor.storage.values)
        np.testing.assert_array_equal((tensor + other).to_numpy(), 2 * A)
    other = Described(sl.asarray(A, format="csr"))
    del other.arrays["indices_1"]
    with pytest.raises(sl.StorageError, match="the Described describes an array 'indices_1' and does not give it"):
        sl.asarray(other)
    other.arrays = {**sl.asarray(A, format="csr").__binsparse__(), "pointers_to_1": np.array([0, 9, 9, 9])}
    with pytest.raises(sl.StorageError):
        sl.asarray(other)


def test_what_is_described_is_what_the_specification_says(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    for format, name in FORMATS.items():
        sl.write(path, sl.asarray(A, format=format))
        with h5py.File(path) as held:
            about = json.loads(held.attrs["binsparse"])["binsparse"]
            assert (about["format"], about["shape"], about["number_of_stored_values"]) == (name, [3, 3], len(held["values"]))
            assert about["data_types"] == {key: held[key].dtype.name for key in held}
    with h5py.File(path, "w") as held:
        types = {"pointers_to_1": "uint64", "indices_1": "uint64", "values": "iso[int8]"}
        about = {"version": "0.1", "format": "CSR", "shape": [2, 3], "number_of_stored_values": 2, "data_types": types}
        held.attrs["binsparse"] = json.dumps({"binsparse": about})
        held["pointers_to_1"], held["indices_1"] = np.array([0, 1, 2], np.uint64), np.array([2, 0], np.uint64)
        held["values"] = np.array([7], np.int8)
    np.testing.assert_array_equal(sl.read(path).to_numpy(), [[0, 0, 7], [7, 0, 0]])


def test_strange_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as held:
        held["values"] = np.ones(3)
    with pytest.raises(sl.StorageError, match="has no attribute 'binsparse'"):
        sl.read(path)
    sl.write(path, sl.asarray(A, format="csr"))
    with h5py.File(path, "a") as held:
        held["indices_1"][1] = 9
    with pytest.raises(sl.StorageError, match=r"cannot read .*a\.h5"):
        sl.read(path)
    path.write_bytes(b"no file of HDF5's")
    with pytest.raises(sl.StorageError, match="it is damaged, or no tensor"):
        sl.read(path)


def test_mat_files_go_through_scipy(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"K": sp.csc_array(A), "title": "stiffness"})
    assert sl.read(path).format == sl.csc
    np.testing.assert_array_equal(sl.read(path).to_numpy(), A)
    scipy.io.savemat(path, {"K": sp.csc_array(A), "M": 2 * A})
    np.testing.assert_array_equal(sl.read(path, name="M", format="csr").to_numpy(), 2 * A)
    with pytest.raises(sl.StorageError, match=r"it holds K, M; name one of them, as in sl.read\('a.mat', name='K'\)"):
        sl.read(path)
    for tensor in (sl.asarray(A, format="csr", name="K"), sl.asarray(A, name="K")):
        sl.write(path, tensor)
        found = scipy.io.loadmat(path)["K"]
        np.testing.assert_array_equal(found.toarray() if sp.issparse(found) else found, A)
    path.write_bytes(b"no file of MATLAB's")
    with pytest.raises(sl.StorageError, match="it is damaged, or no file of MATLAB's"):
        sl.read(path)
