"""Malformed files: each is one error that names the file, the line and what is wrong. Nothing is guessed, nothing crashes."""

from __future__ import annotations

import gzip
import io
import struct
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from sparseloom.core.errors import StorageError
from sparseloom.io import read

HEAD = "%%MatrixMarket matrix coordinate real general\n"
INTEGERS = HEAD.replace("real", "integer")
SYMMETRIC = HEAD.replace("general", "symmetric")
ARRAY = "%%MatrixMarket matrix array real general\n"

TEXTS = [
    # Headers
    ("", 1, "the first line must begin with %%MatrixMarket"),
    ("1 1 1\n", 1, "the first line must begin with %%MatrixMarket"),
    ("%%MatrixMarket matrix coordinate real\n1 1 0\n", 1, "the first line must be '%%MatrixMarket matrix <layout> <field> <symmetry>'"),
    ("%%MatrixMarket vector coordinate real general\n", 1, "'vector' is not one of matrix"),
    ("%%MatrixMarket matrix sparse real general\n", 1, "'sparse' is not one of coordinate, array"),
    ("%%MatrixMarket matrix array float general\n", 1, "'float' is not one of real, double, integer, unsigned-integer, complex, pattern"),
    ("%%MatrixMarket matrix array real lower\n", 1, "'lower' is not one of general, symmetric, skew-symmetric, hermitian"),
    ("%%MatrixMarket matrix array real hermitian\n", 1, "a hermitian matrix must be complex, not real"),
    ("%%MatrixMarket matrix array pattern general\n", 1, "a pattern has no values, so it cannot be an array"),
    ("%%MatrixMarket matrix coordinate pattern skew-symmetric\n", 1, "a pattern has no values, so it cannot be skew-symmetric"),
    # Size lines
    (HEAD, 1, "the file ends before its size line (rows, columns, entries)"),
    (HEAD + "% only\n% comments\n", 3, "the file ends before its size line (rows, columns, entries)"),
    (HEAD + "3 3\n", 2, "the size line must hold 3 counts: rows, columns, entries"),
    (HEAD + "3 3 x\n", 2, "the size line must hold 3 counts: rows, columns, entries"),
    (HEAD + "3 -3 1\n", 2, "the size line must hold 3 counts: rows, columns, entries"),
    (HEAD + "3 3.0 1\n", 2, "the size line must hold 3 counts: rows, columns, entries"),
    (ARRAY + "%\n2 2 4\n", 3, "the size line must hold 2 counts: rows, columns"),
    (HEAD + "99999999999999999999 1 0\n", 2, "a size does not fit in 64 bits"),
    (SYMMETRIC + "2 3 0\n", 2, "a symmetric matrix must be square, not 2 by 3"),
    # Counts
    (HEAD + "3 3 2\n1 1 5\n", 3, "2 entries are declared, but the file ends after 1"),
    (HEAD + "3 3 2\n", 3, "2 entries are declared, but the file ends after 0"),
    (HEAD + "3 3 1\n1 1 5\n\n2 2 5\n", 5, "1 entries are declared, but more follow"),
    (HEAD + "3 3 4000000000000000000\n1 1 5\n", 3, "4000000000000000000 entries are declared, but the file ends after 1"),
    (ARRAY + "2 2\n1\n2\n3\n", 5, "4 values are declared, but the file ends after 3"),
    (ARRAY + "2 2\n1\n2\n3\n4\n5\n", 7, "4 values are declared, but more follow"),
    (ARRAY + "3000000000 3000000000\n1\n", 3, "9000000000000000000 values are declared, but the file ends after 1"),
    # Entries
    (HEAD + "3 3 1\n1 1\n", 3, "expected 3 numbers, found 2"),
    (HEAD + "3 3 1\n1 1 5 6\n", 3, "expected 3 numbers, found 4"),
    (HEAD + "3 3 2\n1 1\n2 2 5 5\n", 3, "expected 3 numbers, found 2"),
    (HEAD + "3 3 2\n1 1 5\n2 two 5\n", 4, "'two' is not a number"),
    (HEAD + "3 3 1\n1 1 1_000\n", 3, "'1_000' is not a number"),
    (HEAD + "3 3 1\n1 1 0x10\n", 3, "'0x10' is not a number"),
    (HEAD + "3 3 1\n1 1 1-2\n", 3, "'1-2' is not a number"),
    (HEAD + "3 3 1\n1 1 1,5\n", 3, "'1,5' is not a number"),
    (HEAD + "3 3 1\n1 1 \xff\n", 3, "'\\\\xff' is not a number"),
    (HEAD + "3 3 1\n0 1 5\n", 3, "the row 0 is outside 1 to 3"),
    (HEAD + "3 3 2\n1 1 5\n1 4 5\n", 4, "the column 4 is outside 1 to 3"),
    (HEAD + "3 3 1\n-1 1 5\n", 3, "the row -1 is outside 1 to 3"),
    (HEAD + "3 3 1\n1.5 1 5\n", 3, "the row 1.5 is not an integer below 2**53"),
    (HEAD + "3 3 1\nnan 1 5\n", 3, "the row nan is not an integer below 2**53"),
    (HEAD + "% c\n3 3 3\n\n1 1 5\n% c\n2 2 5\n\n9 9 9\n", 9, "the row 9 is outside 1 to 3"),
    (INTEGERS + "3 3 1\n1 1 1.5\n", 3, "'1.5' is not an integer"),
    (INTEGERS + "3 3 1\n1 1 99999999999999999999\n", 3, "an integer is too large for 64 bits"),
    (INTEGERS + "3 3 2\n1 1 -1\n1 2 18446744073709551615\n", 3, "the integers of this file are too large or too small for one 64-bit type"),
    (HEAD.replace("real", "complex") + "3 3 1\n1 1 1.5\n", 3, "expected 4 numbers, found 3"),
    (HEAD.replace("real", "pattern") + "3 3 1\n1 1 1.5\n", 3, "expected 2 numbers, found 3"),
    (SYMMETRIC + "3 3 3\n2 1 5\n3 1 5\n1 2 5", 5, "a symmetric file stores one triangle, but entries stand on both sides of the diagonal"),
    (HEAD.replace("general", "skew-symmetric") + "3 3 1\n2 2 5\n", 3, "the diagonal of a skew-symmetric matrix is zero"),
    (ARRAY + "1 2\n1 2\n", 3, "expected 1 numbers, found 2"),
    (ARRAY + "1 2\n1\nx\n", 4, "'x' is not a number"),
]  # fmt: skip

