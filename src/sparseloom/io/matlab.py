"""The arrays in MATLAB's files, of level 5 (versions 5 to 7) and level 4, read without trusting a number in them.

A file of level 5 is a head and elements, each a tag (type and number of bytes) and data. An array is an element of elements, perhaps
packed by zlib::

    head of 128 bytes    MATRIX n [ flags  sizes  name  real part  (imaginary part) ]              dense
                         PACKED n [ MATRIX n [ flags  sizes  name  ir  jc  real part ... ] ]       sparse, by columns

A file of level 4 has 20 bytes of numbers in front of each array, then its name and its values. Every number of bytes is compared with
what is left before anything is read, and with the free memory before anything is allocated.
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import DType
from sparseloom.formats.named import csc
from sparseloom.formats.storage import Storage
from sparseloom.interop.numpy import from_numpy
from sparseloom.interop.scipy import from_compressed, from_coordinates
from sparseloom.io.room import require_array, require_free
from sparseloom.io.source import PIECE, fault

_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}  # of elements
_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}  # of dense arrays
_TYPES_4 = {0: "f8", 1: "f4", 2: "i4", 3: "i2", 4: "u2", 5: "u1"}
_MATRIX, _PACKED, _SPARSE, _OPAQUE = 14, 15, 5, 17
_MOST_PACKED, _SLACK = 1100, 1 << 16  # zlib packs at most 1032 bytes into one
_LONGEST_NAME, _MOST_MODES = 4096, 32


class _Stream(Protocol):
    """Bytes that come once; ``left`` are those that may still be asked for."""

    left: int

    def read(self, size: int, /) -> bytes:
        """At most so many more bytes; none at the end."""


class _Plain:
    """Some bytes of a file, from where it stands."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file, self.left = file, size

    def read(self, size: int, /) -> bytes:
        """As the protocol says."""
        data = self._file.read(min(size, self.left))
        self.left -= len(data)
        return data


