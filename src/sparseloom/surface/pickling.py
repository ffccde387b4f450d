"""Tensors in pickles: the format as text, numbers and arrays only.

The functions are here, so that whoever loads a pickle in a new process has the methods of tensors with it.
"""

from __future__ import annotations

from typing import Any

from sparseloom.core.algebra import Scalar
from sparseloom.formats.storage import copied
from sparseloom.formats.text import parse_format
from sparseloom.interop.arrays import arrays_of, storage_of
from sparseloom.programs.cuda.storages import to_host
from sparseloom.programs.large import duplicate
from sparseloom.tensor.tensor import Tensor


def pickled(tensor: Tensor) -> tuple[Any, ...]:
    """The function that makes a tensor again, and its arguments: ``Tensor.__reduce__``."""
    # Copies, for a pickle may hold arrays as they are (out of band), and those that it makes are read by others.
    storage = copied(to_host(tensor.storage), duplicate)
    parts = (type(tensor), storage.format.text, storage.shape, arrays_of(storage), storage.fill, tensor.name, tensor.notes)
    return (_rebuilt, parts) if tensor.device == "cpu" else (_rebuilt_on_device, parts)


def _rebuilt(
    kind: type[Tensor], format: str, shape: tuple[int, ...], arrays: dict[str, Any], fill: Scalar, name: str | None, notes: tuple[str, ...]
) -> Tensor:
    """A tensor from its pickled parts."""
    return kind(storage_of(parse_format(format, len(shape)), shape, arrays, fill), name, notes)


def _rebuilt_on_device(*parts: Any) -> Tensor:
    """A tensor that was on a device, on the first one there is."""
    return _rebuilt(*parts).to_device()
