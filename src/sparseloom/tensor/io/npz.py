"""Archives of arrays (.npz), never pickled.

CSR, CSC, COO and BCSR are written as SciPy's ``save_npz`` does, so that SciPy reads them. Other formats, and fills other than
zero, have a layout of their own: the format's letters, the shape, the fill, and the arrays by level (pos1, crd1, ..., values).
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.errors import SparseloomError, StorageError
from sparseloom.formats.format import Format
from sparseloom.formats.named import bcsr, coo, csc, csr
from sparseloom.formats.pack import convert, pack
from sparseloom.formats.storage import Storage
from sparseloom.formats.text import parse_format
from sparseloom.tensor.arrays import arrays_of, storage_of
from sparseloom.tensor.interop.scipy import from_compressed, from_coordinates, is_bsr
from sparseloom.tensor.io.npy import parse_npy
from sparseloom.tensor.io.source import fault, replacing

Arrays = Mapping[str, NDArray[Any]]
_OWN = "sparseloom_format"


def read_npz(path: Path, format: Format | None = None) -> Storage:
    """Read a tensor in the format it was written in, unless another is given."""
    arrays = _read_members(path)
    try:
        storage = _own(arrays) if _OWN in arrays else _scipys(path, arrays)
    except KeyError as missing:
        raise fault(path, f"the array {missing} is missing; there are {', '.join(sorted(arrays))}") from None
    except SparseloomError as problem:
        if str(problem).startswith("cannot read"):
            raise
        raise fault(path, str(problem)) from None
    return storage if format is None else convert(storage, format)


def write_npz(path: Path, storage: Storage) -> None:
    """Write a tensor, in SciPy's layout where it has one."""
    arrays = _as_scipy(storage) or _as_own(storage)
    with replacing(path) as file:
        np.savez_compressed(file, **arrays)


def _read_members(path: Path) -> dict[str, NDArray[Any]]:
    arrays = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                member = name.removesuffix(".npy")
                arrays[member] = parse_npy(path, archive.read(name), member)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as problem:
        raise fault(path, f"it is not a whole .npz archive ({problem}); fetch or write the file again") from None
    return arrays


def _scipys(path: Path, arrays: Arrays) -> Storage:
    """SciPy's layout, in which ``format`` names the class."""
    if "format" not in arrays:
        raise fault(path, f"it holds no sparse tensor: neither 'format' nor {_OWN!r} is among {', '.join(sorted(arrays)) or 'no arrays'}")
    kind = _text(arrays["format"])
    shape, data = _shape(arrays["shape"]), arrays["data"]
    match kind:
        case "csr" | "csc":
            return from_compressed(csr if kind == "csr" else csc, shape, arrays["indptr"], arrays["indices"], data).storage
        case "bsr" if data.ndim == 3:
            return from_compressed(bcsr(data.shape[1:]), shape, arrays["indptr"], arrays["indices"], data).storage
        case "coo":
            coordinates = tuple(arrays["coords"]) if "coords" in arrays else (arrays["row"], arrays["col"])
            return from_coordinates(shape, coordinates, data).storage
        case "dia":
            return _from_diagonals(shape, arrays["offsets"], data)
    raise fault(path, f"the layout {kind!r} is not one of csr, csc, coo, bsr, dia")


def _from_diagonals(shape: tuple[int, ...], offsets: NDArray[Any], data: NDArray[Any]) -> Storage:
    """SciPy's dia: ``data[k, j]`` stands in column j, ``offsets[k]`` above the diagonal; zeros are not stored."""
    if data.ndim != 2 or offsets.shape != data.shape[:1] or len(shape) != 2:
        raise StorageError(f"{offsets.size} diagonals need a data array with as many rows, not one of shape {data.shape}")
    columns = np.broadcast_to(np.arange(data.shape[1]), data.shape)
    rows = columns - offsets[:, None]
    kept = (rows >= 0) & (rows < shape[0]) & (columns < shape[1]) & (data != 0)
    return pack(csr, shape, np.stack((rows[kept], columns[kept])), data[kept])


def _own(arrays: Arrays) -> Storage:
    format = parse_format(_text(arrays[_OWN]))
    shape = _shape(arrays["shape"])
    if arrays["fill"].size != 1:
        raise StorageError(f"the fill must be one value, not {arrays['fill'].size}")
    levels = {name: array for name, array in arrays.items() if name not in (_OWN, "shape", "fill")}
    return storage_of(format, shape, levels, arrays["fill"].item())


def _shape(array: NDArray[Any]) -> tuple[int, ...]:
    if array.size and array.dtype.kind not in "iu":
        raise StorageError(f"the shape must be integers, not {array.dtype}")
    return tuple(int(size) for size in np.atleast_1d(array))


def _text(array: NDArray[Any]) -> str:
    value = array.item() if array.size == 1 else ""
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)


def _as_scipy(storage: Storage) -> dict[str, Any] | None:
    """The arrays under SciPy's names, or ``None`` if SciPy has no such class."""
    format, shape = storage.format, storage.shape
    if storage.fill != 0 or len(shape) < 2:
        return None
    head = {"shape": np.array(shape), "_is_array": np.array(True)}
    level = storage.levels[0].arrays if format == coo(len(shape)) else storage.levels[1].arrays
    if format in (csr, csc):
        return head | {"format": _bytes(str(format)), "indptr": level["pos"], "indices": level["crd"], "data": storage.values}
    if is_bsr(storage):
        blocks = storage.values.reshape(-1, *format.blocks)
        return head | {"format": _bytes("bsr"), "indptr": level["pos"], "indices": level["crd"], "data": blocks}
    if format == coo(len(shape)):
        coordinates = [data.arrays["crd"] for data in storage.levels]
        named = {"row": coordinates[0], "col": coordinates[1]} if len(shape) == 2 else {"coords": np.stack(coordinates)}
        return head | {"format": _bytes("coo"), "data": storage.values} | named
    return None


def _as_own(storage: Storage) -> dict[str, Any]:
    head = {_OWN: np.array(storage.format.text), "shape": np.array(storage.shape, np.int64), "fill": np.array(storage.fill, storage.dtype)}
    return head | arrays_of(storage)


def _bytes(text: str) -> NDArray[Any]:
    return np.array(text.encode("ascii"))
