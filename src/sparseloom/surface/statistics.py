"""Reductions beyond sums and extremes: where the largest value is, variances, norms, and running sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sparseloom.core.dtypes import INT64, as_inexact, computed, is_half, real_part, value_dtype
from sparseloom.core.errors import ShapeError
from sparseloom.formats.room import require_array
from sparseloom.surface.entries import (
    along,
    are_dense,
    array_of,
    by_numpy,
    dense_tensor,
    modes_of,
    reduced_modes,
    revalued,
    tensor_of,
)  # fmt: skip
from sparseloom.surface.groups import Groups, grouped
from sparseloom.surface.shape import ravel, reshape
from sparseloom.surface.variance import squared, var_of_columns
from sparseloom.tensor import functions
from sparseloom.tensor.operators import sum_of_squares
from sparseloom.tensor.table import enter, offered
from sparseloom.tensor.tensor import Tensor

for _reduction in (functions.sum, functions.prod, functions.min, functions.max, functions.any, functions.all):
    _also = f" a{_reduction.__name__}" if _reduction.__name__ in ("min", "max") else ""
    enter(_reduction, "reductions", None, _reduction.__name__ + _also, "")
    del _reduction, _also


@offered("reductions", methods=None, standard="")
def mean(x: Any, /, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """The mean along modes, absent entries included.

    >>> sl.mean(sl.eye(4), axis=0).to_numpy()
    array([0.25, 0.25, 0.25, 0.25])
    """
    return tensor_of(x).mean(axis, dtype, out, keepdims)


def scalar_of(made: Any, axis: Any) -> Any:
    """As NumPy's methods do: a number where nothing but one value is left, and no axis was named."""
    return made.to_numpy()[()] if axis is None and isinstance(made, Tensor) and not made.ndim else made


def position_of(x: Any, axis: Any, keepdims: bool, largest: bool, explicit: bool = False) -> Any:
    """Where the largest or the smallest value is, the first one of those that are equal."""
    tensor = tensor_of(x)
    name = "argmax" if largest else "argmin"
    given, mode = along(tensor, axis) if axis is not None else (ravel(tensor), 0)
    if not given.shape[mode]:
        raise ShapeError(f"no entries: {name} along mode {mode} of shape {given.shape} does not exist")
    if explicit and axis is None and not given.nnz:
        raise ShapeError(f"no entries are stored, so there is no {name} of them; leave explicit=True away to ask for absent ones too")
    if are_dense(given):
        made = tensor_of(by_numpy(getattr(np, name), given, mode))
    else:
        made = _first_extreme(grouped(given, (mode,), name), largest, explicit)
    if keepdims:
        is_all = axis is None or not tensor.ndim
        return reshape(made, (1,) * tensor.ndim if is_all else (*tensor.shape[:mode], 1, *tensor.shape[mode + 1 :]))
    return scalar_of(made, axis)


def _first_extreme(groups: Groups, largest: bool, explicit: bool) -> Tensor:
    """The first place of the extreme value of each group, or of its entries alone; NaN is the most extreme, as in NumPy."""
    extreme = np.maximum if largest else np.minimum
    best = groups.reduced(extreme)
    has_absent = groups.is_partial & (not explicit)
    whole = np.where(has_absent, extreme(best, groups.fill), best)
    of_entry = whole[groups.numbers]
    hits = (groups.values == of_entry) | ((groups.values != groups.values) & (of_entry != of_entry))
    stored = groups.reduced(np.minimum, np.where(hits, groups.places, groups.extent))
    matches = has_absent & ((whole == groups.fill) | ((whole != whole) & bool(groups.fill != groups.fill)))
    return groups.result(np.where(matches, np.minimum(stored, groups.first_absent()), stored), 0)  # type: ignore[no-any-return]


@offered("reductions", standard="")
def argmax(x: Any, /, axis: Any = None, out: Any = None, *, keepdims: bool = False, explicit: bool = False) -> Any:
    """The first place of the largest value along a mode; without an axis, among all values in order.

    As in SciPy, only stored values count if it is ``explicit``; where there is none, the place is 0.

    >>> sl.argmax([1, 5, 2])
    np.int64(1)
    """
    return position_of(x, axis, keepdims, True, explicit)


@offered("reductions", standard="")
def argmin(x: Any, /, axis: Any = None, out: Any = None, *, keepdims: bool = False, explicit: bool = False) -> Any:
    """The first place of the smallest value along a mode; without an axis, among all values in order.

    As in SciPy, only stored values count if it is ``explicit``; where there is none, the place is 0.

    >>> sl.argmin([4, 1, 2])
    np.int64(1)
    """
    return position_of(x, axis, keepdims, False, explicit)


