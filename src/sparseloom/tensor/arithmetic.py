"""NumPy's operators, ufuncs, functions and reductions on tensors; ``Tensor`` inherits them."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.algebra import OPERATORS
from sparseloom.core.dtypes import DType, as_inexact, computed, value_dtype
from sparseloom.core.errors import CompilerBug, DTypeError
from sparseloom.formats.storage import Storage, apart, with_values
from sparseloom.interop.intake import enter_aloud
from sparseloom.interop.numpy import from_numpy, to_numpy
from sparseloom.interop.registry import left_to, reader_for, wraps
from sparseloom.interop.scipy_left import multiplies_as_matrix
from sparseloom.notation.nodes import IndexVar
from sparseloom.programs.dispatch import doors
from sparseloom.programs.large import duplicate
from sparseloom.tensor.expression import Expression
from sparseloom.tensor.filling import put, written
from sparseloom.tensor.indexing import transposed
from sparseloom.tensor.operators import Argument, Array, Given, cast, dot, elementwise, matmul, product
from sparseloom.tensor.reductions import as_float, reduce, reduced_count
from sparseloom.tensor.table import TABLE, for_numpy

_BITWISE = {"bitwise_and": "logical_and", "bitwise_or": "logical_or", "bitwise_xor": "logical_xor", "invert": "logical_not"}
_SPELLED_OTHERWISE = {"bitwise_invert": "invert", "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift"}
_OF_LINALG = ("norm", "matrix_power", "tensordot", "matmul", "outer", "vecdot", "matrix_transpose")
_RUNNING = {"add": "cumsum", "multiply": "cumprod"}
_PLAIN = ("add", "subtract", "multiply", "divide")  # what is known of a call is all there is to do, but for truth values
_ATTRIBUTES = ("shape", "ndim", "size", "real", "imag")
A = TypeVar("A", bound="Arithmetic")


def _operator(op: str, swapped: bool = False) -> Callable[[A, Any], A]:
    """The method behind an operator; where it is swapped, the tensor stands on the right."""
    return lambda tensor, other: tensor._binary(op, other, swapped)


def _by_numpy(op: str, swapped: bool = False) -> Callable[[A, Any], A]:
    """As ``_operator``, for what the table of functions offers; on truth values bits are logical operators."""
    return lambda tensor, other: tensor._tabled(op, other, swapped)


class Arithmetic:
    """What can be computed with tensors. A subclass gives the storage and wraps results."""

    __slots__ = ()
    __array_priority__ = 12.0  # Dask asks whose chunks decide how they are multiplied: ours beside NumPy's
    __hash__ = None  # type: ignore[assignment]  # as in NumPy: == compares element by element

    @property
    def storage(self) -> Storage:
        """The stored form."""
        raise CompilerBug(self, "a tensor must give its storage")

    def opened(self) -> Storage:
        """The stored form, whose arrays a caller may see and change."""
        raise CompilerBug(self, "a tensor must open its storage")

    def writable(self) -> Storage:
        """The stored form, whose values may be written."""
        raise CompilerBug(self, "a tensor must give its storage")

    def _made(self, storage: Storage) -> Self:
        """A tensor of the same class over a computed storage."""
        raise CompilerBug(self, "a tensor must wrap results")

    def _binary(self, op: str, other: Any, swapped: bool = False) -> Self:
        if op in _PLAIN:
            known = doors.through(op, other, self) if swapped else doors.through(op, self, other)
            if known is not None and known.values.dtype.kind != "b":
                return self._made(known)
        argument = _given(other)
        if argument is None:
            return left_to(other, op, self, swapped)  # type: ignore[no-any-return]
        pair = (argument, self.storage) if swapped else (self.storage, argument)
        return self._made(elementwise(op, *pair))

    def _unary(self, op: str) -> Self:
        return self._made(elementwise(op, self.storage))

    def _tabled(self, op: str, other: Any, swapped: bool = False) -> Self:
        if as_argument(other) is None:
            return NotImplemented  # type: ignore[no-any-return]  # Python then asks the other operand
        return self._computed(op, (other, self) if swapped else (self, other))  # type: ignore[no-any-return]

    def _computed(self, op: str, values: Sequence[Any]) -> Any:
        """A function of the table on values that are all known."""
        arguments = as_arguments(values)
        if op in _BITWISE and arguments is not None and _are_truths(arguments):
            return self._made(elementwise(_BITWISE[op], *arguments))
        return TABLE[op].call(*values)

    __add__, __radd__ = _operator("add"), _operator("add", swapped=True)
    __sub__, __rsub__ = _operator("subtract"), _operator("subtract", swapped=True)
    __mul__ = _operator("multiply")
    __truediv__, __rtruediv__ = _operator("divide"), _operator("divide", swapped=True)
    __pow__, __rpow__ = _operator("power"), _operator("power", swapped=True)
    __floordiv__, __rfloordiv__ = _by_numpy("floor_divide"), _by_numpy("floor_divide", swapped=True)
    __mod__, __rmod__ = _by_numpy("remainder"), _by_numpy("remainder", swapped=True)
    __lshift__, __rlshift__ = _by_numpy("left_shift"), _by_numpy("left_shift", swapped=True)
    __rshift__, __rrshift__ = _by_numpy("right_shift"), _by_numpy("right_shift", swapped=True)
    __and__, __rand__ = _by_numpy("bitwise_and"), _by_numpy("bitwise_and", swapped=True)
    __or__, __ror__ = _by_numpy("bitwise_or"), _by_numpy("bitwise_or", swapped=True)
    __xor__, __rxor__ = _by_numpy("bitwise_xor"), _by_numpy("bitwise_xor", swapped=True)
    __lt__, __le__ = _operator("less"), _operator("less_equal")
    __gt__, __ge__ = _operator("greater"), _operator("greater_equal")
    __eq__, __ne__ = _operator("equal"), _operator("not_equal")  # type: ignore[assignment]

    def __rmul__(self, other: Any) -> Self:
        return self.__rmatmul__(other) if multiplies_as_matrix(type(other)) else self._binary("multiply", other, swapped=True)

    def __neg__(self) -> Self:
        return self._unary("negative")

    def __pos__(self) -> Self:
        storage = self.storage
        return self._made(apart(storage, storage, duplicate))

    def __abs__(self) -> Self:
        return self._unary("absolute")

    def __invert__(self) -> Self:
        return self._computed("invert", (self,))  # type: ignore[no-any-return]

    def __divmod__(self, other: Any) -> tuple[Self, Self]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Self, Self]:
        return other // self, other % self

    def __matmul__(self, other: Any) -> Self:
        known = doors.through("@", self, other)
        if known is not None:
            return self._made(known)
        argument = _given(other)
        if argument is None:
            return left_to(other, "matmul", self, False)  # type: ignore[no-any-return]
        return self._made(matmul(self.storage, _as_array(argument)))

    def __rmatmul__(self, other: Any) -> Self:
        known = doors.through("@", other, self)
        if known is not None:
            return self._made(known)
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
        if method == "outer" and len(inputs) == 2 and not options.keys() - {"dtype", "casting"}:
            return self.__array_ufunc__(ufunc, "__call__", _with_modes_for(inputs[0], inputs[1]), inputs[1], out=out, **options)
        if method == "accumulate" and name in _RUNNING and out is None and not options.keys() - {"axis", "dtype"}:
            return TABLE[_RUNNING[name]].call(inputs[0], options.get("axis", 0), options.get("dtype"))
        if method != "__call__" or options.keys() - {"where", "dtype", "casting"} or as_arguments(inputs) is None:
            raise _not_offered(f"np.{ufunc.__name__}" + (f".{method}" if method != "__call__" else ""), bool(options) or out is not None)
        wanted = None if options.get("dtype") is None else value_dtype(options["dtype"])
        made = self._called(name, inputs if wanted is None else self._in_dtype(wanted, name, inputs, options.get("casting", "same_kind")))
        if wanted is not None and (isinstance(made, tuple) or made.dtype != wanted):
            raise DTypeError(f"np.{name} has no result of {wanted}\n  help: leave dtype= away, and convert the result with astype")
        where = options.get("where", True)
        if out is None and where is not True:
            raise _not_offered(f"where= of np.{ufunc.__name__} without out=", False)
        if out is None:
            return made
        if isinstance(made, tuple):
            raise _not_offered("out= of two results", False)
        return written(made.storage, out[0] if isinstance(out, tuple) else out, where, options.get("casting", "same_kind"))

    def _in_dtype(self, wanted: DType, name: str, inputs: Sequence[Any], casting: Any) -> list[Self]:
        """The operands of a ufunc as it computes them where a dtype is asked for."""
        return [self._made(storage) for storage in _to_compute_in(wanted, name, inputs, casting)]

    def _called(self, name: str, inputs: Sequence[Any]) -> Any:
        """The function of the name of a ufunc."""
        given = as_arguments(inputs) or []
        match name:
            case "matmul":
                return self._made(matmul(_as_array(given[0]), _as_array(given[1])))
            case "positive":
                return TABLE["positive"].call(*inputs)  # which need not be the tensor that is asked: that may be the output
            case "divmod":
                return self._computed("floor_divide", inputs), self._computed("remainder", inputs)
            case _ if name in OPERATORS:
                return self._made(elementwise(name, *given))
            case _ if name in TABLE:
                return self._computed(name, inputs)
        raise _not_offered(f"np.{name}", False)

    def __array_function__(self, func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """NumPy's other functions, ``np.func(*args, **kwargs)``: those of the table, and the rest on dense tensors only.

        Without this, some of them would swallow the refusal of a sparse tensor and answer wrongly.
        """
        name, first = func.__name__, args[0] if args else None
        if isinstance(first, Arithmetic) and name in _ATTRIBUTES and len(args) == 1 and not kwargs:
            return getattr(first, name)
        if name == "copy" and isinstance(first, Arithmetic):
            return +first
        found = for_numpy(name) if func.__module__ == "numpy" or name in _OF_LINALG else None
        if found is not None:
            return found(*args, **{key: value for key, value in kwargs.items() if value is not np._NoValue})
        return func(*_as_arrays(args, name), **{key: _as_arrays(value, name) for key, value in kwargs.items()})

    def _reduced(self, op: str, axis: Any, dtype: Any, out: Any, keepdims: bool, explicit: bool = False) -> Any:
        """A tensor, or a NumPy scalar where nothing but one value is left; or ``out``, if that is to be filled."""
        wanted = None if dtype is None else value_dtype(dtype)
        own = self.storage.dtype
        if wanted is None and op in ("add", "multiply") and hasattr(out, "dtype") and np.can_cast(own, out.dtype, "same_kind"):
            wanted = value_dtype(out.dtype)  # as NumPy does: sums are counted in the dtype of what holds them
        result = reduce(op, self.storage, axis, wanted, keepdims, explicit)
        if out is not None:
            return put(result, out)
        return self._made(result) if result.shape or axis is not None else result.values[0]

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """The sum along ``axis`` (all modes, one, or a tuple). As in NumPy, short integers and truths are summed in 64 bits."""
        return self._reduced("add", axis, dtype, out, keepdims)

    def prod(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """The product along ``axis``, absent entries included."""
        return self._reduced("multiply", axis, dtype, out, keepdims)

    def min(self, axis: Any = None, out: Any = None, keepdims: bool = False, *, explicit: bool = False) -> Any:
        """The smallest value along ``axis``, absent entries included; as in SciPy, only those stored if it is ``explicit``."""
        return self._reduced("minimum", axis, None, out, keepdims, explicit)

    def max(self, axis: Any = None, out: Any = None, keepdims: bool = False, *, explicit: bool = False) -> Any:
        """The largest value along ``axis``, absent entries included; as in SciPy, only those stored if it is ``explicit``."""
        return self._reduced("maximum", axis, None, out, keepdims, explicit)

    def any(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Whether any value along ``axis`` is not zero."""
        return self._reduced("logical_or", axis, None, out, keepdims)

    def all(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Whether every value along ``axis`` is not zero, absent entries included."""
        return self._reduced("logical_and", axis, None, out, keepdims)

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """The mean along ``axis``, absent entries included; of integers, in float64. As in NumPy, ``dtype`` is that of sum and result."""
        wanted = as_inexact(self.storage.dtype) if dtype is None else value_dtype(dtype)
        total = self.sum(axis, computed(wanted), None, keepdims)
        places = reduced_count(self.storage.shape, axis)
        count = np.int64(places) if places < 2**63 else np.float64(as_float(places))
        with np.errstate(all="ignore"):
            if not isinstance(total, Arithmetic):
                made = (total / count).astype(wanted)
                return made if out is None else put(made, out, "unsafe")
            storage = total.storage
            fill = wanted.type(storage.fill / count).item() if not storage.format.is_dense else storage.fill
            mean = self._made(with_values(storage, (storage.values / count).astype(wanted), fill))
            return mean if out is None else put(mean.storage, out, "unsafe")

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


def _are_truths(arguments: Sequence[Argument]) -> bool:
    return all(np.result_type(a.dtype if isinstance(a, Storage) else np.asarray(a)).kind == "b" for a in arguments)


def _as_arrays(value: Any, name: str) -> Any:
    """Dense tensors as arrays, also inside lists and tuples; a sparse one is refused."""
    match value:
        case Arithmetic():
            if not value.storage.format.is_dense:
                raise DTypeError(f"np.{name} is not offered on sparse tensors; convert with to_numpy() first")
            return to_numpy(value.opened())
        case list() | tuple():
            return type(value)(_as_arrays(part, name) for part in value)
    return value


def _to_compute_in(wanted: DType, name: str, inputs: Sequence[Any], casting: Any) -> list[Storage]:
    """The operands of a ufunc in the dtype that was asked for; one that gives truth values computes in that of its operands."""
    gives_truths = name in OPERATORS and OPERATORS[name].rule == "bool"
    converted: list[Storage] = []
    for argument in as_arguments(inputs) or []:
        if not isinstance(argument, Storage):
            given = from_numpy(np.asarray(argument)).storage
        elif gives_truths or argument.dtype == wanted or np.can_cast(argument.dtype, wanted, casting):
            given = argument
        else:
            help = "convert it with astype"
            raise DTypeError(f"np.{name} cannot cast {argument.dtype} to {wanted} by the rule {casting!r}\n  help: {help}")
        converted.append(given if gives_truths else cast(given, wanted))
    return converted


def _with_modes_for(value: Any, other: Any) -> Any:
    """The left operand of a ufunc's outer: with a mode of size 1 behind its own for each that the other has."""
    shape, others = (getattr(each, "shape", np.shape(each)) for each in (value, other))
    return TABLE["reshape"].call(value, (*shape, *(1 for _ in others)))


def _not_offered(what: str, options: bool) -> DTypeError:
    reason = "with these options is" if options else "is"
    return DTypeError(f"{what} {reason} not offered on tensors; convert with to_numpy() first, or write it in index notation")
