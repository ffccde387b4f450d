"""Element-wise functions beside the operators of index notation: limits, rounding, closeness, choices, differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sparseloom.core.errors import NotationError, ShapeError
from sparseloom.formats.storage import apart
from sparseloom.surface.entries import array_of, mode_of, tensor_of
from sparseloom.surface.joining import concatenate
from sparseloom.surface.mapped import mapped
from sparseloom.surface.shape import broadcast_to
from sparseloom.tensor import functions
from sparseloom.tensor.arithmetic import as_arguments
from sparseloom.tensor.expression import Expression
from sparseloom.tensor.filling import written
from sparseloom.tensor.operators import elementwise
from sparseloom.tensor.table import enter, offered
from sparseloom.tensor.tensor import Tensor

# The operators of index notation that the array API has under another name; the others have their own, or none.
_STANDARD = {
    "absolute": "abs", "arccos": "acos", "arcsin": "asin", "arctan": "atan", "arctan2": "atan2", "conjugate": "conj", "power": "pow",
    "cbrt": None,
}  # fmt: skip

for _name in functions.ELEMENTWISE:
    if _name != "where":
        enter(getattr(functions, _name), "element-wise", None, None, _STANDARD.get(_name, ""))
    del _name


def _on(function: Callable[..., Any], *values: Any) -> Tensor:
    """A function of NumPy's on anything array-like."""
    arguments = as_arguments(values)
    if arguments is None:
        raise NotationError(f"{function.__name__} takes tensors, arrays and numbers, not {', '.join(type(v).__name__ for v in values)}")
    return mapped(function, arguments)


@offered("element-wise", methods=None, standard="")
def where(condition: Any, *choices: Any) -> Any:
    """One of two where a condition holds and the other elsewhere; of a condition alone, where it holds, as ``nonzero``.

    >>> sl.where([True, False], [1, 2], 0).to_numpy()
    array([1, 0])
    """
    if not choices and not isinstance(condition, Expression):
        return tensor_of(condition).nonzero()
    return functions.where(condition, *choices)


@offered("element-wise", standard="")
def clip(x: Any, /, min: Any = None, max: Any = None, out: Any = None, *, a_min: Any = None, a_max: Any = None) -> Any:
    """Values within limits, either of which may be left out.

    >>> sl.clip([1, 5, 9], 2, 6).to_numpy()
    array([2, 5, 6])
    """
    low, high = (min if a_min is None else a_min), (max if a_max is None else a_max)
    made = tensor_of(x)
    kind = made.dtype
    if kind.kind in "iu":  # a limit beyond all values of the dtype is none, and widens nothing
        limits = np.iinfo(kind)
        low = None if type(low) is int and low < limits.min else low
        high = None if type(high) is int and high > limits.max else high
    if low is not None:
        made = functions.maximum(made, low)
    if high is not None:
        made = functions.minimum(made, high)
    made = Tensor(apart(made.storage, made.storage)) if low is None and high is None and made.dtype == kind else made
    return made if out is None else written(made.storage, out, True, "same_kind")  # stretched as by a ufunc


@offered("element-wise", numpy="round around", standard="")
def round(x: Any, /, decimals: int = 0, out: Any = None) -> Tensor:
    """Rounded to so many decimals, halves to even.

    >>> sl.round([1.234, 5.678], 1).to_numpy()
    array([1.2, 5.7])
    """

    def rounded(values: Any) -> Any:
        return np.round(values, decimals)

    return _on(rounded, tensor_of(x))


@offered("element-wise", methods=None)
def fix(x: Any, /, out: Any = None) -> Any:
    """Rounded towards zero.

    >>> sl.fix([1.7, -1.7]).to_numpy()
    array([ 1., -1.])
    """
    return functions.trunc(x)


