"""A level with other arrays than its neighbours', written in this one file, is appended to and inserted into by kernels.

Halved: the coordinates of a segment, in two arrays.

    parent 0 holds 1 and 300, parent 1 nothing, parent 2 holds 513

    begins  0     2 2   3        entries of parent p: [begins[p], begins[p+1])
    high    0 1   2              coordinate = high * 256 + low
    low     1 44  1
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from typing import ClassVar

import numpy as np
import pytest
from fuzz import operands
from fuzz.drawing import cases as drawn_cases
from fuzz.runner import compare

import sparseloom as sl
from sparseloom.core.dtypes import DType
from sparseloom.core.settings import settings
from sparseloom.core.trees import node
from sparseloom.formats.level import Checked, Fault, Index, Level, LevelData, LevelView, Query, array_fault, load_index, store_index
from sparseloom.formats.levels import LEVELS
from sparseloom.formats.text import parse_format
from sparseloom.formats.validate import check
from sparseloom.loops.nodes import (
    ONE,
    Expr,
    Op,
    Search,
    Stmt,
    add,
    block,
    index,
    multiply,
)

HALF = 256


@node
class Halved(Level):
    """Stores a segment of coordinates per parent, each in two halves."""

    array_names: ClassVar[tuple[str, ...]] = ("begins", "high", "low")
    can_append: ClassVar[bool] = True
    can_insert: ClassVar[bool] = True
    queries: ClassVar[tuple[Query, ...]] = (Query.COUNT,)
    parent_arrays: ClassVar[tuple[str, ...]] = ("begins",)
    counted_in: ClassVar[str | None] = "begins"

    letter = "h"

    def pack(self, parents: Index, coordinates: Index, size: int, parent_count: int, index_dtype: DType) -> tuple[LevelData, Index, int]:
        begins = np.concatenate(([0], np.cumsum(np.bincount(parents, minlength=parent_count))))
        arrays = {"begins": begins, "high": coordinates // HALF, "low": coordinates % HALF}
        data = LevelData({name: array.astype(index_dtype) for name, array in arrays.items()})
        return data, np.arange(len(parents)), len(parents)

    def unpack(self, data: LevelData, size: int, parent_count: int) -> tuple[Index, Index]:
        begins, high, low = (data.arrays[name].astype(np.int64) for name in self.array_names)
        return np.repeat(np.arange(parent_count), np.diff(begins)), (high * HALF + low)[: begins[-1]]

    def count(self, data: LevelData, size: int, parent_count: int) -> int:
        return int(data.arrays["begins"][-1])

    def made(self, size: int, parent_count: int, counted: int) -> tuple[int, dict[str, int]]:
        return counted, {"begins": parent_count + 1, "high": counted, "low": counted}

    def check(self, data: LevelData, size: int, above: Checked) -> Fault | Checked:
        for name in self.array_names:
            fault = array_fault(data, name, 1 if name == "begins" else 0)
            if fault is not None:
                return fault
        begins, high, low = (data.arrays[name].tolist() for name in self.array_names)
        if len(begins) != above.positions + 1 or begins[0] != 0 or any(a > b for a, b in pairwise(begins)) or begins[-1] > len(high):
            return Fault("begins", None, "must begin with 0, not decrease, and stay within high")
        found = [a * HALF + b for a, b in zip(high, low, strict=True)][: begins[-1]]
        if any(not 0 <= b < HALF for b in low) or any(not 0 <= one < size for one in found):
            return Fault("low", None, f"has a coordinate outside the level's size {size}")
        if any(a >= b for row in pairwise(begins) for a, b in pairwise(found[slice(*row)])):
            return Fault("low", None, "must ascend below each parent")
        return Checked(begins[-1])

    def bounds(self, view: LevelView, parent: Expr) -> tuple[Expr, Expr]:
        return load_index(view.arrays["begins"], parent), load_index(view.arrays["begins"], add(parent, ONE))

    def coordinate(self, view: LevelView, parent: Expr, position: Expr) -> Expr:
        high = multiply(load_index(view.arrays["high"], position), index(HALF))
        return add(high, load_index(view.arrays["low"], position))

    def search(self, view: LevelView, parent: Expr, begin: Expr, end: Expr, coordinate: Expr) -> Expr:
        high, low = view.arrays["high"], view.arrays["low"]
        above, below = Op("floor_divide", (coordinate, index(HALF))), Op("remainder", (coordinate, index(HALF)))
        first = Search(high, begin, end, above)
        return Search(low, first, Search(high, begin, end, add(above, ONE)), below)

    def parent(self, view: LevelView, position: Expr, begin: Expr, end: Expr) -> Expr:
        return Op("subtract", (Search(view.arrays["begins"], add(begin, ONE), add(end, ONE), add(position, ONE)), ONE))

    def append(self, view: LevelView, position: Expr, coordinate: Expr) -> Stmt:
        halves = {"high": Op("floor_divide", (coordinate, index(HALF))), "low": Op("remainder", (coordinate, index(HALF)))}
        return block(*(store_index(view.arrays[name], position, half) for name, half in halves.items()))


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The one line; and kernels convert however little there is."""
    monkeypatch.setitem(LEVELS, "h", Halved())
    monkeypatch.setattr(settings, "small_conversion", 0)
    yield
    parse_format.cache_clear()


