"""NumPy arrays: dense tensors that share the array's memory in C order, Fortran order or any other permutation of it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import value_dtype
from sparseloom.formats.format import Format
from sparseloom.formats.levels.dense import Dense
from sparseloom.formats.pack import to_dense
from sparseloom.formats.storage import NO_INDICES, Storage
from sparseloom.interop.arrays import plain_array
from sparseloom.interop.entry import NATIVE, NO_ARRAYS, Intake


@lru_cache(maxsize=256)
def dense_format(modes: tuple[int, ...]) -> Format:
    """All levels dense, in the given order of modes."""
    return Format((Dense(),) * len(modes), modes)


@lru_cache(maxsize=64)
def _in_order(order: int) -> Format:
    return dense_format(tuple(range(order)))


def from_numpy(array: NDArray[Any]) -> Intake:
    """A dense tensor over the array's own memory; an array with gaps, or one of foreign byte order, is copied."""
    if type(array) is not np.ndarray:
        array = plain_array(array)
    flags = array.flags
    if array.dtype in NATIVE and flags.c_contiguous and flags.aligned:
        return Intake(dense_storage(array))
    return _rearranged(array)


def dense_storage(array: NDArray[Any]) -> Storage:
    """A C-contiguous array as a storage."""
    order = array.ndim
    return Storage(_in_order(order), array.shape, (NO_ARRAYS,) * order, array if order == 1 else array.reshape(-1), seal=NO_INDICES)


def _rearranged(array: NDArray[Any]) -> Intake:
    """An array that is not in C order: shared through a mode order if it is contiguous in some order, else copied."""
    notes: list[str] = []
    dtype = value_dtype(array.dtype)
    if array.dtype != dtype:
        notes.append("the array was copied: its byte order is not native")
        array = array.astype(dtype)
    elif not array.flags.aligned:
        notes.append("the array was copied: it is not aligned in memory")
        array = array.copy()
    # Outermost is the mode with the widest stride; modes of size 1 may stand anywhere.
    modes = tuple(sorted(range(array.ndim), key=lambda mode: -abs(array.strides[mode])))
    flat = array.transpose(modes)
    if not flat.flags.c_contiguous:
        notes.append("the array was copied: it is not contiguous in memory")
        flat = np.ascontiguousarray(array)
        modes = tuple(range(array.ndim))
    storage = Storage(dense_format(modes), array.shape, (NO_ARRAYS,) * array.ndim, flat.reshape(-1), seal=NO_INDICES)
    return Intake(storage, tuple(notes), bool(notes))


def to_numpy(storage: Storage) -> NDArray[Any]:
    """The whole tensor as an array: a view of a dense tensor's values, else a new array with the fill in the gaps."""
    format = storage.format
    if format is _in_order(len(storage.shape)) or format == _in_order(len(storage.shape)):
        return storage.values.reshape(storage.shape)
    if not format.is_dense or format.blocks:
        return to_dense(storage)
    inverse = np.argsort(np.array(format.modes, np.intp), kind="stable")
    return storage.values.reshape(format.level_sizes(storage.shape)).transpose(inverse)