@offered("element-wise", methods=None)
def nan_to_num(x: Any, /, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """With numbers in place of NaN and infinities.

    >>> sl.nan_to_num([1.0, np.nan]).to_numpy()
    array([1., 0.])
    """

    def numbers(values: Any) -> Any:
        return np.nan_to_num(values, nan=nan, posinf=posinf, neginf=neginf)

    return _on(numbers, tensor_of(x))


def _differ(rtol: float, atol: float, equal_nan: bool) -> Callable[[Any, Any], Any]:
    def differ(a: Any, b: Any) -> Any:
        return ~np.isclose(a, b, rtol, atol, equal_nan)

    return differ


@offered("element-wise", methods=None)
def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether values are as good as equal; true where nothing is stored, so that the result is dense.

    >>> sl.isclose([1.0, 2.0], [1.0, 3.0]).to_numpy()
    array([ True, False])
    """
    return functions.logical_not(_on(_differ(rtol, atol, equal_nan), a, b))  # type: ignore[no-any-return]


@offered("element-wise", methods=None)
def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether all values are as good as equal. What neither stores is not visited.

    >>> sl.allclose([1.0, 2.0], [1.0, 2.0 + 1e-12])
    True
    """
    return not _on(_differ(rtol, atol, equal_nan), a, b).any()


@offered("element-wise", methods=None)
def array_equal(a: Any, b: Any, equal_nan: bool = False) -> bool:
    """Whether two tensors have the same shape and values. What neither stores is not visited.

    >>> sl.array_equal(sl.eye(2), np.eye(2))
    True
    """
    first, second = tensor_of(a), tensor_of(b)
    if first.shape != second.shape:
        return False
    differ = _on(_differ(0.0, 0.0, True), first, second) if equal_nan else functions.not_equal(first, second)
    return not differ.any()


@offered("element-wise", methods=None, standard="")
def isin(x: Any, test: Any, /, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether values are among some others.

    >>> sl.isin([1, 2, 3], [2]).to_numpy()
    array([False,  True, False])
    """
    among = array_of(tensor_of(test))

    def found(values: Any) -> Any:
        return np.isin(values, among, invert=invert)

    return _on(found, tensor_of(x))


@offered("element-wise", methods=None, standard="")
def positive(x: Any, /) -> Tensor:
    """The same values.

    >>> sl.positive([1.0, -2.0]).to_numpy()
    array([ 1., -2.])
    """
    return +tensor_of(x)


@offered("element-wise", methods=None)
def angle(x: Any, /, deg: bool = False) -> Tensor:
    """The angle of complex numbers; of an absent zero it is 0.

    >>> sl.angle([1j], deg=True).to_numpy()
    array([90.])
    """

    def angles(values: Any) -> Any:
        return np.angle(values, deg)

    return _on(angles, tensor_of(x))


@offered("element-wise", methods=None, numpy="astype", standard="")
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Values of another dtype, in the same structure.

    >>> sl.astype([1.5, 2.5], int).to_numpy()
    array([1, 2])
    """
    return tensor_of(x).astype(dtype, copy)


@offered("element-wise", methods=None, standard="")
def diff(x: Any, /, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """The difference of neighbours along a mode, ``n`` times over.

    >>> sl.diff([1, 4, 9]).to_numpy()
    array([3, 5])
    """
    made = tensor_of(x)
    if n < 0:
        raise ShapeError(f"diff takes differences {n} times; n must be at least 0")
    if n == 0:
        return +made
    if not made.ndim:
        raise ShapeError("diff needs a tensor with at least one mode")
    mode = mode_of(axis, made.ndim)
    if (prepend is not None or append is not None) and made.fill != 0:
        made = made.to("dense")  # what goes before it has no such fill
    rows = (*made.shape[:mode], 1, *made.shape[mode + 1 :])
    parts = [made if part is made else _rows_of(part, rows) for part in (prepend, made, append) if part is not None]
    made = concatenate(parts, mode) if len(parts) > 1 else made
    ahead = (slice(None),) * mode
    for _ in range(n):
        op = "not_equal" if made.dtype.kind == "b" else "subtract"
        made = Tensor(elementwise(op, made[(*ahead, slice(1, None))].storage, made[(*ahead, slice(None, -1))].storage))
    return made


def _rows_of(part: Any, shape: tuple[int, ...]) -> Tensor:
    """What goes before or behind the values of ``diff``; a number stands in every row."""
    given = tensor_of(part)
    return given if given.ndim else broadcast_to(given, shape)


@offered("element-wise", methods=None)
def divmod(x: Any, y: Any, /) -> tuple[Any, Any]:
    """The quotient rounded down, and the remainder.

    >>> [x.to_numpy() for x in sl.divmod([7, 9], 4)]
    [array([1, 2]), array([3, 1])]
    """
    return _on(np.floor_divide, x, y), _on(np.remainder, x, y)


@offered("element-wise", methods=None)
def modf(x: Any, /) -> tuple[Tensor, Tensor]:
    """What stands behind the point, and what before it.

    >>> [x.to_numpy() for x in sl.modf([1.5, -2.25])]
    [array([ 0.5 , -0.25]), array([ 1., -2.])]
    """
    return _part(np.modf, 0, x), _part(np.modf, 1, x)


@offered("element-wise", methods=None)
def frexp(x: Any, /) -> tuple[Tensor, Tensor]:
    """Numbers from 1/2 on, and the powers of two by which they are multiplied.

    >>> [x.to_numpy() for x in sl.frexp([4.0, 0.0])]
    [array([0.5, 0. ]), array([3, 0], dtype=int32)]
    """
    return _part(np.frexp, 0, x), _part(np.frexp, 1, x)


def _part(function: Callable[[Any], tuple[Any, Any]], which: int, x: Any) -> Tensor:
    """One of two results of a function of NumPy's."""

    def part(values: Any) -> Any:
        return function(values)[which]

    part.__name__ = function.__name__
    return _on(part, tensor_of(x))