@offered("reductions", standard="")
def var(
    x: Any,
    /,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
) -> Any:
    """The variance along modes, absent entries included; ``ddof``, or ``correction``, is subtracted from their number.

    >>> float(sl.var([1.0, 3.0]))
    1.0
    """
    tensor = tensor_of(x)
    modes, taken = reduced_modes(axis, tensor.ndim), ddof if correction is None else correction
    kind = as_inexact(tensor.dtype) if dtype is None else value_dtype(dtype)
    if is_half(kind):
        return var(tensor.astype(computed(kind)), axis, None, out, ddof, keepdims, correction=correction).astype(kind)
    with np.errstate(all="ignore"):
        if are_dense(tensor):
            made = by_numpy(np.var, tensor, modes, None if dtype is None else kind, ddof=taken, keepdims=keepdims)
            return scalar_of(tensor_of(made), axis)
        if tensor.ndim - len(modes) < 2:
            return scalar_of(var_of_columns(tensor.astype(kind, copy=False), modes, taken, keepdims), axis)
        groups = grouped(tensor.astype(kind, copy=False), modes, "var")
        absent = groups.extent - groups.counts
        means = (groups.reduced(np.add) + np.where(absent > 0, groups.fill * absent, 0)) / groups.extent
        apart = squared(groups.values - means[groups.numbers])
        total = groups.reduced(np.add, apart) + np.where(absent > 0, squared(groups.fill - means) * absent, 0)
        nothing = 0.0 if groups.extent > taken and np.isfinite(groups.fill) else np.nan
        made = groups.result((total / max(groups.extent - taken, 0)).astype(real_part(kind)), nothing, modes, keepdims)
    return scalar_of(made, axis)


@offered("reductions", standard="")
def std(
    x: Any,
    /,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
) -> Any:
    """The standard deviation along modes, absent entries included.

    >>> float(sl.std([1.0, 3.0]))
    1.0
    """
    if is_half(kind := tensor_of(x).dtype if dtype is None else value_dtype(dtype)):
        return std(tensor_of(x).astype(computed(kind)), axis, None, out, ddof, keepdims, correction=correction).astype(kind)
    found = var(x, axis, dtype, None, ddof, keepdims, correction=correction)
    return np.sqrt(found) if not isinstance(found, Tensor) else Tensor(revalued(found.storage, np.sqrt))


