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
from sparseloom.targets.c_memory import HUGE_PAGE
from sparseloom.targets.c_prelude import prelude_for
from sparseloom.toolchain.libraries import load
from sparseloom.toolchain.loading import EntryPoint

LARGE = 2 * HUGE_PAGE  # bytes
SHARED = 1 << 19  # bytes from which on a copy takes longer than a team to start
_TAKE = """
int32_t take_room(void **args) {
  args[1] = allocate((int64_t)args[0], 1);
  if (!args[1]) release(NULL);
  return OK;
}
"""
_COPY = """
int32_t copy_array(void **args) {
  char *to = args[0];
  const char *from = args[1];
  const int64_t bytes = (int64_t)args[2], piece = 1 << 18;
  prepare_team();
#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < bytes; first += piece) {
    memcpy(to + first, from + first, (size_t)(bytes - first < piece ? bytes - first : piece));
  }
  return dismiss_team(OK);
}
"""


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
    return _loaded(_TAKE, "take_room")


@cache
def _copying() -> EntryPoint | None:
    return _loaded(_COPY, "copy_array")


def _loaded(text: str, name: str) -> EntryPoint | None:
    """A function in C; None where there is no compiler."""
    try:
        (entry,) = load(prelude_for(text) + text, [name])
    except ToolchainError:
        return None
    return entry
