"""Compressed: below each parent, only the coordinates that are there.

    parent 0 holds 1 and 4, parent 1 nothing, parent 2 holds 0, 2 and 3

    pos   0   2 2     5          positions of parent p: [pos[p], pos[p+1])
          |   |/      |
    crd   1 4 0 2 3

Ordered, the coordinates of one parent ascend. Not unique, they may repeat: the first level of COO is such.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sparseloom.core.dtypes import DType
from sparseloom.core.trees import node
from sparseloom.formats.level import (
    Checked,
    Fault,
    Index,
    Level,
    LevelData,
    LevelView,
    Mask,
    Outline,
    Query,
    array_fault,
    crd_fault,
    load_index,
)
from sparseloom.loops.nodes import ONE, Expr, Op, Search, add


@node
class Compressed(Level):
    """Stores a segment of coordinates per parent."""

    ordered: bool = True
    unique: bool = True

    array_names: ClassVar[tuple[str, ...]] = ("pos", "crd")
    coordinate_array: ClassVar[str | None] = "crd"
    can_append: ClassVar[bool] = True
    can_insert: ClassVar[bool] = True
    queries: ClassVar[tuple[Query, ...]] = (Query.COUNT,)
    parent_arrays: ClassVar[tuple[str, ...]] = ("pos",)
    counted_in: ClassVar[str | None] = "pos"

    @property
    def letter(self) -> str:
        return "s" if self.unique else "u"

    def pack(self, parents: Index, coordinates: Index, size: int, parent_count: int, index_dtype: DType) -> tuple[LevelData, Index, int]:
        pos = np.zeros(parent_count + 1, index_dtype)
        np.cumsum(np.bincount(parents, minlength=parent_count), out=pos[1:])
        crd = np.require(coordinates, index_dtype, ("C", "A"))
        return LevelData({"pos": pos, "crd": crd}), np.arange(len(crd)), len(crd)

    def unpack(self, data: LevelData, size: int, parent_count: int) -> tuple[Index, Index]:
        pos = data.arrays["pos"][: parent_count + 1]
        return np.repeat(np.arange(parent_count), np.diff(pos)), data.arrays["crd"][: pos[-1]]

    def count(self, data: LevelData, size: int, parent_count: int) -> int:
        return int(data.arrays["pos"][parent_count])

    def made(self, size: int, parent_count: int, counted: int) -> tuple[int, dict[str, int]]:
        return counted, {"pos": parent_count + 1, "crd": counted}

    def check(self, data: LevelData, size: int, above: Checked) -> Fault | Checked:
        fault = array_fault(data, "pos", 0) or array_fault(data, "crd", 0)
        if fault is not None:
            return fault
        pos, crd = data.arrays["pos"], data.arrays["crd"]
        fault = _segments_fault(pos, len(crd), above.positions)
        if fault is not None:
            return fault
        crd = crd[: pos[-1]]
        siblings = _siblings(pos, len(crd))
        fault = crd_fault(crd, size, siblings, self.ordered, self.unique)
        return fault or Checked(len(crd), None if self.unique else _ties(crd, siblings))

    def outline(self, data: LevelData, size: int, parent_count: int) -> Outline | None:
        pos = data.arrays["pos"]
        count = int(pos[parent_count])
        starts = np.concatenate(([True], ~_siblings(pos, count)))[:count] if parent_count > 1 else None
        return Outline(count, ("pos",), starts)

    def bounds(self, view: LevelView, parent: Expr) -> tuple[Expr, Expr]:
        pos = view.arrays["pos"]
        return load_index(pos, parent), load_index(pos, add(parent, ONE))

    def parent(self, view: LevelView, position: Expr, begin: Expr, end: Expr) -> Expr:
        # The last one that begins at or before the position.
        after = Search(view.arrays["pos"], add(begin, ONE), add(end, ONE), add(position, ONE))
        return Op("subtract", (after, ONE))


def _segments_fault(pos: Index, capacity: int, parent_count: int) -> Fault | None:
    """Whether the segments start at 0, follow each other and end within the ``capacity`` of crd."""
    if len(pos) != parent_count + 1:
        return Fault("pos", None, f"has {len(pos)} elements; {parent_count} positions above need {parent_count + 1}")
    if pos[0] != 0:
        return Fault("pos", 0, f"= {pos[0]}; the first segment starts at 0")
    falls = pos[1:] < pos[:-1]  # not np.diff, which overflows
    if falls.any():
        place = int(falls.argmax()) + 1
        return Fault("pos", place, f"= {pos[place]} is less than pos[{place - 1}] = {pos[place - 1]}; positions must not decrease")
    if pos[-1] > capacity:
        return Fault("pos", parent_count, f"= {pos[-1]} is beyond the end of crd, which has {capacity} elements")
    return None


def _siblings(pos: Index, count: int) -> Mask:
    """For every position but the last: whether the next one stands below the same parent."""
    siblings = np.ones(max(count - 1, 0), np.bool_)
    begin, end = np.searchsorted(pos, np.array([1, count], pos.dtype))  # segments that start behind others
    siblings[pos[begin:end] - 1] = False
    return siblings


def _ties(crd: Index, siblings: Mask) -> Mask:
    """Which positions repeat the coordinate before them, below the same parent."""
    ties = np.zeros(len(crd), np.bool_)
    np.logical_and(crd[1:] == crd[:-1], siblings, out=ties[1:])
    return ties
