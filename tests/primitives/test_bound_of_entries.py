"""A bound on positions counts entries from where their segment begins: of a row, not of the array."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from primitives.entry_points import scheduled

import sparseloom as sl

THREE = sp.csr_array((np.arange(1.0, 13), [0, 1, 2, 1, 2, 3, 0, 2, 3, 0, 1, 3], [0, 3, 6, 9, 12]), shape=(4, 4))
FEWER = sp.csr_array((np.arange(1.0, 12), [0, 1, 2, 1, 2, 3, 0, 2, 3, 0, 1], [0, 3, 6, 9, 11]), shape=(4, 4))
X = np.arange(1.0, 5)
EXACT = [
    "bound(p, pb, 3, MaxExact)",
    "bound(p, pb, 3, MaxExact) unroll(pb, 3)",
    "bound(p, pb, 3, MaxExact) split(pb, p0, p1, 2)",
    "bound(p, pb, 3, MaxExact) parallelize(pb, CPUVector, ParallelReduction)",
    "bound(p, pb, 3, MaxConstraint) bound(pb, pc, 3, MaxExact)",
    "bound(p, pb, 3, MaxExact) bound(pb, pc, 3, MaxExact) unroll(pc, 3)",
    "bound(p, pb, 3, MaxExact) parallelize(i, CPUThread, NoRaces)",
]


@pytest.mark.parametrize("target", ["interpret", "c"])
@pytest.mark.parametrize("schedule", EXACT)
@pytest.mark.parametrize("statement", ["y(i) = A(i,j) * x(j)", "C(i,j) = A(i,j) * x(j)"])
def test_every_row_has_as_many_entries(statement: str, schedule: str, target: str) -> None:
    kernel = sl.program(statement, formats={"A": "csr"}, schedule=f"pos(j, p, A(i,j)) {schedule}", target=target)
    wanted = THREE @ X if statement.startswith("y") else THREE.toarray() * X
    np.testing.assert_array_equal(kernel(THREE, X).to_numpy(), wanted)
    with pytest.raises(sl.ShapeError, match=r"does not hold for these operands: bound\(p, pb, 3, Max"):
        kernel(FEWER, X)


@pytest.mark.parametrize("target", ["interpret", "c"])
def test_rows_have_at_most_as_many(target: str) -> None:
    for bound, broken in ((3, False), (2, True)):
        steps = f"pos(j, p, A(i,j)) bound(p, pb, {bound}, MaxConstraint)"
        kernel = sl.program("y(i) = A(i,j) * x(j)", formats={"A": "csr"}, schedule=steps, target=target)
        if broken:
            with pytest.raises(sl.ShapeError, match=r"bound\(p, pb, 2, MaxConstraint\)"):
                kernel(FEWER, X)
        else:
            np.testing.assert_array_equal(kernel(FEWER, X).to_numpy(), FEWER @ X)


def test_the_number_of_entries_reaches_the_code() -> None:
    kernel = sl.program("y(i) = A(i,j) * x(j)", formats={"A": "csr"}, schedule="pos(j, p, A(i,j)) bound(p, pb, 3, MaxExact)")
    assert "pb < p_2_begin + 3" in kernel.source
    steps = "pos(j, p, A(i,j)) bound(p, pb, 4, MaxExact) parallelize(i, GPUBlock, NoRaces) parallelize(pb, GPUThread, ParallelReduction)"
    assert "threadIdx.x" in sl.program("y(i) = A(i,j) * x(j)", formats={"A": "csr"}, schedule=steps, target="cuda").source


def test_a_contradiction_is_rejected() -> None:
    with pytest.raises(sl.ScheduleError, match=r"\[S1004\] .*: pb ends at 3, which breaks MaxExact 2"):
        scheduled("pos(j, p, A(i,j)) bound(p, pb, 3, MaxExact) bound(pb, pc, 2, MaxExact)")


def test_the_positions_of_several_levels_are_one_segment() -> None:
    steps = "fuse(i, j, f) pos(f, p, A(i,j)) bound(p, pb, 12, MaxExact) split(pb, p0, p1, 4)"
    kernel = sl.program("y(i) = A(i,j) * x(j)", formats={"A": "csr"}, schedule=steps)
    np.testing.assert_array_equal(kernel(THREE, X).to_numpy(), THREE @ X)
    with pytest.raises(sl.ShapeError, match=r"bound\(p, pb, 12, MaxExact\)"):
        kernel(FEWER, X)
