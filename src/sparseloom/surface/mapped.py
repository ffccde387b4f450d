"""Element-wise functions that no kernel computes: NumPy's own, on the values that are stored and on the fill.

Several operands are brought to the union of their entries first. A result that is not zero where nothing is stored is dense, as
everywhere; what a sparse operand decides alone (``0 // x``, ``0 & x``) is not visited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.algebra import compute_dtype
from sparseloom.core.dtypes import FLOAT64, is_value_dtype, promoted, value_dtype
from sparseloom.core.errors import DTypeError, NotationError
from sparseloom.formats.storage import Storage, lend, with_values
from sparseloom.surface.entries import Entries, array_of, dense_tensor, entries_of, linear, require_linear, unraveled
from sparseloom.surface.shape import broadcast_to, stretched
from sparseloom.tensor.arithmetic import as_arguments
from sparseloom.tensor.examples import example_of
from sparseloom.tensor.expression import Expression
from sparseloom.tensor.operators import broadcast_shape, cast
from sparseloom.tensor.table import enter
from sparseloom.tensor.tensor import Tensor

# What NumPy computes: the names in the array API, and at which places an absent zero decides.
_UNARY = {
    "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "rint": None, "signbit": "", "reciprocal": "", "exp2": None, "fabs": None,
    "deg2rad": None, "rad2deg": None, "degrees": None, "radians": None, "spacing": None, "invert": "bitwise_invert",
}  # fmt: skip
_BINARY = {
    "floor_divide": ("", (0,)), "remainder": ("", (0,)), "fmod": (None, (0,)),
    "left_shift": ("bitwise_left_shift", (0,)), "right_shift": ("bitwise_right_shift", (0,)),
    "bitwise_and": ("", (0, 1)), "bitwise_or": ("", ()), "bitwise_xor": ("", ()),
    "copysign": ("", ()), "nextafter": ("", ()), "logaddexp": ("", ()), "logaddexp2": (None, ()), "heaviside": (None, ()),
    "fmax": (None, ()), "fmin": (None, ()), "gcd": (None, ()), "lcm": (None, (0, 1)), "ldexp": (None, (0,)), "float_power": (None, ()),
}  # fmt: skip
MAPPED: dict[str, tuple[int, ...]] = {**dict.fromkeys(_UNARY, ()), **{name: decides for name, (_, decides) in _BINARY.items()}}
"""The places at which an absent zero decides, for each function."""


def mapped(function: Callable[..., Any], arguments: Sequence[Any], decides: Sequence[int] = ()) -> Tensor:
    """A function of NumPy's on storages and numbers, element by element."""
    arguments = arguments if function is np.ldexp else _widened(arguments)  # which takes its second operand apart from the first
    storages = [argument for argument in arguments if isinstance(argument, Storage)]
    shape = broadcast_shape(function.__name__, [storage.shape for storage in storages])
    sparse = [storage for storage in storages if not storage.format.is_dense]
    numbers = [_fill(argument) for argument in arguments]
    if len(storages) == 1 and sparse:
        return _of_one(function, arguments, shape)
    alone = [k for k in decides if _is_sparse(arguments[k]) and _is_zero(numbers[k])]
    if not sparse or not (alone or (len(sparse) == len(storages) and _is_zero(_computed(function, numbers)))):
        return _everywhere(function, arguments)
    return _on_union(function, arguments, shape, alone)


def _is_sparse(argument: Any) -> bool:
    """Whether an argument may have absent entries."""
    return isinstance(argument, Storage) and not argument.format.is_dense


def _widened(arguments: Sequence[Any]) -> Sequence[Any]:
    """The arguments, in a wider dtype where a whole number does not fit the others' (``uint8`` and 300), as operators compute."""
    if not any(type(argument) is int for argument in arguments):
        return arguments
    kinds = [argument.dtype if isinstance(argument, Storage | np.generic) else argument for argument in arguments]
    if any(not is_value_dtype(kind) for kind in kinds if isinstance(kind, np.dtype)):
        return arguments
    common = promoted(kinds)
    wide = compute_dtype("multiply", kinds)
    if common == wide or common.kind not in "iu":
        return arguments
    return [cast(argument, wide) if isinstance(argument, Storage) else wide.type(argument) for argument in arguments]


def _fill(argument: Any) -> Any:
    """What an argument is worth where it is not stored."""
    return argument.dtype.type(argument.fill) if isinstance(argument, Storage) else argument


