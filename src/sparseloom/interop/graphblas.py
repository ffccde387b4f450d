"""python-graphblas: matrices and vectors are copied, in and out; SuiteSparse keeps its arrays to itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import refuse_half
from sparseloom.core.errors import FormatError, StorageError
from sparseloom.formats.named import csc, csr
from sparseloom.interop.entry import Intake, converted
from sparseloom.interop.pydata_sparse import listed
from sparseloom.interop.scipy import from_compressed, from_coordinates
from sparseloom.programs.conversion import convert
from sparseloom.programs.cuda.storages import to_host

_NOTE = "copied from GraphBLAS, which keeps its arrays to itself"


def reader_for(kind: type) -> Callable[[Any], Intake] | None:
    """How objects of this class are read, if it is a matrix or a vector of python-graphblas."""
    names = [parent.__name__ for parent in kind.__mro__ if parent.__module__.partition(".")[0] == "graphblas"]
    return next((_READERS[name] for name in names if name in _READERS), None)


def _from_matrix(matrix: Any) -> Intake:
    pos, crd, values = matrix.to_csr()
    return converted(from_compressed(csr, (int(matrix.nrows), int(matrix.ncols)), _indices(pos), _indices(crd), values), _NOTE)


def _from_vector(vector: Any) -> Intake:
    places, values = vector.to_coo()
    return converted(from_coordinates((int(vector.size),), (_indices(places),), values), _NOTE)


def _indices(array: NDArray[Any]) -> NDArray[np.int64]:
    """Indices as signed integers; GraphBLAS has none above 2**60."""
    return array.astype(np.int64)


_READERS: dict[str, Callable[[Any], Intake]] = {"Matrix": _from_matrix, "Vector": _from_vector}


def give(tensor: Any) -> Any:
    """A matrix or a vector of python-graphblas."""
    import graphblas

    storage = to_host(tensor.storage)
    refuse_half(storage.dtype, "GraphBLAS's matrices and vectors")
    if storage.fill != 0:
        raise StorageError(f"in GraphBLAS absent entries have no value, and here they are {storage.fill}; use to_numpy()")
    if len(storage.shape) == 1:
        (places,), values = listed(storage)
        return graphblas.Vector.from_coo(places, values, size=storage.shape[0])
    if len(storage.shape) != 2:
        raise FormatError(f"GraphBLAS has matrices and vectors, and this tensor has {len(storage.shape)} modes")
    rows, columns = storage.shape
    stored = convert(storage, csc if storage.format == csc else csr)
    level = stored.levels[1].arrays
    if stored.format == csc:
        return graphblas.Matrix.from_csc(level["pos"], level["crd"], stored.values, nrows=rows)
    return graphblas.Matrix.from_csr(level["pos"], level["crd"], stored.values, ncols=columns)
