"""A level whose entries share values, written in this one file, passes every entry point, as operand and as result.

Runs of equal values: below each parent, runs of coordinates that follow each other and have one value. What no run covers is not stored.

    parent 0 holds 2 2 2 at 1 2 3 and 5 at 6, parent 1 nothing, parent 2 holds 7 7 at 0 1

    pos     0     2 2   3        runs of parent p: [pos[p], pos[p+1])
    start   1   6   0            the coordinate where each run begins
    end     4   7   2            and the one behind its last
    values  2   5   7            one for each run

Positions are those of a dense level, parent * size + coordinate, and may be unused.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from fuzz import operands
from fuzz.drawing import cases as drawn_cases
from fuzz.runner import compare
from fuzz.scheduled_runner import compare as compare_scheduled
from fuzz.schedules import schedulable
from levels.random_storage import random_entries, random_shape, summed
from numpy.typing import NDArray

import sparseloom as sl
from sparseloom.cli.main import main
from sparseloom.core.dtypes import DType
from sparseloom.core.errors import FormatError, StorageError
from sparseloom.core.trees import node
from sparseloom.formats.level import Checked, Fault, Index, Level, LevelData, LevelView, Outline, array_fault, load_index
from sparseloom.formats.levels import LEVELS
from sparseloom.formats.pack import convert, pack, to_dense, unpack
from sparseloom.formats.text import parse_format
from sparseloom.formats.validate import check
from sparseloom.loops.nodes import ONE, ZERO, Expr, Op, Search, add, both, multiply
from sparseloom.loops.nodes import compare as compared


@node
class ValueRuns(Level):
    """Stores runs of coordinates that have one value."""

    array_names: ClassVar[tuple[str, ...]] = ("pos", "start", "end")
    compact: ClassVar[bool] = False
    has_holes: ClassVar[bool] = True
    can_locate: ClassVar[bool] = True
    shares_values: ClassVar[bool] = True

    @property
    def letter(self) -> str:
        return "v"

    def pack_values(
        self, parents: Index, coordinates: Index, values: NDArray[Any], size: int, parent_count: int, index_dtype: DType
    ) -> tuple[LevelData, Index, int]:
        begins = np.ones(len(parents), bool)
        begins[1:] = (parents[1:] != parents[:-1]) | (coordinates[1:] != coordinates[:-1] + 1) | _differ(values)
        first, last = np.flatnonzero(begins), np.flatnonzero(np.append(begins[1:], True))
        pos = np.concatenate(([0], np.cumsum(np.bincount(parents[first], minlength=parent_count))))
        arrays = {"pos": pos, "start": coordinates[first], "end": coordinates[last[: len(first)]] + 1}
        return LevelData({name: array.astype(index_dtype) for name, array in arrays.items()}), np.cumsum(begins) - 1, len(first)

    def unpack(self, data: LevelData, size: int, parent_count: int) -> tuple[Index, Index]:
        pos, start, end = (data.arrays[name].astype(np.int64) for name in self.array_names)
        lengths = end - start
        moved = np.repeat(start - np.cumsum(lengths) + lengths, lengths)
        return np.repeat(np.repeat(np.arange(parent_count), np.diff(pos)), lengths), moved + np.arange(len(moved))

    def slots(self, data: LevelData, size: int, parent_count: int) -> Index:
        start, end = (data.arrays[name] for name in ("start", "end"))
        return np.repeat(np.arange(len(start)), end - start)

    def count(self, data: LevelData, size: int, parent_count: int) -> int:
        return int(data.arrays["pos"][-1])

    def passed(self, data: LevelData, size: int, parent_count: int) -> int:
        return parent_count * size

    def check(self, data: LevelData, size: int, above: Checked) -> Fault | Checked:
        for name in self.array_names:
            fault = array_fault(data, name, 1 if name == "pos" else 0)
            if fault is not None:
                return fault
        pos, start, end = (data.arrays[name].tolist() for name in self.array_names)
        if len(pos) != above.positions + 1 or pos[0] != 0 or any(a > b for a, b in pairwise(pos)):
            return Fault("pos", None, "must have a number more than there are rows, begin with 0 and not decrease")
        if not len(start) == len(end) == pos[-1]:
            return Fault("end", None, f"and start must have an element for each of the {pos[-1]} runs")
        if above.positions * size > np.iinfo(np.int64).max:
            return Fault("pos", None, "has more places than 64 bits count")
        if any(a >= b or a < 0 or b > size for a, b in zip(start, end, strict=True)):
            return Fault("start", None, f"has a run outside the level's size {size}, or one that is empty")
        if any(start[r] < end[r - 1] for r in range(1, len(start)) if r not in {*pos}):
            return Fault("start", None, "must ascend below each parent")
        return Checked(pos[-1])

    def outline(self, data: LevelData, size: int, parent_count: int) -> Outline | None:
        return Outline(int(data.arrays["pos"][-1]), self.array_names)

    def bounds(self, view: LevelView, parent: Expr) -> tuple[Expr, Expr]:
        begin = multiply(parent, view.size)
        return begin, add(begin, view.size)

    def coordinate(self, view: LevelView, parent: Expr, position: Expr) -> Expr:
        return _less(position, multiply(parent, view.size))

    def search(self, view: LevelView, parent: Expr, begin: Expr, end: Expr, coordinate: Expr) -> Expr:
        return Op("maximum", (begin, Op("minimum", (end, add(multiply(parent, view.size), coordinate)))))

    def parent(self, view: LevelView, position: Expr, begin: Expr, end: Expr) -> Expr:
        return Op("floor_divide", (position, view.size))

    def slot(self, view: LevelView, parent: Expr, position: Expr) -> Expr:
        return self.locate(view, parent, self.coordinate(view, parent, position))[0]

    def used(self, view: LevelView, parent: Expr, position: Expr) -> Expr:
        return self.locate(view, parent, self.coordinate(view, parent, position))[1]

    def locate(self, view: LevelView, parent: Expr, coordinate: Expr) -> tuple[Expr, Expr]:
        pos = view.arrays["pos"]
        first, last = load_index(pos, parent), load_index(pos, add(parent, ONE))
        run = Search(view.arrays["end"], first, last, add(coordinate, ONE))
        return run, both(compared("less", run, last), compared("less_equal", load_index(view.arrays["start"], run), coordinate))


def _less(left: Expr, right: Expr) -> Expr:
    return left if right == ZERO else Op("subtract", (left, right))


def _differ(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each value but the first differs from the one before it, bit by bit: -0.0 is another value than 0.0."""
    raw = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), values.itemsize)
    return (raw[1:] != raw[:-1]).any(axis=1)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The one line."""
    monkeypatch.setitem(LEVELS, "v", ValueRuns())
    yield
    parse_format.cache_clear()


STACKS = {1: ("v",), 2: ("dv", "sv", "dv:1,0", "bv"), 3: ("ddv", "ssv", "dsv:2,0,1")}
A = np.array([[0.0, 2, 2, 2, 0, 0, 5], [0, 0, 0, 0, 0, 0, 0], [7, 7, 0, 0, 0, 0, 0]])


def test_the_picture() -> None:
    arrays = sl.asarray(A, format="dv").arrays
    drawn = {"pos1": [0, 2, 2, 3], "start1": [1, 6, 0], "end1": [4, 7, 2], "values": [2, 5, 7]}
    assert {name: array.tolist() for name, array in arrays.items()} == drawn


def test_text_and_printing(capsys: pytest.CaptureFixture[str]) -> None:
    form = parse_format("dv:1,0")
    assert (form.text, str(form), form.levels[1]) == ("dv:1,0", "dv:1,0", ValueRuns())
    with pytest.raises(FormatError, match=r"v \(valueruns\)"):
        parse_format("dx")
    with pytest.raises(FormatError, match="may stand behind s, u and q"):
        parse_format("dv~")
    assert repr(sl.asarray(A, format="dv")).startswith("<Tensor: 3 x 7, dv, float64, 6 stored")
    assert main(["formats", "dv"]) == 0
    assert "level 1: valueruns over mode 1" in capsys.readouterr().out


@pytest.mark.parametrize("text", [text for stacks in STACKS.values() for text in stacks])
def test_packing_laws(text: str) -> None:
    form = parse_format(text)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        shape = random_shape(rng, form.order)
        coordinates, values = random_entries(rng, shape)
        storage = pack(form, shape, coordinates, values)
        check(storage)
        np.testing.assert_array_equal(to_dense(storage), summed(shape, coordinates, values))
        again = pack(form, shape, *unpack(storage))
        assert [a.tolist() for a in again.indices] == [a.tolist() for a in storage.indices]


def test_files_and_pickles(tmp_path: Path) -> None:
    tensor = sl.asarray(A, format="dv")
    sl.write(tmp_path / "a.npz", tensor)
    for found in (sl.read(tmp_path / "a.npz"), pickle.loads(pickle.dumps(tensor))):
        assert found.format == tensor.format
        np.testing.assert_array_equal(found.to_numpy(), A)
    for name in ("a.mtx", "a.tns"):
        sl.write(tmp_path / name, tensor)
    np.testing.assert_array_equal(sl.read(tmp_path / "a.mtx").to_numpy(), A)


FAULTS = {
    "pos1": ([0, 2, 1, 3], "pos must have a number more than there are rows, begin with 0 and not decrease"),
    "start1": ([3, 2, 0], "start must ascend below each parent"),
    "end1": ([4, 8, 2], "start has a run outside the level's size 7, or one that is empty"),
    "values": ([1.0, 2.0], "values has 2 elements; the format dv needs 3"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_bad_arrays_are_refused(name: str) -> None:
    arrays = dict(sl.asarray(A, format="dv").arrays)
    np.testing.assert_array_equal(sl.from_arrays("dv", A.shape, arrays).to_numpy(), A)
    arrays[name] = np.array(FAULTS[name][0], arrays[name].dtype)
    with pytest.raises(StorageError) as caught:
        sl.from_arrays("dv", A.shape, arrays)
    assert FAULTS[name][1] in str(caught.value)


def test_arrays_that_a_caller_changes_are_looked_at_again() -> None:
    arrays = {name: array.copy() for name, array in sl.asarray(A, format="dv").arrays.items()}
    tensor = sl.from_arrays("dv", A.shape, arrays)
    arrays["start1"][0] = 6
    with pytest.raises(StorageError, match="or one that is empty"):
        sl.evaluate("y(i) = A(i,j)", A=tensor)


@pytest.mark.parametrize("text", STACKS[2])
def test_conversions(text: str) -> None:
    tensor = sl.asarray(A, format=text)
    for other in ("csr", "csc", "coo", "dcsr", "ell", "db", "dia", "bcsr(2,2)", "dense(2)", *STACKS[2]):
        np.testing.assert_array_equal(tensor.to(other).to_numpy(), A)
        np.testing.assert_array_equal(sl.asarray(A, format=other).to(text).to_numpy(), A)
        np.testing.assert_array_equal(to_dense(convert(tensor.storage, parse_format(other, 2))), A)


SCHEDULES = {
    "": ("i: every coordinate (3 times)", "j: driven by A (at most 21 times)"),
    "split(j,j0,j1,3)": ("i: every coordinate (3 times)", "j0: every coordinate (9 times)", "j: driven by A (at most 21 times)"),
    "split(j,j0,j1,3) pos(j1,p,A(i,j))": (),
    "pos(j,p,A(i,j)) split(p,p0,p1,2)": (),
    "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,4)": ("p0: every coordinate (6 times)", "p1: positions of A (i, j) (at most 21 times)"),
    "fuse(i,j,f) split(f,f0,f1,5) pos(f1,p,A(i,j))": (),
    "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,4) reorder(p1,p0)": (),
    "pos(j,p,A(i,j)) split(p,p0,p1,2) coord(p1,q)": (),
    "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,2) parallelize(p0,CPUThread,Atomics)": (),
}


@pytest.mark.parametrize(("schedule", "target"), [*product(SCHEDULES, ("interpret", "c"))])
def test_schedules_and_trip_counts(schedule: str, target: str) -> None:
    x = np.arange(1.0, 8.0)
    kernel = sl.program("y(i) = A(i,j) * x(j)", formats={"A": "dv"}, schedule=schedule, target=target)
    np.testing.assert_array_equal(kernel(sl.asarray(A, format="dv"), x).to_numpy(), A @ x)
    told = kernel.explain()
    assert all(line in told for line in SCHEDULES[schedule]), told


def only_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the fuzzers draw operands and results with runs, beside dense and compressed ones."""
    for order, texts in STACKS.items():
        monkeypatch.setitem(operands.FORMATS, order, (*texts, *texts, "d" * order, "s" * order))
        monkeypatch.setitem(operands.RESULTS, order, (*texts, "s" * order))


