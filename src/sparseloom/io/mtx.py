"""Matrix Market files (.mtx): coordinate and array, every field and every symmetry.

%%MatrixMarket matrix coordinate real symmetric
% comments
3 3 2          rows columns entries
1 1 2.5        row column value, counting from 1
3 1 -1         stands for (3,1) and (1,3)
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import kind_of
from sparseloom.core.errors import StorageError
from sparseloom.formats.format import Format
from sparseloom.formats.named import csr, dense
from sparseloom.formats.pack import from_dense, to_dense, unpack
from sparseloom.formats.storage import Storage
from sparseloom.formats.text import as_format
from sparseloom.io.lines import Block, Lines
from sparseloom.io.room import require_array, require_free, require_storable
from sparseloom.io.source import Sink, fault, open_plain, write_text
from sparseloom.io.table import Layout, Rows, known_sizes, read_rows
from sparseloom.io.written import write_rows
from sparseloom.programs.conversion import store

_FIELDS = {"real": 1, "double": 1, "integer": 1, "unsigned-integer": 1, "complex": 2, "pattern": 0}
_SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")


@dataclass(frozen=True)
class Header:
    """The first line of a file, in lower case."""

    layout: str
    field: str
    symmetry: str

    @property
    def words(self) -> int:
        """How many numbers make one value."""
        return _FIELDS[self.field]


def read_mtx(path: Path, format: Format | str | None = None) -> Storage:
    """Read a matrix: csr from a coordinate file, dense from an array file, unless a format is given."""
    with open_plain(path) as file:
        lines = Lines(path, file, b"%", alone=True)
        header = _read_header(path, lines.first)
        wanted = None if format is None else as_format(format, 2)
        sizes = _read_sizes(lines, header)
        shape = (sizes[0], sizes[1])
        if header.layout == "array":
            return from_dense(_read_array(lines, header, shape), wanted or dense(2), 0)
        coordinates, values = _read_coordinates(lines, header, shape, sizes[2])
    require_storable(path, wanted or csr, shape, len(values), values.itemsize)
    return store(wanted or csr, shape, coordinates, values)


def write_mtx(path: Path, storage: Storage) -> None:
    """Write a matrix, in general symmetry: dense ones as array files, others as coordinate files."""
    if len(storage.shape) != 2:
        raise StorageError(
            f"cannot write {path}: a Matrix Market file holds a matrix, and this tensor has {len(storage.shape)} modes; write .tns or .npz"
        )
    if storage.format.is_dense:
        write_text(path, lambda file: _write_array(file, to_dense(storage)))
        return
    if storage.fill != 0:
        raise StorageError(
            f"cannot write {path}: absent entries are {storage.fill}, and a Matrix Market file can only leave out zeros; write .npz"
        )
    write_text(path, lambda file: _write_coordinates(file, storage))


def _read_header(path: Path, line: bytes) -> Header:
    words = line.decode("ascii", "replace").lower().split()
    if not words or words[0] != "%%matrixmarket":
        raise fault(path, "the first line must begin with %%MatrixMarket", 1, line)
    if len(words) != 5:
        raise fault(path, "the first line must be '%%MatrixMarket matrix <layout> <field> <symmetry>'", 1, line)
    _, what, layout, field, symmetry = words
    for given, known in ((what, ("matrix",)), (layout, ("coordinate", "array")), (field, tuple(_FIELDS)), (symmetry, _SYMMETRIES)):
        if given not in known:
            raise fault(path, f"{given!r} is not one of {', '.join(known)}", 1, line)
    if symmetry == "hermitian" and field != "complex":
        raise fault(path, f"a hermitian matrix must be complex, not {field}", 1, line)
    if field == "pattern" and (layout == "array" or symmetry == "skew-symmetric"):
        raise fault(path, f"a pattern has no values, so it cannot be {'an array' if layout == 'array' else symmetry}", 1, line)
    return Header(layout, field, symmetry)


def _read_sizes(lines: Lines, header: Header) -> tuple[int, ...]:
    """The numbers of the size line."""
    names = ("rows", "columns", "entries") if header.layout == "coordinate" else ("rows", "columns")
    found = lines.next()
    if found is None:
        raise fault(lines.path, f"the file ends before its size line ({', '.join(names)})", max(lines.number - 1, 1))
    number, line = found
    words = line.split()
    if len(words) != len(names) or not all(word.isdigit() for word in words):
        raise fault(lines.path, f"the size line must hold {len(names)} counts: {', '.join(names)}", number, line)
    sizes = known_sizes(lines.path, words, number, line)
    if header.symmetry != "general" and sizes[0] != sizes[1]:
        raise fault(lines.path, f"a {header.symmetry} matrix must be square, not {sizes[0]} by {sizes[1]}", number, line)
    return sizes


def _values(numbers: NDArray[Any], header: Header) -> NDArray[Any]:
    """The values from their columns."""
    match header.field:
        case "pattern":
            return np.ones(len(numbers))
        case "complex":
            return np.ascontiguousarray(numbers, np.float64).view(np.complex128)[:, 0]
        case "unsigned-integer":
            return numbers[:, 0].astype(np.uint64, copy=False)
    return numbers[:, 0]


def _layout(header: Header, names: tuple[str, ...], shape: tuple[int, ...], declared: int, what: str) -> Layout:
    return Layout(names, shape, header.words, header.field.endswith("integer"), declared, what)


def _read_coordinates(lines: Lines, header: Header, shape: tuple[int, int], declared: int) -> tuple[NDArray[Any], NDArray[Any]]:
    layout = _layout(header, ("row", "column"), shape, declared, "entries")
    coordinates, numbers = read_rows(lines, layout, _Triangle(header).inspect)
    values = _values(numbers, header)
    if header.symmetry == "general":
        return coordinates, values
    off = np.flatnonzero(coordinates[0] != coordinates[1])
    return np.hstack((coordinates, coordinates[::-1, off])), np.concatenate((values, _reflected(values[off], header)))


@dataclass
class _Triangle:
    """What entries must keep to: the one triangle of a symmetric matrix that is stored, whichever it is."""

    header: Header
    side: int = 0  # that of the first entry off the diagonal: 1 below, -1 above

    def inspect(self, block: Block, rows: Rows) -> None:
        """Refuse entries that the header rules out."""
        _refuse_negative(block, rows, self.header)
        if self.header.symmetry == "general":
            return
        sides = np.sign(rows.coordinates[0] - rows.coordinates[1])
        off = np.flatnonzero(sides)
        if off.size:
            self.side = self.side or int(sides[off[0]])
            other = np.flatnonzero(sides == -self.side)
            if other.size:
                what = f"a {self.header.symmetry} file stores one triangle, but entries stand on both sides of the diagonal"
                raise block.fault(int(other[0]), what)
        if self.header.symmetry == "skew-symmetric":
            diagonal = np.flatnonzero((sides == 0) & (rows.values != 0).any(axis=1))
            if diagonal.size:
                raise block.fault(int(diagonal[0]), "the diagonal of a skew-symmetric matrix is zero")


def _refuse_negative(block: Block, rows: Rows, header: Header) -> None:
    """A file of unsigned integers has no negative ones."""
    if header.field == "unsigned-integer" and rows.values.min() < 0:
        row = int(np.flatnonzero(rows.values[:, 0] < 0)[0])
        raise block.fault(row, f"the value {rows.values[row, 0]} is negative, but the header says {header.field}")


def _reflected(values: NDArray[Any], header: Header) -> NDArray[Any]:
    """What stands at (j,i) when ``values`` stand at (i,j)."""
    match header.symmetry:
        case "skew-symmetric":
            return -values
        case "hermitian":
            return values.conj()
    return values


def _read_array(lines: Lines, header: Header, shape: tuple[int, int]) -> NDArray[Any]:
    """An array file: columns one after another; a symmetric one holds the lower triangle only."""
    rows, columns = shape
    if not rows or not columns:
        require_array(lines.path, shape, 16)
    skipped = 1 if header.symmetry == "skew-symmetric" else 0
    count = rows * columns if header.symmetry == "general" else (rows - skipped) * (rows - skipped + 1) // 2
    layout = _layout(header, (), (), count, "values")
    values = _values(read_rows(lines, layout, lambda block, rows: _refuse_negative(block, rows, header)).values, header)
    if header.symmetry == "general":
        return values.reshape(columns, rows).T
    require_free(lines.path, rows * columns * values.itemsize, "the whole matrix")
    result, begin = np.zeros(shape, values.dtype), 0
    for column in range(rows):
        length = rows - skipped - column
        part = values[begin : begin + length]
        result[column, column + skipped :] = _reflected(part, header)
        result[column + skipped :, column] = part
        begin += length
    return result


def _write_coordinates(file: Sink, storage: Storage) -> None:
    coordinates, values = unpack(storage)
    file.write(_head("coordinate", values, *storage.shape, len(values)))
    write_rows(file, coordinates, values)


def _write_array(file: Sink, array: NDArray[Any]) -> None:
    values = array.T.reshape(-1)
    file.write(_head("array", values, *array.shape))
    write_rows(file, np.empty((0, len(values)), np.int64), values)


def _head(layout: str, values: NDArray[Any], *sizes: int) -> bytes:
    """The first line and the size line."""
    field = "complex" if values.dtype.kind == "c" else "real" if kind_of(values.dtype) == "f" else "integer"
    return f"%%MatrixMarket matrix {layout} {field} general\n{' '.join(map(str, sizes))}\n".encode()
