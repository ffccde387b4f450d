"""What the array functions do otherwise than NumPy on purpose: one predicate for each row of the table in ``docs/semantics.md``.

A predicate does not only name a difference: where there is another answer that must be given, it computes that one and compares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from attack.function_call import Call

import sparseloom as sl
from sparseloom.core.errors import DTypeError, FormatError, NotationError, ShapeError, StorageError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "semantics.md"
HEADING = "## Where functions differ from NumPy"
Compare = Callable[[Any, Any], str]
"""How two answers differ; empty if they do not."""
Answer = Callable[[Call, dict[str, Any]], Any]
"""What NumPy gives with other operands."""
PRODUCTS = (
    "* / // % multiply divide floor_divide remainder fmod divmod matmul dot tensordot outer inner vdot vecdot kron matrix_power shift ldexp"
).split()


def rows() -> list[str]:
    """The names of the table's rows: the first cell of each."""
    section = PAGE.read_text().split(HEADING)[1].split("\n## ")[0]
    cells = [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("|")]
    return cells[2:]


def plain(value: Any) -> np.ndarray | None:
    """An answer as one array, if it is one."""
    if isinstance(value, (Exception, tuple, list)):
        return None
    return value.to_numpy() if isinstance(value, sl.Tensor) else np.asarray(value)


def has_sparse(call: Call) -> bool:
    """Whether an operand may have absent entries."""
    return any(isinstance(each, sl.Tensor) and not each.format.is_dense for each in call.tensors.values())


def absent_factor(call: Call, found: Any, expected: Any, same: Compare, by_numpy: Answer) -> bool:
    """Values differ only where NumPy's are NaN."""
    if isinstance(expected, tuple) and isinstance(found, tuple):
        pairs = zip(found, expected, strict=True)
        return all(not same(one, other) or absent_factor(call, one, other, same, by_numpy) for one, other in pairs)
    values, wanted = plain(found), plain(expected)
    if values is None or wanted is None or call.function not in PRODUCTS or not has_sparse(call) or values.shape != wanted.shape:
        return False
    if values.dtype != wanted.dtype or wanted.dtype.kind not in "fc":
        return False
    known = ~np.isnan(wanted)
    return not same(values[known], wanted[known])


def small_integers(call: Call, found: Any, expected: Any, same: Compare, by_numpy: Answer) -> bool:
    """The answer is NumPy's for the same integers as float64."""
    operands = {name: as_floats(array) for name, array in call.arrays.items()}
    wanted = by_numpy(call, operands)
    results = wanted if isinstance(wanted, tuple) else (wanted,)
    has_float = any(np.asarray(each).dtype.kind == "f" for each in results if not isinstance(each, Exception))
    of_expected = expected if isinstance(expected, tuple) else (expected,)
    short = isinstance(expected, Exception) or any(np.asarray(each).dtype in ("float16", "float32") for each in of_expected)
    return has_float and short and not same(found, wanted)


def as_floats(array: Any) -> Any:
    """Integers and truth values as float64."""
    return array.astype(np.float64) if isinstance(array, (np.ndarray, np.generic)) and array.dtype.kind in "biu" else array


def numbers_that_do_not_fit(call: Call, found: Any, expected: Any, same: Compare, by_numpy: Answer) -> bool:
    """The answer is NumPy's for operands of the wider dtype; a dtype that the function has no values of is an error of types."""
    if not isinstance(expected, OverflowError) and call.function != "where":
        return False
    values = plain(found)
    if values is None:
        return isinstance(found, (TypeError, NotationError, tuple))
    if values.dtype.kind == "b" or call.function.startswith("logical"):
        return True
    if call.function == "where" and np.asarray(expected).dtype.kind in "iu":
        return np.iinfo(values.dtype).max > np.iinfo(np.asarray(expected).dtype).max and not same(values.astype(expected.dtype), expected)
    wider = (values.dtype, *map(np.dtype, ("int64", "uint64", "float64")))
    return any(not same(found, by_numpy(call, in_dtype(call.arrays, dtype))) for dtype in wider)


def in_dtype(arrays: dict[str, Any], dtype: Any) -> dict[str, Any]:
    """Operands with integers in a wider dtype; but for what is written to, and where."""
    is_whole = {name: isinstance(each, (np.ndarray, np.generic)) and each.dtype.kind in "biu" for name, each in arrays.items()}
    return {name: each.astype(dtype) if is_whole[name] and name not in ("out", "mask") else each for name, each in arrays.items()}


def float16(call: Call, found: Any, expected: Any, same: Compare, by_numpy: Answer) -> bool:
    """The answer is NumPy's in float32, rounded."""
    if not any(np.asarray(each).dtype == np.float16 for each in call.arrays.values()) and "'float16'" not in call.text:
        return False
    call = replace(call, text=call.text.replace("'float16'", "'float32'"))
    wide = {name: array.astype(np.float32) if np.asarray(array).dtype == np.float16 else array for name, array in call.arrays.items()}
    wanted, values = by_numpy(call, wide), plain(found)
    if isinstance(wanted, Exception) or values is None or plain(wanted) is None or values.dtype.kind != "f":
        return False
    return not same(values, np.asarray(wanted).astype(values.dtype))


