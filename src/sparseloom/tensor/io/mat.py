"""MATLAB's files (.mat) up to version 7, through SciPy: the one array in them, or the one that is named."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np

from sparseloom.core.dtypes import is_half
from sparseloom.core.errors import DTypeError, SparseloomError, StorageError
from sparseloom.formats.format import Format
from sparseloom.formats.named import csc
from sparseloom.formats.pack import convert
from sparseloom.formats.storage import Storage
from sparseloom.tensor.intake import enter
from sparseloom.tensor.interop.numpy import to_numpy
from sparseloom.tensor.interop.scipy import to_scipy
from sparseloom.tensor.io.room import in_format
from sparseloom.tensor.io.source import fault, open_plain, replacing

_DAMAGES = (ValueError, TypeError, KeyError, IndexError, EOFError, OverflowError, AssertionError, zlib.error, MemoryError)


def read_mat(path: Path, format: Format | str | None = None, name: str | None = None) -> Storage:
    """Read an array: csc if it is sparse, else dense, unless a format is given."""
    held = _variables(path)
    arrays = {key: value for key, value in held.items() if not key.startswith("__") and _is_array(value)}
    chosen = name if name in arrays else next(iter(arrays), "") if len(arrays) == 1 else None
    if not arrays:
        raise fault(path, "it holds no array")
    if chosen is None:
        raise fault(path, f"it holds {', '.join(sorted(arrays))}; name one of them, as in sl.read({path.name!r}, name={min(arrays)!r})")
    try:
        return in_format(path, enter(arrays[chosen]).storage, format)
    except SparseloomError as problem:
        raise fault(path, str(problem)) from None


def _variables(path: Path) -> dict[str, Any]:
    """All that a file holds, by name."""
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    with open_plain(path) as opened:
        file: Any = opened
        try:
            found: dict[str, Any] = loadmat(file)
        except NotImplementedError:
            raise fault(path, "it is of MATLAB's version 7.3, which SciPy does not read; save it there with -v7") from None
        except (*_DAMAGES, MatReadError) as problem:
            raise fault(path, f"it is damaged, or no file of MATLAB's: {problem}") from None
    return found


def _is_array(value: Any) -> bool:
    return hasattr(value, "tocsc") or (isinstance(value, np.ndarray) and value.dtype.kind in "biufc")


def write_mat(path: Path, storage: Storage, name: str | None = None) -> None:
    """Write a matrix: a sparse one as MATLAB stores it, by columns."""
    from scipy.io import savemat

    order = len(storage.shape)
    if is_half(storage.dtype):
        help = "convert with astype('float32'), which loses nothing, or write .npz"
        raise DTypeError(f"cannot write {path}: MATLAB has no {storage.dtype}\n  help: {help}")
    if order != 2 and not storage.format.is_dense:
        raise StorageError(f"cannot write {path}: MATLAB's sparse arrays are matrices, and this tensor has {order} modes; write .npz")
    if storage.fill != 0 and not storage.format.is_dense:
        raise StorageError(f"cannot write {path}: absent entries are {storage.fill}, and MATLAB can only leave out zeros; write .npz")
    held = to_numpy(storage) if storage.format.is_dense else to_scipy(convert(storage, csc))
    with replacing(path) as opened:
        file: Any = opened
        savemat(file, {name or "A": held}, do_compression=True)
