"""Entries that threads put into rows as they come: every piece has places of its own, so results keep their bits and their order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

import sparseloom as sl
from sparseloom.programs import conversion

COPY = "B(i,j) = A(i,j)"
PIECES = [
    "parallelize(i,CPUThread,Temporary)",
    "split(i,i0,i1,4) parallelize(i0,CPUThread,Temporary)",
    "divide(i,i0,i1,3) parallelize(i0,CPUThread,Temporary)",
    "divide(i,i0,i1,5,A(i,j)) parallelize(i0,CPUThread,Temporary)",
    "fuse(i,j,f) pos(f,p,A(i,j)) divide(p,p0,p1,4) parallelize(p0,CPUThread,Temporary)",
]
SMALL = [(0, 0, 0.0), (0, 5, 0.0), (5, 0, 0.0), (6, 7, 0.0), (9, 7, 0.3), (1, 30, 0.5), (30, 1, 0.5), (8, 8, 1.0)]
ENTRIES = 1 << 19  # as many as are worth sharing


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = sl.get_threads()
    yield
    sl.set_threads(before)


def arrays(tensor: sl.Tensor) -> list[NDArray[np.generic]]:
    storage = tensor.storage
    return [*storage.indices, storage.values]


def assert_same_bits(found: sl.Tensor, wanted: sl.Tensor) -> None:
    for mine, theirs in zip(arrays(found), arrays(wanted), strict=True):
        assert mine.dtype == theirs.dtype
        assert mine.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("target", ["c", "interpret"])
@pytest.mark.parametrize(
    ("statement", "source"),
    [(COPY, "csr"), (COPY, "coo"), (COPY, "du"), ("B(i,j) = 2 * A(i,j) + A(i,j)", "dcsr"), ("B(i,j) = A(i,j) + x(j)", "csr")],
)
@pytest.mark.parametrize("schedule", PIECES)
def test_pieces_insert_what_plain_loops_insert(schedule: str, source: str, statement: str, target: str, rng: np.random.Generator) -> None:
    formats = {"A": source, "B": "csc"}
    try:
        kernel = sl.program(statement, formats, schedule, target=target)
    except sl.ScheduleError:
        assert "pos(" in schedule and ("x(j)" in statement or source == "du")
        return
    plain = sl.program(statement, formats, "")
    for rows, columns, density in SMALL:
        dense = (rng.random((rows, columns)) < density) * rng.random((rows, columns))
        operands = {"A": sl.asarray(dense).to(source)} | ({"x": rng.random(columns)} if "x(j)" in statement else {})
        assert_same_bits(kernel(**operands), plain(**operands))


def matrix(name: str, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64], tuple[int, int]]:
    """Where the entries of a matrix are, in no order and some of them twice."""
    shape = (3000, 2000)
    rows, columns = rng.integers(0, shape[0], ENTRIES), rng.integers(0, shape[1], ENTRIES)
    match name:
        case "empty rows":
            rows -= rows % 7
        case "one dense column":
            columns[: ENTRIES // 2] = 3
        case "one dense row":
            rows[: ENTRIES // 2] = 3
    return rows, columns, shape


MATRICES = [("spread", np.int64), *((name, np.int32) for name in ("empty rows", "one dense column", "one dense row"))]


@pytest.mark.parametrize(("name", "index"), MATRICES)
def test_conversions_keep_their_bits(name: str, index: type[np.signedinteger], rng: np.random.Generator) -> None:
    rows, columns, shape = matrix(name, rng)
    given = sp.coo_array((rng.random(len(rows)), (rows, columns)), shape=shape).tocsr()
    given.sum_duplicates()
    parts = (given.indptr.astype(index), given.indices.astype(index))
    matrix_by_rows = sl.from_arrays("csr", shape, {"pos1": parts[0], "crd1": parts[1], "values": given.data})
    wanted = given.tocsc()
    for threads in (1, 2, 7):
        sl.set_threads(threads)
        turned = matrix_by_rows.to("csc")
        for mine, theirs in zip(arrays(turned), (wanted.indptr, wanted.indices, wanted.data), strict=True):
            np.testing.assert_array_equal(mine, theirs)
        assert turned.storage.index_dtype == index
        assert_same_bits(turned.to("csr"), matrix_by_rows)
        assert_same_bits(matrix_by_rows.to("coo").to("csc"), turned)
        assert_same_bits(matrix_by_rows.to("coo").to("csr"), matrix_by_rows)


@pytest.mark.parametrize(("name", "index"), MATRICES)
def test_entries_in_no_order_are_summed_in_theirs(name: str, index: type[np.signedinteger], rng: np.random.Generator) -> None:
    rows, columns, shape = matrix(name, rng)
    values = rng.random(len(rows)) * 10.0 ** rng.integers(-9, 9, len(rows))
    wanted = np.zeros(shape)
    np.add.at(wanted, (rows, columns), values)  # one after another
    made = {}
    for threads in (1, 2, 7):
        sl.set_threads(threads)
        for form in ("csr", "csc", "coo"):
            found = sl.from_coo((rows.astype(index), columns.astype(index)), values, shape, format=form)
            assert_same_bits(found, made.setdefault(form, found))
    for found in made.values():
        np.testing.assert_array_equal(found.to_numpy(), wanted)
        assert found.nnz == len(np.unique(rows * shape[1] + columns))


def test_zeros_are_dropped_after_they_are_summed(rng: np.random.Generator) -> None:
    rows, columns, shape = matrix("spread", rng)
    values = rng.integers(-1, 2, len(rows)).astype(float)
    loose = sl.Tensor(conversion.pack.listed(shape, np.stack([rows, columns]), values, 0, 2**31 - 1))
    dropped = loose.to("csr", drop_zeros=True)
    np.testing.assert_array_equal(dropped.to_numpy(), sp.coo_array((values, (rows, columns)), shape=shape).toarray())
    assert dropped.nnz == np.count_nonzero(dropped.to_numpy())


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_rows_in_no_order_are_put_in_order(form: str, rng: np.random.Generator) -> None:
    rows, columns, shape = matrix("spread", rng)
    given = sp.coo_array((np.arange(len(rows)) + 1.0, (rows, columns)), shape=shape).tocsr()
    given.sum_duplicates()
    wanted = given.copy() if form == "csr" else given.tocsc()
    order = np.lexsort((rng.random(given.nnz), np.repeat(np.arange(shape[0]), np.diff(given.indptr))))
    mixed = sl.from_arrays("ds~", shape, {"pos1": given.indptr, "crd1": given.indices[order], "values": given.data[order]})
    for mine, theirs in zip(arrays(mixed.to(form)), (wanted.indptr, wanted.indices, wanted.data), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_the_planner_takes_as_many_pieces_as_entries_are_worth(rng: np.random.Generator) -> None:
    chosen = []
    for size in (1000, 100_000, 400_000):
        rows, columns = rng.integers(0, size, (2, ENTRIES))
        kernel = sl.program(COPY, {"A": "csr", "B": "csc"})
        kernel(sl.from_coo((rows, columns), np.ones(ENTRIES), (size, size), format="csr"))
        chosen.append(kernel.schedule)
    by_entries = "fuse(i,j,f)\npos(f,p,A(i,j))\ndivide(p,p0,p1,{})\nparallelize(p0,CPUThread,Temporary)"
    assert chosen == [by_entries.format(32), by_entries.format(4), ""]
