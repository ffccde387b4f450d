"""A tensor as its entries, one column of coordinates per mode: what functions work on that no index notation says."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.algebra import Scalar, same_value
from sparseloom.core.dtypes import DType
from sparseloom.core.errors import DTypeError, FormatError, ShapeError
from sparseloom.formats.format import Format
from sparseloom.formats.levels.compressed import Compressed
from sparseloom.formats.levels.dense import Dense
from sparseloom.formats.levels.singleton import Singleton
from sparseloom.formats.named import coo, csf, csr, dcsr, dense
from sparseloom.formats.named import entries as entries_format
from sparseloom.formats.pack import unpack
from sparseloom.formats.storage import Storage, with_values
from sparseloom.interop.numpy import from_numpy, to_numpy
from sparseloom.iteration.layout import plain
from sparseloom.programs.conversion import convert, require_host, store
from sparseloom.programs.cuda.storages import to_host
from sparseloom.tensor.creation import asarray
from sparseloom.tensor.ordered import ordered_entries
from sparseloom.tensor.reductions import is_only_one
from sparseloom.tensor.tensor import Tensor

Index = NDArray[np.int64]
_FEW_ROWS = 2**20  # so many positions of rows are no burden
_ROWS_PER_ENTRY = 16


@dataclass(frozen=True)
class Entries:
    """The entries of a tensor in some order, none of them twice; everything else is the fill. ``like`` is how it was stored."""

    shape: tuple[int, ...]
    coordinates: Index
    values: NDArray[Any]
    fill: Scalar
    like: Format

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.values)

    def moved(self, shape: Sequence[int], columns: Sequence[Any]) -> Entries:
        """The same values at other coordinates, of another shape."""
        return replace(self, shape=tuple(shape), coordinates=stacked(columns, self.count))

    def chosen(self, which: Any) -> Entries:
        """Some of the entries."""
        return replace(self, coordinates=self.coordinates[:, which], values=self.values[which])

    def tensor(self) -> Tensor:
        """The tensor that has these entries, stored as what it was made of, as far as that fits its shape."""
        return Tensor(store(format_for(self.shape, self.count, self.like), self.shape, self.coordinates, self.values, self.fill))


def stacked(columns: Sequence[Any], count: int) -> Index:
    """Columns of coordinates as one array, also where there are none."""
    return np.stack([np.asarray(column, np.int64) for column in columns]) if len(columns) else np.empty((0, count), np.int64)


def on_host(x: Tensor) -> Storage:
    """How a tensor is stored, if that is where arrays can be read."""
    require_host(x.storage, coo(x.ndim))
    return x.storage


def entries_of(x: Tensor, modes: Sequence[int] | None = None) -> Entries:
    """The entries of a tensor, sorted by some modes if these are given; of a dense one, those that are not zero."""
    storage = on_host(x)
    if storage.format.is_dense:
        array = to_numpy(storage)
        places = np.nonzero(array)
        made = Entries(storage.shape, stacked(places, len(places[0]) if places else 0), array[places], 0, csf(len(storage.shape)))
        return made if modes is None or not len(modes) else made.chosen(np.lexsort(made.coordinates[list(modes)[::-1]]))
    if modes is not None:
        return Entries(storage.shape, *ordered_entries(storage, modes), storage.fill, storage.format)
    if not storage.format.is_unique:
        storage = convert(storage, coo(len(storage.shape)))
    coordinates, values = unpack(storage)
    return Entries(storage.shape, coordinates, values, storage.fill, storage.format)


def format_for(shape: Sequence[int], count: int, like: Format) -> Format:
    """A sparse format for a result: that of its operand if it can be, else csr or csf; with rows compressed where most are empty."""
    order = len(shape)
    if order < 2:
        return dense(0) if order == 0 else csf(1)
    form = plain(like)
    usual = (Dense, Compressed, Singleton)
    is_usual = all(type(level) in usual for level in form.levels) and bool(form.levels) and not form.levels[-1].full
    is_list = any(level.branchless for level in form.levels)
    wanted = form if form.order == order and is_usual else coo(order) if is_list and is_usual else entries_format(order)
    leading = [shape[mode] for mode, level in zip(wanted.modes, wanted.levels, strict=True) if level.full]
    if math.prod(leading) <= max(_FEW_ROWS, _ROWS_PER_ENTRY * count):
        return wanted
    return dcsr if wanted == csr else Format((Compressed(),) * order, wanted.modes)


def tensor_of(value: Any) -> Tensor:
    """A tensor, or what becomes one."""
    return value if isinstance(value, Tensor) else asarray(value)


def in_format(made: Tensor, format: Format | str | None) -> Tensor:
    """A result in the format that was asked for, if one was."""
    return made if format is None else made.to(format)


def are_dense(*tensors: Tensor) -> bool:
    """Whether all of these are dense, so that NumPy's own function does."""
    return all(tensor.format.is_dense for tensor in tensors)


