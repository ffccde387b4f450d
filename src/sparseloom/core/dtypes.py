"""Value types: which there are and how they promote. A dtype is a NumPy dtype everywhere in Sparseloom."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
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


def width_for(largest: int, limit: int = 2**31 - 1, given: Iterable[DType | None] = ()) -> DType:
    """The dtype of indices up to ``largest`` beside those that are ``given``: int64 where one of them is, or where int32 ends too early."""
    return INT64 if largest > limit else widest(given)


def widest(given: Iterable[DType | None]) -> DType:
    """The dtype that holds indices of all of these; int32 where there is none."""
    return INT64 if any(dtype is not None and dtype == INT64 for dtype in given) else INT32


def value_dtype(wanted: Any) -> DType:
    """Return the native dtype for ``wanted``, or say which dtypes there are."""
    try:
        dtype: DType = np.dtype(wanted).newbyteorder("=")
    except (TypeError, ValueError, SyntaxError, KeyError, OverflowError):  # what NumPy raises for text that it cannot read
        raise DTypeError(f"{wanted!r} is not a value type; there are {', '.join(map(str, VALUE_DTYPES))}") from None
    if dtype not in VALUE_DTYPES:
        raise DTypeError(f"values of type {dtype} are not supported; there are {', '.join(map(str, VALUE_DTYPES))}")
    return dtype


def known_fill(fill: Any, dtype: DType) -> Any:
    """The fill as a plain number, if values of ``dtype`` can be equal to it; text, None and numbers of a wider kind are refused."""
    kind = getattr(fill, "dtype", np.dtype(type(fill)) if isinstance(fill, (bool, int, float, complex)) else None)
    if kind is None or np.ndim(fill) or kind.kind not in "biufc":
        raise DTypeError(f"the fill {fill!r} is not a value of type {dtype}: it must be a number")
    number = fill.item() if isinstance(fill, (np.generic, np.ndarray)) else fill
    if _holds(dtype, number):
        return dtype.type(number).item()
    raise DTypeError(f"the fill {number!r} is not a value of type {dtype}\n  help: give one that is, or values of another dtype")


def _holds(dtype: DType, number: bool | int | float | complex) -> bool:
    """Whether a number is of the dtype's kind or a narrower one, and within its range."""
    match dtype.kind:
        case "b":
            return isinstance(number, int) and number in (0, 1)
        case "i" | "u":
            return isinstance(number, int) and np.iinfo(dtype).min <= number <= np.iinfo(dtype).max
        case "f":
            return isinstance(number, (int, float)) and not _overflows(dtype, number)
    return not _overflows(dtype, number.real) and not _overflows(dtype, number.imag)


def _overflows(dtype: DType, number: float) -> bool:
    """Whether a finite number is too large for a float or complex dtype."""
    return float(np.finfo(dtype).max) < abs(number) != float("inf")


def is_integer(dtype: DType) -> bool:
    """Whether values are signed or unsigned integers (not bool)."""
    return dtype.kind in "iu"


def as_inexact(dtype: DType) -> DType:
    """The dtype in which a bool or integer is computed by division and transcendental functions: float64."""
    return dtype if dtype.kind in "fc" else FLOAT64


def real_part(dtype: DType) -> DType:
    """The dtype of one component of a complex dtype; other dtypes stay."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


@cache
def largest(dtype: DType) -> Any:
    """The largest value of an ordered dtype: infinity for floats."""
    return _extreme(dtype, np.inf, lambda d: np.iinfo(d).max, True)


@cache
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
