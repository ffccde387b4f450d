"""divide(i, i0, i1, n, A(i,j)): pieces that hold equally many entries, to within one i."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from primitives.statements import concrete, schedule
from together import compile_together

import sparseloom as sl
from sparseloom.schedule.schedule import Schedule

SPMV = "y(i) = A(i,j) * x(j)"
ROWS = {
    "uneven": [1, 4, 0, 2, 1, 0],
    "one heavy row": [0, 0, 9, 0, 1, 0, 0],
    "empty at both ends": [0, 0, 3, 3, 3, 0, 0],
    "all empty": [0, 0, 0],
    "one": [5],
    "none": [],
    "even": [2] * 11,
}
SCHEDULES = [
    "divide(i, i0, i1, {n}, A(i,j))",
    "divide(i, i0, i1, {n}, A(i,j)) parallelize(i0, CPUThread, NoRaces)",
    "divide(i, i0, i1, {n}, A(i,j)) split(i1, a, b, 2)",
    "divide(i, i0, i1, {n}, A(i,j)) pos(j, p, A(i,j)) split(p, p0, p1, 2)",
    "divide(i, i0, i1, {n}, A(i,j), 2) parallelize(i0, CPUThread, NoRaces)",
    "divide(j, j0, j1, {n}, A(i,j))",
    "divide(j, j0, j1, {n}, A(i,j)) pos(j1, p, A(i,j))",
    "divide(i, i0, i1, {n}, A(i,j)) precompute(A(i,j) * x(j), j, jw, w)",
]


def matrix(counts: list[int]) -> np.ndarray:
    made = np.zeros((len(counts), max(counts, default=0) + 2))
    for row, count in enumerate(counts):
        made[row, 1 : count + 1] = np.arange(1, count + 1)
    return made


def cuts(counts: list[int], pieces: int, rows: int = 0) -> list[int]:
    """Where pieces begin and the last one ends, from the definition: a row weighs as many entries as it has, and ``rows`` more."""
    before = np.concatenate(([0], np.cumsum(np.array(counts) + rows)))
    inside = [int(np.argmax(before >= b * before[-1] // pieces)) for b in range(1, pieces)]
    return [0, *inside, len(counts)]


@pytest.mark.parametrize("form", ["csr", "dcsr", "coo", "ell", "dd"])
@pytest.mark.parametrize("rows", ROWS)
def test_every_entry_is_visited_once(rows: str, form: str) -> None:
    given = matrix(ROWS[rows])
    x = np.arange(given.shape[1]) + 1.0
    each = product(SCHEDULES, (1, 2, 5), ("interpret", "c"))
    kernels = [sl.program(SPMV, formats={"A": form}, schedule=text.format(n=pieces), target=target) for text, pieces, target in each]
    compile_together((kernel, (given, x)) for kernel in kernels)
    for kernel in kernels:
        np.testing.assert_array_equal(kernel(given, x).to_numpy(), given @ x)


@pytest.mark.parametrize("rows", [name for name, counts in ROWS.items() if counts])
@pytest.mark.parametrize("pieces", [1, 2, 3, 4])
def test_a_picture_shows_the_pieces(rows: str, pieces: int) -> None:
    counts, given = ROWS[rows], matrix(ROWS[rows])
    for weight in (0, 1, 3):
        space = schedule(SPMV, "A:csr", f"divide(i, i0, i1, {pieces}, A(i,j), {weight})").picture(given)
        found = [space.points[space.tiles == tile][:, 0] for tile in range(int(space.tiles.max(initial=-1)) + 1)]
        wanted = [np.repeat(np.arange(a, b), counts[a:b]) for a, b in pairwise(cuts(counts, pieces, weight))]
        for rows_found, rows_wanted in zip(found, [w for w in wanted if len(w)], strict=True):
            np.testing.assert_array_equal(rows_found, rows_wanted)


@pytest.mark.parametrize(
    "text, formats, steps",
    [
        ("C(i,k) = A(i,j,k)", "csf", "divide(i, i0, i1, 3, A(i,j,k))"),
        ("C(i,k) = A(i,j,k)", "csf", "divide(j, j0, j1, 3, A(i,j,k))"),
        ("C(i,k) = A(i,j,k)", "dds", "divide(i, i0, i1, 3, A(i,j,k)) parallelize(i0, CPUThread, NoRaces)"),
        ("C(i,k) = A(i,j,k)", "dsd", "divide(i, i0, i1, 3, A(i,j,k))"),
        ("C(i,k) = A(i,j,k)", "uqq", "divide(i, i0, i1, 3, A(i,j,k))"),
    ],
)
def test_entries_are_counted_at_the_last_level(text: str, formats: str, steps: str) -> None:
    rng = np.random.default_rng(1)
    A = rng.integers(1, 5, (7, 6, 5)) * (rng.random((7, 6, 5)) < 0.2)
    for target in ("interpret", "c"):
        kernel = sl.program(text, formats={"A": formats}, schedule=steps, target=target)
        np.testing.assert_array_equal(kernel(A).to_numpy(), A.sum(axis=1))


def test_a_sparse_result_is_appended_piece_by_piece() -> None:
    rng = np.random.default_rng(1)
    A, B = (np.round(rng.random((9, 9)) * (rng.random((9, 9)) < 0.3), 1) for _ in "AB")
    steps = "divide(i, i0, i1, 3, A(i,k)) parallelize(i0, CPUThread, NoRaces)"
    for result in ("csr", "dcsr", "coo"):
        kernel = sl.program("C(i,j) = A(i,k) * B(k,j)", formats={"A": "csr", "B": "csr", "C": result}, schedule=steps)
        np.testing.assert_allclose(kernel(A, B).to_numpy(), A @ B)


def test_rows_of_equal_entries_are_searched_in_the_positions() -> None:
    kernel = sl.program(SPMV, formats={"A": "csr"}, schedule="divide(i, i0, i1, 4, A(i,j)) parallelize(i0, CPUThread, NoRaces)")
    assert "lower_bound_int32(A2_pos, " in kernel.source
    assert "none: proved" in kernel.explain()


def test_the_method_the_text_and_json_agree() -> None:
    start = concrete(SPMV, "A:csr")
    made = Schedule(start).divide("i", "i0", "i1", 4, "A(i,j)")
    assert made.text == "divide(i, i0, i1, 4, A(i,j))"
    assert Schedule.from_text(start, made.text).stmt == Schedule.from_json(start, made.to_json()).stmt == made.stmt
    with_rows = Schedule(start).divide("i", "i0", "i1", 4, "A(i,j)", 2)
    assert with_rows.text == "divide(i, i0, i1, 4, A(i,j), 2)" and "by the entries of A(i,j) and 2 for each i" in str(with_rows)
    assert Schedule.from_text(start, with_rows.text).stmt == Schedule.from_json(start, with_rows.to_json()).stmt == with_rows.stmt
    plain = Schedule(start).divide("i", "i0", "i1", 4)
    assert Schedule.from_json(start, plain.to_json()).stmt == plain.stmt
    with pytest.raises(sl.ScheduleError, match="divide takes 4 to 6 arguments, not 3"):
        Schedule.from_text(start, "divide(i, i0, i1)")
