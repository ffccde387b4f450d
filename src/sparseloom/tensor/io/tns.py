"""FROSTT text files (.tns): one entry per line, coordinates counting from 1, then the value.

    # comments
    1 2 4  0.5
    3 1 1  2

The sizes are the largest coordinates, unless they are given: by two first lines ``3`` and ``3 2 4`` (order and sizes), as some
tools write, or by the comment ``# sparseloom: shape 3 2 4 dtype float64``, as this module writes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.conversion import store
from sparseloom.core.dtypes import DType, value_dtype
from sparseloom.core.errors import DTypeError, StorageError
from sparseloom.formats.format import Format
from sparseloom.formats.named import csf, csr, dense
from sparseloom.formats.pack import unpack
from sparseloom.formats.storage import Storage
from sparseloom.tensor.io.source import Sink, fault, read_bytes, write_text
from sparseloom.tensor.io.table import Table, strip_comments, words

_REMARK = re.compile(rb"\A# sparseloom: shape((?: \d+)*) dtype (\w+)\r?(?:\n|\Z)")
_LINES_AT_ONCE = 200_000


def read_tns(path: Path, format: Format | None = None) -> Storage:
    """Read a tensor: csr if it has two modes, else csf, unless a format is given."""
    text = read_bytes(path)
    shape, dtype = _read_remark(path, text)
    table = Table(path, strip_comments(text, b"#", only_at_start=False), 1)
    if shape is None:
        shape, table = _read_sizes(table)
    words = _first_words(table)
    if not words and shape is None:
        raise fault(path, "there is no entry in it, so its sizes are unknown", 1)
    order = len(words) - 1 if shape is None else len(shape)
    numbers = _numbers(table, order + 1, dtype)
    names = tuple(f"coordinate of mode {mode}" for mode in range(order))
    coordinates = table.coordinates(numbers[:, :order], names, shape)
    if shape is None:
        shape = tuple(int(row.max()) + 1 for row in coordinates)
    values = np.ascontiguousarray(numbers[:, order]).astype(dtype)
    return store(format or _natural(order), shape, coordinates, values)


def write_tns(path: Path, storage: Storage) -> None:
    """Write the stored entries; of a dense tensor, those that are not zero."""
    if storage.fill != 0:
        raise StorageError(f"cannot write {path}: absent entries are {storage.fill}, and a .tns file can only leave out zeros; write .npz")
    if storage.dtype.kind == "c":
        raise DTypeError(f"cannot write {path}: a .tns file holds real numbers, not {storage.dtype}; write .npz")
    write_text(path, lambda file: _write(file, storage))


def _natural(order: int) -> Format:
    return dense(0) if order == 0 else csr if order == 2 else csf(order)


def _read_remark(path: Path, text: bytes) -> tuple[tuple[int, ...] | None, DType]:
    """The shape and dtype from our own comment, if it is there; values are float64 otherwise."""
    remark = _REMARK.match(text)
    if remark is None:
        return None, np.dtype(np.float64)
    shape = tuple(int(size) for size in remark[1].split())
    try:
        return shape, value_dtype(remark[2].decode())
    except DTypeError as problem:
        raise fault(path, str(problem), 1, remark[0]) from None


def _first_words(table: Table) -> Sequence[bytes]:
    """The words of the first line that has any."""
    begin = re.search(rb"\S[^\n]*", table.body)
    return begin[0].split() if begin else ()


def _read_sizes(table: Table) -> tuple[tuple[int, ...] | None, Table]:
    """The two lines with order and sizes, if the file begins with them."""
    head = re.match(rb"\s*(\d{1,2})[ \t\r]*\n\s*(\d+(?:[ \t]+\d+)*)[ \t\r]*(?:\n|\Z)", table.body)
    if head is None or len(head[2].split()) != int(head[1]):
        return None, table
    return tuple(int(size) for size in head[2].split()), Table(table.path, table.body[head.end() :], 1 + head[0].count(b"\n"))


def _numbers(table: Table, columns: int, dtype: DType) -> NDArray[Any]:
    """The table; a file of large integers must not go through float64."""
    if dtype.kind in "iub":
        return table.integers(columns)
    return table.numbers(columns)


def _write(file: Sink, storage: Storage) -> None:
    coordinates, values = unpack(storage)
    if storage.format.is_dense:
        kept = values != 0
        coordinates, values = coordinates[:, kept], values[kept]
    shape = "".join(f" {size}" for size in storage.shape)
    file.write(f"# sparseloom: shape{shape} dtype {values.dtype}\n".encode())
    for begin in range(0, len(values), _LINES_AT_ONCE):
        part = slice(begin, begin + _LINES_AT_ONCE)
        columns = [list(map(str, row)) for row in (coordinates[:, part] + 1).tolist()]
        columns.append(words(values[part]))
        file.write("".join(" ".join(line) + "\n" for line in zip(*columns, strict=True)).encode())
