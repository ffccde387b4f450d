"""Operands as they are laid before a kernel: what the compiler sees of each, how much it holds, and the argument words of its arrays.

    a csr matrix        its kind   500 entries   500 values   addresses of pos, crd and values
    an array            its kind     0 entries   100 values   its address

Kinds that are equal are one object, so that a call is recognised by a tuple of them, at one look into a dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import is_value_dtype
from sparseloom.core.errors import ConversionWarning
from sparseloom.core.notices import notify
from sparseloom.formats.format import Format
from sparseloom.formats.named import dense
from sparseloom.formats.storage import Storage
from sparseloom.plan.statistics import LARGE, known_of
from sparseloom.programs.calling import address_of

MOST_KINDS = 4096
_BY_COLUMNS = Format(dense(2).levels, (1, 0))
Number = bool | int | float | complex | np.generic
NUMBERS = (bool, int, float, complex, np.generic)
Words = tuple[int, ...]
Laid = tuple["Kind", int, int, Words, object]
"""A kind, how many entries are stored sparsely, how many values there are, words, and a copy that lives as long as this, if one was made.

A number gets its word only with its dtype.
"""


class Kind:
    """What the compiler sees of an operand, with its sizes. Those that agree in everything are one object; ``what`` is all that."""

    __slots__ = ("what",)

    def __init__(self, what: Hashable) -> None:
        self.what = what


TEMPORARY = Kind("what lives for one call")
_KINDS: dict[Hashable, Kind] = {}
_ARRAYS: dict[Hashable, Kind] = {}  # of arrays in C order, by shape and dtype


def kind(what: Hashable) -> Kind:
    """The one kind that is this."""
    found = _KINDS.get(what)
    if found is None:
        if len(_KINDS) >= MOST_KINDS:
            _KINDS.clear()
            _ARRAYS.clear()
        found = _KINDS.setdefault(what, Kind(what))  # of two threads that come at once, both get that of the first
    return found


def kind_of(storage: Storage) -> Kind:
    """The kind of a storage, with what the planner knows of it."""
    count = 0 if storage.format.is_dense else len(storage.values)
    known = known_of(storage) if count >= LARGE else None
    return kind((storage.format, storage.shape, storage.dtype, storage.index_dtype, spelled(storage.fill), count.bit_length(), known))


def spelled(number: Scalar) -> Hashable:
    """A number as a key: 1, 1.0 and True differ, as 0.0 and -0.0, and what is not a number equals itself."""
    is_itself = type(number) in (int, float) and number and number == number
    return (type(number), number if is_itself else repr(number))


def lay(value: Any) -> Laid | None:
    """How an operand is laid before a kernel; None for what must be converted first or is on a device, and all else."""
    how = LAYS.get(type(value))
    if how is not None:
        return how(value)
    return (kind(_class_of(value)), 0, 1, (), None) if isinstance(value, NUMBERS) else None


def _lay_array(array: NDArray[Any]) -> Laid | None:
    """Of an array nothing is kept: its owner may change how it is read."""
    flags = array.flags
    if not (flags.c_contiguous and flags.aligned):
        return _rearranged(array)
    found = _ARRAYS.get((array.shape, array.dtype)) or _kind_of_array(array)
    return None if found is None else (found, 0, array.size, (address_of(array),), None)


def _lay_storage(storage: Storage) -> Laid | None:
    try:
        return storage.laid  # type: ignore[no-any-return]
    except AttributeError:
        return _laid_storage(storage) if storage.device == "cpu" else None


LAYS: dict[type, Callable[[Any], Laid | None]] = {np.ndarray: _lay_array, Storage: _lay_storage}
"""How objects of a class are laid: arrays and storages, tensors, and SciPy's matrices once one was seen."""


def _laid_storage(storage: Storage) -> Laid:
    """As ``lay``, for a storage that was not seen before. Its arrays stay where they are: who is referred to is not resized."""
    words = tuple(_word(storage, level, part) for level, part in parts_of(storage.format))
    size = len(storage.values)
    laid = (kind_of(storage), 0 if storage.format.is_dense else size, size, words, None)
    object.__setattr__(storage, "laid", laid)
    return laid


def _word(storage: Storage, level: int | None, part: str) -> int:
    """What stands for one array, or is one scalar."""
    if level is None:
        return address_of(storage.values)
    data = storage.levels[level]
    return address_of(data.arrays[part]) if part in data.arrays else data.scalars[part]


@lru_cache(maxsize=1024)
def parts_of(format: Format) -> tuple[tuple[int | None, str], ...]:
    """What the words of an operand stand for, in order: arrays and scalars by level, and the values, which are of no level."""
    parts = [(k, part) for k, level in enumerate(format.levels) for part in (*level.array_names, *level.scalar_names)]
    return (*parts, (None, "values"))


def _rearranged(array: NDArray[Any]) -> Laid | None:
    """How an array that is not in C order is laid: a vector is copied, a matrix in Fortran's order is read as it is."""
    if array.ndim == 1:
        copy = array.copy()
        notify("the array was copied: it is not contiguous in memory", ConversionWarning)
        laid = lay(copy)
        return None if laid is None else (*laid[:4], copy)
    if array.ndim != 2 or not array.flags.f_contiguous or not array.flags.aligned or not is_value_dtype(array.dtype):
        return None
    found = kind_of(Storage(_BY_COLUMNS, array.shape, (), array.T.reshape(-1)))
    return found, 0, array.size, (address_of(array),), None


def _kind_of_array(array: NDArray[Any]) -> Kind | None:
    if not is_value_dtype(array.dtype):
        return None
    found = _ARRAYS[array.shape, array.dtype] = kind_of(Storage(dense(array.ndim), array.shape, (), array))
    return found


def _class_of(number: Number) -> Any:
    """What decides the dtype of a number beside others: its type, and how many bits a whole one takes."""
    if type(number) is int:
        return (int, number < 0, (~number if number < 0 else number).bit_length())
    return type(number)
