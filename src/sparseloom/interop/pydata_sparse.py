"""PyData/Sparse: COO arrays, and GCXS matrices, share their arrays both ways and keep their fill value; DOK goes through COO."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from sparseloom.core.dtypes import refuse_half
from sparseloom.formats.named import coo, csc, csr
from sparseloom.formats.storage import Storage
from sparseloom.interop.entry import Intake, converted
from sparseloom.interop.numpy import from_numpy
from sparseloom.interop.scipy import from_compressed, from_coordinates
from sparseloom.programs.conversion import convert


def reader_for(kind: type) -> Callable[[Any], Intake] | None:
    """How objects of this class are read, if it is one of the ``sparse`` package."""
    return from_pydata_sparse if any(parent.__module__.partition(".")[0] == "sparse" for parent in kind.__mro__) else None


def from_pydata_sparse(array: Any) -> Intake:
    """Read a COO array, a GCXS matrix, or what converts to COO."""
    shape = tuple(int(size) for size in array.shape)
    if not shape:
        return from_numpy(np.asarray(array.todense()))
    if hasattr(array, "coords"):
        return _with_fill(from_coordinates(shape, tuple(array.coords), array.data), array)
    if len(shape) == 2 and getattr(array, "compressed_axes", None) in ((0,), (1,)):
        format = csr if array.compressed_axes == (0,) else csc
        return _with_fill(from_compressed(format, shape, array.indptr, array.indices, array.data), array)
    entries = array.to_coo() if hasattr(array, "to_coo") else array.tocoo()
    note = f"converted from PyData/Sparse's {type(array).__name__}, which has no counterpart here"
    return converted(from_pydata_sparse(entries), note)


def _with_fill(intake: Intake, array: Any) -> Intake:
    fill = array.fill_value.item()
    return intake if fill == 0 else intake._replace(storage=replace(intake.storage, fill=fill))


def give(tensor: Any) -> Any:
    """A GCXS matrix for csr and csc, else a COO array, with the tensor's fill value."""
    import sparse

    storage = tensor.opened("cpu")
    refuse_half(storage.dtype, "the arrays of PyData/Sparse, which numba computes,")
    fill = storage.dtype.type(storage.fill)
    if storage.format in (csr, csc):
        level, axes = storage.levels[1].arrays, (0,) if storage.format == csr else (1,)
        return sparse.GCXS((storage.values, level["crd"], level["pos"]), storage.shape, axes, fill_value=fill)
    if not storage.shape:
        return sparse.COO.from_numpy(storage.values.reshape(()), fill_value=fill)
    coordinates, values = listed(storage)
    return sparse.COO(coordinates, values, storage.shape, has_duplicates=False, sorted=True, fill_value=fill)


def listed(storage: Storage) -> tuple[Any, Any]:
    """The entries of a tensor in order, in arrays of their own: a row of coordinates for every mode, and the values."""
    entries = convert(storage, coo(len(storage.shape)))
    count = int(entries.levels[0].arrays["pos"][-1])
    return np.stack([level.arrays["crd"][:count] for level in entries.levels]), entries.values[:count].copy()
