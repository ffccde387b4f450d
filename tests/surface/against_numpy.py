"""Functions of the surface, written once and computed three times: by NumPy on arrays, by ``sl`` and by ``np`` on tensors.

A case is the text of an expression in ``xp``, the namespace, and ``A``, ``B``, ... which are random arrays of the shapes that are given.
Values are small, so that sums are exact; results must have NumPy's shape and dtype.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

import sparseloom as sl

FORMATS: Mapping[int, tuple[str, ...]] = {
    0: ("dense",), 1: ("s", "dense"), 2: ("csr", "csc", "coo", "dcsr", "bcsr(2,3)", "ell", "dense"), 3: ("csf", "coo", "dss", "dense"),
    4: ("csf(4)",),
}  # fmt: skip
DTYPES = ("float64", "int64", "float32", "bool", "int8", "uint16", "complex128")


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Mostly zeros, and small whole numbers of either sign where there are any."""
    low = 0 if np.dtype(dtype).kind in "bu" else -3
    values = rng.integers(low, 4, shape) * (rng.random(shape) < 0.4)
    return (values + (1j * rng.integers(-2, 3, shape) * (values != 0) if dtype.startswith("complex") else 0)).astype(dtype)


Shapes = Mapping[str, tuple[int, ...]]


def check(rng: np.random.Generator, cases: Iterable[str], shapes: Shapes, dtypes: Iterable[str] = DTYPES, through: str = "both") -> None:
    """Compare all cases, each in one format for every dtype; formats take turns. ``P`` is dense, and nowhere zero."""
    turn = 0
    for dtype in dtypes:
        arrays = {name: numbers(rng, shape, dtype) for name, shape in shapes.items()}
        arrays |= {"P": (np.abs(arrays["P"]) + 1).astype(dtype)} if "P" in shapes else {}
        for case in cases:
            turn += 1
            tensors = {name: stored(array, turn) if name != "P" else sl.asarray(array) for name, array in arrays.items()}
            with np.errstate(all="ignore"):
                expected = eval(case, {"xp": np, "np": np, **arrays})
            for xp in (sl, np) if through == "both" else (sl,):
                context = f"{case} by {xp.__name__} on {dtype}, {[str(t.format) for t in tensors.values()]}"
                try:
                    found = eval(case, {"xp": xp, "np": np, **tensors})
                except Exception as problem:
                    raise AssertionError(f"{context}: {problem!r}") from problem
                same(found, expected, context)


def stored(array: np.ndarray, turn: int) -> sl.Tensor:
    forms = FORMATS[array.ndim]
    return sl.asarray(array, format=forms[turn % len(forms)])


def same(found: Any, expected: Any, context: str) -> None:
    """Equal shapes, dtypes and values; in tuples and lists one by one."""
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected), context
        for one, other in zip(found, expected, strict=True):
            same(one, other, context)
        return
    values = found.to_numpy() if isinstance(found, sl.Tensor) else np.asarray(found)
    assert values.shape == np.shape(expected), f"{context}: shape {values.shape} instead of {np.shape(expected)}"
    wanted = np.asarray(expected)
    if wanted.dtype in sl.core.dtypes.VALUE_DTYPES:
        assert values.dtype == wanted.dtype, f"{context}: {values.dtype} instead of {wanted.dtype}"
    close = np.dtype(values.dtype).kind in "fc"
    tolerance = 1e-5 if values.dtype.itemsize < 8 or wanted.dtype.itemsize < 4 else 1e-12
    assert np.allclose(values, wanted, tolerance, tolerance, equal_nan=True) if close else np.array_equal(values, wanted), (
        f"{context}:\n{values}\ninstead of\n{wanted}"
    )
