"""A level whose arrays follow from the least and the largest coordinate of each row, written in this one file, is made by kernels.

Skyline: below each parent, a place for every coordinate from its least to its largest.

    parent 0 holds 1 and 3, parent 1 nothing, parent 2 holds 0

    pos     0     3 3   4        places of parent p: [pos[p], pos[p+1])
    low     1     5 0            the coordinate of the first of them; the size where there is none
    values  a . b c              . is the fill
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise, product
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from levels.random_storage import random_entries, random_shape, summed

import sparseloom as sl
from sparseloom.core.dtypes import DType
from sparseloom.core.settings import settings
from sparseloom.core.trees import node
from sparseloom.formats.level import (
    Checked,
    Fault,
    Index,
    Level,
    LevelData,
    LevelView,
    Outline,
    Query,
    array_fault,
    load_index,
    store_index,
)
from sparseloom.formats.levels import LEVELS
from sparseloom.formats.pack import pack, to_dense
from sparseloom.formats.text import parse_format
from sparseloom.formats.validate import check
from sparseloom.loops.nodes import (
    ONE,
    ZERO,
    Allocate,
    Array,
    Assign,
    Declare,
    Expr,
    For,
    Load,
    Op,
    Search,
    Stmt,
    Var,
    add,
    block,
    both,
)
from sparseloom.loops.nodes import compare as compared


@node
class Skyline(Level):
    """Stores where the entries of each row begin and end."""

    array_names: ClassVar[tuple[str, ...]] = ("pos", "low")
    padded: ClassVar[bool] = True
    can_locate: ClassVar[bool] = True
    can_insert: ClassVar[bool] = True
    queries: ClassVar[tuple[Query, ...]] = (Query.LEAST, Query.MOST)
    parent_arrays: ClassVar[tuple[str, ...]] = ("pos", "low")

    letter = "y"

    def pack(self, parents: Index, coordinates: Index, size: int, parent_count: int, index_dtype: DType) -> tuple[LevelData, Index, int]:
        low, high = np.full(parent_count, size), np.full(parent_count, -1)
        np.minimum.at(low, parents, coordinates)
        np.maximum.at(high, parents, coordinates)
        pos = np.concatenate(([0], np.cumsum(np.maximum(high - low + 1, 0))))
        data = LevelData({"pos": pos.astype(index_dtype), "low": low.astype(index_dtype)})
        return data, pos[parents] + coordinates - low[parents], int(pos[-1])

    def unpack(self, data: LevelData, size: int, parent_count: int) -> tuple[Index, Index]:
        pos, low = (data.arrays[name].astype(np.int64) for name in self.array_names)
        parents = np.repeat(np.arange(parent_count), np.diff(pos))
        return parents, np.arange(len(parents)) - pos[parents] + low[parents]

    def count(self, data: LevelData, size: int, parent_count: int) -> int:
        return int(data.arrays["pos"][-1])

    def made(self, size: int, parent_count: int, counted: int) -> tuple[int, dict[str, int]]:
        return counted, {"pos": parent_count + 1, "low": parent_count}

    def check(self, data: LevelData, size: int, above: Checked) -> Fault | Checked:
        for name in self.array_names:
            fault = array_fault(data, name, above.positions)
            if fault is not None:
                return fault
        pos, low = (data.arrays[name].tolist() for name in self.array_names)
        if len(pos) != above.positions + 1 or pos[0] != 0 or any(a > b for a, b in pairwise(pos)):
            return Fault("pos", None, "must begin with 0 and not decrease")
        if any(a < 0 or a + after - before > size for a, (before, after) in zip(low, pairwise(pos), strict=False)):
            return Fault("low", None, f"has a row outside the level's size {size}")
        return Checked(pos[-1])

    def outline(self, data: LevelData, size: int, parent_count: int) -> Outline | None:
        return Outline(int(data.arrays["pos"][-1]), self.array_names)

    def bounds(self, view: LevelView, parent: Expr) -> tuple[Expr, Expr]:
        return load_index(view.arrays["pos"], parent), load_index(view.arrays["pos"], add(parent, ONE))

    def coordinate(self, view: LevelView, parent: Expr, position: Expr) -> Expr:
        return add(load_index(view.arrays["low"], parent), _less(position, load_index(view.arrays["pos"], parent)))

    def search(self, view: LevelView, parent: Expr, begin: Expr, end: Expr, coordinate: Expr) -> Expr:
        return Op("maximum", (begin, Op("minimum", (end, self.locate(view, parent, coordinate)[0]))))

    def parent(self, view: LevelView, position: Expr, begin: Expr, end: Expr) -> Expr:
        return _less(Search(view.arrays["pos"], add(begin, ONE), add(end, ONE), add(position, ONE)), ONE)

    def locate(self, view: LevelView, parent: Expr, coordinate: Expr) -> tuple[Expr, Expr]:
        first, end = self.bounds(view, parent)
        position = add(first, _less(coordinate, load_index(view.arrays["low"], parent)))
        return position, both(compared("less_equal", first, position), compared("less", position, end))

    def arrange(self, view: LevelView, parents: Expr, found: Mapping[Query, Array], fresh: Callable[[str], str]) -> tuple[Stmt, Expr]:
        pos, low = (view.arrays[name] for name in self.array_names)
        row, total = Var(fresh("row")), Var(fresh("places"))
        least, most = Load(found[Query.LEAST], row), Load(found[Query.MOST], row)
        length = Op("maximum", (ZERO, add(_less(most, least), ONE)))
        each = block(
            store_index(low, row, least),
            Assign(total, add(total, length)),
            store_index(pos, add(row, ONE), total),
        )
        made = [Allocate(pos, add(parents, ONE)), Allocate(low, parents), Declare(total, ZERO), store_index(pos, ZERO, ZERO)]
        return block(*made, For(row, ZERO, parents, each)), total

    def insert(self, view: LevelView, position: Expr, coordinate: Expr) -> Stmt:
        return block()


def _less(left: Expr, right: Expr) -> Expr:
    return left if right == ZERO else Op("subtract", (left, right))


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The one line; and kernels convert however little there is."""
    monkeypatch.setitem(LEVELS, "y", Skyline())
    monkeypatch.setattr(settings, "small_conversion", 0)
    yield
    parse_format.cache_clear()


