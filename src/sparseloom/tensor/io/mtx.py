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

from sparseloom.conversion import store
from sparseloom.core.dtypes import is_complex
from sparseloom.core.errors import StorageError
from sparseloom.formats.format import Format
from sparseloom.formats.named import csr, dense
from sparseloom.formats.pack import from_dense, to_dense, unpack
from sparseloom.formats.storage import Storage
from sparseloom.tensor.io.source import Sink, fault, read_bytes, write_text
from sparseloom.tensor.io.table import Table, strip_comments, words

_FIELDS = {"real": 1, "double": 1, "integer": 1, "unsigned-integer": 1, "complex": 2, "pattern": 0}
_SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")
_LINES_AT_ONCE = 200_000


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


def read_mtx(path: Path, format: Format | None = None) -> Storage:
    """Read a matrix: csr from a coordinate file, dense from an array file, unless a format is given."""
    text = read_bytes(path)
    header = _read_header(path, text)
    sizes, table = _read_sizes(path, text, header)
    if header.layout == "coordinate":
        shape = (sizes[0], sizes[1])
        coordinates, values = _read_coordinates(table, header, shape, sizes[2])
        return store(format or csr, shape, coordinates, values)
    return from_dense(_read_array(table, header, (sizes[0], sizes[1])), format or dense(2), 0)


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


def _read_header(path: Path, text: bytes) -> Header:
    line = text[: text.find(b"\n") if b"\n" in text else len(text)]
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


def _read_sizes(path: Path, text: bytes, header: Header) -> tuple[tuple[int, ...], Table]:
    """The numbers of the size line, and the table that follows it."""
    names = ("rows", "columns", "entries") if header.layout == "coordinate" else ("rows", "columns")
    begin, number = 0, 0
    while begin < len(text):
        end = text.find(b"\n", begin)
        end = len(text) if end < 0 else end
        line, begin, number = text[begin:end], end + 1, number + 1
        if not line.strip() or line.lstrip().startswith(b"%"):
            continue
        words = line.split()
        if len(words) != len(names) or not all(word.isdigit() for word in words):
            raise fault(path, f"the size line must hold {len(names)} counts: {', '.join(names)}", number, line)
        sizes = tuple(int(word) for word in words)
        if max(sizes) >= 2**63:
            raise fault(path, "a size does not fit in 64 bits", number, line)
        if header.symmetry != "general" and sizes[0] != sizes[1]:
            raise fault(path, f"a {header.symmetry} matrix must be square, not {sizes[0]} by {sizes[1]}", number, line)
        return sizes, Table(path, strip_comments(text[begin:], b"%", only_at_start=True), number + 1)
    raise fault(path, f"the file ends before its size line ({', '.join(names)})", max(number, 1))


def _read_numbers(table: Table, header: Header, columns: int) -> NDArray[Any]:
    if header.field.endswith("integer"):
        return table.integers(columns)
    return table.numbers(columns)


def _count_rows(table: Table, found: int, declared: int, what: str) -> None:
    """A file must hold as many rows as it declares."""
    if found < declared:
        raise fault(table.path, f"{declared} {what} are declared, but the file ends after {found}", table.last_line)
    if found > declared:
        raise table.fault(declared, f"{declared} {what} are declared, but more follow")


def _values(numbers: NDArray[Any], header: Header) -> NDArray[Any]:
    """The values from their columns."""
    match header.field:
        case "pattern":
            return np.ones(len(numbers))
        case "complex":
            return np.ascontiguousarray(numbers, np.float64).view(np.complex128)[:, 0]
        case "integer":
            return np.ascontiguousarray(numbers[:, 0])
        case "unsigned-integer":
            return np.ascontiguousarray(numbers[:, 0], np.uint64)
    return np.ascontiguousarray(numbers[:, 0], np.float64)


def _read_coordinates(table: Table, header: Header, shape: tuple[int, int], declared: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    numbers = _read_numbers(table, header, 2 + header.words)
    _count_rows(table, len(numbers), declared, "entries")
    coordinates = table.coordinates(numbers[:, :2], ("row", "column"), shape)
    values = _values(numbers[:, 2:], header)
    if header.symmetry == "general":
        return coordinates, values
    return _mirror(table, header, coordinates, values)


def _mirror(table: Table, header: Header, coordinates: NDArray[np.int64], values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Add the other triangle of a symmetric matrix, whichever of the two is stored."""
    rows, columns = coordinates
    above, below = np.flatnonzero(columns > rows), np.flatnonzero(columns < rows)
    if above.size and below.size:
        other = above if len(above) < len(below) else below
        raise table.fault(int(other[0]), f"a {header.symmetry} file stores one triangle, but entries stand on both sides of the diagonal")
    diagonal = np.flatnonzero((rows == columns) & (values != 0))
    if header.symmetry == "skew-symmetric" and diagonal.size:
        raise table.fault(int(diagonal[0]), "the diagonal of a skew-symmetric matrix is zero")
    off = above if above.size else below
    return np.hstack((coordinates, coordinates[::-1, off])), np.concatenate((values, _reflected(values[off], header)))


def _reflected(values: NDArray[Any], header: Header) -> NDArray[Any]:
    """What stands at (j,i) when ``values`` stand at (i,j)."""
    match header.symmetry:
        case "skew-symmetric":
            return -values
        case "hermitian":
            return values.conj()
    return values


def _read_array(table: Table, header: Header, shape: tuple[int, int]) -> NDArray[Any]:
    """An array file: columns one after another; a symmetric one holds the lower triangle only."""
    rows, columns = shape
    count = {"general": rows * columns, "skew-symmetric": rows * (rows - 1) // 2}.get(header.symmetry, rows * (rows + 1) // 2)
    numbers = _read_numbers(table, header, header.words)
    _count_rows(table, len(numbers), count, "values")
    values = _values(numbers, header)
    if header.symmetry == "general":
        return values.reshape(columns, rows).T
    result = np.zeros(shape, values.dtype)
    column, row = np.triu_indices(rows, k=1 if header.symmetry == "skew-symmetric" else 0)
    result[column, row] = _reflected(values, header)
    result[row, column] = values
    return result


def _field_of(values: NDArray[Any]) -> str:
    return "complex" if is_complex(values.dtype) else "real" if values.dtype.kind == "f" else "integer"


def _write_coordinates(file: Sink, storage: Storage) -> None:
    coordinates, values = unpack(storage)
    file.write(f"%%MatrixMarket matrix coordinate {_field_of(values)} general\n".encode())
    file.write(f"{storage.shape[0]} {storage.shape[1]} {len(values)}\n".encode())
    for begin in range(0, len(values), _LINES_AT_ONCE):
        part = slice(begin, begin + _LINES_AT_ONCE)
        rows, columns = (coordinates[:, part] + 1).tolist()
        lines = [f"{i} {j} {value}\n" for i, j, value in zip(rows, columns, words(values[part]), strict=True)]
        file.write("".join(lines).encode())


def _write_array(file: Sink, array: NDArray[Any]) -> None:
    file.write(f"%%MatrixMarket matrix array {_field_of(array)} general\n".encode())
    file.write(f"{array.shape[0]} {array.shape[1]}\n".encode())
    flat = array.T.reshape(-1)
    for begin in range(0, len(flat), _LINES_AT_ONCE):
        lines = words(flat[begin : begin + _LINES_AT_ONCE])
        file.write(("\n".join(lines) + "\n").encode())
