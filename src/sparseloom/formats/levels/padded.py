"""Padded: as many places below each parent as the fullest one needs (ELLPACK-R).

    parent 0 holds 1 and 4, parent 1 nothing, parent 2 holds 0, 2 and 3

    width 3
    len   2      0      3
    crd   1 4 .  . . .  0 2 3        positions of parent p: [p*width, p*width + len[p])

Unused places (drawn as dots) hold coordinate 0 and the fill value, so the level is not compact. Before entries are inserted those of
each parent are counted: the largest count is the width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import numpy as np

from sparseloom.core.dtypes import DType
from sparseloom.core.room import require_room
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
    store_index,
)
from sparseloom.loops.nodes import ZERO, Allocate, Array, Assign, Expr, For, Load, Op, Stmt, Var, add, block, compare, multiply


@node
class Padded(Level):
    """Stores a fixed number of places per parent, of which the first ``len`` are used."""

    array_names: ClassVar[tuple[str, ...]] = ("len", "crd")
    coordinate_array: ClassVar[str | None] = "crd"
    scalar_names: ClassVar[tuple[str, ...]] = ("width",)
    compact: ClassVar[bool] = False
    can_insert: ClassVar[bool] = True
    queries: ClassVar[tuple[Query, ...]] = (Query.COUNT,)
    parent_arrays: ClassVar[tuple[str, ...]] = ("len",)

    letter = "p"

    def pack(self, parents: Index, coordinates: Index, size: int, parent_count: int, index_dtype: DType) -> tuple[LevelData, Index, int]:
        lengths = np.bincount(parents, minlength=parent_count)
        width = int(lengths.max(initial=0))
        count = parent_count * width
        require_room(count * index_dtype.itemsize, f"the places of a padded level of width {width}", "use a compressed level")
        starts = np.cumsum(lengths) - lengths
        positions = parents * width + (np.arange(len(parents)) - starts[parents])
        crd = np.zeros(count, index_dtype)
        crd[positions] = coordinates
        return LevelData({"len": lengths.astype(index_dtype), "crd": crd}, {"width": width}), positions, count

    def unpack(self, data: LevelData, size: int, parent_count: int) -> tuple[Index, Index]:
        width = data.scalars["width"]
        count = parent_count * width
        if count == 0:
            return np.arange(0), data.arrays["crd"][:0]
        parents = np.where(_used(data.arrays["len"], width).ravel(), np.repeat(np.arange(parent_count), width), -1)
        return parents, data.arrays["crd"][:count]

    def count(self, data: LevelData, size: int, parent_count: int) -> int:
        return parent_count * data.scalars["width"]

    def made(self, size: int, parent_count: int, counted: int) -> tuple[int, dict[str, int]]:
        return parent_count * counted, {"len": parent_count, "crd": parent_count * counted}

    def check(self, data: LevelData, size: int, above: Checked) -> Fault | Checked:
        width = data.scalars.get("width")
        if type(width) is not int or not 0 <= width <= np.iinfo(np.int64).max:
            return Fault("width", None, f"must be a number of places, at least 0, not {width!r}")
        count = above.positions * width
        fault = array_fault(data, "len", 0) or array_fault(data, "crd", count)
        if fault is not None:
            return fault
        lengths, crd = data.arrays["len"], data.arrays["crd"][:count]
        fault = _lengths_fault(lengths, width, above.positions)
        if fault is not None or count == 0:
            return fault or Checked(count)
        used = _used(lengths, width)
        stray = (crd != 0) & ~used.ravel()
        if stray.any():
            place = int(stray.argmax())
            return Fault("crd", place, f"= {crd[place]} stands at an unused place; unused places hold 0")
        limit = size if used.any() else 1
        used[:, 0] = False  # the first of a parent has no neighbour before it
        return crd_fault(crd, limit, used.ravel()[1:], ordered=True, unique=True) or Checked(count)

    def outline(self, data: LevelData, size: int, parent_count: int) -> Outline | None:
        width = data.scalars["width"]
        starts = ~_used(data.arrays["len"], width)
        starts[:, :1] = True
        return Outline(parent_count * width, ("len",), starts.ravel())

    def bounds(self, view: LevelView, parent: Expr) -> tuple[Expr, Expr]:
        begin = self.begin(view, parent)
        return begin, add(begin, load_index(view.arrays["len"], parent))

    def begin(self, view: LevelView, parent: Expr) -> Expr:
        return multiply(parent, view.scalars["width"])

    def arrange(self, view: LevelView, parents: Expr, found: Mapping[Query, Array], fresh: Callable[[str], str]) -> tuple[Stmt, Expr]:
        width, row = view.scalars["width"], Var(fresh("row"))
        count = Load(found[Query.COUNT], row)
        each = block(Assign(width, Op("maximum", (width, count))), store_index(view.arrays["len"], row, count))
        made = block(Allocate(view.arrays["len"], parents), Assign(width, ZERO), For(row, ZERO, parents, each))
        return made, multiply(parents, width)

    def used(self, view: LevelView, parent: Expr, position: Expr) -> Expr:
        return compare("less", position, self.bounds(view, parent)[1])

    def parent(self, view: LevelView, position: Expr, begin: Expr, end: Expr) -> Expr:
        return Op("floor_divide", (position, view.scalars["width"]))


def _used(lengths: Index, width: int) -> Mask:
    """Which places hold a coordinate, one row per parent."""
    used: Mask = np.arange(width) < lengths[:, None]
    return used


def _lengths_fault(lengths: Index, width: int, parent_count: int) -> Fault | None:
    """Whether there is one length per parent, each within the width."""
    if len(lengths) != parent_count:
        return Fault("len", None, f"has {len(lengths)} elements; there are {parent_count} positions above")
    wrong = (lengths < 0) | (lengths > width)
    if wrong.any():
        place = int(wrong.argmax())
        return Fault("len", place, f"= {lengths[place]} is outside the width {width}")
    return None
