"""How far values are from their mean, for every coordinate of one mode: entries are added up where they stand, and none is sorted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import real_part
from sparseloom.formats.room import require_array
from sparseloom.surface.entries import dense_tensor, entries_of
from sparseloom.tensor.reductions import as_float
from sparseloom.tensor.tensor import Tensor


def var_of_columns(tensor: Tensor, modes: Sequence[int], taken: float, keepdims: bool) -> Tensor:
    """The variance along modes where one mode is left or none: what its coordinates have is added up in one pass, in any order."""
    entries = entries_of(tensor)
    kept = [mode for mode in range(tensor.ndim) if mode not in modes]
    size = tensor.shape[kept[0]] if kept else 1
    require_array((size,), 8)
    column = entries.coordinates[kept[0]] if kept else np.zeros(entries.count, np.int64)
    extent = as_float(math.prod(tensor.shape[mode] for mode in modes))
    absent = extent - np.bincount(column, minlength=size)
    fill = np.asarray(entries.fill, np.complex128 if tensor.dtype.kind == "c" else np.float64)
    means = (_added(column, entries.values, size) + np.where(absent > 0, fill * absent, 0)) / extent
    apart = squared(entries.values - means[column])
    total = np.bincount(column, apart, size) + np.where(absent > 0, squared(fill - means) * absent, 0)
    made = (total / max(extent - taken, 0)).astype(real_part(tensor.dtype))
    shape = tuple(1 if mode in modes else tensor.shape[mode] for mode in range(tensor.ndim)) if keepdims else (size,) * len(kept)
    return dense_tensor(made.reshape(shape))


def _added(column: NDArray[np.int64], values: NDArray[Any], size: int) -> NDArray[Any]:
    """The sum of the values of each number in the column."""
    if values.dtype.kind != "c":
        return np.bincount(column, values, size)
    return np.bincount(column, values.real, size) + 1j * np.bincount(column, values.imag, size)


def squared(values: Any) -> Any:
    """The squares of distances."""
    return values.real**2 + values.imag**2 if np.iscomplexobj(values) else values**2
