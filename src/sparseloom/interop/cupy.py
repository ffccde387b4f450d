"""CuPy: arrays and the matrices of cupyx.scipy.sparse share their memory, both ways. CuPy itself is imported only to make one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sparseloom.core.dtypes import is_bfloat16, refuse_half
from sparseloom.core.errors import DTypeError, FormatError, StorageError
from sparseloom.formats.named import coo, csc, csr
from sparseloom.formats.storage import Storage
from sparseloom.interop.device import compressed_on_device, coordinates_on_device, flat, from_device
from sparseloom.interop.dlpack import strides_of
from sparseloom.interop.entry import Intake
from sparseloom.programs.cuda.arrays import DeviceArray
from sparseloom.programs.cuda.streams import CUPY

_SORTED = "call sum_duplicates() on it first, which sorts it, too"


def reader_for(kind: type) -> Callable[[Any], Intake] | None:
    """How objects of this class are read, if it is one of CuPy's (which are recognised by name)."""
    for parent in kind.__mro__:
        package = parent.__module__.partition(".")[0]
        if package == "cupy" and parent.__name__ == "ndarray":
            return from_cupy
        if package == "cupyx" and (found := _READERS.get(parent.__name__.partition("_")[0])) is not None:
            return found
    return None


def from_cupy(array: Any) -> Intake:
    """A dense tensor over an array."""
    return from_device(array, CUPY)


def _from_csr(matrix: Any) -> Intake:
    return compressed_on_device(matrix, csr, _shape(matrix), _three(matrix), _SORTED)


def _from_csc(matrix: Any) -> Intake:
    return compressed_on_device(matrix, csc, _shape(matrix), _three(matrix), _SORTED)


def _three(matrix: Any) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    return flat(matrix.indptr, CUPY, "indptr"), flat(matrix.indices, CUPY, "indices"), flat(matrix.data, CUPY, "data")


def _from_coo(matrix: Any) -> Intake:
    coordinates, help = (flat(matrix.row, CUPY, "row"), flat(matrix.col, CUPY, "col")), "give matrix.tocsr(), which is sorted"
    return coordinates_on_device(matrix, _shape(matrix), coordinates, flat(matrix.data, CUPY, "data"), help)


def _refused(matrix: Any) -> Intake:
    raise StorageError(f"cupyx's {type(matrix).__name__} has no counterpart here; give matrix.tocsr()")


def _shape(matrix: Any) -> tuple[int, ...]:
    return tuple(int(size) for size in matrix.shape)


_READERS: dict[str, Callable[[Any], Intake]] = {"csr": _from_csr, "csc": _from_csc, "coo": _from_coo, "dia": _refused}


def give(tensor: Any) -> Any:
    """A CuPy array over the memory of a dense tensor on a device, or a sparse matrix over that of csr, csc and coo."""
    import cupy

    storage = tensor.opened("cuda")
    if is_bfloat16(storage.dtype):
        raise DTypeError("CuPy has no bfloat16\n  help: use to_torch(), or convert with astype('float32'), which loses nothing")
    if storage.format.is_dense and not storage.format.blocks:
        return _array(cupy, storage.values, storage)
    if storage.fill != 0:
        raise StorageError(f"CuPy's sparse matrices can only leave out zeros, and absent entries are {storage.fill}; use to_numpy()")
    refuse_half(storage.dtype, "CuPy's sparse matrices")
    import cupyx.scipy.sparse as sparse

    arrays = [_array(cupy, array) for array in (storage.values, *storage.indices)]
    if storage.format in (csr, csc):
        made = sparse.csr_matrix if storage.format == csr else sparse.csc_matrix
        return made((arrays[0], arrays[2], arrays[1]), shape=storage.shape)
    if len(storage.shape) == 2 and storage.format == coo(2):
        return sparse.coo_matrix((arrays[0], (arrays[2], arrays[3])), shape=storage.shape)
    raise FormatError(f"CuPy has no sparse matrix like {storage.format}\n  help: convert it first: t.to_host().to('csr').to_cupy()")


def _array(cupy: Any, array: Any, storage: Storage | None = None) -> Any:
    """An array of CuPy's over an array on a device, which it keeps alive; in the shape of a dense storage, if one is given."""
    memory = cupy.cuda.UnownedMemory(array.address, max(array.nbytes, 1), array, array.ordinal)
    pointer = cupy.cuda.MemoryPointer(memory, 0)
    shape = array.shape if storage is None else storage.shape
    strides = None if storage is None else tuple(step * array.itemsize for step in strides_of(storage))
    return cupy.ndarray(shape, array.dtype, pointer, strides)
