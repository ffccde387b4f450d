"""FROSTT files: one entry per line, coordinates from 1, comments, and sizes that may be given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparseloom.core.dtypes import VALUE_DTYPES
from sparseloom.core.errors import DTypeError, StorageError
from sparseloom.formats import named
from sparseloom.io import read, write
from sparseloom.tensor import asarray, full, random, zeros

ENTRIES = "1 2 4 0.5\n3 1 1 2\n"


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        (ENTRIES, (3, 2, 4)),
        ("# a comment\n\n" + ENTRIES, (3, 2, 4)),
        ("1 2 4 0.5 # half\n#\n   3\t1 1 2", (3, 2, 4)),
        ("3\n5 6 7\n" + ENTRIES, (5, 6, 7)),
        ("# header follows\n3\n5 6 7\n" + ENTRIES, (5, 6, 7)),
        ("# sparseloom: shape 9 9 9 dtype float64\n" + ENTRIES, (9, 9, 9)),
        ("3 1 1 2\r\n1 2 4 0.5\r\n", (3, 2, 4)),
    ],
)
def test_files_with_comments_and_sizes(tmp_path: Path, text: str, shape: tuple[int, ...]) -> None:
    path = tmp_path / "a.tns"
    path.write_text(text)
    tensor = read(path)
    assert (tensor.shape, tensor.nnz, tensor.dtype, tensor.format) == (shape, 2, np.float64, named.csf(3))
    assert tensor[0, 1, 3] == 0.5 and tensor[2, 0, 0] == 2


def test_orders(tmp_path: Path) -> None:
    path = tmp_path / "a.tns"
    for text, shape, format in [
        ("3 1.5\n", (3,), "s"),
        ("2 3 1\n", (2, 3), "csr"),
        ("1 1 1 1 5\n", (1, 1, 1, 1), "csf(4)"),
        ("2.5\n", (), "dense(0)"),
    ]:
        path.write_text(text)
        assert (read(path).shape, str(read(path).format)) == (shape, format)


@pytest.mark.parametrize("suffix", [".tns", ".tns.gz"])
@pytest.mark.parametrize("dtype", [dtype for dtype in VALUE_DTYPES if dtype.kind != "c"], ids=str)
def test_written_files_are_read_back(tmp_path: Path, suffix: str, dtype: Any) -> None:
    path = tmp_path / f"a{suffix}"
    for shape, format in [((4, 5, 6), "csf"), ((4, 5, 6), "coo"), ((3, 3), "csc"), ((2, 3, 2, 3), "dense"), ((7,), "s"), ((), "dense")]:
        tensor = random(shape, 0.4, format, seed=2, dtype=dtype)
        write(path, tensor)
        again = read(path)
        assert (again.shape, again.dtype) == (shape, dtype)
        np.testing.assert_array_equal(again.to_numpy(), tensor.to_numpy())


def test_extreme_values_survive(tmp_path: Path) -> None:
    for values in (
        np.array([2**63 - 1, -(2**63)]),
        np.array([2**64 - 1, 1], np.uint64),
        np.array([0.1, 1e-320, np.inf]),
        np.array([0.1, 1 / 3], "f4"),
    ):
        write(tmp_path / "a.tns", asarray(values))
        again = read(tmp_path / "a.tns", "dense")
        assert again.dtype == values.dtype
        np.testing.assert_array_equal(again.to_numpy(), values)


def test_empty_tensors_keep_their_shape(tmp_path: Path) -> None:
    write(tmp_path / "a.tns", zeros((3, 4, 5), "csf"))
    assert (read(tmp_path / "a.tns").shape, read(tmp_path / "a.tns").nnz) == ((3, 4, 5), 0)


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(DTypeError, match=r"real numbers, not complex128; write \.npz"):
        write(tmp_path / "a.tns", asarray([1j]))
    with pytest.raises(StorageError, match=r"absent entries are 2\.0"):
        write(tmp_path / "a.tns", full((2, 2), 2.0, "csr"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "shape", "count"), [
    ("flights_orig_dest_delay", (229, 229, 61), 110_097), ("splatt_med4", (60_114, 83_826, 23_034, 1_132), 100_000)])  # fmt: skip
def test_real_tensors(data_dir: Path, name: str, shape: tuple[int, ...], count: int) -> None:
    tensor = read(data_dir / f"{name}.tns.gz")
    assert (tensor.shape, tensor.nnz) == (shape, count)
