"""Runs of neighbouring elements put one behind the other: rows of a compressed level that are picked in any order, and often.

    source   a a a b c c          starts 4 0, counts 2 3   ->   c c a a a

It is compiled where there is much to copy. NumPy would make the place of every element first.
"""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import INT64
from sparseloom.programs.calling import address_of
from sparseloom.toolchain.libraries import load_routine

WORTH = 1 << 14  # elements from which on the routine is worth compiling

SOURCE = r"""
#include <stdint.h>
#include <string.h>

// words: source, bytes of an element, how many runs, where they start, how many elements each has, target
int32_t copy_runs(void **args) {
  const int64_t *words = (const int64_t *)args;
  const char *source = (const char *)words[0];
  const int64_t size = words[1], runs = words[2], *starts = (const int64_t *)words[3], *counts = (const int64_t *)words[4];
  char *target = (char *)words[5];
  for (int64_t run = 0; run < runs; run++) {
    const int64_t bytes = counts[run] * size;
    memcpy(target, source + starts[run] * size, bytes);
    target += bytes;
  }
  return 1;
}
"""


def copied_runs(source: NDArray[Any], starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[Any]:
    """The elements of all runs, in the order of the runs; they must lie within the source."""
    total = int(counts.sum())
    entry = load_routine(SOURCE, "copy_runs") if total >= WORTH else None
    if entry is None:
        return source[np.repeat(starts - (np.cumsum(counts) - counts), counts) + np.arange(total)]
    given, target = np.ascontiguousarray(source), np.empty(total, source.dtype)
    begins, lengths = np.ascontiguousarray(starts, INT64), np.ascontiguousarray(counts, INT64)
    places = [address_of(begins), address_of(lengths), address_of(target)]
    pack = array("q", [address_of(given), source.dtype.itemsize, len(begins), *places])
    entry(pack.buffer_info()[0])
    return target
