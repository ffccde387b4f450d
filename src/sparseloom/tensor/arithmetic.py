"""NumPy's operators, ufuncs, functions and reductions on tensors; ``Tensor`` inherits them."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.algebra import OPERATORS
from sparseloom.core.dtypes import as_inexact, value_dtype
from sparseloom.core.errors import CompilerBug, DTypeError
from sparseloom.formats.storage import Storage, apart
from sparseloom.notation.nodes import IndexVar
from sparseloom.tensor.blocks import joined, tensordot
from sparseloom.tensor.expression import Expression
from sparseloom.tensor.indexing import transposed
from sparseloom.tensor.intake import enter_aloud
from sparseloom.tensor.interop.numpy import from_numpy, to_numpy
from sparseloom.tensor.interop.registry import left_to, reader_for, wraps
from sparseloom.tensor.interop.scipy_left import multiplies_as_matrix
from sparseloom.tensor.operators import Argument, Array, Given, dot, elementwise, matmul, product
from sparseloom.tensor.reductions import as_float, reduce, reduced_count

_BITWISE = {"bitwise_and": "logical_and", "bitwise_or": "logical_or", "bitwise_xor": "logical_xor", "invert": "logical_not"}
_SPELLED_OTHERWISE = {"fabs": "absolute"}
_METHODS = {name: name for name in "sum prod min max any all mean transpose copy".split()} | {"amin": "min", "amax": "max"}
_ATTRIBUTES = ("shape", "ndim", "size", "real", "imag")
A = TypeVar("A", bound="Arithmetic")


def _operator(op: str, swapped: bool = False) -> Callable[[A, Any], A]:
    """The method behind an operator; where it is swapped, the tensor stands on the right."""
    return lambda tensor, other: tensor._binary(op, other, swapped)


class Arithmetic:
    """What can be computed with tensors. A subclass gives the storage and wraps results."""

    __slots__ = ()
    __array_priority__ = 12.0  # Dask asks whose chunks decide how they are multiplied: ours beside NumPy's
    __hash__ = None  # type: ignore[assignment]  # as in NumPy: == compares element by element

    @property
    def storage(self) -> Storage:
        """The stored form."""
        raise CompilerBug(self, "a tensor must give its storage")

    def _made(self, storage: Storage) -> Self:
        """A tensor of the same class over a computed storage."""
        raise CompilerBug(self, "a tensor must wrap results")

    def _binary(self, op: str, other: Any, swapped: bool = False) -> Self:
        argument = _given(other)
        if argument is None:
            return left_to(other, op, self, swapped)  # type: ignore[no-any-return]
        pair = (argument, self.storage) if swapped else (self.storage, argument)
        return self._made(elementwise(op, *pair))

    def _unary(self, op: str) -> Self:
        return self._made(elementwise(op, self.storage))

    def _bitwise(self, op: str, *others: Any) -> Self:
        """Bitwise operators are logical ones on truth values; on integers they are not offered."""
        arguments = as_arguments((self, *others))
        if arguments is None:
            return NotImplemented  # type: ignore[no-any-return]  # Python then asks the other operand
        if not _are_truths(arguments):
            raise DTypeError("& | ^ ~ are offered on tensors of truth values only; compare first, as in (A > 0) & (B > 0)")
        return self._made(elementwise(op, *arguments))

    __add__, __radd__ = _operator("add"), _operator("add", swapped=True)
    __sub__, __rsub__ = _operator("subtract"), _operator("subtract", swapped=True)
    __mul__ = _operator("multiply")
    __truediv__, __rtruediv__ = _operator("divide"), _operator("divide", swapped=True)
    __pow__, __rpow__ = _operator("power"), _operator("power", swapped=True)
    __lt__, __le__ = _operator("less"), _operator("less_equal")
    __gt__, __ge__ = _operator("greater"), _operator("greater_equal")
    __eq__, __ne__ = _operator("equal"), _operator("not_equal")  # type: ignore[assignment]

    def __rmul__(self, other: Any) -> Self:
        return self.__rmatmul__(other) if multiplies_as_matrix(type(other)) else self._binary("multiply", other, swapped=True)

    def __neg__(self) -> Self:
        return self._unary("negative")

    def __pos__(self) -> Self:
        storage = self.storage
        return self._made(apart(storage, storage))

    def __abs__(self) -> Self:
        return self._unary("absolute")

    def __invert__(self) -> Self:
        return self._bitwise("logical_not")

    def __and__(self, other: Any) -> Self:
        return self._bitwise("logical_and", other)

    def __or__(self, other: Any) -> Self:
        return self._bitwise("logical_or", other)

    def __xor__(self, other: Any) -> Self:
        return self._bitwise("logical_xor", other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __matmul__(self, other: Any) -> Self:
        argument = _given(other)
        if argument is None:
            return left_to(other, "matmul", self, False)  # type: ignore[no-any-return]
        return self._made(matmul(self.storage, _as_array(argument)))

    def __rmatmul__(self, other: Any) -> Self:
        argument = _given(other)
        if argument is None:
            return left_to(other, "matmul", self, True)  # type: ignore[no-any-return]
        return self._made(matmul(_as_array(argument), self.storage))

    def dot(self, other: Any) -> Any:
        """NumPy's dot: ``A @ other`` up to two modes each, ``A * other`` for a number.

        Beyond, the sum over the last mode of the one and the last but one of the other, for all pairs of their other modes.
        """
        argument = as_argument(other)
        if not isinstance(argument, Storage) or not argument.shape or not self.storage.shape:
            return self * other
        return self._made(dot(self.storage, argument))

    def conj(self) -> Self:
        """The complex conjugate; a real tensor itself."""
        return self._unary("conjugate") if self.storage.dtype.kind == "c" else +self

    conjugate = conj

    @property
    def real(self) -> Self:
        """The real parts."""
        return self._unary("real") if self.storage.dtype.kind == "c" else +self

    @property
    def imag(self) -> Self:
        """The imaginary parts."""
        return self._unary("imag")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        """``np.sin(A)``, ``np.add(x, A)``, ``np.add.reduce(A)``."""
        name = _SPELLED_OTHERWISE.get(ufunc.__name__, ufunc.__name__)
        if method == "reduce" and out is None and not options.keys() - {"axis", "dtype", "keepdims"}:
            return self._reduced(name, options.get("axis", 0), options.get("dtype"), None, bool(options.get("keepdims")))
        given = as_arguments(inputs)
        if method != "__call__" or out is not None or options or given is None:
            raise _not_offered(f"np.{ufunc.__name__}" + (f".{method}" if method != "__call__" else ""), out is not None or bool(options))
        match name:
            case "matmul":
                return self._made(matmul(_as_array(given[0]), _as_array(given[1])))
            case "positive":
                return +self
            case _ if name in _BITWISE and _are_truths(given):
                return self._made(elementwise(_BITWISE[name], *given))
            case _ if name in OPERATORS:
                return self._made(elementwise(name, *given))
        raise _not_offered(f"np.{ufunc.__name__}", False)

    def __array_function__(self, func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """NumPy's other functions, ``np.func(*args, **kwargs)``: a few have a method, and the rest work on dense tensors only.

        Without this, some of them would swallow the refusal of a sparse tensor and answer wrongly: ``np.array_equal`` would say False.
        """
        name, first = func.__name__, args[0] if args else None
        if isinstance(first, Arithmetic):
            if name in _METHODS:
                return getattr(first, _METHODS[name])(*args[1:], **kwargs)
            if name in _ATTRIBUTES and len(args) == 1 and not kwargs:
                return getattr(first, name)
        match name, args:
            case "tensordot", (left, right, *axes):
                return self._made(tensordot(_stored(left), _stored(right), *axes, **kwargs))
            case "concatenate", ([*parts], *axis) if not kwargs.keys() - {"axis"}:
                return self._made(joined([_stored(part) for part in parts], *axis or (kwargs.get("axis", 0),)))
        return func(*_as_arrays(args, name), **{key: _as_arrays(value, name) for key, value in kwargs.items()})

    def _reduced(self, op: str, axis: Any, dtype: Any, out: None, keepdims: bool) -> Any:
        """A tensor, or a NumPy scalar where nothing but one value is left."""
        if out is not None:
            raise _not_offered("out=", False)
        wanted = None if dtype is None else value_dtype(dtype)
        result = reduce(op, self.storage, axis, wanted, keepdims)
        return self._made(result) if result.shape or axis is not None else result.values[0]

    def sum(self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Any:
        """The sum along ``axis`` (all modes, one, or a tuple). As in NumPy, short integers and truths are summed in 64 bits."""
        return self._reduced("add", axis, dtype, out, keepdims)

    def prod(self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Any:
        """The product along ``axis``, absent entries included."""
        return self._reduced("multiply", axis, dtype, out, keepdims)

    def min(self, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
        """The smallest value along ``axis``, absent entries included."""
        return self._reduced("minimum", axis, None, out, keepdims)

    def max(self, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
        """The largest value along ``axis``, absent entries included."""
        return self._reduced("maximum", axis, None, out, keepdims)

    def any(self, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
        """Whether any value along ``axis`` is not zero."""
        return self._reduced("logical_or", axis, None, out, keepdims)

    def all(self, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
        """Whether every value along ``axis`` is not zero, absent entries included."""
        return self._reduced("logical_and", axis, None, out, keepdims)

    def mean(self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Any:
        """The mean along ``axis``, absent entries included; of integers, in float64. As in NumPy, ``dtype`` is that of sum and result."""
        wanted = as_inexact(self.storage.dtype) if dtype is None else value_dtype(dtype)
        total = self.sum(axis, wanted, out, keepdims)
        places = reduced_count(self.storage.shape, axis)
        count = np.int64(places) if places < 2**63 else np.float64(as_float(places))
        with np.errstate(all="ignore"):
            if not isinstance(total, Arithmetic):
                return (total / count).astype(wanted)
            return self._made(from_numpy(np.asarray(to_numpy(total.storage) / count).astype(wanted)).storage)

    def matvec(self, x: Any) -> NDArray[Any]:
        """``A @ x`` as a NumPy array, for one vector or several, so that the tensor serves as a ``scipy.sparse.linalg`` operator."""
        given, storage = _in_order(x), self.storage
        return product(storage, given) if given.ndim == 1 and len(storage.shape) == 2 else to_numpy(matmul(storage, given))

    def rmatvec(self, x: Any) -> NDArray[Any]:
        """The adjoint applied to ``x``: the conjugate transpose of ``A``, times ``x``."""
        given, storage = _in_order(x), self.storage
        if given.ndim == 1 and len(storage.shape) == 2:
            return product(given, storage) if storage.dtype.kind != "c" else product(given.conj(), storage).conj()
        adjoint = (self.conj() if storage.dtype.kind == "c" else self).storage
        return to_numpy(matmul(transposed(adjoint, tuple(reversed(range(len(adjoint.shape))))), given))

    matmat, rmatmat = matvec, rmatvec


def _in_order(x: Any) -> NDArray[Any]:
    """An array in C order: itself, if it is one."""
    return x if type(x) is np.ndarray and x.flags.c_contiguous else np.ascontiguousarray(x)


def as_argument(value: Any) -> Argument | None:
    """What an operator computes with: a storage or a number; ``None`` for what is not an array."""
    match value:
        case Arithmetic():
            return value.storage
        case np.generic() | bool() | int() | float() | complex():
            return value
        case Expression() | IndexVar() | str() | bytes() | None | set() | numbers.Number():
            return None
    kind = type(value)
    if wraps(kind) or (isinstance(value, dict) and reader_for(kind) is None):
        return None
    return enter_aloud(value)


def as_arguments(values: Sequence[Any]) -> list[Argument] | None:
    """What an operator computes with; ``None`` if one of the values is not an array."""
    arguments = [argument for argument in map(as_argument, values) if argument is not None]
    return arguments if len(arguments) == len(values) else None


def _given(value: Any) -> Given | None:
    """As ``as_argument``, but plain arrays stay what they are."""
    return value if type(value) is np.ndarray else as_argument(value)


def _as_array(given: Given | None) -> Array:
    """An operand of ``@``; numbers become tensors of order 0, which ``matmul`` refuses with a reason."""
    return given if isinstance(given, Storage | np.ndarray) else from_numpy(np.asarray(given)).storage


def _stored(value: Any) -> Storage:
    """An operand of a function that takes whole tensors, and no numbers."""
    return value.storage if isinstance(value, Arithmetic) else enter_aloud(value)


def _are_truths(arguments: Sequence[Argument]) -> bool:
    return all(np.result_type(a.dtype if isinstance(a, Storage) else np.asarray(a)).kind == "b" for a in arguments)


def _as_arrays(value: Any, name: str) -> Any:
    """Dense tensors as arrays, also inside lists and tuples; a sparse one is refused."""
    match value:
        case Arithmetic():
            if not value.storage.format.is_dense:
                raise DTypeError(f"np.{name} is not offered on sparse tensors; convert with to_numpy() first")
            return to_numpy(value.storage)
        case list() | tuple():
            return type(value)(_as_arrays(part, name) for part in value)
    return value


def _not_offered(what: str, options: bool) -> DTypeError:
    reason = "with these options is" if options else "is"
    return DTypeError(f"{what} {reason} not offered on tensors; convert with to_numpy() first, or write it in index notation")
