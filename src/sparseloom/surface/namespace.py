"""The array API standard (2025.12) on tensors: what ``x.__array_namespace__()`` gives.

Functions are those of the table under the names that the standard gives them, and every result is a tensor, numbers too. Tensors that are
created are dense, except for ``eye``; those that are given keep their formats. The extensions (linalg, fft) are not offered.

>>> sl.array_api.sum(sl.eye(3), axis=0).to_numpy()
array([1., 1., 1.])
"""

from __future__ import annotations

import builtins
import functools
import math
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from sparseloom.core.dtypes import VALUE_DTYPES, DType, is_bfloat16, promoted, value_dtype
from sparseloom.core.errors import DTypeError
from sparseloom.surface import making, methods
from sparseloom.surface.entries import dense_tensor, tensor_of, wrapped
from sparseloom.tensor import creation, table
from sparseloom.tensor.operators import broadcast_shape
from sparseloom.tensor.tensor import Tensor

assert methods.FAMILIES  # whose import fills the table
__array_api_version__ = "2025.12"
pi, e, inf, nan, newaxis = math.pi, math.e, math.inf, math.nan, None
bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64, complex64, complex128 = VALUE_DTYPES


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: builtins.bool | None = None) -> Tensor:
    """A tensor of anything array-like."""
    making.require_main_memory(device)
    return creation.asarray(obj, dtype=dtype, copy=copy)


def from_dlpack(x: Any, /, *, device: Any = None, copy: builtins.bool | None = None) -> Tensor:
    """A tensor over the memory of an object that shares it by DLPack."""
    return asarray(x, device=device, copy=copy)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A dense tensor of zeros."""
    making.require_main_memory(device)
    return creation.zeros(shape, dtype=float64 if dtype is None else dtype)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A dense tensor, of zeros."""
    return zeros(shape, dtype=dtype, device=device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A dense tensor of ones."""
    making.require_main_memory(device)
    return making.ones(shape, dtype=float64 if dtype is None else dtype)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A dense tensor of one value."""
    making.require_main_memory(device)
    return creation.full(shape, fill_value, dtype=dtype)


def zeros_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros in the shape, dtype and format of another tensor."""
    making.require_main_memory(device)
    return making.zeros_like(x, dtype)


def empty_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """As ``zeros_like``."""
    return zeros_like(x, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones in the shape, dtype and format of another tensor."""
    making.require_main_memory(device)
    return making.ones_like(x, dtype)


def full_like(x: Tensor, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """One value in the shape, dtype and format of another tensor."""
    making.require_main_memory(device)
    return making.full_like(x, fill_value, dtype)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones on a diagonal of a sparse matrix."""
    making.require_main_memory(device)
    return making.eye(n_rows, n_cols, k, float64 if dtype is None else dtype)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Evenly spaced numbers."""
    making.require_main_memory(device)
    return making.arange(start, stop, step, dtype)


def linspace(start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: builtins.bool = True) -> Tensor:
    """So many evenly spaced numbers from one to another."""
    making.require_main_memory(device)
    return making.linspace(start, stop, num, dtype, endpoint)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The coordinates of the values that are not zero, one tensor per mode."""
    return tuple(map(dense_tensor, tensor_of(x).nonzero()))


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape to which these broadcast."""
    return broadcast_shape("broadcast_shapes", shapes)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype to which tensors, dtypes and numbers promote."""
    return value_dtype(promoted([_kind(given) for given in arrays_and_dtypes]))


def _kind(given: Any) -> Any:
    """The dtype of a tensor or an array, or one that is named; a number promotes weakly."""
    if isinstance(given, Tensor | np.ndarray):
        return given.dtype
    return given if isinstance(given, builtins.bool | int | float | complex | np.generic) else np.dtype(given)


def can_cast(from_: Any, to: Any, /) -> builtins.bool:
    """Whether values of one dtype can be converted to another without a loss."""
    return np.can_cast(from_.dtype if isinstance(from_, Tensor) else from_, to)


def finfo(type: Any, /) -> Any:
    """The limits of a dtype of floats."""
    dtype = type.dtype if isinstance(type, Tensor) else type
    is_foreign = isinstance(dtype, np.dtype) and is_bfloat16(dtype)
    return import_module("ml_dtypes").finfo(dtype) if is_foreign else np.finfo(dtype)


def iinfo(type: Any, /) -> Any:
    """The limits of a dtype of integers."""
    return np.iinfo(type.dtype if isinstance(type, Tensor) else type)


def isdtype(dtype: Any, kind: Any) -> builtins.bool:
    """Whether a dtype is of a kind, such as "integral", or one of several."""
    if isinstance(dtype, np.dtype) and is_bfloat16(dtype):  # which NumPy takes for no dtype of its own
        kinds = kind if isinstance(kind, tuple) else (kind,)
        return builtins.any(each in ("real floating", "numeric") if isinstance(each, str) else each == dtype for each in kinds)
    return np.isdtype(dtype, kind)


_KINDS = {
    "bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f", "complex floating": "c",
    "numeric": "iufc",
}  # fmt: skip


class __array_namespace_info__:
    """What the namespace can do."""

    def capabilities(self) -> dict[str, Any]:
        """Which optional parts are there, and how many modes a tensor may have."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Where tensors are created."""
        return "cpu"

    def devices(self) -> list[Any]:
        """Where tensors can be created."""
        return ["cpu"]

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The dtypes of numbers that have none."""
        making.require_main_memory(device)
        return {"real floating": float64, "complex floating": complex128, "integral": int64, "indexing": int64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """All dtypes by name, or those of a kind or several."""
        making.require_main_memory(device)
        wanted = _KINDS if kind is None else kind if isinstance(kind, tuple) else (kind,)
        if unknown := [name for name in wanted if name not in _KINDS]:
            raise DTypeError(f"there is no kind of dtypes {unknown[0]!r}; there are {', '.join(_KINDS)}")
        letters = "".join(_KINDS[name] for name in wanted)
        return {dtype.name: dtype for dtype in VALUE_DTYPES if dtype.kind in letters}


def _giving_tensors(call: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the table that gives tensors where NumPy's gives numbers."""

    @functools.wraps(call)
    def function(*arguments: Any, **options: Any) -> Any:
        made = call(*arguments, **options)
        return tensor_of(made) if isinstance(made, np.generic) else wrapped(made)

    return function


_OWN = (
    "asarray from_dlpack zeros empty ones full zeros_like empty_like ones_like full_like eye arange linspace nonzero broadcast_shapes "
    "result_type can_cast finfo iinfo isdtype"
).split()
FUNCTIONS = sorted({*table.standard(), *_OWN})
"""All functions of the standard that are offered."""
globals().update({name: _giving_tensors(call) for name, call in table.standard().items()})


def _namespace(tensor: Tensor, /, *, api_version: str | None = None) -> Any:
    """This module, if it is the version that was asked for."""
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12", __array_api_version__):
        raise DTypeError(f"the version {api_version!r} of the array API is not offered; {__array_api_version__} is")
    return sys.modules[__name__]


Tensor.__array_namespace__ = _namespace  # type: ignore[attr-defined]


def __getattr__(name: str) -> Any:
    """Functions of the table beyond the standard, which xarray also looks for here."""
    if name not in table.TABLE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return table.TABLE[name].call
