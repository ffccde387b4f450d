"""Groups of values, each put in order: compiled where there is much to sort, for groups are many and short.

starts 0 3, values 5 1 3 | 9 2      ->      1 2 0 | 4 3
"""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import INT64
from sparseloom.programs.calling import address_of
from sparseloom.toolchain.libraries import load_routine

Index = NDArray[np.int64]
WORTH = 1 << 14  # values from which on the routine is worth compiling

SOURCE = r"""
#include <stdint.h>
#include <string.h>

typedef struct { int64_t key, place; } Entry;

// Neighbours are sorted by insertion, and then merged; equal keys stay in their order.
static void sort(Entry *entries, Entry *room, int64_t count) {
  enum { FEW = 16 };
  for (int64_t first = 0; first < count; first += FEW) {
    const int64_t end = first + FEW < count ? first + FEW : count;
    for (int64_t next = first + 1; next < end; next++) {
      const Entry moved = entries[next];
      int64_t at = next;
      for (; at > first && entries[at - 1].key > moved.key; at--) entries[at] = entries[at - 1];
      entries[at] = moved;
    }
  }
  for (int64_t width = FEW; width < count; width *= 2) {
    for (int64_t first = 0; first < count - width; first += 2 * width) {
      const int64_t end = first + 2 * width < count ? first + 2 * width : count;
      memcpy(room, entries + first, width * sizeof(Entry));
      int64_t left = 0, right = first + width, at = first;
      while (left < width && right < end) entries[at++] = room[left].key <= entries[right].key ? room[left++] : entries[right++];
      memcpy(entries + at, room + left, (width - left) * sizeof(Entry));
    }
  }
}

// words: how many groups, where they start and the last ends, keys, the order that is written, room for two of the longest group
int32_t rank_groups(void **args) {
  const int64_t *words = (const int64_t *)args;
  const int64_t groups = words[0], *starts = (const int64_t *)words[1], *keys = (const int64_t *)words[2];
  int64_t *order = (int64_t *)words[3];
  Entry *entries = (Entry *)words[4];
  for (int64_t group = 0; group < groups; group++) {
    const int64_t begin = starts[group], count = starts[group + 1] - begin;
    for (int64_t k = 0; k < count; k++) entries[k] = (Entry){keys[begin + k], begin + k};
    sort(entries, entries + count, count);
    for (int64_t k = 0; k < count; k++) order[begin + k] = entries[k].place;
  }
  return 1;
}
"""


def ranked(values: NDArray[Any], starts: Index, descending: bool = False) -> Index:
    """The order in which the values of each group ascend, or descend; NaN is the largest, and equal ones stay in their order."""
    bounds = np.append(starts, len(values)).astype(INT64)
    counts = np.diff(bounds)
    parts = (values.imag, values.real, nan_class(values)) if values.dtype.kind == "c" else (values,)
    *lesser, keys = (~_keys(part) if descending else _keys(part) for part in parts)
    entry = load_routine(SOURCE, "rank_groups") if len(values) >= WORTH and not lesser else None
    if entry is None:
        return np.lexsort((*lesser, keys, np.repeat(np.arange(len(starts)), counts)))
    order, room = np.empty(len(values), INT64), np.empty(4 * int(counts.max()), INT64)
    pack = array("q", [len(starts), *map(address_of, (bounds, keys, order, room))])
    entry(pack.buffer_info()[0])
    return order


def nan_class(values: NDArray[Any]) -> NDArray[np.int8]:
    """Where NaN puts complex numbers: behind those without it come those with a NaN imaginary part, then real part, then both."""
    classes: NDArray[np.int8] = np.isnan(values.imag) + 2 * np.isnan(values.real).astype(np.int8)
    return classes


def _keys(values: NDArray[Any]) -> Index:
    """Integers that are ordered as the values are."""
    match values.dtype.kind:
        case "b" | "i":
            return values.astype(INT64)
        case "u":
            return (values.astype(np.uint64) ^ np.uint64(2**63)).view(INT64)
    numbers = values.astype(np.float64) + 0.0  # of the two zeros one is left
    bits = numbers.view(INT64)
    keys: Index = bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    keys[np.isnan(numbers)] = 2**63 - 1
    return keys