A = np.zeros((3, 600))
A[0, 1], A[0, 300], A[2, 513] = 1, 2, 3
STACKS = {1: ("h",), 2: ("dh", "hh", "sh", "hs", "dh:1,0", "hd", "bh"), 3: ("ddh", "hhh", "shd", "dhs:2,0,1")}


def test_the_picture() -> None:
    arrays = sl.asarray(A, format="dh").arrays
    drawn = {"begins1": [0, 2, 2, 3], "high1": [0, 1, 2], "low1": [1, 44, 1], "values": [1, 2, 3]}
    assert {name: array.tolist() for name, array in arrays.items()} == drawn


HOW = {
    ("C(i,j) = A(i,j) + B(i,j)", ""): "appended in order",
    ("C(i,j) = A(i,j) + B(i,j)", "parallelize(i,CPUThread,NoRaces)"): "appended in order",
    ("C(i,j) = A(i,j) + B(i,j)", "assemble(C,Insert)"): "counted and then filled",
    ("C(i,j) = A(i,j) + B(i,j)", "assemble(C,Insert) parallelize(i,CPUThread,NoRaces)"): "counted and then filled",
    ("C(i,k) = A(i,j) * B(k,j)", ""): "appended in order",
    ("C(j,i) = A(i,j) * B(i,j)", None): "counted and then filled",
}


@pytest.mark.parametrize(("how", "target"), [*product(HOW, ("interpret", "c"))])
def test_kernels_make_it(how: tuple[str, str | None], target: str) -> None:
    text, schedule = how
    wanted = {"+": 2 * A, "k": A @ A.T, "j,": (A * A).T}
    kernel = sl.program(text, formats={"A": "csr", "B": "csr", "C": "dh"}, schedule=schedule, target=target)
    csr = sl.asarray(A, format="csr")
    made = kernel(csr, csr)
    check(made.storage)
    assert made.format.text == "dh" and HOW[how] in kernel.explain(), kernel.explain()
    np.testing.assert_array_equal(made.to_numpy(), next(array for sign, array in wanted.items() if sign in text))
    assert kernel(csr, csr, out=made).format.text == "dh"


@pytest.mark.parametrize("text", STACKS[2])
def test_conversions(text: str) -> None:
    tensor = sl.asarray(A, format=text)
    for other in ("csc", "coo", "ell", "dense(2)"):
        np.testing.assert_array_equal(tensor.to(other).to_numpy(), A)
        made = sl.asarray(A, format=other).to(text)
        check(made.storage)
        np.testing.assert_array_equal(made.to_numpy(), A)


def test_random_statements_agree_with_the_oracles(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    for order, texts in STACKS.items():
        monkeypatch.setitem(operands.FORMATS, order, (*texts, *texts, "d" * order, "s" * order))
        monkeypatch.setitem(operands.RESULTS, order, (*texts, "s" * order))
    tally = compare(drawn_cases(seed, 80), 40)
    assert not tally.failures, tally.failures[0]
