"""Reductions that leave out NaN."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sparseloom.core.dtypes import INT64, as_inexact, computed, is_half, kind_of, real_part, value_dtype
from sparseloom.core.errors import ShapeError
from sparseloom.surface.entries import are_dense, array_of, reduced_modes, revalued, tensor_of
from sparseloom.surface.groups import grouped
from sparseloom.surface.statistics import cumprod, cumsum, position_of, scalar_of
from sparseloom.tensor import functions
from sparseloom.tensor.table import offered
from sparseloom.tensor.tensor import Tensor


def _without_nan(x: Any, instead: Any) -> Tensor:
    """A tensor with another value in place of NaN."""
    tensor = tensor_of(x)
    if kind_of(tensor.dtype) not in "fc":
        return tensor

    other = tensor.dtype.type(complex(instead, instead) if tensor.dtype.kind == "c" and np.isinf(instead) else instead)

    def replaced(values: Any) -> Any:
        return np.where(np.isnan(values), other, values)

    return Tensor(revalued(tensor.storage, replaced))


def _counted(x: Any, axis: Any, keepdims: bool) -> Any:
    """How many values along modes are not NaN."""
    tensor = tensor_of(x)
    missing = functions.isnan(tensor).sum(axis, INT64, None, keepdims)
    return math.prod(tensor.shape[mode] for mode in reduced_modes(axis, tensor.ndim)) - missing


@offered("reductions", methods=None)
def nansum(x: Any, /, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """The sum along modes, NaN left out.

    >>> float(sl.nansum([1.0, np.nan, 3.0]))
    4.0
    """
    return _without_nan(x, 0).sum(axis, dtype, out, keepdims)


@offered("reductions", methods=None)
def nanprod(x: Any, /, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """The product along modes, NaN left out.

    >>> float(sl.nanprod([2.0, np.nan, 3.0]))
    6.0
    """
    return _without_nan(x, 1).prod(axis, dtype, out, keepdims)


def _nan_extreme(x: Any, axis: Any, keepdims: bool, largest: bool, explicit: bool) -> Any:
    tensor = tensor_of(x)
    name, instead = ("max", -np.inf) if largest else ("min", np.inf)
    if explicit and not are_dense(tensor):
        modes = reduced_modes(axis, tensor.ndim)
        groups = grouped(tensor, modes, f"nan{name}")
        return scalar_of(groups.result(groups.reduced(np.fmax if largest else np.fmin), groups.fill, modes, keepdims), axis)
    found = getattr(_without_nan(tensor, instead), name)(axis, None, keepdims)
    if kind_of(tensor.dtype) not in "fc":
        return found
    counted = _counted(tensor, axis, keepdims)
    if not isinstance(found, Tensor):
        return found if counted else found.dtype.type(np.nan)
    return functions.where(functions.equal(counted, 0), found.dtype.type(np.nan), found)


@offered("reductions", methods=None)
def nanmin(x: Any, /, axis: Any = None, out: Any = None, keepdims: bool = False, *, explicit: bool = False) -> Any:
    """The smallest value along modes, NaN left out; NaN where there is nothing else. Only stored ones count if it is ``explicit``.

    >>> float(sl.nanmin([1.0, np.nan, 3.0]))
    1.0
    """
    return _nan_extreme(x, axis, keepdims, False, explicit)


@offered("reductions", methods=None)
def nanmax(x: Any, /, axis: Any = None, out: Any = None, keepdims: bool = False, *, explicit: bool = False) -> Any:
    """The largest value along modes, NaN left out; NaN where there is nothing else. Only stored ones count if it is ``explicit``.

    >>> float(sl.nanmax([1.0, np.nan, 3.0]))
    3.0
    """
    return _nan_extreme(x, axis, keepdims, True, explicit)


def _nan_position(x: Any, axis: Any, keepdims: bool, largest: bool) -> Any:
    counted = _counted(x, axis, False)
    if not np.all(array_of(counted) if isinstance(counted, Tensor) else counted):
        raise ShapeError(f"All-NaN slice encountered: there is nothing else along axis {axis}, so no place is the first")
    return position_of(_without_nan(x, -np.inf if largest else np.inf), axis, keepdims, largest)


@offered("reductions", methods=None)
def nanargmin(x: Any, /, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Any:
    """The first place of the smallest value along a mode, NaN left out.

    >>> int(sl.nanargmin([3.0, np.nan, 1.0]))
    2
    """
    return _nan_position(x, axis, keepdims, False)


@offered("reductions", methods=None)
def nanargmax(x: Any, /, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Any:
    """The first place of the largest value along a mode, NaN left out.

    >>> int(sl.nanargmax([3.0, np.nan, 1.0]))
    0
    """
    return _nan_position(x, axis, keepdims, True)


@offered("reductions", methods=None)
def nancumsum(x: Any, /, axis: Any = None, dtype: Any = None, out: Any = None) -> Tensor:
    """The running sum along a mode, NaN left out; dense.

    >>> sl.nancumsum([1.0, np.nan, 3.0]).to_numpy()
    array([1., 1., 4.])
    """
    return cumsum(_without_nan(x, 0), axis, dtype)


@offered("reductions", methods=None)
def nancumprod(x: Any, /, axis: Any = None, dtype: Any = None, out: Any = None) -> Tensor:
    """The running product along a mode, NaN left out; dense.

    >>> sl.nancumprod([2.0, np.nan, 3.0]).to_numpy()
    array([2., 2., 6.])
    """
    return cumprod(_without_nan(x, 1), axis, dtype)


@offered("reductions", methods=None)
def nanmean(x: Any, /, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """The mean along modes, NaN left out.

    >>> float(sl.nanmean([1.0, np.nan, 3.0]))
    2.0
    """
    kind = as_inexact(tensor_of(x).dtype) if dtype is None else value_dtype(dtype)
    return _shared(nansum(x, axis, computed(kind), None, keepdims), _counted(x, axis, keepdims)).astype(kind, copy=False)


def _shared(total: Any, count: Any) -> Any:
    """A total for each of so many; NaN where there are none, also where nothing is stored."""
    if not isinstance(total, Tensor):
        with np.errstate(all="ignore"):
            return np.asarray(total / max(count, 0))[()]
    nobody = functions.less_equal(count, 0)
    if not functions.any(nobody):
        return total / count
    return functions.where(nobody, np.nan, total / functions.maximum(count, 1))


@offered("reductions", methods=None)
def nanvar(x: Any, /, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False) -> Any:
    """The variance along modes, NaN left out.

    >>> float(sl.nanvar([1.0, np.nan, 3.0]))
    1.0
    """
    tensor = tensor_of(x)
    if is_half(kind := tensor.dtype if dtype is None else value_dtype(dtype)):
        return nanvar(tensor.astype(computed(kind)), axis, None, out, ddof, keepdims).astype(kind)
    center = nanmean(tensor, axis, dtype, None, True)
    apart = functions.absolute(functions.subtract(_without_nan(tensor, 0), center))
    if kind_of(tensor.dtype) in "fc":  # infinities may be NaN apart from their mean, and are not left out
        apart = functions.where(functions.isnan(tensor), apart.dtype.type(0).item(), apart)
    kind = real_part(as_inexact(tensor.dtype) if dtype is None else value_dtype(dtype))
    total = functions.square(apart).sum(axis, None, None, keepdims)
    return _shared(total, _counted(tensor, axis, keepdims) - ddof).astype(kind, copy=False)


@offered("reductions", methods=None)
def nanstd(x: Any, /, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False) -> Any:
    """The standard deviation along modes, NaN left out.

    >>> float(sl.nanstd([1.0, np.nan, 3.0]))
    1.0
    """
    if is_half(kind := tensor_of(x).dtype if dtype is None else value_dtype(dtype)):
        return nanstd(tensor_of(x).astype(computed(kind)), axis, None, out, ddof, keepdims).astype(kind)
    found = nanvar(x, axis, dtype, None, ddof, keepdims)
    return functions.sqrt(found) if isinstance(found, Tensor) else np.sqrt(found)
