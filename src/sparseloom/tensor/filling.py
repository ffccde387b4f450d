"""``out=`` of functions on whole tensors: an array or a tensor that takes a result over."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparseloom.core.errors import DTypeError, ShapeError
from sparseloom.formats.storage import Storage, apart
from sparseloom.interop.numpy import from_numpy, to_numpy
from sparseloom.programs.conversion import convert
from sparseloom.tensor.operators import cast


def put(made: Any, out: Any, casting: str = "same_kind") -> Any:
    """A result, which may be a number, in ``out=``. That must have its very shape: it is not stretched as that of a ufunc is."""
    storage = made if isinstance(made, Storage) else from_numpy(np.asarray(made)).storage
    if getattr(out, "shape", None) != storage.shape:
        raise ShapeError(f"out= has shape {getattr(out, 'shape', None)}, and the result {storage.shape}")
    return written(storage, out, True, casting)


def written(made: Storage, out: Any, where: Any, casting: Any) -> Any:
    """What is written to ``out=``, and where it is written at all. A sparse tensor takes over the result, in its own format and dtype."""
    holder = isinstance(getattr(out, "storage", None), Storage)
    if holder and not out.storage.format.is_dense:
        return _taken_over(made, out, where, casting)
    target = to_numpy(out.writable()) if holder else out
    if isinstance(target, np.ndarray) and len(made.shape) > target.ndim:  # copyto would drop leading modes of size 1
        raise ShapeError(f"out= has shape {np.shape(target)}, and the result {made.shape}")
    chosen = to_numpy(where.storage) if isinstance(getattr(where, "storage", None), Storage) else where
    try:
        np.copyto(target, to_numpy(made), casting, chosen)
    except TypeError as problem:
        raise DTypeError(f"out= cannot hold the result: {problem}") from None
    except ValueError as problem:
        raise ShapeError(f"out= cannot hold the result: {problem}") from None
    return out


def _taken_over(made: Storage, out: Any, where: Any, casting: Any) -> Any:
    """A result as that of a sparse tensor, whose arrays it does not change: another holder of them sees nothing of it."""
    old = out.storage
    if where is not True:
        raise DTypeError("where= with a sparse tensor as out= is not offered; convert with to_numpy() first")
    if old.shape != made.shape:
        raise ShapeError(f"out= has shape {old.shape}, and the result {made.shape}")
    if not np.can_cast(made.dtype, old.dtype, casting):
        raise DTypeError(f"out= holds {old.dtype}, and {made.dtype} cannot be cast to it by the rule {casting!r}")
    return out.replace_storage(convert(apart(cast(made, old.dtype), made), old.format))