TNS = [
    ("", 1, "there is no entry in it, so its sizes are unknown"),
    ("# nothing\n", 1, "there is no entry in it, so its sizes are unknown"),
    ("1 1 1 5\n1 1 5\n", 2, "expected 4 numbers, found 3"),
    ("1 1 1 5\n1 1 1 1 5\n", 2, "expected 4 numbers, found 5"),
    ("# c\n1 1 1 5\n1 a 1 5\n", 3, "'a' is not a number"),
    ("1 0 1 5\n", 1, "the mode-1 coordinate 0 is below 1 (coordinates count from 1)"),
    ("1 1 -3 5\n", 1, "the mode-2 coordinate -3 is below 1 (coordinates count from 1)"),
    ("1 1.5 1 5\n", 1, "the mode-1 coordinate 1.5 is not an integer below 2**53"),
    ("2\n3 3\n1 1 5\n4 1 5\n", 4, "the mode-0 coordinate 4 is outside 1 to 3"),
    ("# sparseloom: shape 3 3 dtype float64\n4 1 5\n", 2, "the mode-0 coordinate 4 is outside 1 to 3"),
    ("# sparseloom: shape 3 3 dtype int64\n1 1 5.5\n", 2, "'5.5' is not an integer"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "what"), TEXTS, ids=range(len(TEXTS)))
@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz"])
def test_malformed_matrix_market(tmp_path: Path, text: str, line: int, what: str, suffix: str) -> None:
    refuses(tmp_path / f"bad{suffix}", text, line, what)


@pytest.mark.parametrize(("text", "line", "what"), TNS, ids=range(len(TNS)))
def test_malformed_frostt(tmp_path: Path, text: str, line: int, what: str) -> None:
    refuses(tmp_path / "bad.tns", text, line, what)


def refuses(path: Path, text: str, line: int, what: str) -> None:
    """The whole text of the error: file, line, reason, and the line itself unless the trouble is that nothing follows."""
    data = text.encode("latin-1")
    shown = data.split(b"\n")[line - 1].decode("ascii", "backslashreplace") if "ends" not in what and "no entry" not in what else ""
    expected = f"line {line}: {what}" + (f"\n    {shown}" if shown else "")
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    with pytest.raises(StorageError) as caught:
        read(path)
    assert str(caught.value) == f"cannot read {path}, {expected}"


def test_files_that_are_not_gzip(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx.gz"
    path.write_text(HEAD)
    with pytest.raises(StorageError, match="it is not a gzip file"):
        read(path)
    whole = gzip.compress((HEAD + "1 1 0\n" * 50).encode())
    for damaged in (whole[: len(whole) // 2], whole[:-4], whole[:20] + b"\x00\xff" + whole[22:]):
        path.write_bytes(damaged)
        with pytest.raises(StorageError, match=r"a\.mtx\.gz: (the gzip data are damaged|its name ends)"):
            read(path)


def test_every_truncation_of_a_file_is_an_error_or_a_whole_matrix(tmp_path: Path) -> None:
    text = HEAD + "% comment\n3 4 3\n1 1 0.5\n2 4 -12.25\n3 3 1e3\n"
    path = tmp_path / "a.mtx"
    for length in range(len(text)):
        path.write_text(text[:length])
        try:
            tensor = read(path)
        except StorageError as problem:
            assert str(problem).startswith(f"cannot read {path}")
        else:
            assert tensor.nnz == 3


def npy(header: str, body: bytes = b"") -> bytes:
    text = header.encode("latin-1")
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "the NumPy header is malformed"),
        (b"not an array at all", "the NumPy header is malformed"),
        (
            npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3,)}", bytes(8)),
            r"the shape \(3,\) of float64 needs 24 bytes, but 8 follow",
        ),
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (10**18,)}"), "the NumPy header is malformed"),
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000000,)}"), "needs 8000000000000000000 bytes, but 0 follow"),
        (npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", bytes(8)), "it holds Python objects; those are never unpickled"),
        (npy("{'descr': '<f8', 'fortran_order': False}"), "the NumPy header is malformed"),
    ],
)
def test_malformed_npy(tmp_path: Path, data: bytes, expected: str) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(data)
    with pytest.raises(StorageError, match=expected):
        read(path)


