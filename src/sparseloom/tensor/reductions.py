"""Sums, products, extremes and truths along modes, as NumPy's methods of these names.

Only stored entries are visited: the absent ones are given the reduction's identity as their fill, and what they are really worth
is put in afterwards, from how many of them there are.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core import algebra
from sparseloom.core.dtypes import BOOL, INT64, DType, computed, is_half, is_integer, summed
from sparseloom.core.errors import DTypeError, ShapeError
from sparseloom.formats.format import Format
from sparseloom.formats.levels.compressed import Compressed
from sparseloom.formats.named import entries
from sparseloom.formats.pack import unpack
from sparseloom.formats.room import require_array
from sparseloom.formats.storage import Storage
from sparseloom.interop.numpy import from_numpy, to_numpy
from sparseloom.notation.nodes import Reduce
from sparseloom.programs.conversion import convert, store
from sparseloom.programs.dispatch import doors
from sparseloom.tensor.operators import Statement, cast, variables

_EXACT = 2**53  # beyond this a float64 skips integers
_EMPTY_REFUSED = {"minimum": "smallest", "maximum": "largest"}


def reduce(
    op: str, storage: Storage, axis: Any = None, dtype: DType | None = None, keepdims: bool = False, explicit: bool = False
) -> Storage:
    """Reduce over the modes of ``axis``: all of them, one, or a tuple. The dtype follows NumPy's reductions.

    If it is ``explicit``, only stored entries take part; where there is none, the result is what absent ones are worth.
    """
    # Anything else may be equal to an integer and still be no axis, as 1.0 is.
    is_plain = axis is None or type(axis) is int or (type(axis) is tuple and all(type(mode) is int for mode in axis))
    door = ("reduce", op, axis, dtype) if is_plain and not keepdims and not explicit else None
    made = None if door is None else doors.through(door, storage)
    return _reduce(op, storage, axis, dtype, keepdims, explicit, door) if made is None else made


def _reduce(op: str, given: Storage, axis: Any, dtype: DType | None, keepdims: bool, explicit: bool, door: Hashable) -> Storage:
    """As ``reduce``, where nothing like it was computed before."""
    storage = given
    axes = _axes(axis, len(storage.shape))
    if op in _EMPTY_REFUSED and not math.prod(storage.shape[mode] for mode in axes):
        raise ShapeError(f"no entries: the {_EMPTY_REFUSED[op]} value along modes {axes} of shape {storage.shape} does not exist")
    wanted = dtype or _accumulator(op, storage.dtype)
    if is_half(wanted) and not (storage.format.is_dense or algebra.same_value(storage.fill, algebra.identity(op, wanted))):
        # What is stored and what is absent are reduced apart, so that only the whole is rounded.
        return cast(_reduce(op, given, axis, computed(wanted), keepdims, explicit, None), wanted)
    storage = cast(storage, wanted)
    identity = _identity(op, storage.dtype)
    if storage.format.is_dense or (algebra.same_value(storage.fill, identity) and not explicit):
        result = _over(op, storage, axes, door, given) if not _needs_order(op, storage.dtype) else _by_numpy(op, storage, axes)
    else:
        stored = _of_stored(op, replace(storage, fill=identity), axes)
        combined = _where_stored(stored, storage, axes) if explicit else _with_absent(op, stored, storage, axes)
        result = from_numpy(combined).storage
    if not keepdims:
        return result
    shape = tuple(1 if mode in axes else size for mode, size in enumerate(storage.shape))
    if result.format.is_dense:
        return from_numpy(np.ascontiguousarray(to_numpy(result)).reshape(shape)).storage
    coordinates, values = unpack(result)
    places = np.zeros((len(shape), len(values)), np.int64)
    places[[mode for mode in range(len(shape)) if mode not in axes]] = coordinates
    return store(entries(len(shape)), shape, places, values, result.fill)


def reduced_count(shape: Sequence[int], axis: Any) -> int:
    """How many values each result of a reduction over ``axis`` has seen."""
    return math.prod(shape[mode] for mode in _axes(axis, len(shape)))


def _axes(axis: Any, order: int) -> tuple[int, ...]:
    """The modes that an axis argument names."""
    if axis is None or is_only_one(axis, order):
        return tuple(range(order))
    given = axis if isinstance(axis, tuple) else (axis,)
    axes = []
    for number in given:
        try:
            mode = operator.index(number)
        except TypeError:
            raise DTypeError(f"an axis is an integer or a tuple of integers, not {axis!r}") from None
        if not -order <= mode < order:
            raise ShapeError(f"axis {mode} is outside the {order} modes of the tensor")
        axes.append(mode % order)
    if len(set(axes)) != len(axes):
        raise ShapeError(f"axis {axis} names a mode twice")
    return tuple(sorted(axes))


def is_only_one(axis: Any, order: int) -> bool:
    """Whether an axis names the mode that NumPy sees in an array of order 0: its reductions take ``axis=0`` and ``axis=-1`` there."""
    return not order and type(axis) is int and axis in (0, -1)


def _accumulator(op: str, dtype: DType) -> DType:
    """The dtype in which NumPy's methods reduce: sums and products of short integers and truths are counted in 64 bits."""
    if op.startswith("logical"):
        return BOOL
    return summed(dtype) if op in ("add", "multiply") else dtype


def _needs_order(op: str, dtype: DType) -> bool:
    """Whether it is asked for the largest or the smallest of complex numbers, which NumPy has an order of, and kernels do not."""
    return op in _EMPTY_REFUSED and dtype.kind == "c"


