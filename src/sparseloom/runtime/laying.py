"""Operands as they are laid before a kernel: what the compiler sees of each, and the words that stand for its arrays.

    csr, 100 x 100, float64, 500 entries        mark: (its kind, 500)        words: addresses of pos, crd and values
    array of 100 float64                        mark: its kind               words: its address

Kinds that are equal are one object. So a call is recognised by a tuple of marks, which takes a dictionary one look.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import VALUE_DTYPES, DType
from sparseloom.formats.format import Format
from sparseloom.formats.named import dense
from sparseloom.formats.storage import Storage
from sparseloom.runtime.calling import address_of

MOST_KINDS = 4096
Number = bool | int | float | complex | np.generic
Words = tuple[int, ...]
Laid = tuple[Hashable, Words]
"""A mark and words. A number has no words: it is an array only once its dtype is known."""


class Kind:
    """What the compiler sees of an operand, with its sizes: those that agree in everything are one object."""

    __slots__ = ("dtype", "fill", "format", "index_dtype", "is_dense", "shape")

    def __init__(self, format: Format, shape: tuple[int, ...], dtype: DType, index_dtype: DType | None, fill: Scalar) -> None:
        self.format = format
        self.shape = shape
        self.dtype = dtype
        self.index_dtype = index_dtype
        self.fill = fill
        self.is_dense = format.is_dense


_KINDS: dict[Hashable, Kind] = {}
_ARRAYS: dict[Hashable, Kind] = {}  # by shape and dtype, for arrays in C order


def kind_of(storage: Storage) -> Kind:
    """The kind of a storage."""
    facts = (storage.format, storage.shape, storage.dtype, storage.index_dtype, storage.fill)
    key = (*facts[:4], spelled(storage.fill))
    found = _KINDS.get(key)
    if found is None:
        found = _keep(_KINDS, key, Kind(*facts))
    return found


def _keep(kinds: dict[Hashable, Kind], key: Hashable, kind: Kind) -> Kind:
    """Remember a kind; of two threads that come with the same at once, both get that of the first."""
    if len(kinds) >= MOST_KINDS:
        kinds.clear()
    return kinds.setdefault(key, kind)


def spelled(number: Scalar) -> Hashable:
    """A number as a key: 1, 1.0 and True differ, as 0.0 and -0.0, and what is not a number equals itself."""
    return (type(number), number if number and number == number and type(number) is not complex else repr(number))


def lay(value: Any) -> Laid | None:
    """How a storage, an array or a number is laid before a kernel; None for an array that must be copied first, and what is neither."""
    if type(value) is Storage:
        try:
            return value.laid  # type: ignore[no-any-return]
        except AttributeError:
            return _laid_storage(value)
    if type(value) is np.ndarray:
        return _laid_array(value)
    return (_class_of(value), ()) if isinstance(value, Number) else None


def _laid_storage(storage: Storage) -> Laid:
    """As ``lay``, for a storage that was not seen before. Its arrays stay where they are: who is referred to is not resized."""
    kind = kind_of(storage)
    words = tuple(_word(storage, level, part) for level, part in parts_of(storage.format))
    laid = (kind if kind.is_dense else (kind, len(storage.values)), words)
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


def _laid_array(array: NDArray[Any]) -> Laid | None:
    """How an array is laid before a kernel, if it is in C order. Nothing of it is kept: its owner may change how it is read."""
    flags = array.flags
    if not (flags.c_contiguous and flags.aligned):
        return None
    kind = _ARRAYS.get((array.shape, array.dtype)) or _kind_of_array(array)
    return None if kind is None else (kind, (address_of(array),))


def _kind_of_array(array: NDArray[Any]) -> Kind | None:
    if array.dtype not in VALUE_DTYPES:
        return None
    kind = kind_of(Storage(dense(array.ndim), array.shape, (), array))
    return _keep(_ARRAYS, (array.shape, array.dtype), kind)


def _class_of(number: Number) -> Any:
    """What decides the dtype of a number beside others: its type, and how many bits a whole one takes."""
    if type(number) is int:
        return (int, number < 0, (~number if number < 0 else number).bit_length())
    return type(number)


def count_of(mark: Any) -> int:
    """How many values a sparse operand has; 0 for a dense one."""
    return mark[1] if type(mark) is tuple else 0