def archive(**arrays: object) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]
    return stream.getvalue()


CSR = {"format": b"csr", "shape": (2, 2), "data": np.ones(2), "indices": np.array([0, 1]), "indptr": np.array([0, 1, 2])}


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ({}, "it holds no sparse tensor: neither 'format' nor 'sparseloom_format' is among no arrays"),
        ({"a": np.zeros(3)}, "it holds no sparse tensor: neither 'format' nor 'sparseloom_format' is among a"),
        (CSR | {"format": b"lil"}, "the layout 'lil' is not one of csr, csc, coo, bsr, dia"),
        ({k: v for k, v in CSR.items() if k != "indptr"}, "the array 'indptr' is missing; there are data, format, indices, shape"),
        ({k: v for k, v in CSR.items() if k != "shape"}, "the array 'shape' is missing"),
        (CSR | {"indices": np.array([0, 7])}, "level 1 (compressed, mode j): crd[1] = 7"),
        (CSR | {"indices": np.array([0.0, 1])}, "index arrays must hold integers"),
        (CSR | {"indptr": np.array([0, 5, 2])}, "pos"),
        (CSR | {"indptr": np.array([0, 2])}, "pos"),
        (CSR | {"shape": (2, 2, 2)}, "shape"),
        (CSR | {"shape": (-2, 2)}, "shape"),
        (CSR | {"shape": np.array([0.5, 2])}, "the shape must be integers"),
        (CSR | {"data": np.zeros(2, "V2")}, "V2"),
        (CSR | {"data": np.ones((2, 2))}, "the data array has 2 dimensions"),
        (CSR | {"format": b"coo"}, "the array 'row' is missing"),
        ({"format": b"coo", "shape": (2, 2), "data": np.ones(2), "row": np.array([0]), "col": np.array([0, 1])}, "as long as each other"),
        ({"format": b"coo", "shape": (2, 2, 2), "data": np.ones(1), "row": np.array([0]), "col": np.array([0])}, "2 coordinate arrays"),
        ({"format": b"dia", "shape": (2, 2), "data": np.ones(2), "offsets": np.array([0])}, "diagonals"),
        ({"sparseloom_format": "zz", "shape": (2,), "fill": 0.0, "values": np.ones(2)}, "there is no level 'z'"),
        ({"sparseloom_format": "ds", "shape": (2, 2), "fill": 0.0, "values": np.ones(2)}, "missing or strange: crd1, pos1"),
        ({"sparseloom_format": "d", "shape": (3,), "fill": 0.0, "values": np.ones(2)}, "values has 2 elements"),
        ({"sparseloom_format": "d", "shape": (2,), "values": np.ones(2)}, "the array 'fill' is missing"),
        ({"sparseloom_format": "d", "shape": (2,), "fill": np.ones(2), "values": np.ones(2)}, "the fill must be one value"),
        ({"sparseloom_format": "dp", "shape": (2, 2), "fill": 0.0, "values": np.ones(2), "len1": np.zeros(2, int), "crd1": np.zeros(2, int),
          "width1": np.ones(3)}, "width1 must be one integer"),
    ],
    ids=range(24),
)  # fmt: skip
def test_malformed_archives(tmp_path: Path, arrays: dict[str, object], expected: str) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(archive(**arrays))
    with pytest.raises(StorageError) as caught:
        read(path)
    assert str(caught.value).startswith(f"cannot read {path}: ")
    assert expected in str(caught.value)


def test_damaged_archives(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    sp.save_npz(path, sp.random_array((20, 20), density=0.3, format="csr", rng=1))
    whole = path.read_bytes()
    for damaged in (b"", b"PK", whole[: len(whole) // 2], whole[:-10], whole[:60] + bytes(20) + whole[80:], b"x" + whole[1:]):
        path.write_bytes(damaged)
        with pytest.raises(StorageError, match="cannot read"):
            read(path)


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, format=np.array([{"code": 1}], dtype=object))
    with pytest.raises(StorageError, match="array 'format': it holds Python objects; those are never unpickled"):
        read(path)


def test_missing_files_stay_os_errors(tmp_path: Path) -> None:
    for name in ("a.mtx", "a.tns.gz", "a.npz", "a.npy"):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / name)
