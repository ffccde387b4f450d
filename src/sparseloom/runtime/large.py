"""Room for large dense values, from where kernels have theirs: huge pages, and those of results that are gone.

Touching fresh pages for the first time takes as long as computing what goes there, and one thread does it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import DType
from sparseloom.core.errors import ToolchainError
from sparseloom.runtime.calling import adopt
from sparseloom.runtime.libraries import EntryPoint, load
from sparseloom.targets.c_memory import HUGE_PAGE
from sparseloom.targets.c_prelude import prelude_for

LARGE = 2 * HUGE_PAGE  # bytes
_TAKE = """
int32_t take_room(void **args) {
  args[1] = allocate((int64_t)args[0], 1);
  if (!args[1]) release(NULL);
  return OK;
}
"""


def large_room(count: int, dtype: DType) -> NDArray[Any] | None:
    """Room for so many values, not cleared; None if there is none to be had this way."""
    take = _entry()
    if take is None:
        return None
    words = np.array([count * dtype.itemsize, 0], np.int64)
    take(words.ctypes.data)
    return adopt(int(words[1]), count, dtype) if words[1] else None


@cache
def _entry() -> EntryPoint | None:
    try:
        (entry,) = load(prelude_for(_TAKE) + _TAKE, ["take_room"])
    except ToolchainError:
        return None
    return entry
