"""Room for large arrays, from where kernels have theirs: huge pages, and those of results that are gone. Copies are made by all threads.

Touching fresh pages for the first time takes as long as computing what goes there, and one thread does it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import DType
from sparseloom.core.errors import ToolchainError
from sparseloom.programs.calling import address_of, adopt
from sparseloom.targets.c_prelude import HUGE_PAGE, prelude_for
from sparseloom.targets.runtime_files import parts
from sparseloom.toolchain.libraries import load
from sparseloom.toolchain.loading import EntryPoint

LARGE = 2 * HUGE_PAGE  # bytes
SHARED = 1 << 19  # bytes from which on a copy takes longer than a team to start


def large_room(count: int, dtype: DType) -> NDArray[Any] | None:
    """Room for so many values, not cleared; None if there is none to be had this way."""
    take = _entry()
    if take is None:
        return None
    words = np.array([count * dtype.itemsize, 0], np.int64)
    take(words.ctypes.data)
    return adopt(int(words[1]), count, dtype, take.give_back) if words[1] else None


def duplicate(array: NDArray[Any]) -> NDArray[Any]:
    """A copy of an array with one dimension, wherever it is. All threads copy one in main memory that is not small."""
    is_here = type(array) is np.ndarray
    if not is_here or array.nbytes < SHARED or not array.flags.c_contiguous or (copy := _copying()) is None:
        return array.copy()
    room = large_room(array.size, array.dtype) if array.nbytes >= LARGE else None
    if room is None:
        room = np.empty(array.size, array.dtype)
    words = np.array([address_of(room), address_of(array), array.nbytes], np.int64)
    copy(words.ctypes.data)
    return room


@cache
def _entry() -> EntryPoint | None:
    return _loaded("take_room")


@cache
def _copying() -> EntryPoint | None:
    return _loaded("copy_array")


def _loaded(name: str) -> EntryPoint | None:
    """A function in C; None where there is no compiler."""
    text = parts("large.h")[name]
    try:
        (entry,) = load(prelude_for(text) + text, [name])
    except ToolchainError:
        return None
    return entry