def _computed(function: Callable[..., Any], numbers: Sequence[Any]) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        try:
            made = np.asarray(function(*numbers))
            if made.dtype.kind == "f" and made.dtype.itemsize < 8 and all(np.asarray(number).dtype.kind in "biu" for number in numbers):
                first, *rest = (np.asarray(number) for number in numbers)
                whole = rest if function is np.ldexp else [number.astype(FLOAT64) for number in rest]
                made = np.asarray(function(first.astype(FLOAT64), *whole))  # as kernels do
        except TypeError as problem:
            raise DTypeError(f"{function.__name__} is not defined on these dtypes: {problem}") from None
        return made.astype(value_dtype(made.dtype))


def _is_zero(value: Any) -> bool:
    return bool(np.asarray(value) == 0)


def _everywhere(function: Callable[..., Any], arguments: Sequence[Any]) -> Tensor:
    """On every coordinate: a dense result."""
    return dense_tensor(_computed(function, [array_of(Tensor(each)) if isinstance(each, Storage) else each for each in arguments]))


def _of_one(function: Callable[..., Any], arguments: Sequence[Any], shape: tuple[int, ...]) -> Tensor:
    """Beside numbers, the structure of a sparse tensor stays; a result that is not zero elsewhere is dense."""
    storage = next(argument for argument in arguments if isinstance(argument, Storage))
    fill = _computed(function, [_fill(argument) for argument in arguments])
    if not _is_zero(fill) or not storage.format.is_unique:
        if not _is_zero(fill):
            return _everywhere(function, arguments)
        storage = entries_of(Tensor(storage)).tensor().storage
    values = _computed(function, [storage.values if isinstance(argument, Storage) else argument for argument in arguments])
    return compact(Tensor(with_values(lend(storage), values, values.dtype.type(0).item())))


def _on_union(function: Callable[..., Any], arguments: Sequence[Any], shape: tuple[int, ...], alone: Sequence[int]) -> Tensor:
    """On the coordinates where some operand has an entry; where some decide ``alone``, where all of these have one."""
    require_linear(shape, function.__name__)
    broad: dict[int, Entries] = {
        k: stretched(entries_of(Tensor(each)), shape)
        for k, each in enumerate(arguments)
        if _is_sparse(each)
    }
    keys = {k: linear(entries.coordinates, shape, function.__name__) for k, entries in broad.items()}
    if alone:
        first, *others = (keys[k] for k in alone)
        union = first[np.isin(first, others[0])] if others else first
    else:
        union = np.unique(np.concatenate(list(keys.values())))
    columns = unraveled(union, shape)
    given = []
    for k, argument in enumerate(arguments):
        if k in broad:
            given.append(_at(keys[k], broad[k], union))
        else:
            given.append(array_of(broadcast_to(Tensor(argument), shape))[tuple(columns)] if isinstance(argument, Storage) else argument)
    like = next(iter(broad.values()))
    values = _computed(function, given)
    return compact(replace(like, values=values, fill=values.dtype.type(0).item()).moved(shape, columns).tensor())


def _at(keys: NDArray[np.int64], entries: Entries, wanted: NDArray[np.int64]) -> NDArray[Any]:
    """The values of entries at these places, and the fill where there is none."""
    made = np.full(len(wanted), entries.fill, entries.values.dtype)
    if not len(keys):
        return made
    order = np.argsort(keys)
    place = np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)
    found = keys[order[place]] == wanted
    made[found] = entries.values[order[place[found]]]
    return made


def compact(x: Tensor) -> Tensor:
    """Truth values without stored falsehoods: what is compared has an entry where it is true."""
    storage = x.storage
    if storage.dtype.kind != "b" or storage.format.is_dense or storage.fill or storage.values.all():
        return x
    return x.to(x.format, drop_zeros=True)


def _function(name: str) -> Callable[..., Any]:
    """The function that stands for NumPy's of this name."""
    computed = getattr(np, name)

    def function(*values: Any) -> Any:
        if any(isinstance(value, Expression) for value in values):
            raise NotationError(f"{name} is not offered in index notation; compute it on whole tensors, before or after the statement")
        arguments = as_arguments(values)
        if arguments is None or len(values) != computed.nin:
            kinds = ", ".join(type(value).__name__ for value in values)
            raise NotationError(f"{name} takes {computed.nin} tensors, arrays or numbers, not {kinds}")
        return mapped(computed, arguments, MAPPED[name])

    function.__name__ = function.__qualname__ = name
    function.__module__ = "sparseloom"  # where pickle finds it
    function.__doc__ = f"NumPy's ``{name}``, element by element.{example_of(name)}"
    return function


for _name, _standard in (*_UNARY.items(), *((name, standard) for name, (standard, _) in _BINARY.items())):
    enter(_function(_name), "element-wise", None, None, _standard)
    del _name, _standard
