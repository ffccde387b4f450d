"""Operands of the array functions: every dtype, fill, format and shape, with extremes, NaN and infinities among the values."""

from __future__ import annotations

from typing import Any

import numpy as np
from attack.arrays import pick
from attack.uses import any_format

import sparseloom as sl

Rng = np.random.Generator
DTYPES: dict[str, tuple[str, ...]] = {
    "truths": ("bool",),
    "whole": ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    "inexact": ("float64", "float64", "float32", "float16", "complex128", "complex64"),
}
DTYPES["bits"] = (*DTYPES["truths"], *DTYPES["whole"])
DTYPES["real"] = (*DTYPES["bits"], "float64", "float64", "float32", "float16")
DTYPES["any"] = (*DTYPES["bits"], *DTYPES["inexact"])
SIZES = (0, 1, 1, 2, 3, 3, 4, 5)
SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.5, 1e3)


def draw_shape(rng: Rng, order: int | None = None) -> tuple[int, ...]:
    """A small shape: of no mode to three, with sizes of 0 and 1 among them."""
    count = pick(rng, (0, 1, 1, 2, 2, 2, 2, 3)) if order is None else order
    return tuple(int(pick(rng, SIZES[1:] if rng.random() < 0.8 else SIZES)) for _ in range(count))


def draw_numbers(rng: Rng, shape: tuple[int, ...], dtype: Any, tame: bool = False) -> np.ndarray:
    """Numbers of a dtype: mostly small ones; now and then extremes, or NaN and infinities."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        small = np.asarray(rng.integers(0 if kind.kind == "u" else -4, 6, shape)).astype(kind)
        if tame or rng.random() < 0.5:
            return small
        edges = np.array([limits.min, limits.max, limits.max - 1, limits.min + 1, limits.max // 2, 0, 1], kind)
        wild = (
            edges[rng.integers(len(edges), size=shape)] if rng.random() < 0.5 else rng.integers(limits.min, limits.max, shape, kind, True)
        )
        return np.where(rng.random(shape) < 0.5, small, wild).astype(kind)
    made = np.asarray(rng.integers(-4, 6, shape)) / pick(rng, (1, 1, 2))
    if not tame and rng.random() < 0.35:
        made = np.where(rng.random(shape) < 0.3, np.array(SPECIAL)[rng.integers(len(SPECIAL), size=shape)], made)
    if kind.kind == "c":
        imaginary = draw_numbers(rng, shape, "float64", tame)
        whole = np.empty(shape, np.complex128)
        whole.real, whole.imag = made, imaginary * (rng.random(shape) < 0.6)
        return whole.astype(kind)
    return np.asarray(made).astype(kind)


def draw_fill(rng: Rng, dtype: Any, tame: bool) -> Any:
    """What absent entries are worth: mostly 0."""
    return np.zeros((), dtype)[()] if rng.random() < 0.6 else draw_numbers(rng, (), dtype, tame)[()]


def draw_tensor(rng: Rng, shape: tuple[int, ...], dtype: str, tame: bool = False) -> tuple[np.ndarray, sl.Tensor]:
    """An array, and the tensor that holds it: dense or in any format, with stored fills among its entries."""
    array = np.asarray(draw_numbers(rng, shape, dtype, tame))
    if rng.random() < 0.2 or not shape:
        return array, sl.asarray(array.copy())
    fill = draw_fill(rng, dtype, tame)
    stored = np.asarray(rng.random(shape) < pick(rng, (0.0, 0.3, 0.6, 1.0)))
    array = np.where(stored, array, fill).astype(dtype)
    coordinates = np.stack(np.nonzero(stored))
    form = any_format(rng, len(shape))
    if form.is_dense:
        return array, sl.asarray(array.copy()).to(form)
    return array, sl.from_coo(coordinates, array[stored], shape, format=form, fill=fill)
