"""NumPy's own array files (.npy), read without pickle and without trusting the sizes they declare.

mark  version  length of the header   {'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }   the values
"""

from __future__ import annotations

import math
import os
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import DType, is_bfloat16
from sparseloom.core.errors import DTypeError
from sparseloom.formats.format import Format
from sparseloom.formats.pack import to_dense
from sparseloom.formats.storage import Storage
from sparseloom.interop.numpy import from_numpy
from sparseloom.io.room import in_format, require_array, require_free
from sparseloom.io.source import PIECE, fault, open_plain, write_text

_MAGIC = b"\x93NUMPY"
_LENGTHS = {1: "<H", 2: "<I", 3: "<I"}  # of the header, by version
_LONGEST_HEADER = 10_000  # NumPy's own limit
_PAIR = re.compile(
    r"""\s*(?P<quote>['"])(?P<name>\w+)(?P=quote)\s*:\s*"""
    r"""(?:'(?P<single>[^']*)'|"(?P<double>[^"]*)"|(?P<flag>True|False)|\((?P<sizes>[\d\s,L]*)\)|(?P<fields>\[.*\]))\s*(?:,|\Z)""",
    re.DOTALL,
)
_SIZES = re.compile(r"\s*|\s*\d+L?\s*,\s*|\s*\d+L?\s*(?:,\s*\d+L?\s*)+,?\s*")
_DESCRIPTION = re.compile(r"[<>=|]?[a-zA-Z?]\d{0,9}")


class Stream(Protocol):
    """Something bytes can be read from."""

    def read(self, size: int, /) -> bytes:
        """At most so many more bytes; none at the end."""


@dataclass(frozen=True)
class _Header:
    """What a header declares."""

    dtype: DType
    fortran: bool
    shape: tuple[int, ...]


def read_npy(path: Path, format: Format | str | None = None) -> Storage:
    """Read an array: dense, unless a format is given."""
    with open_plain(path) as file:
        array = read_array(path, file, os.fstat(file.fileno()).st_size, "")
    try:
        storage = from_numpy(array).storage
    except DTypeError as problem:
        raise fault(path, str(problem)) from None
    return in_format(path, storage, format)


def write_npy(path: Path, storage: Storage) -> None:
    """Write the whole tensor as an array, the fill included."""
    if is_bfloat16(storage.dtype):
        help = "write .npz, or convert with astype('float32'), which loses nothing"
        raise DTypeError(f"cannot write {path}: a .npy file has no word for bfloat16\n  help: {help}")
    array = to_dense(storage)
    write_text(path, lambda file: np.lib.format.write_array(file, array, allow_pickle=False))


def read_array(path: Path, stream: Stream, size: int, member: str) -> NDArray[Any]:
    """The array in a stream of ``size`` bytes, in native byte order; ``member`` names it when it comes from an archive."""
    where = f"array {member!r}: " if member else ""
    try:
        header, begin = _read_header(stream)
    except ValueError as problem:
        raise fault(path, f"{where}the NumPy header is malformed: {problem}") from None
    dtype, shape = header.dtype, header.shape
    if dtype.hasobject:
        raise fault(path, f"{where}it holds Python objects; those are never unpickled")
    needed, left = math.prod(shape) * dtype.itemsize, size - begin
    if needed != left:
        raise fault(path, f"{where}the shape {shape} of {dtype} needs {needed} bytes, but {left} follow the header")
    require_array(path, shape, max(dtype.itemsize, 1))
    require_free(path, needed, f"{where}an array of the shape {shape}")
    array = np.empty(math.prod(shape), dtype)
    if not _fill(array, stream):
        raise fault(path, f"{where}the data end too soon, or go on behind their end; fetch or write the file again")
    if not dtype.isnative:
        array = array.byteswap(inplace=True).view(dtype.newbyteorder("="))
    return array.reshape(shape, order="F" if header.fortran else "C")


def _fill(array: NDArray[Any], stream: Stream) -> bool:
    """Read all of an array piece by piece; False if there is not just as much."""
    room = array.view(np.uint8) if array.nbytes else np.empty(0, np.uint8)
    while len(room):
        piece = stream.read(min(len(room), PIECE))
        if not piece:
            return False
        room[: len(piece)] = np.frombuffer(piece, np.uint8)
        room = room[len(piece) :]
    return not stream.read(1)


def _read_header(stream: Stream) -> tuple[_Header, int]:
    """The header, and how many bytes it takes. A ValueError says what is wrong with it."""
    head = _read_exactly(stream, len(_MAGIC) + 2)
    if not head.startswith(_MAGIC):
        raise ValueError("it does not begin with NumPy's mark")
    if head[-2] not in _LENGTHS:
        raise ValueError(f"there is no version {head[-2]}.{head[-1]}")
    kind = _LENGTHS[head[-2]]
    (length,) = struct.unpack(kind, _read_exactly(stream, struct.calcsize(kind)))
    if length > _LONGEST_HEADER:
        raise ValueError(f"it is {length} bytes long")
    text = _read_exactly(stream, length).decode("latin-1")
    return _parse_header(text), len(head) + struct.calcsize(kind) + length


def _read_exactly(stream: Stream, count: int) -> bytes:
    """So many bytes. A stream may give fewer at a time."""
    data = b""
    while len(data) < count:
        piece = stream.read(count - len(data))
        if not piece:
            raise ValueError("the file ends within it")
        data += piece
    return data


def _parse_header(text: str) -> _Header:
    """Read the dictionary of a header by its parts, rather than evaluate what may be nested without end."""
    text = text.strip()
    if not (text.startswith("{") and text.endswith("}")):
        raise ValueError("it is no dictionary")
    found: dict[str, re.Match[str]] = {}
    rest, place = text[1:-1].rstrip(), 0
    while place < len(rest):
        pair = _PAIR.match(rest, place)
        if pair is None:
            raise ValueError(f"cannot read {rest[place : place + 40].strip()!r}")
        found[pair["name"]] = pair
        place = pair.end()
    if {*found} != {"descr", "fortran_order", "shape"}:
        raise ValueError("it must have the keys descr, fortran_order and shape")
    flag, sizes = found["fortran_order"]["flag"], found["shape"]["sizes"]
    if flag is None or sizes is None or not _SIZES.fullmatch(sizes):
        raise ValueError("the order or the shape cannot be read")
    numbers = re.findall(r"\d+", sizes)
    if any(len(number) > 19 for number in numbers):
        raise ValueError("a size does not fit in 64 bits")
    return _Header(_known_dtype(found["descr"]), flag == "True", tuple(map(int, numbers)))


def _known_dtype(pair: re.Match[str]) -> DType:
    """The dtype that a header names."""
    if pair["fields"] is not None:
        raise ValueError("its elements have several fields")
    text = pair["single"] if pair["single"] is not None else pair["double"]
    if text is None or not _DESCRIPTION.fullmatch(text):
        raise ValueError(f"{str(text)[:40]!r} is no type of numbers")
    try:
        dtype: DType = np.dtype(text)
    except (TypeError, ValueError):
        raise ValueError(f"{text!r} is no type of numbers") from None
    return dtype
