"""Anything that speaks DLPack and lives on the CPU: PyTorch, JAX and others. The memory is shared."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.errors import DeviceError, DTypeError
from sparseloom.tensor.entry import Intake
from sparseloom.tensor.interop.numpy import from_numpy

_ON_THE_CPU = (1, 3)  # plain memory, and memory pinned for CUDA


def from_dlpack(tensor: Any) -> Intake:
    """A dense tensor over the memory of another library's tensor."""
    kind = int(tensor.__dlpack_device__()[0])
    if kind not in _ON_THE_CPU:
        raise DeviceError(f"the {type(tensor).__name__} is on a device (DLPack kind {kind}), not in main memory; copy it there first")
    return from_numpy(shared_array(tensor))


def shared_array(tensor: Any) -> NDArray[Any]:
    """A NumPy array over the memory of another library's tensor."""
    try:
        return np.from_dlpack(tensor)
    except (AttributeError, BufferError, RuntimeError, TypeError) as problem:
        raise DTypeError(f"cannot share the memory of this {type(tensor).__name__}: {problem}; give a NumPy array instead") from problem