def parts_of_nan(call: Call, found: Any, expected: Any, same: Compare, by_numpy: Answer) -> bool:
    """Complex values are NaN where NumPy's are, and equal elsewhere."""
    values, wanted = plain(found), plain(expected)
    if values is None or wanted is None or wanted.dtype.kind != "c" or values.dtype != wanted.dtype or values.shape != wanted.shape:
        return False
    moves = ("sort", "[]", "where", "take", "concatenate", "stack", "diff", "pad", "roll", "repeat", "reshape")
    known = ~(np.isnan(values) | np.isinf(values)) if call.function not in moves else np.ones(values.shape, bool)
    return bool((np.isnan(values) == np.isnan(wanted)).all()) and not same(values[known], wanted[known])


def order_of_unique(call: Call, found: Any, expected: Any, same: Compare, by_numpy: Answer) -> bool:
    """The values are NumPy's, in ascending order."""
    return call.function == "unique_values" and not isinstance(expected, Exception) and not same(found, np.sort(expected))


def raises(*functions: str, ours: type[Exception]) -> Callable[..., bool]:
    """Functions that are not offered in some case: they raise this."""
    return lambda call, found, expected, same, by_numpy: call.function in functions and isinstance(found, ours)


def beyond_nothing(call: Call, found: Any, expected: Any, same: Compare, by_numpy: Answer) -> bool:
    """A position beyond the end of a mode, in a result without values."""
    return call.function == "take" and isinstance(found, IndexError) and np.size(expected) == 0


def of_one_value(call: Call, found: Any, expected: Any, same: Compare, by_numpy: Answer) -> bool:
    """``float(A)`` and the like take one value of any shape; several are an error of shapes."""
    if call.function not in ("number", "part") or not isinstance(expected, TypeError):
        return False
    array = call.arrays["A"]
    return isinstance(found, ShapeError) if array.size != 1 else not same(found, by_numpy(call, {"A": array.reshape(())}))


def two_mistakes(call: Call, found: Any, expected: Any, same: Compare, by_numpy: Answer) -> bool:
    """Dtypes that a function does not take, and shapes that do not broadcast: either is said first."""
    said = ("not supported for the input types", "Cannot cast ufunc", "out must be inexact")
    return isinstance(found, ShapeError) and isinstance(expected, TypeError) and any(words in str(expected) for words in said)


def axis_of_nothing(call: Call, found: Any, expected: Any, same: Compare, by_numpy: Answer) -> bool:
    """A tensor of order 0 that takes an axis."""
    is_rejected = isinstance(found, Exception) and "out=" not in call.text  # what holds the result is looked at afterwards
    return isinstance(expected, np.exceptions.AxisError) and call.arrays["A"].ndim == 0 and not is_rejected


def dtype_of_output(call: Call, found: Any, expected: Any, same: Compare, by_numpy: Answer) -> bool:
    """Whether an output of another dtype is filled: where the rule ``same_kind`` allows it, and then with NumPy's values."""
    if "out=out)" not in call.text and "out=out," not in call.text:
        return False
    alone = call.text.replace("out=out, ", "").replace("out=out", "").replace(", out][1]", "][0]")
    wanted = by_numpy(replace(call, text=alone), call.arrays)
    if isinstance(wanted, Exception):
        return isinstance(wanted, TypeError) and isinstance(found, TypeError)
    fits = np.can_cast(np.asarray(wanted).dtype, call.arrays["out"].dtype, "same_kind")
    if isinstance(found, Exception):
        return not fits
    ours, theirs = found.astype(np.asarray(wanted).dtype), np.asarray(wanted).astype(found.dtype)
    return fits and not (same(found, theirs) and same(ours, wanted))  # in the narrower of both dtypes


def truth_values(call: Call, found: Any, expected: Any, same: Compare, by_numpy: Answer) -> bool:
    """Truth values stay truth values, or have no such function."""
    if not any(np.asarray(each).dtype == bool for each in call.arrays.values()) or call.function not in (
        "conjugate",
        "square",
        "power",
        "**",
        "sign",
        "positive",
        "clip",
    ):
        return False
    values = plain(found)
    if "+A" in call.text or call.function in ("positive", "clip"):
        return not same(values, call.arrays["A"])
    return isinstance(found, TypeError) if values is None else not same(values.astype(np.asarray(expected).dtype), expected)


DIFFERENCES: dict[str, Callable[..., bool]] = {
    "absent factors": absent_factor,
    "small integers": small_integers,
    "numbers that do not fit": numbers_that_do_not_fit,
    "float16": float16,
    "NaN of complex numbers": parts_of_nan,
    "truth values": truth_values,
    "order of `unique_values`": order_of_unique,
    "places of what is not zero": raises("nonzero", "argwhere", "flatnonzero", ours=StorageError),
    "fills that differ": raises("concatenate", "stack", "vstack", "hstack", "block", ours=FormatError),
    "reductions without an identity": raises("subtract", ours=NotationError),
    "norms from singular values": raises("norm", ours=ShapeError),
    "numbers": of_one_value,
    "two mistakes": two_mistakes,
    "sign of complex numbers": raises("sign", ours=DTypeError),
    "dtype of `out=`": dtype_of_output,
    "positions in tensors without values": beyond_nothing,
    "axis of order 0": axis_of_nothing,
}


def meant(call: Call, found: Any, expected: Any, same: Compare, by_numpy: Answer) -> str:
    """The row of the table that explains a difference; empty if none does."""
    return next((name for name, explains in DIFFERENCES.items() if explains(call, found, expected, same, by_numpy)), "")
