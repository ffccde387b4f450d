"""NumPy's functions (not its ufuncs) on tensors: a few have a method, and the rest work on dense tensors only.

Without this, some of them would swallow the refusal of a sparse tensor and answer wrongly: ``np.array_equal`` would say False.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sparseloom.core.errors import DTypeError
from sparseloom.tensor.arithmetic import Arithmetic
from sparseloom.tensor.interop.numpy import to_numpy

_METHODS = {name: name for name in "sum prod min max any all mean transpose copy".split()} | {"amin": "min", "amax": "max"}
_ATTRIBUTES = {"shape": "shape", "ndim": "ndim", "size": "size", "real": "real", "imag": "imag"}


def call_function(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """``np.function(*args, **kwargs)``, where some argument is a tensor."""
    name = function.__name__
    first = args[0] if args else None
    if isinstance(first, Arithmetic):
        if name in _METHODS:
            return getattr(first, _METHODS[name])(*args[1:], **kwargs)
        if name in _ATTRIBUTES and len(args) == 1 and not kwargs:
            return getattr(first, _ATTRIBUTES[name])
    return function(*_as_arrays(args, name), **{key: _as_arrays(value, name) for key, value in kwargs.items()})


def _as_arrays(value: Any, name: str) -> Any:
    """Dense tensors as arrays, also inside lists and tuples; a sparse one is refused."""
    match value:
        case Arithmetic():
            if not value.storage.format.is_dense:
                raise DTypeError(f"np.{name} is not offered on sparse tensors; convert with to_numpy() first")
            return to_numpy(value.storage)
        case list() | tuple():
            return type(value)(_as_arrays(part, name) for part in value)
    return value
