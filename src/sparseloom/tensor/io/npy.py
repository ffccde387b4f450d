"""NumPy's own array files (.npy), read without pickle and without trusting the sizes they declare."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.formats.format import Format
from sparseloom.formats.pack import convert, to_dense
from sparseloom.formats.storage import Storage
from sparseloom.tensor.interop.numpy import from_numpy
from sparseloom.tensor.io.source import fault, read_bytes, write_text


def read_npy(path: Path, format: Format | None = None) -> Storage:
    """Read an array: dense, unless a format is given."""
    storage = from_numpy(parse_npy(path, read_bytes(path), "")).storage
    return storage if format is None else convert(storage, format)


def write_npy(path: Path, storage: Storage) -> None:
    """Write the whole tensor as an array, the fill included."""
    array = to_dense(storage)
    write_text(path, lambda file: np.lib.format.write_array(file, array, allow_pickle=False))


def parse_npy(path: Path, data: bytes, member: str) -> NDArray[Any]:
    """The array in the bytes of an .npy file, shared with them; ``member`` names it when it comes from an archive."""
    where = f"array {member!r}: " if member else ""
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read_header(stream)
    except ValueError as problem:
        raise fault(path, f"{where}the NumPy header is malformed: {problem}") from None
    if dtype.hasobject:
        raise fault(path, f"{where}it holds Python objects; those are never unpickled")
    count, left = math.prod(shape), len(data) - stream.tell()
    if count * dtype.itemsize != left:
        raise fault(path, f"{where}the shape {shape} of {dtype} needs {count * dtype.itemsize} bytes, but {left} follow the header")
    flat = np.frombuffer(data, dtype, count, stream.tell()) if count and dtype.itemsize else np.empty(count, dtype)
    return flat.reshape(shape, order="F" if fortran else "C")