@offered("reductions", methods=None, standard="")
def count_nonzero(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Any:
    """How many values along modes are not zero.

    >>> sl.count_nonzero(sl.eye(3))
    np.int64(3)
    """
    return functions.not_equal(tensor_of(x), 0).sum(axis, INT64, None, keepdims)


@offered("reductions", methods=None)
def ptp(x: Any, /, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """The largest value minus the smallest.

    >>> float(sl.ptp([1.0, 3.0]))
    2.0
    """
    tensor = tensor_of(x)
    return scalar_of(functions.subtract(tensor.max(axis, None, keepdims), tensor.min(axis, None, keepdims)), axis)


def _running(function: Any, x: Any, axis: Any, dtype: Any) -> Tensor:
    tensor = tensor_of(x)
    given, mode = (ravel(tensor), 0) if axis is None else along(tensor, axis)
    require_array(given.shape, 8)
    kind = given.dtype if dtype is None else value_dtype(dtype)
    if is_half(kind):
        return by_numpy(function, given.astype(computed(kind)), mode).astype(kind)  # type: ignore[no-any-return]
    return by_numpy(function, given, mode, None if dtype is None else kind)  # type: ignore[no-any-return]


@offered("reductions")
def cumsum(x: Any, /, axis: Any = None, dtype: Any = None, out: Any = None) -> Tensor:
    """The running sum along a mode, or over all values in order. It has no gaps, so it is dense.

    >>> sl.cumsum([1, 2, 3]).to_numpy()
    array([1, 3, 6])
    """
    return _running(np.cumsum, x, axis, dtype)


@offered("reductions")
def cumprod(x: Any, /, axis: Any = None, dtype: Any = None, out: Any = None) -> Tensor:
    """The running product along a mode, or over all values in order; dense.

    >>> sl.cumprod([1, 2, 3]).to_numpy()
    array([1, 2, 6])
    """
    return _running(np.cumprod, x, axis, dtype)


def _cumulative(function: Callable[..., Tensor], initial: int, x: Any, axis: Any, dtype: Any, include_initial: bool) -> Tensor:
    tensor = tensor_of(x)
    if axis is None and tensor.ndim > 1:
        raise ShapeError(f"a tensor of shape {tensor.shape} has several modes; name the axis to run along")
    tensor, mode = along(tensor, 0 if axis is None else axis)
    made = array_of(function(tensor, mode, dtype))
    if include_initial:
        made = np.concatenate((np.full((*made.shape[:mode], 1, *made.shape[mode + 1 :]), initial, made.dtype), made), mode)
    return dense_tensor(made)


@offered("reductions", methods=None, standard="")
def cumulative_sum(x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False) -> Tensor:
    """The running sum along a mode, with a leading 0 if it is asked for; dense.

    >>> sl.cumulative_sum([1, 2, 3], include_initial=True).to_numpy()
    array([0, 1, 3, 6])
    """
    return _cumulative(cumsum, 0, x, axis, dtype, include_initial)


@offered("reductions", methods=None, standard="")
def cumulative_prod(x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False) -> Tensor:
    """The running product along a mode, with a leading 1 if it is asked for; dense.

    >>> sl.cumulative_prod([1, 2, 3]).to_numpy()
    array([1, 2, 6])
    """
    return _cumulative(cumprod, 1, x, axis, dtype, include_initial)


@offered("reductions", methods="")
def norm(x: Any, /, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """NumPy's norm of vectors and matrices, but for those that need singular values.

    >>> float(sl.norm([3.0, 4.0]))
    5.0
    """
    tensor = tensor_of(x)
    if is_half(tensor.dtype):
        return norm(tensor.astype(computed(tensor.dtype)), ord, axis, keepdims).astype(tensor.dtype)
    modes = modes_of(axis, tensor.ndim)
    if not (axis is ord is None or 0 < len(modes) < 3):
        raise ShapeError(f"a norm is taken over one mode or two, not {len(modes)}\n  help: name them, as in axis=(0, 1)")
    if ord is axis is None and tensor.dtype.kind == "f" and tensor.fill == 0 and tensor.ndim and not keepdims:
        return np.sqrt(sum_of_squares(tensor.storage).values[0])
    magnitude = functions.absolute(tensor if tensor.dtype.kind in "fc" else tensor.astype(float))
    match ord, len(modes):
        case (None, _) | ("fro", 2):
            found = functions.square(magnitude).sum(axis, None, None, keepdims)
            return np.sqrt(found) if not isinstance(found, Tensor) else functions.sqrt(found)
        case ((np.inf | 1), 2):
            return _matrix_norm(magnitude, modes, ord, keepdims, axis, "max")
        case n, 2 if n in (-1, -np.inf):
            return _matrix_norm(magnitude, modes, ord, keepdims, axis, "min")
        case np.inf, 1:
            return _largest(magnitude, modes, axis, keepdims)
        case n, 1 if n == -np.inf:
            return magnitude.min(axis, None, keepdims)
        case 0, 1:
            return functions.not_equal(magnitude, 0).sum(axis, magnitude.dtype, None, keepdims)
        case ((int() | float()), 1):
            return (magnitude**ord).sum(axis, None, None, keepdims) ** (1.0 / ord)
    raise ShapeError(f"the norm {ord!r} over {len(modes)} modes is not offered\n  help: use np.linalg.norm(x.to_numpy(), {ord!r})")


def _matrix_norm(magnitude: Tensor, modes: tuple[int, ...], ord: float, keepdims: bool, axis: Any, extreme: str) -> Any:
    """The extreme of sums over rows, or over columns."""
    summed, rest = modes if abs(ord) == 1 else modes[::-1]
    sums = magnitude.sum(summed, None, None, True)
    if extreme == "max":
        return _largest(sums, (summed, rest), axis, keepdims)
    return scalar_of(sums.min((summed, rest), None, keepdims), axis)


def _largest(magnitude: Tensor, modes: tuple[int, ...], axis: Any, keepdims: bool) -> Any:
    """The largest of values that are not negative: 0 where there are none, as in NumPy."""
    if math.prod(magnitude.shape[mode] for mode in modes):
        return scalar_of(magnitude.max(modes, None, keepdims), axis)
    shape = [1 if mode in modes else size for mode, size in enumerate(magnitude.shape) if keepdims or mode not in modes]
    return scalar_of(dense_tensor(np.zeros(shape, magnitude.dtype)), axis)
