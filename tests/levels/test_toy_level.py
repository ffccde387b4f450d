"""A level written in this one file, and registered in one line, passes every door of the house.

Run-length: below each parent, runs of coordinates that follow each other.

    parent 0 holds 1 2 3 and 6, parent 1 nothing, parent 2 holds 0 1

    pos     0       4 4   6          positions of parent p: [pos[p], pos[p+1])
    first   0     3   4   6          where each run begins; one more says where the last one ends
    start   1     6   0   .          the coordinate that it begins with
    runs    3
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from fuzz import operands
from fuzz.drawing import cases as drawn_cases
from fuzz.runner import compare
from fuzz.scheduled_runner import compare as compare_scheduled
from fuzz.schedules import schedulable
from levels.random_storage import random_entries, random_shape, summed

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
from sparseloom.loops.nodes import ONE, ZERO, Expr, Op, Search, add


@node
class RunLength(Level):
    """Stores runs of coordinates."""

    array_names: ClassVar[tuple[str, ...]] = ("pos", "first", "start")
    scalar_names: ClassVar[tuple[str, ...]] = ("runs",)

    @property
    def letter(self) -> str:
        return "r"

    def pack(self, parents: Index, coordinates: Index, size: int, parent_count: int, index_dtype: DType) -> tuple[LevelData, Index, int]:
        count = len(parents)
        begins = np.ones(count, bool)
        begins[1:] = (parents[1:] != parents[:-1]) | (coordinates[1:] != coordinates[:-1] + 1)
        pos = np.concatenate(([0], np.cumsum(np.bincount(parents, minlength=parent_count))))
        arrays = {"pos": pos, "first": np.append(np.flatnonzero(begins), count), "start": np.append(coordinates[begins], 0)}
        data = LevelData({name: array.astype(index_dtype) for name, array in arrays.items()}, {"runs": int(begins.sum())})
        return data, np.arange(count), count

    def unpack(self, data: LevelData, size: int, parent_count: int) -> tuple[Index, Index]:
        pos, first, start = (data.arrays[name].astype(np.int64) for name in self.array_names)
        moved = np.repeat(start[:-1] - first[:-1], np.diff(first))
        return np.repeat(np.arange(parent_count), np.diff(pos)), moved + np.arange(len(moved))

    def count(self, data: LevelData, size: int, parent_count: int) -> int:
        return int(data.arrays["pos"][-1])

    def check(self, data: LevelData, size: int, above: Checked) -> Fault | Checked:
        runs = data.scalars.get("runs")
        if type(runs) is not int or runs < 0:
            return Fault("runs", None, f"must be a number of runs, not {runs!r}")
        for name, length in (("pos", above.positions + 1), ("first", runs + 1), ("start", runs + 1)):
            fault = array_fault(data, name, 0)
            if fault is not None or len(data.arrays[name]) != length:
                return fault or Fault(name, None, f"has {len(data.arrays[name])} elements; it needs {length}")
        pos, first, start = (data.arrays[name].tolist() for name in self.array_names)
        if pos[0] != 0 or any(a > b for a, b in pairwise(pos)):
            return Fault("pos", None, "must begin with 0 and not decrease")
        if first[0] != 0 or any(a >= b for a, b in pairwise(first)) or first[-1] != pos[-1] or not {*pos} <= {*first}:
            return Fault("first", None, "must ascend from 0 to the last of pos, and have all of its elements")
        ends = [begin + after - before for begin, (before, after) in zip(start, pairwise(first), strict=False)]
        if any(begin < 0 or end > size for begin, end in zip(start, ends, strict=False)):
            return Fault("start", None, f"has a run outside the level's size {size}")
        apart = {*pos}
        if any(start[r] < ends[r - 1] for r in range(1, runs) if first[r] not in apart):
            return Fault("start", None, "must ascend below each parent")
        return Checked(pos[-1])

    def outline(self, data: LevelData, size: int, parent_count: int) -> Outline | None:
        return Outline(int(data.arrays["pos"][-1]), self.array_names)

    def bounds(self, view: LevelView, parent: Expr) -> tuple[Expr, Expr]:
        return load_index(view.arrays["pos"], parent), load_index(view.arrays["pos"], add(parent, ONE))

    def coordinate(self, view: LevelView, parent: Expr, position: Expr) -> Expr:
        run = _less(Search(view.arrays["first"], ZERO, view.scalars["runs"], add(position, ONE)), ONE)
        return add(load_index(view.arrays["start"], run), _less(position, load_index(view.arrays["first"], run)))

    def search(self, view: LevelView, parent: Expr, begin: Expr, end: Expr, coordinate: Expr) -> Expr:
        first, start, runs = view.arrays["first"], view.arrays["start"], view.scalars["runs"]
        low, high = (Search(first, ZERO, runs, limit) for limit in self.bounds(view, parent))
        run = Op("maximum", (low, _less(Search(start, low, high, add(coordinate, ONE)), ONE)))
        inside = Op("maximum", (ZERO, _less(coordinate, load_index(start, run))))
        behind = load_index(first, Op("minimum", (runs, add(run, ONE))))
        found = Op("minimum", (behind, add(load_index(first, run), inside)))
        return Op("maximum", (begin, Op("minimum", (end, found))))

    def parent(self, view: LevelView, position: Expr, begin: Expr, end: Expr) -> Expr:
        return _less(Search(view.arrays["pos"], add(begin, ONE), add(end, ONE), add(position, ONE)), ONE)


def _less(left: Expr, right: Expr) -> Expr:
    return Op("subtract", (left, right))


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The one line."""
    monkeypatch.setitem(LEVELS, "r", RunLength())
    yield
    parse_format.cache_clear()


