"""Archives of arrays (.npz), never pickled.

CSR, CSC, COO, BCSR and DIA are written as SciPy's ``save_npz`` does, so that SciPy reads them. Other formats, and fills other than
zero, have a layout of their own: the format's letters, the shape, the fill, and the arrays by level (pos1, crd1, ..., values). So have
float16 and bfloat16, which SciPy does not hold; of bfloat16, which NumPy does not write, there are the bits, and its name in ``dtype``.
Archives with a description of binsparse's are read, too.
"""

from __future__ import annotations

import errno
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import UINT16, bfloat16, computed, is_bfloat16, is_half
from sparseloom.core.errors import SparseloomError, StorageError
from sparseloom.formats.format import Format
from sparseloom.formats.named import bcsr, csc, csr
from sparseloom.formats.storage import Storage
from sparseloom.formats.text import parse_format
from sparseloom.interop.arrays import arrays_of, storage_of
from sparseloom.interop.binsparse import KEY, from_described
from sparseloom.interop.scipy import as_scipy, from_compressed, from_coordinates, from_diagonals
from sparseloom.io.npy import read_array
from sparseloom.io.room import in_format
from sparseloom.io.source import fault, open_plain, replacing

Arrays = Mapping[str, NDArray[Any]]
_OWN = "sparseloom_format"
_NAMED = "dtype"
# How many bytes one byte can unpack to, for the ways in which NumPy packs.
_PACKING = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: 1032}
_SLACK = 1032
_WORTH_A_LOOK, _SUSPICIOUS = 1 << 26, 100  # bytes of an array, and how many of them one byte stands for
_DAMAGES = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, ValueError, OverflowError,
)  # fmt: skip
_LONGEST_TEXT = 4096


def read_npz(path: Path, format: Format | str | None = None) -> Storage:
    """Read a tensor in the format it was written in, unless another is given."""
    with open_plain(path) as file:
        arrays = _Members(path, file)
        try:
            storage = _own(arrays) if _OWN in arrays else _described(arrays) if KEY in arrays else _scipys(path, arrays)
        except KeyError as missing:
            raise fault(path, f"the array {missing} is missing; there are {', '.join(sorted(arrays))}") from None
        except SparseloomError as problem:
            if str(problem).startswith("cannot read"):
                raise
            raise fault(path, str(problem)) from None
    return in_format(path, storage, format)


def write_npz(path: Path, storage: Storage) -> None:
    """Write a tensor, in SciPy's layout where it has one."""
    arrays = _as_scipys(storage) or _as_own(storage)
    with replacing(path) as file:
        np.savez_compressed(file, **arrays)


class _Members(Mapping[str, NDArray[Any]]):
    """The arrays of an archive by name, each read when it is asked for: others may be of any kind and size."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        """Read the directory of the archive."""
        self._path = path
        self._members: dict[str, zipfile.ZipInfo] = {}
        with self._whole():
            self._archive = zipfile.ZipFile(file)
        for info in self._archive.infolist():
            name = info.filename.removesuffix(".npy")
            if name in self._members:
                raise fault(path, f"it holds two arrays that are called {name!r}")
            self._members[name] = info

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self._members)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._members)

    def __contains__(self, name: object) -> bool:
        """Whether there is such an array, which is not read."""
        return name in self._members

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Read an array, no further than the directory says that it goes."""
        info = self._members[name]
        if info.compress_type not in _PACKING:
            raise fault(self._path, f"array {name!r}: it is packed in a way that NumPy does not write")
        if info.file_size > _PACKING[info.compress_type] * info.compress_size + _SLACK:
            raise fault(self._path, f"array {name!r}: {info.compress_size} bytes cannot unpack to {info.file_size}")
        self._refuse_bomb(name, info)
        with self._whole(), self._archive.open(info) as stream:
            return read_array(self._path, stream, info.file_size, name)

    def _refuse_bomb(self, name: str, info: zipfile.ZipInfo) -> None:
        """Do not unpack a few bytes to an array that is far larger than the whole tensor would be."""
        if info.file_size <= max(_WORTH_A_LOOK, _SUSPICIOUS * info.compress_size) or "shape" not in self:
            return
        places = 0 if name == "shape" else math.prod(_shape(self["shape"]))
        if info.file_size > 8 * 16 * places:  # padded formats store more than there are places, but not that much
            what = f"{info.compress_size} bytes unpack to {info.file_size}, for a tensor with {places} places"
            raise fault(self._path, f"array {name!r}: {what}")

    def besides(self, *names: str) -> _Members:
        """The same archive without some of its arrays."""
        others = copy(self)
        others._members = {name: info for name, info in self._members.items() if name not in names}
        return others

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Say what is wrong with a damaged archive, of which Python has many words to tell."""
        try:
            yield
        except StorageError:
            raise
        except OSError as problem:
            if problem.errno != errno.EINVAL:  # the directory names a place before the file
                raise
            raise fault(self._path, "it is not a whole .npz archive; fetch or write the file again") from None
        except _DAMAGES as problem:
            what = f"it is not a whole .npz archive ({problem}); fetch or write the file again"
            raise fault(self._path, what) from None


def _scipys(path: Path, arrays: Arrays) -> Storage:
    """SciPy's layout, in which ``format`` names the class."""
    if "format" not in arrays:
        raise fault(path, f"it holds no sparse tensor: neither 'format' nor {_OWN!r} is among {', '.join(sorted(arrays)) or 'no arrays'}")
    kind = _text(arrays["format"])
    shape, data = _shape(arrays["shape"]), arrays["data"]
    match kind:
        case "csr" | "csc":
            return _compressed(csr if kind == "csr" else csc, shape, arrays, data)
        case "bsr" if data.ndim == 3:
            return _compressed(bcsr(data.shape[1:]), shape, arrays, data)
        case "coo":
            return from_coordinates(shape, _coordinate_arrays(arrays), data).storage
        case "dia":
            return from_diagonals(shape, arrays["offsets"], data).storage
    raise fault(path, f"the layout {kind!r} is not one of csr, csc, coo, bsr, dia")


