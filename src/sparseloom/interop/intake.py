"""Anything array-like as a storage: who made it is recognised by its type, without importing the library it comes from."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparseloom.core.errors import DTypeError, ShapeError
from sparseloom.formats.storage import Storage
from sparseloom.interop import binsparse
from sparseloom.interop.device import from_device
from sparseloom.interop.dlpack import from_dlpack
from sparseloom.interop.entry import Intake, warn
from sparseloom.interop.numpy import from_numpy
from sparseloom.interop.registry import Reader, reader_for

_TAKEN = "NumPy and SciPy arrays, numbers, lists of numbers, and tensors with __dlpack__ or __cuda_array_interface__"


def enter(value: Any) -> Intake:
    """The storage of any array-like, and notes on what had to be copied."""
    kind = type(value)
    reader = _READERS.get(kind)
    if reader is None:
        reader = _READERS[kind] = _reader_for(kind)
    return reader(value)


def enter_aloud(value: Any) -> Storage:
    """As ``enter``, with a warning for copies that the user may not expect."""
    entry = enter(value)
    if entry.unexpected:
        warn(entry)
    return entry.storage


def enter_held(value: Any) -> Intake:
    """The storage of what a wrapper such as xarray's holds: a tensor, or any array-like."""
    storage = getattr(value, "storage", None)
    return Intake(storage) if isinstance(storage, Storage) else enter(value)


def _reader_for(kind: type) -> Reader:
    """Find out, once per class, how its objects are read."""
    if issubclass(kind, np.ndarray):
        return from_numpy
    if issubclass(kind, (bool, int, float, complex, np.generic, list, tuple)):
        return _from_python
    if (found := reader_for(kind)) is not None:
        return found
    if (found := binsparse.reader_for(kind)) is not None:
        return found
    if hasattr(kind, "__dlpack__"):
        return from_dlpack
    if hasattr(kind, "__cuda_array_interface__"):
        return from_device
    if hasattr(kind, "__array__") or hasattr(kind, "__array_interface__"):
        return _from_python
    raise DTypeError(f"a {kind.__module__}.{kind.__qualname__} cannot become a tensor; sl.asarray takes {_TAKEN}")


def _from_python(value: Any) -> Intake:
    try:
        array = np.asarray(value)
    except ValueError as problem:
        raise ShapeError(f"the lists do not form an array: {problem}") from None
    if array.dtype == object:
        raise DTypeError(f"the values are Python objects, not numbers that fit a dtype; sl.asarray takes {_TAKEN}")
    return from_numpy(array)


_READERS: dict[type, Reader] = {np.ndarray: from_numpy, int: _from_python, float: _from_python, bool: _from_python, list: _from_python}
