"""Anything that speaks DLPack: PyTorch, JAX and others. The memory is shared, in main memory and on a CUDA device."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import is_bfloat16
from sparseloom.core.errors import DeviceError, DTypeError
from sparseloom.formats.storage import Storage
from sparseloom.interop.device import from_device
from sparseloom.interop.entry import Intake
from sparseloom.interop.numpy import from_numpy
from sparseloom.programs.calling import address_of
from sparseloom.programs.cuda.arrays import interface, shared_by_dlpack
from sparseloom.programs.cuda.dlpack import CUDA_KINDS, capsule_of

_ON_THE_CPU = (1, 3)  # plain memory, and memory pinned for CUDA


def from_dlpack(tensor: Any) -> Intake:
    """A dense tensor over the memory of another library's tensor."""
    try:
        kind = int(tensor.__dlpack_device__()[0])
    except RuntimeError as problem:  # PyTorch's, of what torch.vmap and its like hand to a function
        raise DTypeError(f"cannot share the memory of this {type(tensor).__name__}: {problem}") from None
    if kind in CUDA_KINDS:
        return from_device(tensor)
    if kind not in _ON_THE_CPU:
        raise DeviceError(
            f"the {type(tensor).__name__} is on a device (DLPack kind {kind}) that is neither main memory nor CUDA; copy it there first"
        )
    return from_numpy(shared_array(tensor))


def shared_array(tensor: Any) -> NDArray[Any]:
    """A NumPy array over the memory of another library's tensor. An array of bfloat16 is taken as it is."""
    if isinstance(kind := getattr(tensor, "dtype", None), np.dtype) and is_bfloat16(kind):
        return np.asarray(tensor)
    try:
        return np.from_dlpack(tensor)
    except (AttributeError, BufferError, RuntimeError, TypeError) as problem:
        raise DTypeError(f"cannot share the memory of this {type(tensor).__name__}: {problem}; give a NumPy array instead") from problem


def device_of(storage: Storage) -> tuple[int, int]:
    """Where a storage is, as DLPack says it."""
    values: Any = storage.values
    return (1, 0) if storage.device == "cpu" else (CUDA_KINDS[0], values.ordinal)


def capsule(storage: Storage, stream: Any = None, **_: Any) -> Any:
    """A DLPack capsule over the values of a dense tensor on a device."""
    values: Any = storage.values
    return shared_by_dlpack(values, storage.shape, strides_of(storage), stream)


def shared_by_bits(array: NDArray[Any]) -> Any:
    """A DLPack capsule over an array of bfloat16 in main memory, which NumPy makes none of."""
    if not array.flags.writeable:
        raise BufferError("a read-only array of bfloat16 cannot be shared by DLPack; copy it first")
    steps = tuple(step // array.itemsize for step in array.strides)
    return capsule_of(address_of(array), array.dtype, array.shape, steps, 0, array, _ON_THE_CPU[0])


def cuda_interface(storage: Storage) -> dict[str, Any]:
    """What ``__cuda_array_interface__`` says of a dense tensor on a device."""
    values: Any = storage.values
    return interface(values, storage.shape, tuple(step * values.itemsize for step in strides_of(storage)))


def strides_of(storage: Storage) -> tuple[int, ...]:
    """How many values the next coordinate of each mode of a dense tensor is away."""
    steps, step = [1] * len(storage.shape), 1
    for mode in reversed(storage.format.modes):
        steps[mode] = step
        step *= storage.shape[mode]
    return tuple(steps)
