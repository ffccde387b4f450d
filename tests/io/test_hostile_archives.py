"""Archives and arrays that try to hurt: members, headers and directories that lie, and arrays that are no numbers."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from peaks import peak_of_refusal

from sparseloom.core.errors import StorageError
from sparseloom.io import read

MEBIBYTE = 1 << 20
OWN: dict[str, Any] = {
    "sparseloom_format": np.array("ds"), "shape": np.array([2, 2]), "fill": np.array(0.0),
    "pos1": np.array([0, 1, 2]), "crd1": np.array([0, 1]), "values": np.ones(2),
}  # fmt: skip
CSR: dict[str, Any] = {"format": b"csr", "shape": (2, 2), "data": np.ones(2), "indices": np.array([0, 1]), "indptr": np.array([0, 1, 2])}
DIA: dict[str, Any] = {"format": b"dia", "shape": (2, 2), "data": np.ones((2, 2)), "offsets": np.array([0, 1])}


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        (OWN | {"fill": "text"}, "the fill 'text' is not a value of type float64: it must be a number"),
        (OWN | {"fill": b"text"}, "the fill b'text' is not a value of type float64: it must be a number"),
        (OWN | {"fill": 1j}, "the fill 1j is not a value of type float64"),
        (OWN | {"fill": 1.5, "values": np.ones(2, int)}, "the fill 1.5 is not a value of type int64"),
        (OWN | {"fill": np.array([0.0])}, "the fill must be one value, not an array of shape (1,)"),
        (OWN | {"fill": np.array(None)}, "array 'fill': it holds Python objects; those are never unpickled"),
        (OWN | {"fill": np.array((1, 2), "i4,i4")}, "array 'fill': the NumPy header is malformed: its elements have several fields"),
        (OWN | {"fill": np.datetime64("2020", "D")}, "array 'fill': the NumPy header is malformed: '<M8[D]' is no type of numbers"),
        (OWN | {"shape": np.array([[2, 2]])}, "the shape must be a row of integers, not an array of 2 dimensions"),
        (OWN | {"shape": np.array([2, 2**63], np.uint64)}, "has a size below 0 or beyond 64 bits"),
        (CSR | {"indices": np.array(0)}, "an index array has 0 dimensions; it must have one"),
        (CSR | {"indices": np.array(["0", "1"])}, "index arrays must hold integers, not <U1"),
        (CSR | {"format": np.array("csr\U0010ffff")}, "the layout 'csr?' is not one of"),
        (CSR | {"format": np.array(["x" * 5000])}, "the layout '' is not one of"),
        (CSR | {"data": np.array(["a", "b"])}, "values of type <U1 are not supported"),
        (CSR | {"data.npy": np.ones(2)}, "it holds two arrays that are called 'data'"),
        (DIA | {"offsets": np.array([0.5, 1])}, "the offsets of diagonals must be integers, not float64"),
        (DIA | {"offsets": np.array([1, 1])}, "the offsets of diagonals must differ from each other"),
        (DIA | {"format": b"coo", "coords": np.array(3)}, "the coordinates must have a row per mode, not 0 dimensions"),
    ],
    ids=range(19),
)
def test_arrays_of_archives_that_were_accepted_or_raised_something_else(tmp_path: Path, arrays: dict[str, Any], expected: str) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            archive.writestr(f"{name.removesuffix('.npy')}{'.npy' if not name.endswith('.npy') else ''}", npy(array))
    with pytest.raises(StorageError) as caught:
        read(path)
    assert str(caught.value).startswith(f"cannot read {path}: ") and expected in str(caught.value)


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@pytest.mark.parametrize("order", [">", "<"])
def test_arrays_of_any_byte_order_and_alignment_are_read(tmp_path: Path, order: str) -> None:
    index = {"pos1": np.array([0, 1, 2], f"{order}i4"), "crd1": np.array([0, 1], f"{order}i4")}
    arrays = OWN | index | {"values": np.array([1, 2], f"{order}f8")}
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        for name, array in arrays.items():
            data = npy(array)
            # A header whose length is no multiple of eight leaves the values unaligned in the file.
            (length,) = struct.unpack("<H", data[8:10])
            header = data[10 : 10 + length].rstrip() + b"\n"
            archive.writestr(f"{name}.npy", data[:8] + struct.pack("<H", len(header)) + header + data[10 + length :])
    tensor = read(tmp_path / "a.npz")
    np.testing.assert_array_equal(tensor.to_numpy(), [[1, 0], [0, 2]])
    assert all(array.flags.aligned and array.dtype.isnative for array in tensor.arrays.values())


def test_archives_that_unpack_to_much_take_little(tmp_path: Path) -> None:
    """Arrays that nobody asked for are not read; sizes are compared before there is room for them."""
    path = tmp_path / "a.npz"
    np.savez_compressed(path, **CSR, more=np.zeros(8 * MEBIBYTE))
    assert peak_of_refusal(path, "") < 8 * MEBIBYTE
    long = npy(np.ones(2)).replace(b"(2,), }" + b" " * 12, b"(1000000000000,), }")
    refusals = {zipfile.ZIP_STORED: "needs 8000000000000 bytes, but 16 follow", zipfile.ZIP_BZIP2: "packed in a way that NumPy does not"}
    for method, expected in refusals.items():
        with zipfile.ZipFile(path, "w", method) as archive:
            for name, array in CSR.items():
                archive.writestr(f"{name}.npy", long if name == "data" else npy(array))
        assert peak_of_refusal(path, expected) < MEBIBYTE


def test_directories_that_lie_about_sizes(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, **CSR)
    whole = path.read_bytes()
    place = whole.rindex(b"data.npy") - 22  # the size of the member unpacked, in the directory
    refusals = {2**32 - 2: "cannot unpack to 4294967294", 152: "needs 16 bytes, but 24 follow", 143: "it is not a whole .npz archive"}
    for size, expected in refusals.items():
        path.write_bytes(whole[:place] + struct.pack("<I", size) + whole[place + 4 :])
        with pytest.raises(StorageError, match=expected):
            read(path)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("{'descr': '<f8', 'fortran_order': False, 'shape': " + "(" * 4000, "the NumPy header is malformed: it is no dictionary"),
        ("{" + "-" * 4000 + "}", "the NumPy header is malformed: cannot read"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}", "the NumPy header is malformed: cannot read"),
        ("{'descr': '<f8', 'fortran_order': 1, 'shape': (1,)}", "the NumPy header is malformed: cannot read"),
        ("{'descr': '<f8', 'fortran_order': 'x', 'shape': (1,)}", "the order or the shape cannot be read"),
        ("{'descr': 'f8,(', 'fortran_order': False, 'shape': (1,)}", "'f8,(' is no type of numbers"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 2000000000000000000)}", "there is no array of the shape"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1, " * 65 + ")}", "there is no array of the shape"),
        ("{'descr': '<V2', 'fortran_order': False, 'shape': (4,)}", "values of type |V2 are not supported"),
    ],
    ids=range(9),
)
def test_headers_of_arrays(tmp_path: Path, header: str, expected: str) -> None:
    path, body = tmp_path / "a.npy", bytes(0 if "(0" in header else 8)
    for version, length in ((b"\x01\x00", "<H"), (b"\x02\x00", "<I")):
        path.write_bytes(b"\x93NUMPY" + version + struct.pack(length, len(header)) + header.encode() + body)
        with pytest.raises(StorageError) as caught:
            read(path)
        assert expected in str(caught.value)
    path.write_bytes(b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1) + header.encode())
    with pytest.raises(StorageError, match="the NumPy header is malformed: it is 4294967295 bytes long"):
        read(path)
