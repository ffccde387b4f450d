"""Value types: which there are and how they promote. A dtype is a NumPy dtype everywhere in Sparseloom."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparseloom.core.errors import DTypeError

DType = np.dtype[Any]

BOOL: DType = np.dtype(np.bool_)
INT32: DType = np.dtype(np.int32)
UINT8: DType = np.dtype(np.uint8)
INT64: DType = np.dtype(np.int64)
FLOAT64: DType = np.dtype(np.float64)

VALUE_DTYPES: tuple[DType, ...] = tuple(
    np.dtype(name)
    for name in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128".split()
)
INDEX_DTYPES: tuple[DType, ...] = (INT32, INT64)


def value_dtype(wanted: Any) -> DType:
    """Return the native dtype for ``wanted``, or say which dtypes there are."""
    try:
        dtype: DType = np.dtype(wanted).newbyteorder("=")
    except TypeError:
        raise DTypeError(f"{wanted!r} is not a value type; there are {', '.join(map(str, VALUE_DTYPES))}") from None
    if dtype not in VALUE_DTYPES:
        raise DTypeError(f"values of type {dtype} are not supported; there are {', '.join(map(str, VALUE_DTYPES))}")
    return dtype


def is_integer(dtype: DType) -> bool:
    """Whether values are signed or unsigned integers (not bool)."""
    return dtype.kind in "iu"


def is_complex(dtype: DType) -> bool:
    """Whether values are complex."""
    return dtype.kind == "c"


def as_inexact(dtype: DType) -> DType:
    """The dtype in which a bool or integer is computed by division and transcendental functions: float64."""
    return dtype if dtype.kind in "fc" else FLOAT64


def real_part(dtype: DType) -> DType:
    """The dtype of one component of a complex dtype; other dtypes stay."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def largest(dtype: DType) -> Any:
    """The largest value of an ordered dtype: infinity for floats."""
    return _extreme(dtype, np.inf, lambda d: np.iinfo(d).max, True)


def smallest(dtype: DType) -> Any:
    """The smallest value of an ordered dtype: minus infinity for floats."""
    return _extreme(dtype, -np.inf, lambda d: np.iinfo(d).min, False)


def _extreme(dtype: DType, real: float, integer: Any, boolean: bool) -> Any:
    match dtype.kind:
        case "b":
            return boolean
        case "i" | "u":
            return integer(dtype)
        case "f":
            return real
    raise DTypeError(f"{dtype} values have no order, so there is no largest or smallest one")