def _identity(op: str, dtype: DType) -> Any:
    """The value that leaves a reduction unchanged."""
    if not _needs_order(op, dtype):
        return algebra.identity(op, dtype)
    return complex(math.inf, math.inf) if op == "minimum" else complex(-math.inf, -math.inf)


def _by_numpy(op: str, storage: Storage, axes: tuple[int, ...]) -> Storage:
    """The reduction of all that is stored by NumPy, as a dense result; absent entries leave it unchanged."""
    kept = [mode for mode in range(len(storage.shape)) if mode not in axes]
    coordinates, values = unpack(storage)
    shape = tuple(storage.shape[mode] for mode in kept)
    require_array(shape, storage.dtype.itemsize)
    made = np.full(math.prod(shape), _identity(op, storage.dtype), storage.dtype)
    places = np.ravel_multi_index(tuple(coordinates[kept]), shape) if kept else np.zeros(len(values), np.int64)
    getattr(np, op).at(made, places, values)
    return from_numpy(made.reshape(shape)).storage


def _of_stored(op: str, storage: Storage, axes: tuple[int, ...]) -> NDArray[Any]:
    """The reduction of what is stored, as an array."""
    if _needs_order(op, storage.dtype):
        return to_numpy(_by_numpy(op, storage, axes))
    door = ("reduce stored", op, axes)
    made = doors.through(door, storage)
    return to_numpy(_over(op, storage, axes, door, storage) if made is None else made)


def _over(op: str, storage: Storage, axes: Sequence[int], door: Hashable, given: Storage) -> Storage:
    """The reduction of what is stored; the door through which it was ``given`` learns the way, if there is one."""
    loops = variables(len(storage.shape))
    kept = [mode for mode in range(len(loops)) if mode not in axes]
    if len(kept) > 1 and axes and not storage.format.is_dense and not set(kept) >= set(storage.format.modes[: len(kept)]):
        # With the kept modes outermost, the entries of a sparse result come out in order.
        storage = convert(storage, Format((Compressed(),) * len(loops), (*kept, *axes)))
    statement = Statement()
    access = statement.access(storage, loops)
    summed = tuple(loops[mode] for mode in axes)
    sizes = [storage.shape[mode] for mode in kept]
    made = statement.run([loops[mode] for mode in kept], Reduce(op, summed, access) if summed else access, sizes)
    if door is not None:
        statement.learn(door, (given,), (given,))
    return made


def _repeated(op: str, fill: Any, count: int) -> Any:
    """What so many absent entries make. They may be more than 64 bits count, so integers are reckoned modulo 2**64."""
    match op, fill.dtype.kind:
        case "add", "i" | "u":
            return _wrapped(int(fill) * count, fill.dtype)
        case "multiply", "i" | "u":
            return _wrapped(pow(int(fill), count, 2**64), fill.dtype)
        case "add", _:
            return _times(fill, np.float64(as_float(count)))
        case "multiply", "f" if fill < 0:
            return (-1 if count % 2 else 1) * (-fill) ** as_float(count)
        case "multiply", _:
            return fill ** as_float(count)
    return fill


def _wrapped(number: int, dtype: DType) -> Any:
    return np.array(number % 2**64, np.uint64).astype(dtype)[()]


def _of_fills(op: str, fill: Any, absent: NDArray[np.int64]) -> NDArray[Any]:
    """What so many absent entries make, for each number of them; ``fill`` is a value of the result's dtype.

    Integers wrap in 64 bits of the fill's own sign: beside signed numbers, NumPy would make floats of uint64.
    """
    dtype = fill.dtype
    wide = np.dtype(f"{dtype.kind}8") if is_integer(dtype) else dtype
    counts = absent.astype(wide) if is_integer(dtype) else absent
    made = _times(wide.type(fill), counts) if op == "add" else wide.type(fill) ** counts
    return np.asarray(made).astype(dtype)


def _times(fill: Any, counts: Any) -> Any:
    """So many fills added up. A product of complex numbers would make NaN of an infinite part beside a zero."""
    if fill.dtype.kind != "c":
        return fill * counts
    made = np.empty(np.shape(counts), fill.dtype)
    made.real, made.imag = fill.real * counts, fill.imag * counts
    return made[()]


def as_float(count: int) -> float:
    """A count as a float, however large it is."""
    return float(count) if count.bit_length() <= 1023 else math.inf


def _where_stored(stored: NDArray[Any], storage: Storage, axes: tuple[int, ...]) -> NDArray[Any]:
    """The reduction of stored entries where there are some, and the fill elsewhere."""
    return np.where(_count(storage, axes) > 0, stored, storage.dtype.type(storage.fill))


def _count(storage: Storage, axes: tuple[int, ...]) -> NDArray[Any]:
    """How many entries are stored along some modes."""
    return _of_stored("add", replace(storage, values=np.ones(len(storage.values), INT64), fill=0), axes)


def _with_absent(op: str, stored: NDArray[Any], storage: Storage, axes: tuple[int, ...]) -> NDArray[Any]:
    """Let absent entries take part in a reduction of the stored ones."""
    places, present = math.prod(storage.shape[mode] for mode in axes), _count(storage, axes)
    fill = storage.dtype.type(storage.fill)
    with np.errstate(all="ignore"):
        if places > _EXACT:
            repeated = [_repeated(op, fill, places - int(count)) for count in present.ravel()]
            rest = np.array(repeated, stored.dtype).reshape(stored.shape)
            return np.where(present < places, algebra.compute(op, (stored, rest), stored.dtype), stored)
        absent = places - present
        rest = _of_fills(op, fill, absent) if op in ("add", "multiply") else fill
        return np.where(absent > 0, algebra.compute(op, (stored, rest), stored.dtype), stored)
