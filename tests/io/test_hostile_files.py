"""Files that ask for too much, and MATLAB's files read by code of our own."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import sparseloom as sl

A = np.array([[1.5, 0, 0, 2], [0, 0, 3, 0], [0, 4, 0, 5]])


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i2", "u1", "i8", "c16", "?"])
@pytest.mark.parametrize("level", ["4", "5"])
def test_mat_files_hold_what_was_written(level: str, dtype: str, packed: bool, tmp_path: Path) -> None:
    path, array = tmp_path / "a.mat", A.astype(dtype)
    if level == "4" and dtype in ("i8", "?"):
        array = array.astype("f8")  # level 4 has no such numbers
    held = {"A": array, "S": sp.csc_array(array), "text": "t", "long": np.arange(40.0)}
    scipy.io.savemat(path, held, format=level, do_compression=packed)
    found = sl.read(path, name="A")
    np.testing.assert_array_equal(found.to_numpy(), array)
    assert level == "4" or found.dtype == array.dtype
    np.testing.assert_array_equal(sl.read(path, name="S").to_numpy(), array)
    np.testing.assert_array_equal(sl.read(path, name="long").to_numpy(), np.arange(40.0)[None])


def test_mat_files_of_the_other_order_of_bytes(tmp_path: Path) -> None:
    body = struct.pack(">IIII", 6, 8, 6, 0) + struct.pack(">IIii", 5, 8, 2, 2) + struct.pack(">HH4s", 1, 1, b"A")
    body += struct.pack(">II", 9, 32) + struct.pack(">4d", 1, 2, 3, 4)
    path = tmp_path / "a.mat"
    path.write_bytes(b"MATLAB 5.0".ljust(124) + b"\1\0MI" + struct.pack(">II", 14, len(body)) + body)
    assert sl.read(path).to_numpy().tolist() == [[1, 3], [2, 4]]
    path.write_bytes(struct.pack(">5i2s2d", 1000, 1, 2, 0, 2, b"A", 5, 6))
    assert sl.read(path).to_numpy().tolist() == [[5, 6]]


def test_sizes_of_mat_files_are_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    for array in (A, A.astype("i2"), sp.csc_array(A != 0)):
        scipy.io.savemat(path, {"A": array})
        whole = path.read_bytes()
        for place in range(124, len(whole) - 3, 4):
            path.write_bytes(whole[:place] + b"\xff\xff\xff\xff" + whole[place + 4 :])
            try:
                sl.read(path)
            except sl.StorageError as problem:
                assert str(path) in str(problem)


def test_a_packed_array_may_not_be_larger_than_its_tensor(tmp_path: Path) -> None:
    count = 12_000_000
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        head = io.BytesIO()
        np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (count,)})
        archive.writestr("data.npy", head.getvalue() + bytes(8 * count))
        small = {"format": np.array(b"csr"), "shape": np.array([2, 2]), "indptr": np.zeros(3, int), "indices": np.zeros(0, int)}
        for name, array in small.items():
            stream = io.BytesIO()
            np.save(stream, array)
            archive.writestr(f"{name}.npy", stream.getvalue())
    with pytest.raises(sl.StorageError, match=r"array 'data': \d+ bytes unpack to \d+, for a tensor with 4 places"):
        sl.read(tmp_path / "a.npz")


def test_a_packed_mat_file_may_not_hold_more_entries_than_places(tmp_path: Path) -> None:
    body = struct.pack("<IIII", 6, 8, 5, 9) + struct.pack("<IIii", 5, 8, 2, 2) + struct.pack("<HH4s", 1, 1, b"A")
    body += struct.pack("<II", 5, 4 * 10**6) + bytes(4 * 10**6)
    packed = zlib.compress(struct.pack("<II", 14, len(body)) + body)
    path = tmp_path / "a.mat"
    path.write_bytes(b"MATLAB 5.0".ljust(124) + b"\0\1IM" + struct.pack("<II", 15, len(packed)) + packed)
    with pytest.raises(sl.StorageError, match="the rows are 1000000, and there are 4 at most"):
        sl.read(path)


def test_entries_of_too_many_modes_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.tns"
    path.write_text(" ".join(["1"] * 5000) + " 2.5\n")
    with pytest.raises(sl.StorageError, match="its entries have 5000 modes, and at most 1000 are read"):
        sl.read(path)