class _Unpacked:
    """What zlib packed into some bytes of a file. A few of them could stand for more than there is memory."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._source, self._unpacker = _Plain(file, size), zlib.decompressobj()
        self.left = _MOST_PACKED * size + _SLACK

    def read(self, size: int, /) -> bytes:
        """As the protocol says."""
        while not self._unpacker.eof and size:
            packed = self._unpacker.unconsumed_tail or self._source.read(PIECE)
            data = self._unpacker.decompress(packed, size)
            if data or not packed:
                self.left -= len(data)
                return data
        return b""


@dataclass(frozen=True)
class Variable:
    """One array of a file: where it begins, how it is stored, and what its head says. ``dtype`` is None if it is no array of numbers."""

    name: str
    start: int
    size: int
    is_packed: bool
    shape: tuple[int, ...]
    dtype: DType | None
    is_sparse: bool = False
    is_logical: bool = False
    is_complex: bool = False


class MatlabFile:
    """An open file of MATLAB's, and the arrays in it."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path, self._file = path, file
        self._size = os.fstat(file.fileno()).st_size
        head = self._at(0, min(self._size, 128)).read(128)
        self._order, self._level = self._kind(head)

    def variables(self) -> dict[str, Variable]:
        """The arrays of numbers, by name. Others (text, cells, structures) are left out."""
        found = self._listed_4() if self._level == 4 else self._listed_5()
        return {one.name: one for one in found if one.dtype is not None and one.name}

    def load(self, one: Variable) -> Storage:
        """Read an array: csc if it is sparse, else dense."""
        try:
            return self._load_4(one) if self._level == 4 else self._load_5(one)
        except zlib.error as problem:
            raise self._damage(f"{one.name!r} cannot be unpacked: {problem}") from None

    def _damage(self, what: str) -> Exception:
        return fault(self._path, f"it is damaged, or no file of MATLAB's: {what}")

    def _kind(self, head: bytes) -> tuple[str, int]:
        """The order of bytes, and the level."""
        if len(head) < 20:
            raise self._damage(f"it has {len(head)} bytes")
        if 0 in head[:4]:
            order = "<" if int.from_bytes(head[:4], "little") <= 5000 else ">"
            return order, 4
        if len(head) < 128:
            raise self._damage(f"its head is cut off after {len(head)} bytes")
        order = {b"IM": "<", b"MI": ">"}.get(head[126:128], "")
        version = head[125 if order == "<" else 124]
        if order and version == 2:
            raise fault(self._path, "it is of MATLAB's version 7.3, which is not read here; save it there with -v7")
        if not order or version != 1:
            raise self._damage("its head names neither an order of bytes nor a version that is known")
        return order, 5

    def _at(self, start: int, size: int) -> _Plain:
        self._file.seek(start)
        return _Plain(self._file, size)

    def _opened(self, one: Variable) -> _Stream:
        self._file.seek(one.start)
        return (_Unpacked if one.is_packed else _Plain)(self._file, one.size)

    # Level 5

    def _listed_5(self) -> Iterator[Variable]:
        place = 128
        while place < self._size:
            kind, size, _ = self._tag(self._at(place, min(8, self._size - place)))
            if kind not in (_MATRIX, _PACKED):
                raise self._damage(f"an element of type {kind} begins at byte {place}, and there are arrays only")
            if size > self._size - place - 8:
                raise self._damage(f"the array at byte {place} has {size} bytes, and {self._size - place - 8} follow")
            blank = Variable("", place + 8, size, kind == _PACKED, (), None)
            if size:
                try:
                    yield self._headed(self._content(self._opened(blank), blank), blank)
                except zlib.error as problem:
                    raise self._damage(f"the array at byte {place} cannot be unpacked: {problem}") from None
            place += 8 + size

    def _content(self, stream: _Stream, one: Variable) -> _Stream:
        """The stream behind the tag of the array itself, which of a packed one is packed, too."""
        if one.is_packed:
            kind, size, _ = self._tag(stream)
            if kind != _MATRIX or size > stream.left:
                raise self._damage(f"the array at byte {one.start - 8} unpacks to an element of type {kind} with {size} bytes")
            stream.left = size
        return stream

    def _headed(self, stream: _Stream, blank: Variable) -> Variable:
        """Read flags, sizes and name."""
        (flags, _) = self._numbers(stream, 2, "flags").tolist()
        code = int(flags) & 255
        if code == _OPAQUE:
            return blank
        sizes = self._numbers(stream, None, "sizes", most=_MOST_MODES).tolist()
        if any(size < 0 for size in sizes) or not sizes:
            raise self._damage(f"an array has the sizes {sizes}")
        kind, size, short = self._tag(stream)
        if kind not in (1, 2, 16) or size > _LONGEST_NAME:
            raise self._damage(f"a name is an element of type {kind} with {size} bytes")
        name = self._data(stream, size, short).decode("utf-8", "backslashreplace").rstrip("\0")
        dtype = np.dtype(np.float64) if code == _SPARSE else np.dtype(_CLASSES[code]) if code in _CLASSES else None
        marks = (code == _SPARSE, bool(flags >> 9 & 1), bool(flags >> 11 & 1))
        return Variable(name, blank.start, blank.size, blank.is_packed, tuple(sizes), dtype, *marks)

    def _load_5(self, one: Variable) -> Storage:
        stream = self._content(self._opened(one), one)
        self._headed(stream, one)
        if one.is_sparse:
            if len(one.shape) != 2:
                raise self._damage(f"{one.name!r} is sparse and has the shape {one.shape}; sparse arrays are matrices")
            most = max(math.prod(one.shape), 1)  # entries; more than these would be a bomb
            rows, starts = self._numbers(stream, None, "rows", most=most), self._numbers(stream, one.shape[1] + 1, "starts of columns")
            values = self._values(stream, one, None, most)
            count = int(starts[-1])
            if not 0 <= count <= min(len(rows), len(values)):
                raise self._damage(f"{one.name!r} has {count} entries, {len(rows)} rows of entries and {len(values)} values")
            return from_compressed(csc, one.shape, starts, rows[:count], values[:count]).storage
        require_array(self._path, one.shape, 16)
        values = self._values(stream, one, math.prod(one.shape))
        if one.dtype is not None and values.dtype.kind not in "bc":
            values = values.astype(one.dtype, copy=False)
        elif one.dtype == np.float32 and values.dtype.kind == "c":
            values = values.astype(np.complex64, copy=False)
        return from_numpy(values.reshape(one.shape, order="F")).storage

    def _values(self, stream: _Stream, one: Variable, count: int | None, most: int | None = None) -> NDArray[Any]:
        """The values, of one element or two; truth values if they are marked so."""
        real = self._numbers(stream, count, "values", "iuf", most)
        if one.is_complex:
            imaginary = self._numbers(stream, len(real), "imaginary parts", "iuf")
            require_free(self._path, 16 * len(real), f"{one.name!r}")
            values = np.empty(len(real), np.complex128)
            values.real, values.imag = real, imaginary
            return values
        return real != 0 if one.is_logical else real

    def _tag(self, stream: _Stream) -> tuple[int, int, bytes | None]:
        """Type and number of bytes of an element, and its data if they stand within the tag."""
        data = self._exactly(stream, 8)
        first = int(np.frombuffer(data[:4], f"{self._order}u4")[0])
        if first >> 16:
            if first >> 16 > 4:
                raise self._damage(f"a short element has {first >> 16} bytes")
            return first & 0xFFFF, first >> 16, data[4 : 4 + (first >> 16)]
        return first, int(np.frombuffer(data[4:], f"{self._order}u4")[0]), None

    def _numbers(self, stream: _Stream, count: int | None, what: str, kinds: str = "iu", most: int | None = None) -> NDArray[Any]:
        """The numbers in an element, and so many, if that is known, or at most so many."""
        kind, size, short = self._tag(stream)
        if kind not in _TYPES or np.dtype(_TYPES[kind]).kind not in kinds:
            raise self._damage(f"the {what} are an element of type {kind}")
        dtype = np.dtype(f"{self._order}{_TYPES[kind]}")
        if size % dtype.itemsize or (count is not None and size != count * dtype.itemsize):
            wanted = "" if count is None else f", and there should be {count}"
            raise self._damage(f"the {what} have {size} bytes of {dtype.newbyteorder('=')}{wanted}")
        if most is not None and size > most * dtype.itemsize:
            raise self._damage(f"the {what} are {size // dtype.itemsize}, and there are {most} at most")
        if short is not None:
            return np.frombuffer(short, dtype).astype(dtype.newbyteorder("="))
        return self._filled(stream, size // dtype.itemsize, dtype, -size % 8)

    def _data(self, stream: _Stream, size: int, short: bytes | None) -> bytes:
        if short is not None:
            return short
        data = self._exactly(stream, size)
        self._skip(stream, -size % 8)
        return data

    # Level 4

    def _listed_4(self) -> Iterator[Variable]:
        place = 0
        while place < self._size:
            stream = self._at(place, self._size - place)
            head = np.frombuffer(self._exactly(stream, 20), f"{self._order}i4").tolist()
            kind, rows, columns, imaginary, length = head
            order, rest = divmod(kind, 1000)
            code, form = divmod(rest, 10)
            if order != (self._order == ">") or code not in _TYPES_4 or form > 2 or imaginary not in (0, 1):
                raise self._damage(f"the array at byte {place} is of kind {kind}")
            if min(rows, columns) < 0 or not 0 < length <= _LONGEST_NAME:
                raise self._damage(f"the array at byte {place} has {rows} rows, {columns} columns and a name of {length} bytes")
            name = self._exactly(stream, length).split(b"\0")[0].decode("latin-1")
            dtype = np.dtype(_TYPES_4[code])
            size = rows * columns * dtype.itemsize * (1 + imaginary)
            if size > stream.left:
                raise self._damage(f"{name!r} has {size} bytes, and {stream.left} follow")
            marks = (form == 2, False, bool(imaginary))
            yield Variable(name, place + 20 + length, size, False, (rows, columns), None if form == 1 else dtype, *marks)
            place += 20 + length + size

    def _load_4(self, one: Variable) -> Storage:
        if one.dtype is None:
            raise self._damage(f"{one.name!r} is no array of numbers")
        stream, count, dtype = self._opened(one), math.prod(one.shape), np.dtype(f"{self._order}{one.dtype.str[1:]}")
        require_array(self._path, one.shape, 16)
        values = self._filled(stream, count, dtype, 0)
        if one.is_complex:
            values = values + 1j * self._filled(stream, count, dtype, 0)
        table = values.reshape(one.shape, order="F")
        return self._sparse_4(one, table) if one.is_sparse else from_numpy(table).storage

    def _sparse_4(self, one: Variable, table: NDArray[Any]) -> Storage:
        """A table of rows, columns and values (in one column or two), counting from 1; its last line has the sizes."""
        if table.shape[0] < 1 or table.shape[1] not in (3, 4) or table.dtype.kind == "c":
            raise self._damage(f"{one.name!r} is sparse, and its table has the shape {table.shape}")
        places = table[:, :2].astype(np.float64)
        if not ((places == np.floor(places)) & (places >= 0) & (places < 2**53)).all():
            raise self._damage(f"{one.name!r} has coordinates or sizes that are no whole numbers")
        whole = places.astype(np.int64)
        values = table[:-1, 2] + 1j * table[:-1, 3] if table.shape[1] == 4 else np.ascontiguousarray(table[:-1, 2])
        shape = (int(whole[-1, 0]), int(whole[-1, 1]))
        coordinates = tuple(np.ascontiguousarray(whole[:-1, mode] - 1) for mode in range(2))
        return from_coordinates(shape, coordinates, values).storage

    # Bytes

    def _exactly(self, stream: _Stream, count: int) -> bytes:
        """So many bytes. A stream may give fewer at a time."""
        data = b""
        while len(data) < count:
            piece = stream.read(min(count - len(data), stream.left)) if stream.left > 0 else b""
            if not piece:
                raise self._damage("it ends too soon")
            data += piece
        return data

    def _skip(self, stream: _Stream, count: int) -> None:
        """Leave out what fills an element up, which the last one may lack."""
        while count > 0 and stream.left > 0 and (piece := stream.read(min(count, stream.left))):
            count -= len(piece)

    def _filled(self, stream: _Stream, count: int, dtype: DType, padding: int) -> NDArray[Any]:
        """So many numbers, in native order."""
        size = count * dtype.itemsize
        if size > stream.left:
            raise self._damage(f"{size} bytes should follow, and {stream.left} do")
        require_free(self._path, size, f"an array of {count} numbers")
        made = np.empty(count, dtype)
        room = made.view(np.uint8)
        while len(room):
            piece = stream.read(min(len(room), PIECE))
            if not piece:
                raise self._damage("it ends too soon")
            room[: len(piece)] = np.frombuffer(piece, np.uint8)
            room = room[len(piece) :]
        self._skip(stream, padding)
        return made if dtype.isnative else made.byteswap(inplace=True).view(dtype.newbyteorder("="))
