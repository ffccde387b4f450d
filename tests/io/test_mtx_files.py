"""Matrix Market files: read as SciPy reads them, written so that SciPy and we read them back."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from sparseloom.core.dtypes import VALUE_DTYPES
from sparseloom.core.errors import FormatError, StorageError
from sparseloom.formats import named
from sparseloom.io import read, write
from sparseloom.tensor import asarray, full, random, zeros

FIELDS = ("real", "double", "integer", "complex", "pattern")
SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")
VALUES = {
    "real": "1.5 -2 3e2 .25",
    "double": "1e-3 7 -0.5 2",
    "integer": "3 -4 5 9007199254740993",
    "complex": "1:2 0:-1 3:0 .5:1e2",
    "pattern": ": : : :",
}


def is_legal(field: str, symmetry: str, layout: str) -> bool:
    if symmetry == "hermitian" and field != "complex":
        return False
    return not (field == "pattern" and (symmetry == "skew-symmetric" or layout == "array"))


def lower_triangle(field: str, symmetry: str) -> str:
    """Four entries, below the diagonal where the symmetry wants it."""
    places = ["2 1", "3 1", "3 2", "4 2"] if symmetry != "general" else ["1 1", "3 4", "2 1", "4 4"]
    return "".join(f"{place} {value.replace(':', ' ')}\n" for place, value in zip(places, VALUES[field].split(), strict=True))


@pytest.mark.parametrize(
    ("field", "symmetry"), [pair for pair in itertools.product(FIELDS, SYMMETRIES) if is_legal(*pair, "coordinate")], ids="-".join
)
def test_coordinate_files_read_as_scipy_reads_them(tmp_path: Path, field: str, symmetry: str) -> None:
    path = tmp_path / "a.mtx"
    text = f"%%MatrixMarket matrix coordinate {field} {symmetry}\n% a comment\n\n4 4 4\n{lower_triangle(field, symmetry)}"
    path.write_text(text)
    tensor = read(path)
    assert tensor.format == named.csr
    path.write_text(text.replace("double", "real"))  # SciPy does not know the older name
    np.testing.assert_array_equal(tensor.to_numpy(), scipy.io.mmread(path).toarray())
    assert tensor.dtype == {"integer": np.int64, "complex": np.complex128}.get(field, np.float64)


@pytest.mark.parametrize(
    ("field", "symmetry"), [pair for pair in itertools.product(FIELDS, SYMMETRIES) if is_legal(*pair, "array")], ids="-".join
)
def test_array_files_of_every_symmetry(tmp_path: Path, field: str, symmetry: str) -> None:
    stored = {"general": 9, "skew-symmetric": 3}.get(symmetry, 6)
    numbers = np.arange(1, stored + 1)
    on_diagonal = np.isin(numbers, (1, 4, 6))  # where a hermitian matrix must be real
    imaginary = np.where(on_diagonal & (symmetry == "hermitian"), 0, 1).tolist()
    lines = "".join(f"{n} {im}\n" if field == "complex" else f"{n}\n" for n, im in zip(numbers, imaginary, strict=True))
    path = tmp_path / "a.mtx"
    path.write_text(f"%%MatrixMarket matrix array {field.replace('double', 'real')} {symmetry}\n3 3\n{lines}")
    tensor = read(path)
    assert tensor.format.is_dense
    np.testing.assert_array_equal(tensor.to_numpy(), scipy.io.mmread(path))


@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz"])
@pytest.mark.parametrize("format", ["csr", "csc", "coo", "dense", "bcsr(2,2)", "ell"])
@pytest.mark.parametrize("dtype", VALUE_DTYPES, ids=str)
def test_written_files_are_read_back(tmp_path: Path, suffix: str, format: str, dtype: Any) -> None:
    tensor = random((6, 4), 0.4, format, seed=3, dtype=dtype)
    path = tmp_path / f"a{suffix}"
    write(path, tensor)
    again = read(path)
    np.testing.assert_array_equal(again.to_numpy(), tensor.to_numpy())
    expected = np.int64 if tensor.dtype.kind in "biu" else np.complex128 if tensor.dtype.kind == "c" else np.float64
    assert again.dtype in (expected, tensor.dtype)
    found = scipy.io.mmread(path)
    np.testing.assert_array_equal(found.toarray() if sp.issparse(found) else found, tensor.to_numpy())


def test_extreme_values_survive(tmp_path: Path) -> None:
    tiny = np.nextafter(0, 1)
    for values in (
        np.array([[0.1, -tiny, 1e308], [np.inf, -np.inf, np.pi]]),
        np.array([[2**63 - 1, -(2**63), 0], [1, 2, 3]]),
        np.array([[2**64 - 1, 5, 0], [1, 2, 3]], np.uint64),
        np.array([[1 + 2j, complex(0, -0.1), 0], [1e-300, 3, 2]]),
        np.array([[0.1, 1 / 3, 16777217], [0, 0, 1]], np.float32),
    ):
        for format in ("csr", "dense"):
            write(tmp_path / "a.mtx", asarray(values, format=format))
            np.testing.assert_array_equal(read(tmp_path / "a.mtx").to_numpy().astype(values.dtype), values)
    write(tmp_path / "n.mtx", asarray(np.array([[np.nan]])))
    assert np.isnan(read(tmp_path / "n.mtx").to_numpy()[0, 0])


def test_formats_and_empty_matrices(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    write(path, zeros((3, 0), "csr"))
    assert (read(path).shape, read(path).nnz) == ((3, 0), 0)
    write(path, random((6, 4), 0.4, "csr", seed=3))
    for format in ("csc", "coo", "dense", named.dcsr):
        assert str(read(path, format).format) == str(named.dense(2) if format == "dense" else format)
    assert read(path, name="A").name == "A"
    with pytest.raises(FormatError, match="order 3"):
        read(path, "csf(3)")


def test_duplicates_are_summed_as_in_scipy(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    path.write_text("%%MatrixMarket matrix coordinate integer general\n2 2 3\n1 1 4\n2 2 1\n1 1 5\n")
    np.testing.assert_array_equal(read(path).to_numpy(), [[9, 0], [0, 1]])


def test_windows_line_ends_tabs_and_capitals(tmp_path: Path) -> None:
    path = tmp_path / "a.MTX"
    path.write_bytes(b"%%matrixmarket MATRIX Coordinate Real GENERAL\r\n%c\r\n 2\t2  2 \r\n1\t1 0.5\r\n\r\n% late comment\r\n  2 2 1e1")
    np.testing.assert_array_equal(read(path).to_numpy(), [[0.5, 0], [0, 10]])


def test_what_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    path.write_text("precious")
    with pytest.raises(StorageError, match=r"absent entries are 1\.0"):
        write(path, full((2, 2), 1.0, "csr"))
    with pytest.raises(StorageError, match=r"this tensor has 3 modes; write \.tns or \.npz"):
        write(path, zeros((2, 2, 2)))
    with pytest.raises(FormatError, match=r"names end in .mtx, .mtx.gz, .tns, .tns.gz, .npz, .npy"):
        write(tmp_path / "a.txt", zeros(3))
    assert path.read_text() == "precious"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.mtx"]


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.mtx"
    path.write_text("precious")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("sparseloom.io.mtx._write_coordinates", fail)
    with pytest.raises(OSError, match="disk full"):
        write(path, random((3, 3), 0.5, "csr", seed=1))
    assert path.read_text() == "precious"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.mtx"]


def test_equal_tensors_give_equal_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / f"{name}.mtx.gz", random((9, 9), 0.3, "csr", seed=8))
    assert (tmp_path / "a.mtx.gz").read_bytes() == (tmp_path / "b.mtx.gz").read_bytes()


@pytest.mark.parametrize("name", ["sherman3", "mhd1280a", "wiki-Vote", "bcsstk13"])
def test_real_matrices_read_as_scipy_reads_them(data_dir: Path, name: str) -> None:
    path = data_dir / f"{name}.mtx.gz"
    expected = sp.csr_array(scipy.io.mmread(path))
    expected.sum_duplicates()
    tensor = read(path)
    np.testing.assert_array_equal(tensor.arrays["pos1"], expected.indptr)
    np.testing.assert_array_equal(tensor.arrays["crd1"], expected.indices)
    np.testing.assert_array_equal(tensor.arrays["values"], expected.data)
    assert gzip.decompress(path.read_bytes())[:14] == b"%%MatrixMarket"
