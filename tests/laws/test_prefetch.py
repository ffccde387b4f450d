"""What a loop asks for ahead of time is what it reads so many iterations later, is always there, and changes no result."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparseloom as sl
from sparseloom.loops.memory import Cells

SPMM, SDDMM, SPMV = "C(i,k) = A(i,j) * B(j,k)", "C(i,j) = A(i,j) * B(i,k) * D(j,k)", "y(i) = A(i,j) * x(j)"
MTTKRP = "M(i,r) = B(i,k,l) * C(k,r) * D(l,r)"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, int]]]:
    """What the interpreter is asked for: arrays and places."""
    found: list[tuple[str, int]] = []
    check = Cells.require

    def noted(self: Cells, place: int) -> None:
        check(self, place)
        found.append((self.name, place))

    monkeypatch.setattr(Cells, "require", noted)
    yield found


def matrix(rng: np.random.Generator, rows: int, columns: int, density: float) -> np.ndarray:
    return np.where(rng.random((rows, columns)) < density, rng.integers(1, 9, (rows, columns)), 0).astype(float)


WAYS = [
    ("j", ""),
    ("p", "pos(j,p,A(i,j))"),
    ("j1", "split(j,j0,j1,3)"),
    ("p", "fuse(i,j,f) pos(f,p,A(i,j))"),
    ("p1", "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,5)"),
]


@pytest.mark.parametrize("loop, steps", WAYS)
@pytest.mark.parametrize("distance", [1, 4, 50])
def test_the_rows_of_the_entries_ahead_are_asked_for(rng, asked, loop: str, steps: str, distance: int) -> None:
    A, B = matrix(rng, 9, 12, 0.3), matrix(rng, 12, 3, 1.0)
    made = sl.program(SPMM, {"A": "csr"}, f"{steps} prefetch(B(j,k), {loop}, {distance})", target="interpret")(A, B)
    assert (made.to_numpy() == A @ B).all()
    ahead = np.nonzero(A)[1][distance:]
    assert asked == [("B_vals", j * 3) for j in ahead]


def test_a_counted_loop_asks_for_the_coordinate_ahead(rng, asked) -> None:
    A, x = matrix(rng, 5, 7, 1.0), matrix(rng, 1, 7, 1.0)[0]
    made = sl.program(SPMV, {}, "split(j,j0,j1,4) prefetch(x(j), j1, 2) prefetch(A(i,j), i, 1)", target="interpret")(A, x)
    assert (made.to_numpy() == A @ x).all()
    rows = [("A_vals", i * 7) for i in range(1, 5)]
    assert [one for one in asked if one[0] == "A_vals"] == rows
    assert [place for name, place in asked if name == "x_vals"] == [2, 3, 4, 5, 6] * 5


def test_entries_of_the_loop_itself_are_asked_for(rng, asked) -> None:
    A, x = matrix(rng, 6, 9, 0.4), matrix(rng, 1, 9, 1.0)[0]
    sl.program(SPMV, {"A": "csr"}, "prefetch(A(i,j), j, 3)", target="interpret")(A, x)
    count = int((A != 0).sum())
    assert asked == [(name, p) for p in range(3, count) for name in ("A2_crd", "A_vals")]


def test_a_long_row_is_asked_for_in_part(rng, asked) -> None:
    A, B = np.array([[1.0, 1.0]]), matrix(rng, 2, 100, 1.0)
    sl.program(SPMM, {"A": "csr"}, "prefetch(B(j,k), j, 1)", target="interpret")(A, B)
    assert asked == [("B_vals", 100 + 8 * line) for line in range(8)]


def test_a_tile_is_asked_for_where_it_begins(rng, asked) -> None:
    A, B = np.array([[1.0, 1.0]]), matrix(rng, 2, 40, 1.0)
    steps = "split(k,k0,k1,16) reorder(k0,j) prefetch(B(j,k), j, 1)"
    sl.program(SPMM, {"A": "csr"}, steps, target="interpret")(A, B)
    assert asked == [("B_vals", 40 + k) for k in (0, 8, 16, 24, 32)]


FUSED = "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,7)"
CASES = [
    (SPMM, {"A": "csr"}, "prefetch(B(j,k), j, 3) parallelize(k,CPUVector,NoRaces)"),
    (SPMM, {"A": "csr"}, "reorder(k,j) prefetch(B(j,k), j, 3) parallelize(k,CPUVector,NoRaces)"),
    (SPMM, {"A": "csr"}, "bound(k,kb,20,MaxConstraint) reorder(kb,j) prefetch(B(j,k), j, 3) parallelize(kb,CPUVector,NoRaces)"),
    (SPMM, {"A": "csr"}, "prefetch(B(j,k), j, 3) parallelize(i,CPUThread,NoRaces)"),
    (SPMM, {"A": "dcsr"}, "prefetch(A(i,j), i, 2) prefetch(B(j,k), j, 1)"),
    (SPMM, {"A": "coo"}, "prefetch(A(i,j), j, 2)"),
    (SPMM, {"A": "ell"}, "prefetch(B(j,k), j, 2) prefetch(A(i,j), j, 2)"),
    (SPMM, {"A": "bcsr(2,2)"}, "prefetch(A(i,j), j_block, 1)"),
    (SPMM, {"A": "csr", "B": "csr", "C": "csr"}, "prefetch(B(j,k), j, 3)"),
    (SPMM, {"A": "csr", "B": "csr", "C": "csr"}, "prefetch(B(j,k), j, 3) parallelize(i,CPUThread,NoRaces)"),
    (SPMM, {"A": "csr", "B": "csr", "C": "csr"}, "assemble(C,Insert) prefetch(B(j,k), j, 3)"),
    (SDDMM, {"A": "csr", "C": "csr"}, "prefetch(D(j,k), j, 4) prefetch(B(i,k), i, 1)"),
    (SDDMM, {"A": "csr", "C": "csr"}, f"{FUSED} prefetch(D(j,k), p1, 4) parallelize(p0,CPUThread,NoRaces)"),
    (SPMV, {"A": "csr"}, f"{FUSED} prefetch(x(j), p1, 4) parallelize(p0,CPUThread,Temporary)"),
    (SPMV, {"A": "csr", "x": "s"}, "prefetch(x(j), j, 2) prefetch(A(i,j), j, 2)"),
    (SPMV, {"A": "csr"}, "parallelize(i,CPUThread,NoRaces) prefetch(A(i,j), i, 2)"),
    # coordinates found again, cut and fused again: how far they run is known from their positions
    (SPMV, {"A": "csr"}, "pos(i,p,A(i,j)) coord(p,c) split(c,c0,c1,2) fuse(c0,c1,r) prefetch(A(i,j), r, 2)"),
    (SPMV, {"A": "dcsr"}, "pos(i,p,A(i,j)) coord(p,c) divide(c,c0,c1,3) fuse(c0,c1,r) prefetch(x(j), j, 2) prefetch(A(i,j), r, 1)"),
]


@pytest.mark.parametrize("statement, formats, steps", CASES)
@pytest.mark.parametrize("target", ["interpret", "c"])
def test_results_are_the_same(rng, statement: str, formats: dict[str, str], steps: str, target: str) -> None:
    plain, ahead = sl.program(statement, formats, ""), sl.program(statement, formats, steps, target=target)
    sizes = {"i": 9, "j": 11, "k": 20}
    given = [
        matrix(rng, *(sizes[v] for v in indices.split(",")), 0.4) if "," in indices else matrix(rng, 1, sizes[indices], 0.7)[0]
        for indices in re.findall(r"\w+\(([\w,]+)\)", statement.partition("=")[2])
    ]
    assert (ahead(*given).to_numpy() == plain(*given).to_numpy()).all()


@pytest.mark.parametrize("target", ["interpret", "c"])
def test_a_tensor_asks_at_every_level(rng, target: str) -> None:
    B = np.where(rng.random((5, 6, 7)) < 0.3, rng.integers(1, 9, (5, 6, 7)), 0).astype(float)
    C, D = matrix(rng, 6, 11, 1.0), matrix(rng, 7, 11, 1.0)
    steps = "prefetch(B(i,k,l), i, 1) prefetch(C(k,r), k, 2) prefetch(D(l,r), l, 3) prefetch(B(i,k,l), l, 9)"
    made = sl.program(MTTKRP, {"B": "csf"}, steps, target=target)(B, C, D)
    assert (made.to_numpy() == np.einsum("ikl,kr,lr->ir", B, C, D)).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 6), st.integers(0, 6), st.integers(1, 9), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_nothing_is_asked_for_that_is_not_there(rows: int, columns: int, distance: int, size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, B = matrix(rng, rows, columns, 0.5), matrix(rng, columns, size, 1.0)
    steps = f"split(j,j0,j1,{size}) prefetch(B(j,k), j1, {distance}) prefetch(B(j,k), j0, {distance}) prefetch(A(i,j), i, {distance})"
    for formats in ({}, {"A": "csr"}):
        made = sl.program(SPMM, formats, steps, target="interpret")(A, B)
        assert (made.to_numpy() == A @ B).all()


def test_the_c_asks_the_processor() -> None:
    source = sl.program(SPMM, {"A": "csr"}, "bound(k,kb,32,MaxExact) prefetch(B(j,k), j, 4)").source
    assert source.count("__builtin_prefetch(B_vals + ") == 4