A = np.array([[0.0, 1, 0, 2, 0], [0, 0, 0, 0, 0], [3, 0, 0, 0, 0]])
STACKS = {1: ("y",), 2: ("dy", "sy", "dy:1,0", "by", "yd", "ys"), 3: ("ddy", "sdy", "dsy:2,0,1")}


def test_the_picture() -> None:
    arrays = sl.asarray(A, format="dy").arrays
    drawn = {"pos1": [0, 3, 3, 4], "low1": [1, 5, 0], "values": [1, 0, 2, 3]}
    assert {name: array.tolist() for name, array in arrays.items()} == drawn


@pytest.mark.parametrize("text", [text for stacks in STACKS.values() for text in stacks])
def test_packing(text: str) -> None:
    form = parse_format(text)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        shape = random_shape(rng, form.order)
        coordinates, values = random_entries(rng, shape)
        storage = pack(form, shape, coordinates, values)
        check(storage)
        np.testing.assert_array_equal(to_dense(storage), summed(shape, coordinates, values))


@pytest.mark.parametrize(("text", "source", "target"), [*product(("dy", "dy:1,0", "by"), ("csr", "csc", "coo", "ell"), ("interpret", "c"))])
def test_kernels_make_it_from_what_it_asks(text: str, source: str, target: str) -> None:
    """Rows come in any order; what is asked of them is found in a first run of the loops."""
    kernel = sl.program("B(i,j) = A(i,j)", formats={"A": source, "B": text}, target=target)
    for shape in ((3, 5), (1, 1), (0, 4), (4, 0), (7, 9)):
        matrix = sp.random_array(shape, density=0.3, rng=sum(shape)).toarray() if min(shape) else np.zeros(shape)
        made = kernel(sl.asarray(matrix, format=source))
        check(made.storage)
        np.testing.assert_array_equal(made.to_numpy(), matrix)
    assert "B: " in kernel.explain() and "counted and then filled" in kernel.explain(), kernel.explain()


@pytest.mark.parametrize("text", STACKS[2])
def test_conversions_and_statements(text: str) -> None:
    x, csr = np.arange(1.0, 6.0), sl.asarray(A, format="csr")
    tensor = sl.asarray(A, format=text)
    for other in ("csc", "coo", "db", "dense(2)"):
        np.testing.assert_array_equal(tensor.to(other).to_numpy(), A)
        np.testing.assert_array_equal(sl.asarray(A, format=other).to(text).to_numpy(), A)
    np.testing.assert_array_equal(sl.evaluate("y(i) = A(i,j) * x(j)", A=tensor, x=x).to_numpy(), A @ x)
    for given, statement, wanted in (
        ({"B": csr}, "C(i,j) = A(i,j) + B(i,j)", 2 * A),
        ({"x": x}, "C(i,j) = A(i,j) * x(j)", A * x),
        ({}, "C(i,k) = A(i,j) * A(k,j)", A @ A.T),
        ({}, "C(j,i) = A(i,j)", A.T),
    ):
        made = sl.evaluate(statement, A=tensor, format=text, **given)
        check(made.storage)
        np.testing.assert_array_equal(made.to_numpy(), wanted)
