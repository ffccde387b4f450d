"""Arrays as a careless or hostile user might hand them in: the same numbers laid out strangely, and numbers that are wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

HUGE = (-1, -7, 127, 128, 2**31 - 1, -(2**31), 2**31, 2**32, 2**62, 2**63 - 1, -(2**63))
FOREIGN_VALUES = ("longdouble", "clongdouble", "O", "U8", "S8", "M8[s]", "m8[s]", "V8", ">f8", ">i4", ">c16", "f4,f4")
VALUE_DTYPES = tuple("float64 float32 float16 complex128 complex64 bool int8 int16 int32 int64 uint8 uint32 uint64".split())


def pick(rng: np.random.Generator, choices: Any) -> Any:
    """One of these, whatever they are."""
    listed = list(choices)
    return listed[int(rng.integers(len(listed)))]


class Odd(np.ndarray):
    """A subclass without a meaning of its own."""


def strided(array: np.ndarray) -> np.ndarray:
    """The same numbers with gaps between them."""
    wide = np.full((*array.shape[:-1], max(2 * array.shape[-1], 1)) if array.ndim else (), 77).astype(array.dtype)
    if not array.ndim:
        return array
    wide[..., : 2 * array.shape[-1] : 2] = array
    return wide[..., : 2 * array.shape[-1] : 2]


def backwards(array: np.ndarray) -> np.ndarray:
    """The same numbers under a negative stride."""
    return array[::-1].copy()[::-1] if array.ndim else array


def unaligned(array: np.ndarray) -> np.ndarray:
    """The same numbers at an odd address."""
    memory = np.zeros(array.nbytes + 1, np.uint8)
    shifted = memory[1:].view(array.dtype).reshape(array.shape) if array.nbytes else array
    shifted[...] = array
    return shifted


def read_only(array: np.ndarray) -> np.ndarray:
    """A copy that may not be written."""
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def swapped(array: np.ndarray) -> np.ndarray:
    """The same numbers in the other byte order."""
    return array.astype(array.dtype.newbyteorder(">"))


def unmasked(array: np.ndarray) -> np.ndarray:
    """A masked array in which nothing is masked."""
    return np.ma.masked_array(array, False)


def of_one_more_mode(array: np.ndarray) -> np.ndarray:
    """The same numbers in a column."""
    return array.reshape(-1, 1)


RELAID: tuple[Callable[[np.ndarray], Any], ...] = (
    strided, backwards, unaligned, read_only, swapped, unmasked, lambda a: a.view(Odd), lambda a: a.tolist(),
    lambda a: memoryview(a.copy()),
)  # fmt: skip


def relaid(rng: np.random.Generator, array: np.ndarray) -> Any:
    """The same numbers in another layout, class or dtype that holds them."""
    if rng.random() < 0.3 and array.dtype.kind == "i":
        dtype = np.dtype(pick(rng, ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")))
        if array.size == 0 or (array.min() >= np.iinfo(dtype).min and array.max() <= np.iinfo(dtype).max):
            return array.astype(dtype)
    return pick(rng, RELAID)(array)


def retyped(rng: np.random.Generator, array: np.ndarray) -> Any:
    """Index arrays of types that hold no indices."""
    match rng.integers(7):
        case 0:
            return array.astype(pick(rng, ("float64", "float32", "float16", "complex128")))
        case 1:
            return array.astype(object)
        case 2:
            return array.astype(bool)
        case 3:
            return array.astype("U20")
        case 4:
            return np.ma.masked_array(array, np.arange(array.size).reshape(array.shape) % 2 == 0)
        case 5:
            return of_one_more_mode(array)
    return pick(rng, (None, 3, "pos", b"pos", array.reshape(1, -1), np.array(3), {}, object()))


def damaged(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """One array with one thing changed; sometimes to what it was."""
    array = array.copy()
    place = int(rng.integers(max(len(array), 1)))
    match rng.integers(9):
        case 0 | 1 if len(array):
            array[place] = np.array(pick(rng, HUGE)).astype(array.dtype)
        case 2 if len(array) and array.dtype != bool:
            array[place] += int(rng.integers(-2, 3))
        case 3 if len(array) > 1:
            other = int(rng.integers(len(array)))
            array[[place, other]] = array[[other, place]]
        case 4:
            array = array[: int(rng.integers(len(array) + 1))]
        case 5:
            array = np.append(array, np.array(pick(rng, (0, 1, *HUGE))).astype(array.dtype))
        case 6:
            array = array[::-1].copy()
        case 7 if len(array):
            array = np.insert(array, place, array[place])
        case _:
            array = np.array([pick(rng, (0, 1, 2, *HUGE)) for _ in range(len(array))], np.int64).astype(array.dtype)
    return array


def plain(array: Any) -> np.ndarray | None:
    """What an index array means: its numbers as int64, or None where it holds no indices."""
    if isinstance(array, np.ma.MaskedArray) and np.ma.getmaskarray(array).any():
        return None
    try:
        given = np.asarray(array)
    except (ValueError, TypeError):
        return None
    if given.dtype.kind not in "iu" or (given.dtype == np.uint64 and given.size and given.max() >= 2**63):
        return None
    return given.astype(np.int64)


def plain_truths(array: Any) -> np.ndarray | None:
    """What an array of truth values means, or None where it holds others."""
    if isinstance(array, np.ma.MaskedArray) and np.ma.getmaskarray(array).any():
        return None
    try:
        given = np.asarray(array)
    except (ValueError, TypeError):
        return None
    return given if given.dtype == bool else None


def is_plain(array: Any) -> bool:
    """Whether an array of indices or truth values needs no forbearance: it must be taken if what it holds is right."""
    return type(array) is np.ndarray and array.dtype in (np.int32, np.int64, np.bool_) and array.flags.c_contiguous and array.flags.aligned
