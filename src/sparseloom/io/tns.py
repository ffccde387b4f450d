"""FROSTT text files (.tns): one entry per line, coordinates counting from 1, then the value.

    # comments
    1 2 4  0.5
    3 1 1  2

The sizes are the largest coordinates, unless they are given: by two first lines ``3`` and ``3 2 4`` (order and sizes), as some
tools write, or by the comment ``# sparseloom: shape 3 2 4 dtype float64``, as this module writes.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from sparseloom.core.dtypes import KNOWN_DTYPES, STORED_NAMES, DType, value_dtype
from sparseloom.core.errors import DTypeError, StorageError
from sparseloom.formats.format import Format
from sparseloom.formats.named import entries
from sparseloom.formats.pack import unpack
from sparseloom.formats.storage import Storage
from sparseloom.formats.text import as_format
from sparseloom.io.lines import Block, Lines
from sparseloom.io.room import require_storable
from sparseloom.io.source import Sink, fault, open_plain, write_text
from sparseloom.io.table import Layout, Rows, known_sizes, read_rows
from sparseloom.io.written import write_rows
from sparseloom.programs.conversion import store

_MOST_MODES = 1000  # the time to store entries grows with the square of it
_REMARK = re.compile(rb"# sparseloom: shape((?: \d+)*) dtype (\w+)\s*")


def read_tns(path: Path, format: Format | str | None = None) -> Storage:
    """Read a tensor: csr if it has two modes, else csf, unless a format is given."""
    with open_plain(path) as file:
        lines = Lines(path, file, b"#", alone=False)
        shape, dtype = _read_remark(path, lines.first)
        if shape is None:
            shape = _read_sizes(lines)
        order = _order_of_entries(lines) if shape is None else len(shape)
        if order > _MOST_MODES:
            raise fault(path, f"its entries have {order} modes, and at most {_MOST_MODES} are read; group some of them", 1)
        names = tuple(f"mode-{mode} coordinate" for mode in range(order))
        layout = Layout(names, shape, 1, dtype.kind in "iub")
        coordinates, numbers = read_rows(lines, layout, lambda block, rows: _refuse_outside(block, rows, dtype))
    if shape is None:
        shape = tuple(int(row.max()) + 1 for row in coordinates)
    with np.errstate(over="ignore"):  # what is too large for the dtype is infinite, as in any text
        values = numbers[:, 0].astype(dtype, copy=False)
    wanted = entries(order) if format is None else as_format(format, order)
    require_storable(path, wanted, shape, len(values), values.itemsize)
    return store(wanted, shape, coordinates, values)


def write_tns(path: Path, storage: Storage) -> None:
    """Write the stored entries; of a dense tensor, those that are not zero."""
    if storage.fill != 0:
        raise StorageError(f"cannot write {path}: absent entries are {storage.fill}, and a .tns file can only leave out zeros; write .npz")
    if storage.dtype.kind == "c":
        raise DTypeError(f"cannot write {path}: a .tns file holds real numbers, not {storage.dtype}; write .npz")
    write_text(path, lambda file: _write(file, storage))


def _read_remark(path: Path, line: bytes) -> tuple[tuple[int, ...] | None, DType]:
    """The shape and dtype from our own comment, if it is there; values are float64 otherwise."""
    remark = _REMARK.fullmatch(line)
    if remark is None:
        return None, np.dtype(np.float64)
    name = remark[2].decode("ascii")
    if name not in STORED_NAMES:
        # By its whole name: 'f', all that is left of 'float64' where a file is cut off, is another dtype.
        raise fault(path, f"{name!r} is not a value type; there are {KNOWN_DTYPES}", 1, line)
    return known_sizes(path, remark[1].split(), 1, line), value_dtype(name)


def _read_sizes(lines: Lines) -> tuple[int, ...] | None:
    """The two lines with order and sizes, if the file begins with them."""
    first = lines.next()
    if first is None or not re.fullmatch(rb"\d{1,2}", first[1].strip()):
        lines.put_back(first)
        return None
    second = lines.next()
    sizes = second[1].split() if second is not None else []
    if second is None or len(sizes) != int(first[1]) or not all(size.isdigit() for size in sizes):
        lines.put_back(first, second)
        return None
    return known_sizes(lines.path, sizes, *second)


def _order_of_entries(lines: Lines) -> int:
    """How many modes the first entry has."""
    first = lines.peek()
    if first is None:
        raise fault(lines.path, "there is no entry in it, so its sizes are unknown", 1)
    return len(first[1].split()) - 1


def _refuse_outside(block: Block, rows: Rows, dtype: DType) -> None:
    """Integers must fit into the dtype that the file names."""
    if dtype.kind not in "iub":
        return
    limits = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    if rows.values.min() < limits[0] or rows.values.max() > limits[1]:
        row = int(np.flatnonzero((rows.values < limits[0]) | (rows.values > limits[1]))[0])
        raise block.fault(row, f"the value {rows.values[row, 0]} does not fit into {dtype}")


def _write(file: Sink, storage: Storage) -> None:
    coordinates, values = unpack(storage)
    if storage.format.is_dense:
        kept = values != 0
        coordinates, values = coordinates[:, kept], values[kept]
    shape = "".join(f" {size}" for size in storage.shape)
    file.write(f"# sparseloom: shape{shape} dtype {values.dtype}\n".encode())
    write_rows(file, coordinates, values)
