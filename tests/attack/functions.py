"""The array functions against NumPy: value, dtype, shape and kind of exception of random calls, over all dtypes, fills and formats.

What differs on purpose is a row of the table in ``docs/semantics.md``, and a predicate of the same name in ``function_differences``.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
from attack.function_call import Call
from attack.function_calls import draw_call
from attack.function_differences import meant
from attack.interpreted import interpreted
from attack.uses import same

import sparseloom as sl
from sparseloom.core.dtypes import value_dtype
from sparseloom.core.errors import SparseloomError
from sparseloom.formats.validate import check

NAME = "functions"
COUNT = 60_000
SHORT = 300


def largest(array: Any, k: int, axis: int = -1) -> Any:
    """What ``topk`` gives, by NumPy."""
    ordered = np.flip(np.sort(array, axis), axis)
    if k > array.shape[axis]:
        raise ValueError("there are not so many")
    return SimpleNamespace(values=np.take(ordered, range(k), axis))


OURS = {"sl": sl, "api": sl.array_api, "linalg": sl, "np": np, "topk": sl.topk, "as_it_is": lambda tensor, name: getattr(tensor, name)()}
THEIRS = {"sl": np, "api": np, "linalg": np.linalg, "np": np, "topk": largest, "as_it_is": lambda array, name: array}
BFLOAT16 = value_dtype("bfloat16")
TOLERANCE = {2: 2e-2, 4: 2e-4, 8: 1e-9, 16: 1e-9}


def trial(rng: np.random.Generator) -> str:
    """One call."""
    call = draw_call(rng)
    if rng.random() < 0.05:
        call.tensors = {name: as_bfloat16(tensor) for name, tensor in call.tensors.items()}
    how: AbstractContextManager[None] = nullcontext() if rng.random() < 0.02 else interpreted()
    with np.errstate(all="ignore"), how:
        expected = answer(call, THEIRS, call.arrays)
        found = answer(call, OURS, call.tensors)
    fault = difference(found, expected)
    if not fault:
        return "refused" if isinstance(expected, Exception) else "right"
    name = meant(call, found, expected, difference, by_numpy)
    assert name, f"{fault}\n{call.described()}\nfound    {shown(found)}\nexpected {shown(expected)}"
    return name


def as_bfloat16(tensor: Any) -> Any:
    """A tensor of float32 as one of bfloat16, if that holds its values: NumPy then computes in float32."""
    if not isinstance(tensor, sl.Tensor) or tensor.dtype != np.float32:
        return tensor
    made = tensor.astype("bfloat16")
    return made if same(made.astype("float32").to_numpy(), tensor.to_numpy()) else tensor


def by_numpy(call: Call, operands: dict[str, Any]) -> Any:
    """What NumPy gives with other operands."""
    with np.errstate(all="ignore"):
        return answer(call, THEIRS, operands)


def answer(call: Call, names: dict[str, Any], operands: dict[str, Any]) -> Any:
    """What the text gives with these operands, or the exception."""
    try:
        return eval(call.text, {**names, **operands})
    except sl.CompilerBug:
        raise
    except (SparseloomError, ValueError, TypeError, IndexError, OverflowError, ZeroDivisionError) as problem:
        return problem


def shown(value: Any) -> str:
    """An answer, for a report."""
    if isinstance(value, sl.Tensor):
        return f"{value.to_numpy()!r} in {value.format}, fill {value.fill!r}"
    return f"{value!r}"


def difference(found: Any, expected: Any) -> str:
    """How an answer differs from NumPy's; empty if it does not."""
    if isinstance(expected, Exception) or isinstance(found, Exception):
        return of_exceptions(found, expected)
    if isinstance(expected, (tuple, list)):
        if len(found) != len(expected):
            return f"{len(found)} results instead of {len(expected)}"
        return next(filter(None, (difference(one, other) for one, other in zip(found, expected, strict=True))), "")
    if isinstance(found, sl.Tensor):
        check(found.storage)
        if not found.format.is_dense and np.asarray(found.fill).astype(found.dtype).item() != found.fill == found.fill:
            return f"the fill {found.fill!r} is no {found.dtype}"
        values = found.to_numpy()
    else:
        values = np.asarray(found)
    wanted = np.asarray(expected)
    if values.shape != wanted.shape:
        return f"shape {values.shape} instead of {wanted.shape}"
    if values.dtype == BFLOAT16 and wanted.dtype in (np.float32, np.float16):
        return "" if equal(values.astype(np.float32), wanted.astype(BFLOAT16).astype(np.float32), 2e-2) else "values"
    if values.dtype != wanted.dtype:
        return f"dtype {values.dtype} instead of {wanted.dtype}"
    return "" if equal(values, wanted) else "values"


def of_exceptions(found: Any, expected: Any) -> str:
    """How exceptions differ: one of them is no exception, or they are of different kinds."""
    if isinstance(expected, Exception) and isinstance(found, Exception):
        if kind_of(found) != kind_of(expected):
            return f"{type(found).__name__} instead of {type(expected).__name__}"
        return ""
    return "an exception" if isinstance(found, Exception) else "no exception"


def kind_of(problem: Exception) -> str:
    """TypeError, or else a wrong value, shape or index."""
    return "TypeError" if isinstance(problem, TypeError) else "ValueError"


def equal(values: np.ndarray, wanted: np.ndarray, least: float = 0.0) -> bool:
    """Whether values are as NumPy's: exactly, or nearly so for floats."""
    if values.dtype.kind not in "fc":
        return np.array_equal(values, wanted)
    if values.dtype.kind == "c":
        return equal(values.real, wanted.real) and equal(values.imag, wanted.imag)
    tolerance = max(TOLERANCE.get(values.dtype.itemsize, 1e-9), least)
    finite = wanted[np.isfinite(wanted)]
    scale = float(np.abs(finite).max(initial=0.0))
    near = tolerance * (scale if math.isfinite(scale) else 1.0)
    return bool(np.allclose(values.astype(float), wanted.astype(float), tolerance, min(near, 1e300) + 1e-300, equal_nan=True))