def test_random_statements_agree_with_the_oracles(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    only_runs(monkeypatch)
    tally = compare(drawn_cases(seed, 77), 60)
    assert not tally.failures, tally.failures[0]


def test_random_schedules_agree_with_the_oracles(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    only_runs(monkeypatch)
    tally = compare_scheduled(schedulable(seed, 78), 20)
    assert not tally.failures, tally.failures[0]


FILLED = {
    "B(i,j) = 2 * A(i,j)": lambda a, x: 2 * a,
    "B(i,j) = A(i,j) * x(j)": lambda a, x: a * x,
    "B(i,j) = A(i,j) + A(i,j) * x(j)": lambda a, x: a + a * x,
    "B(i,k) = A(i,j) * A(k,j)": lambda a, x: a @ a.T,
    "B(j,i) = A(i,j)": lambda a, x: a.T,
    "B(i,j) = max(k, A(i,j) * A(k,j))": lambda a, x: (a[:, None] * a[None]).max(axis=1),
}


@pytest.mark.parametrize(("text", "target"), [*product(FILLED, ("interpret", "c"))])
def test_results(text: str, target: str) -> None:
    """Entries that are equal for one operand are not for another, so that the runs of a result are its own."""
    x = np.array([1.0, 1, 1, 2, 2, 3, 3])
    kernel = sl.program(text, formats={"A": "dv", "B": "dv"}, target=target)
    given = {"A": sl.asarray(A, format="dv"), **({"x": x} if "x(j)" in text else {})}
    made = kernel(**given)
    np.testing.assert_array_equal(made.to_numpy(), FILLED[text](A, x))
    assert made.format.text == "dv"
    check(made.storage)
    turned = A[:, ::-1].copy()
    other = {**given, "A": sl.asarray(turned, format="dv")}
    np.testing.assert_array_equal(kernel(**other, out=made).to_numpy(), FILLED[text](turned, x))


def test_values_that_are_filled_in_again_make_other_runs() -> None:
    csr, x = sl.asarray(A, format="csr"), np.ones(7)
    kernel = sl.program("B(i,j) = A(i,j) * x(j)", formats={"A": "csr", "B": "dv"})
    made = kernel.assemble(csr, x)
    np.testing.assert_array_equal(kernel.compute(csr, np.arange(7.0), out=made).to_numpy(), A * np.arange(7.0))
    with pytest.raises(FormatError, match="several entries share a value must be the last"):
        parse_format("vd")


def test_signs_of_zero_and_nan_are_kept() -> None:
    row = np.array([[-0.0, 0.0, np.nan, np.nan, 1.0, 1.0]])
    coordinates = np.stack((np.zeros(6, int), np.arange(6)))
    tensor = sl.from_coo(coordinates, row[0], row.shape, format="dv")
    np.testing.assert_array_equal(tensor.to("dense(2)").to_numpy(), row)
    assert [str(value) for value in tensor.to("csr").arrays["values"]] == ["-0.0", "0.0", "nan", "nan", "1.0", "1.0"]
    assert tensor.nnz == 6