def by_numpy(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """NumPy's function on tensors, all of which are dense or may become so; arrays that it gives are tensors again."""
    return wrapped(function(*map(_array, arguments), **{name: _array(value) for name, value in options.items()}))


def array_of(x: Tensor) -> NDArray[Any]:
    """The whole tensor as an array that is read only here: no caller sees it."""
    return to_numpy(to_host(x.storage))


def _array(value: Any) -> Any:
    match value:
        case Tensor():
            return array_of(value)
        case list() | tuple():
            return type(value)(_array(part) for part in value) if type(value) in (list, tuple) else value
    return value


def wrapped(value: Any) -> Any:
    """Arrays as tensors, also in tuples and lists; numbers stay."""
    match value:
        case np.ndarray():
            return dense_tensor(value)
        case tuple() | list() if type(value) in (tuple, list):
            return type(value)(wrapped(part) for part in value)
    return value


def dense_tensor(array: NDArray[Any]) -> Tensor:
    """An array of ours as a tensor."""
    return Tensor(from_numpy(np.ascontiguousarray(array).reshape(array.shape)).storage)


def mode_of(axis: Any, order: int) -> int:
    """The mode that an axis names."""
    try:
        mode = operator.index(axis)
    except TypeError:
        raise DTypeError(f"an axis is an integer, not {axis!r}") from None
    if not -order <= mode < order:
        raise ShapeError(f"axis {mode} is outside the {order} modes of the tensor")
    return mode % order


def along(x: Tensor, axis: Any) -> tuple[Tensor, int]:
    """A tensor, and the mode that an axis names. As in NumPy, one of order 0 is a vector of one value to functions along a mode."""
    if is_only_one(axis, x.ndim):
        return dense_tensor(x.to_numpy().reshape(1)), 0
    return x, mode_of(axis, x.ndim)


def reduced_modes(axis: Any, order: int) -> tuple[int, ...]:
    """As ``modes_of``, for reductions: of order 0 there is nothing to reduce."""
    return () if is_only_one(axis, order) else modes_of(axis, order)


def modes_of(axis: Any, order: int) -> tuple[int, ...]:
    """The modes that an axis or several name, in the order given; all of them for None."""
    if axis is None:
        return tuple(range(order))
    modes = tuple(mode_of(one, order) for one in (axis if isinstance(axis, (tuple, list)) else (axis,)))
    if len(set(modes)) != len(modes):
        raise ShapeError(f"axis {axis} names a mode twice")
    return modes


def common_fill(tensors: Sequence[Tensor], what: str) -> Scalar:
    """What all absent entries are worth, if they agree; a dense tensor agrees with 0."""
    fills = [0 if tensor.format.is_dense else tensor.fill for tensor in tensors]
    if any(not same_value(fill, fills[0]) for fill in fills):
        raise FormatError(
            f"{what} of tensors whose absent entries differ: {', '.join(map(str, fills))}\n"
            "  help: make one of them dense with to('dense'), or sl.asarray(x, fill=...)"
        )
    return fills[0]


def linear(coordinates: Index, shape: Sequence[int], what: str) -> Index:
    """One number per entry, in the order of the modes."""
    require_linear(shape, what)
    key = np.zeros(coordinates.shape[1], np.int64)
    for column, size in zip(coordinates, shape, strict=True):
        key = key * size + column
    return key


def require_linear(shape: Sequence[int], what: str) -> None:
    """Refuse a shape whose coordinates 64 bits do not count."""
    if math.prod(shape) >= 2**63:
        raise ShapeError(f"{what} counts the coordinates of {' x '.join(map(str, shape))}, and they do not fit in 64 bits")


def unraveled(key: Index, shape: Sequence[int]) -> list[Index]:
    """The columns of numbers in the order of the modes; the inverse of ``linear``."""
    columns: list[Index] = []
    for size in reversed(shape):
        key, rest = np.divmod(key, max(size, 1))
        columns.insert(0, rest)
    return columns


def revalued(storage: Storage, function: Callable[[Any], Any], dtype: DType | None = None) -> Storage:
    """The same structure with other values: a function of each, the fill included."""
    with np.errstate(all="ignore"):
        values = np.asarray(function(storage.values))
        values = values if dtype is None else values.astype(dtype)
        fill = np.asarray(function(storage.dtype.type(storage.fill))).astype(values.dtype).item()
    return with_values(storage, values, fill)
