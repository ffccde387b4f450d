"""Small files of every kind with four bytes changed, or cut off: a read gives a tensor, or a StorageError that names the file.

Most changes go through all places of a file in turn. The worker's process tells what would kill it.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

import sparseloom as sl

NAME = "damaged"
COUNT = 12_000
SHORT = 150
SUFFIXES = (".mtx", ".mtx.gz", ".tns", ".tns.gz", ".npz", ".npy", ".mat", ".h5", ".bsp.npz")
MATRIX = np.array([[1.5, 0, 0, 2], [0, 0, 3, 0], [0, 4, 0, 5]])
DTYPES = ("float64", "float32", "int16", "uint8", "bool", "complex128", "int64")
WORDS = (
    b"\xff\xff\xff\xff", bytes(4), b"\0\0\0\x80", b"\xff\xff\xff\x7f", b"\x80\0\0\0", b"\1\0\0\0", b"\0\0\0\1", b"9999", b"    ", b"-1-1",
)  # fmt: skip


def trial(rng: np.random.Generator) -> str:
    """One damaged file, read as it is or into another format."""
    suffix = str(rng.choice(SUFFIXES))
    data = bytearray(whole(suffix, int(rng.integers(12))))
    for _ in range(int(rng.choice([1, 1, 1, 2, 5]))):
        data = CHANGES[int(rng.integers(len(CHANGES)))](rng, data)
    format = None if rng.integers(3) else str(rng.choice(["csr", "coo", "dense", "dcsr"]))
    with tempfile.TemporaryDirectory(prefix="sparseloom-damaged-") as folder:
        path = Path(folder) / f"a{suffix}"
        path.write_bytes(data)
        try:
            sl.read(path, format=format)
        except sl.StorageError as problem:
            assert str(path) in str(problem), f"the error does not name the file: {problem}"
            return "refused"
        except (sl.FormatError, sl.ShapeError) as problem:
            assert format is not None, f"{type(problem).__name__} instead of a StorageError: {problem}"
            return "refused"
        return "right"


@cache
def whole(suffix: str, kind: int) -> bytes:
    """A sound file: dense or sparse, of some dtype, as we write it or as others do."""
    dtype = DTYPES[kind % len(DTYPES)]
    array = MATRIX.astype(dtype)
    with tempfile.TemporaryDirectory(prefix="sparseloom-damaged-") as folder:
        path = Path(folder) / f"a{suffix}"
        if suffix == ".mat":
            held: Any = sp.csc_array(array) if kind % 2 else array
            level = "4" if kind > 8 else "5"
            others: dict[str, Any] = {} if kind % 3 else {"title": "text"}
            others |= {"cells": np.array([1, "a"], object)} if others and level == "5" else {}
            scipy.io.savemat(path, {"A": held, **others}, do_compression=kind in (3, 4), format=level)
        elif suffix in (".npz", ".h5", ".bsp.npz"):
            sl.write(path, sl.asarray(array, format=("csr", "coo", "dense", "csc")[kind % 4]))
        else:
            real = array.real if suffix.startswith(".tns") else array
            sl.write(path, sl.asarray(real, format=("csr", "dense")[kind % 2]))
        return path.read_bytes()


def _word(rng: np.random.Generator, data: bytearray) -> bytearray:
    """Four bytes become others."""
    place = int(rng.integers(max(len(data) - 3, 1)))
    data[place : place + 4] = WORDS[int(rng.integers(len(WORDS)))] if rng.integers(4) else rng.bytes(4)
    return data


def _number(rng: np.random.Generator, data: bytearray) -> bytearray:
    """A number of four or eight bytes becomes another near it, or changes its sign."""
    place = int(rng.integers(max(len(data) - 7, 1))) & ~3
    code = "<i" if rng.integers(2) else "<q"
    part = bytes(data[place : place + struct.calcsize(code)]).ljust(struct.calcsize(code), b"\0")
    (number,) = struct.unpack(code, part)
    changed = int(rng.choice([-number, number + 1, number - 1, number ^ 1 << 7, number * 2])) if abs(number) < 2**30 else -1
    data[place : place + len(part)] = struct.pack(code, changed)
    return data


def _cut(rng: np.random.Generator, data: bytearray) -> bytearray:
    """The end is missing, or a part in the middle."""
    begin = int(rng.integers(len(data) + 1))
    end = len(data) if rng.integers(2) else begin + int(rng.integers(1, 9))
    del data[begin:end]
    return data


def _longer(rng: np.random.Generator, data: bytearray) -> bytearray:
    """Something stands between, or behind."""
    place = int(rng.integers(len(data) + 1)) if rng.integers(2) else len(data)
    data[place:place] = rng.bytes(int(rng.integers(1, 20)))
    return data


CHANGES: tuple[Callable[[np.random.Generator, bytearray], bytearray], ...] = (_word, _word, _word, _number, _cut, _longer)
