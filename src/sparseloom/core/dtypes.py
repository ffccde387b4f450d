"""Value types: which there are and how they promote. A dtype is a NumPy dtype everywhere in Sparseloom.

Kernels compute in the dtypes of ``VALUE_DTYPES``. Two more are stored only, the halves: float16, and the bfloat16 of ml_dtypes, a package
that is loaded when its name is said. What is stored in a half is computed in float32, and rounded when it is stored again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from sparseloom.core.errors import DTypeError

DType = np.dtype[Any]

BOOL: DType = np.dtype(np.bool_)
INT32: DType = np.dtype(np.int32)
UINT8: DType = np.dtype(np.uint8)
UINT16: DType = np.dtype(np.uint16)
INT64: DType = np.dtype(np.int64)
UINT64: DType = np.dtype(np.uint64)
FLOAT16: DType = np.dtype(np.float16)
FLOAT32: DType = np.dtype(np.float32)
FLOAT64: DType = np.dtype(np.float64)
COMPLEX128: DType = np.dtype(np.complex128)

VALUE_DTYPES: tuple[DType, ...] = tuple(
    np.dtype(name) for name in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128".split()
)
INDEX_DTYPES: tuple[DType, ...] = (INT32, INT64)
HALF_NAMES = ("float16", "bfloat16")
_NAMES = [str(dtype) for dtype in VALUE_DTYPES]
STORED_NAMES = (*_NAMES[: _NAMES.index("float32")], *HALF_NAMES, *_NAMES[_NAMES.index("float32") :])
KNOWN_DTYPES = ", ".join(STORED_NAMES)  # as errors list them


def width_for(largest: int, limit: int = 2**31 - 1, given: Iterable[DType | None] = ()) -> DType:
    """The dtype of indices up to ``largest`` beside those that are ``given``: int64 where one of them is, or where int32 ends too early."""
    return INT64 if largest > limit else widest(given)


def widest(given: Iterable[DType | None]) -> DType:
    """The dtype that holds indices of all of these; int32 where there is none."""
    return INT64 if any(dtype is not None and dtype == INT64 for dtype in given) else INT32


def is_half(dtype: DType) -> bool:
    """Whether values are stored in 16 bits and computed in float32: float16 or bfloat16."""
    return dtype.itemsize == 2 and dtype.kind in "fV" and dtype.name in HALF_NAMES


def is_bfloat16(dtype: DType) -> bool:
    """Whether values are bfloat16, which NumPy counts among dtypes of no kind (``V``)."""
    return dtype.kind == "V" and dtype.name == "bfloat16"


def bits_of(dtype: DType) -> DType:
    """The dtype by which arrays cross a border where bfloat16 is not known: uint16 for its bits, else the same."""
    return UINT16 if is_bfloat16(dtype) else dtype


def computed(dtype: DType) -> DType:
    """The dtype in which values of a stored dtype are computed: float32 for halves, else the same."""
    return FLOAT32 if is_half(dtype) else dtype


def is_value_dtype(dtype: DType) -> bool:
    """Whether a tensor can hold values of this dtype, in this byte order."""
    return dtype in VALUE_DTYPES or (is_half(dtype) and dtype.isnative)


def kind_of(dtype: DType) -> str:
    """The letter of NumPy for the kind of a dtype, which is ``f`` for bfloat16 too."""
    return "f" if is_bfloat16(dtype) else dtype.kind


def value_dtype(wanted: Any) -> DType:
    """Return the native dtype for ``wanted``, or say which dtypes there are."""
    if isinstance(wanted, str) and wanted == "bfloat16":
        return bfloat16()
    try:
        dtype: DType = np.dtype(wanted).newbyteorder("=")
    except (TypeError, ValueError, SyntaxError, KeyError, OverflowError):  # what NumPy raises for text that it cannot read
        raise DTypeError(f"{wanted!r} is not a value type; there are {KNOWN_DTYPES}") from None
    if not is_value_dtype(dtype):
        raise DTypeError(f"values of type {dtype} are not supported; there are {KNOWN_DTYPES}")
    return dtype


def bfloat16() -> DType:
    """The dtype of ml_dtypes, which is loaded now if it is not yet."""
    try:
        found: DType = np.dtype(import_module("ml_dtypes").bfloat16)
    except ImportError:
        help = "install ml_dtypes, which comes with JAX, or use float16 or float32"
        raise DTypeError(f"bfloat16 is a dtype of ml_dtypes, which is not installed\n  help: {help}") from None
    return found


def refuse_half(dtype: DType, holder: str) -> None:
    """Refuse to hand values in a half to whoever cannot hold them."""
    if is_half(dtype):
        help = "convert with astype('float32'), which loses nothing, or use to_numpy() or to_torch()"
        raise DTypeError(f"{holder} do not hold {dtype}\n  help: {help}")


def promoted(given: Sequence[DType | bool | int | float | complex]) -> DType:
    """The dtype to which dtypes and numbers promote: as ``np.result_type``, where that knows bfloat16.

    It does not know float16 and bfloat16 together, nor wider integers beside bfloat16: they promote as if they were float32, in which
    they are computed. A number beside bfloat16 promotes as weakly as beside float16.
    """
    common: DType
    if not any(isinstance(one, np.dtype) and is_bfloat16(one) for one in given):
        common = np.result_type(*given)
        return common
    dtypes = [one for one in given if isinstance(one, np.dtype)]
    try:
        common = np.result_type(*dtypes)
    except TypeError:
        common = np.result_type(*map(computed, dtypes))
    numbers = [one for one in given if not isinstance(one, np.dtype)]
    if not numbers or not is_bfloat16(common):
        return np.result_type(common, *numbers)
    widened: DType = np.result_type(FLOAT32, *numbers)
    return common if widened == FLOAT32 else widened


@cache
def float_limits(dtype: DType) -> tuple[float, float]:
    """The largest finite value of a float or complex dtype, and its eps."""
    if is_bfloat16(dtype):
        return float(2.0**127 * (2 - 2.0**-7)), 2.0**-7
    known = np.finfo(dtype)
    return float(known.max), float(known.eps)


def known_fill(fill: Any, dtype: DType) -> Any:
    """The fill as a plain number, if values of ``dtype`` can be equal to it; text, None and numbers of a wider kind are refused."""
    kind = getattr(fill, "dtype", np.dtype(type(fill)) if isinstance(fill, (bool, int, float, complex)) else None)
    if kind is None or np.ndim(fill) or kind_of(kind) not in "biufc":
        raise DTypeError(f"the fill {fill!r} is not a value of type {dtype}: it must be a number")
    number = fill.item() if isinstance(fill, (np.generic, np.ndarray)) else fill
    if _holds(dtype, number):
        return dtype.type(number).item()
    raise DTypeError(f"the fill {number!r} is not a value of type {dtype}\n  help: give one that is, or values of another dtype")


def _holds(dtype: DType, number: bool | int | float | complex) -> bool:
    """Whether a number is of the dtype's kind or a narrower one, and within its range."""
    match kind_of(dtype):
        case "b":
            return isinstance(number, int) and number in (0, 1)
        case "i" | "u":
            return isinstance(number, int) and np.iinfo(dtype).min <= number <= np.iinfo(dtype).max
        case "f":
            return isinstance(number, (int, float)) and not _overflows(dtype, number)
    return not _overflows(dtype, number.real) and not _overflows(dtype, number.imag)


def _overflows(dtype: DType, number: float) -> bool:
    """Whether a finite number is too large for a float or complex dtype."""
    return float_limits(dtype)[0] < abs(number) != float("inf")


def is_integer(dtype: DType) -> bool:
    """Whether values are signed or unsigned integers (not bool)."""
    return dtype.kind in "iu"


def as_inexact(dtype: DType) -> DType:
    """The dtype in which a bool or integer is computed by division and transcendental functions: float64."""
    return dtype if kind_of(dtype) in "fc" else FLOAT64


def summed(dtype: DType) -> DType:
    """The dtype in which NumPy's ``sum`` and ``prod`` add and multiply: 64 bits for truth values and short integers, else the same."""
    return {"b": INT64, "i": INT64, "u": UINT64}.get(dtype.kind, dtype)


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
    match kind_of(dtype):
        case "b":
            return boolean
        case "i" | "u":
            return integer(dtype)
        case "f":
            return real
    raise DTypeError(f"{dtype} values have no order, so there is no largest or smallest one")