def _compressed(format: Format, shape: tuple[int, ...], arrays: Arrays, data: NDArray[Any]) -> Storage:
    return from_compressed(format, shape, _index(arrays["indptr"]), _index(arrays["indices"]), data).storage


def _own(arrays: _Members) -> Storage:
    format = parse_format(_text(arrays[_OWN]))
    shape, fill = _shape(arrays["shape"]), arrays["fill"]
    if fill.ndim:
        raise StorageError(f"the fill must be one value, not an array of shape {fill.shape}")
    held: Arrays = arrays.besides(_OWN, "shape", "fill", _NAMED)
    if _NAMED in arrays:
        held = {**held, "values": _bfloat16(_text(arrays[_NAMED]), held["values"])}
    return storage_of(format, shape, held, fill.item())


def _bfloat16(name: str, bits: NDArray[Any]) -> NDArray[Any]:
    """Values of which an archive has the bits."""
    if name != "bfloat16" or bits.dtype != UINT16:
        raise StorageError(f"the values are {bits.dtype}, and should be read as {name!r}; only the bits of bfloat16 are")
    return bits.view(bfloat16())


def _described(arrays: _Members) -> Storage:
    """Binsparse's layout."""
    return from_described(_text(arrays[KEY]), arrays)


def _shape(array: NDArray[Any]) -> tuple[int, ...]:
    if array.size and array.dtype.kind not in "iu":
        raise StorageError(f"the shape must be integers, not {array.dtype}")
    if array.ndim > 1:
        raise StorageError(f"the shape must be a row of integers, not an array of {array.ndim} dimensions")
    sizes = tuple(int(size) for size in np.atleast_1d(array))
    if any(not 0 <= size < 2**63 for size in sizes):
        raise StorageError(f"the shape {sizes} has a size below 0 or beyond 64 bits")
    return sizes


def _text(array: NDArray[Any]) -> str:
    """The text in an array; none where there is something else, or more than a name can have."""
    if array.size != 1 or array.dtype.kind not in "SU" or array.nbytes > _LONGEST_TEXT:
        return ""
    letters = array.reshape(1).view(np.uint8 if array.dtype.kind == "S" else np.uint32)
    return "".join(chr(letter) if letter < 128 else "?" for letter in letters.tolist()).rstrip("\0")


def _index(array: NDArray[Any]) -> NDArray[Any]:
    """A row of integers."""
    if array.dtype.kind not in "iu":
        raise StorageError(f"index arrays must hold integers, not {array.dtype}")
    if array.ndim != 1:
        raise StorageError(f"an index array has {array.ndim} dimensions; it must have one")
    return array


def _coordinate_arrays(arrays: Arrays) -> tuple[NDArray[Any], ...]:
    """SciPy has two names for the two of a matrix, and one for those of other orders."""
    if "coords" not in arrays:
        return _index(arrays["row"]), _index(arrays["col"])
    coordinates = arrays["coords"]
    if coordinates.ndim != 2:
        raise StorageError(f"the coordinates must have a row per mode, not {coordinates.ndim} dimensions")
    return tuple(map(_index, coordinates))


def _as_scipys(storage: Storage) -> dict[str, Any] | None:
    """The arrays under SciPy's names, or ``None`` if SciPy has no such class."""
    found = as_scipy(storage) if storage.fill == 0 and len(storage.shape) > 1 and not is_half(storage.dtype) else None
    if found is None:
        return None
    kind, arrays = found
    if kind == "coo":
        coordinates = arrays.pop("coords")
        arrays |= dict(zip(("row", "col"), coordinates, strict=True)) if len(coordinates) == 2 else {"coords": np.stack(coordinates)}
    return {"shape": np.array(storage.shape), "_is_array": np.array(True), "format": np.array(kind.encode("ascii")), **arrays}


def _as_own(storage: Storage) -> dict[str, Any]:
    fill = np.array(storage.fill, computed(storage.dtype))
    head = {_OWN: np.array(storage.format.text), "shape": np.array(storage.shape, np.int64), "fill": fill}
    arrays = head | arrays_of(storage)
    if is_bfloat16(storage.dtype):
        arrays |= {"values": storage.values.view(UINT16), _NAMED: np.array(storage.dtype.name)}
    return arrays
