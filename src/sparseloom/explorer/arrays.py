"""The arrays of a storage, level by level, and which values stand below each of their elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.formats.pack import passed_counts, unpack
from sparseloom.formats.storage import Storage


def arrays_of(storage: Storage) -> Iterator[dict[str, Any]]:
    """The arrays of every level; each element with the range of values that stands below it, where that is simple to say."""
    sizes = storage.format.level_sizes(storage.shape)
    below = _leaves(storage)
    for k, (level, data) in enumerate(zip(storage.format.levels, storage.levels, strict=True)):
        arrays = [
            {"name": name, "values": values.tolist(), "entries": _spans(values, below[k : k + 2])} for name, values in data.arrays.items()
        ]
        yield {"title": f"{k + 1}: {type(level).__name__.lower()}", "size": int(sizes[k]), "arrays": arrays}


def value_entries(storage: Storage) -> list[int | None]:
    """For every stored value the number of its entry, in the order of ``unpack``; None for padding, which is no entry."""
    _, places = unpack(replace(storage, values=np.arange(len(storage.values))))
    found: list[int | None] = [None] * len(storage.values)
    for entry, place in enumerate(places.tolist()):
        found[place] = entry
    return found


def _spans(values: NDArray[Any], below: Sequence[Sequence[tuple[int, int]]]) -> list[list[int]]:
    """From which to which value the elements of an array of a level reach: one for each of its positions, or of those above it."""
    parents, own = below
    found = own if len(values) == len(own) else parents if len(values) - len(parents) in (0, 1) else []
    return [list(span) for span in found]


def _leaves(storage: Storage) -> list[list[tuple[int, int]]]:
    """For the positions of the root and of every level, from which to which value they reach; empty where a level does not tell."""
    counts, sizes = passed_counts(storage), storage.format.level_sizes(storage.shape)
    spans: list[list[tuple[int, int]]] = [[(k, k + 1) for k in range(counts[-1])]]
    for k in reversed(range(len(sizes))):
        level, data, inner = storage.format.levels[k], storage.levels[k], spans[0]
        if "pos" in data.arrays:
            edges = data.arrays["pos"].tolist()
        elif level.branchless:
            edges = list(range(len(inner) + 1))
        elif level.full:
            edges = list(range(0, len(inner) + 1, max(1, int(sizes[k]))))
        else:
            edges = []
        ends = [span[1] for span in inner]
        found = (
            [(ends[a - 1] if a else 0, ends[b - 1] if b else 0) for a, b in pairwise(edges)]
            if inner and max(edges, default=0) <= len(inner)
            else []
        )
        spans.insert(0, found)
    return spans