STACKS = {1: ("r",), 2: ("dr", "rr", "sr", "rs", "rd", "dr:1,0", "rb", "ru", "rp"), 3: ("drs", "rrr", "ddr", "srd", "rsr:2,0,1")}
A = np.array([[0.0, 1, 2, 3, 0, 0, 4], [0, 0, 0, 0, 0, 0, 0], [5, 6, 0, 0, 0, 0, 0]])


def test_the_picture() -> None:
    arrays = sl.asarray(A, format="dr").arrays
    drawn = {"pos1": [0, 4, 4, 6], "first1": [0, 3, 4, 6], "start1": [1, 6, 0, 0], "runs1": 3, "values": [1, 2, 3, 4, 5, 6]}
    assert {name: array.tolist() for name, array in arrays.items()} == drawn


def test_text_and_printing(capsys: pytest.CaptureFixture[str]) -> None:
    form = parse_format("dr:1,0")
    assert (form.text, str(form), form.levels[1]) == ("dr:1,0", "dr:1,0", RunLength())
    with pytest.raises(FormatError, match=r"r \(runlength\)"):
        parse_format("dx")
    with pytest.raises(FormatError, match="may stand behind s, u and q"):
        parse_format("dr~")
    assert repr(sl.asarray(A, format="dr")).startswith("<Tensor: 3 x 7, dr, float64, 6 stored")
    assert main(["formats", "dr"]) == 0
    assert "level 1: runlength over mode 1" in capsys.readouterr().out


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
    tensor = sl.asarray(A, format="dr")
    sl.write(tmp_path / "a.npz", tensor)
    for found in (sl.read(tmp_path / "a.npz"), pickle.loads(pickle.dumps(tensor))):
        assert found.format == tensor.format
        np.testing.assert_array_equal(found.to_numpy(), A)
    for name in ("a.mtx", "a.tns"):
        sl.write(tmp_path / name, tensor)
    np.testing.assert_array_equal(sl.read(tmp_path / "a.mtx").to_numpy(), A)


FAULTS = {
    "pos1": ([0, 4, 3, 6], "level 1 (runlength, mode j): pos must begin with 0 and not decrease"),
    "first1": ([0, 3, 5, 6], "level 1 (runlength, mode j): first must ascend from 0 to the last of pos, and have all of its elements"),
    "start1": ([5, 6, 0, 0], "level 1 (runlength, mode j): start has a run outside the level's size 7"),
    "runs1": (2, "level 1 (runlength, mode j): first has 4 elements; it needs 3"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_bad_arrays_are_refused(name: str) -> None:
    arrays = dict(sl.asarray(A, format="dr").arrays)
    np.testing.assert_array_equal(sl.from_arrays("dr", A.shape, arrays).to_numpy(), A)
    arrays[name] = np.array(FAULTS[name][0], np.int32)
    with pytest.raises(StorageError) as caught:
        sl.from_arrays("dr", A.shape, arrays)
    assert FAULTS[name][1] in str(caught.value)


def test_arrays_that_a_caller_changes_are_looked_at_again() -> None:
    arrays = {name: array.copy() for name, array in sl.asarray(A, format="dr").arrays.items()}
    tensor = sl.from_arrays("dr", A.shape, arrays)
    arrays["start1"][0] = 5
    with pytest.raises(StorageError, match="a run outside the level's size 7"):
        sl.evaluate("y(i) = A(i,j)", A=tensor)


@pytest.mark.parametrize("text", STACKS[2])
def test_conversions(text: str) -> None:
    tensor = sl.asarray(A, format=text)
    for other in ("csr", "csc", "coo", "dcsr", "ell", "db", "dia", "bcsr(2,2)", "dense(2)", *STACKS[2]):
        np.testing.assert_array_equal(tensor.to(other).to_numpy(), A)
        np.testing.assert_array_equal(sl.asarray(A, format=other).to(text).to_numpy(), A)
        np.testing.assert_array_equal(to_dense(convert(tensor.storage, parse_format(other, 2))), A)


SCHEDULES = {
    "": ("i: every coordinate (3 times)", "j: driven by A (6 times)"),
    "split(j,j0,j1,3)": ("i: every coordinate (3 times)", "j0: every coordinate (9 times)", "j: driven by A (6 times)"),
    "split(j,j0,j1,3) pos(j1,p,A(i,j))": (),
    "pos(j,p,A(i,j)) split(p,p0,p1,2)": (),
    "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,4)": ("p0: every coordinate (2 times)", "p1: positions of A (i, j) (6 times)"),
    "fuse(i,j,f) split(f,f0,f1,5) pos(f1,p,A(i,j))": (),
    "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,4) reorder(p1,p0)": (),
    "pos(j,p,A(i,j)) split(p,p0,p1,2) coord(p1,q)": (),
    "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,2) parallelize(p0,CPUThread,Atomics)": (),
}


@pytest.mark.parametrize(("schedule", "target"), [*product(SCHEDULES, ("interpret", "c"))])
def test_schedules_and_trip_counts(schedule: str, target: str) -> None:
    x = np.arange(1.0, 8.0)
    kernel = sl.program("y(i) = A(i,j) * x(j)", formats={"A": "dr"}, schedule=schedule, target=target)
    np.testing.assert_array_equal(kernel(sl.asarray(A, format="dr"), x).to_numpy(), A @ x)
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
