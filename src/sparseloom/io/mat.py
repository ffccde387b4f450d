"""MATLAB's files (.mat) up to version 7: the one array in them, or the one that is named. They are written by SciPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sparseloom.core.dtypes import is_half
from sparseloom.core.errors import DTypeError, SparseloomError, StorageError
from sparseloom.formats.format import Format
from sparseloom.formats.named import csc
from sparseloom.formats.pack import convert
from sparseloom.formats.storage import Storage
from sparseloom.interop.numpy import to_numpy
from sparseloom.interop.scipy import to_scipy
from sparseloom.io.matlab import MatlabFile
from sparseloom.io.room import in_format
from sparseloom.io.source import fault, open_plain, replacing


def read_mat(path: Path, format: Format | str | None = None, name: str | None = None) -> Storage:
    """Read an array: csc if it is sparse, else dense, unless a format is given."""
    with open_plain(path) as file:
        held = MatlabFile(path, file)
        arrays = held.variables()
        chosen = name if name in arrays else next(iter(arrays), "") if len(arrays) == 1 else None
        if not arrays:
            raise fault(path, "it holds no array")
        if chosen is None:
            raise fault(path, f"it holds {', '.join(sorted(arrays))}; name one of them, as in sl.read({path.name!r}, name={min(arrays)!r})")
        try:
            return in_format(path, held.load(arrays[chosen]), format)
        except SparseloomError as problem:
            raise problem if str(problem).startswith("cannot read") else fault(path, str(problem)) from None


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
