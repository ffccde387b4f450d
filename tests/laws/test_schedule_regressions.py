"""Scheduled statements that were wrong once: each is compared with the dense oracle, in the interpreter and in C."""

from __future__ import annotations

import numpy as np
import pytest

import sparseloom as sl

CASES = (
    ("y(i) = A(i,j) * x(j)", "csr", "split(j,j0,j1,2) reorder(j1,j0) fuse(j1,j0,f) split(f,f0,f1,2)"),
    ("y(i) = A(i,j) * x(j)", "csr", "divide(j,j0,j1,7) reorder(j1,j0) fuse(j1,j0,f) split(f,f0,f1,1)"),
    ("y(i) = A(i,j) * x(j)", "csr", "split(i,i0,i1,4) fuse(i0,i1,f) fuse(f,j,f1) split(f1,f10,f11,4)"),
    ("y(i) = A(i,j) * x(j)", "coo", "pos(i,ip,A(i,j)) split(ip,ip0,ip1,5) split(ip1,a,b,1) fuse(a,b,f) fuse(ip0,f,f1)"),
    # the halves of a split, fused again, then counted in positions, whole and in blocks
    ("y(i) = A(i,j) * x(j)", "csr", "split(i,i0,i1,5) fuse(i0,i1,f) pos(f,p,A(i,j))"),
    ("y(i) = A(i,j) * x(j)", "dcsr", "split(i,i0,i1,5) fuse(i0,i1,f) split(f,f0,f1,3) pos(f1,p,A(i,j))"),
    # a block of a fused variable that begins and ends within a row
    ("y(i) = A(i,j) * x(j)", "csr", "fuse(i,j,f) split(f,f0,f1,7) pos(f1,p,A(i,j))"),
    ("y(i) = A(i,j) * x(j)", "coo", "fuse(i,j,f) divide(f,f0,f1,3) pos(f1,p,A(i,j))"),
    # positions of two levels, fused
    ("y(i) = A(i,j) * x(j)", "dcsr", "pos(i,ip,A(i,j)) pos(j,jp,A(i,j)) fuse(ip,jp,f) split(f,f0,f1,4)"),
    # coordinates found again in blocks of positions, of dense and of sparse levels
    ("y(i) = A(i,j) * x(j)", "csr", "pos(i,ip,A(i,j)) split(ip,ip0,ip1,2) coord(ip1,c)"),
    ("y(i) = A(i,j) * x(j)", "csr", "pos(j,jp,A(i,j)) split(jp,jp0,jp1,2) coord(jp1,c) pos(c,q,A(i,j))"),
    # positions of coordinates found again, whose block ends with the last row
    ("y(i) = A(i,j) * x(j)", "csr", "fuse(i,j,f) pos(f,p,A(i,j)) coord(p,c) pos(c,q,A(i,j))"),
    # a workspace over positions, whose consumer no longer reads the operand
    ("y(i) = A(i,j) * x(j)", "csr", "pos(j,p,A(i,j)) precompute(A(i,j) * x(j), p, pw, w) coord(p,c)"),
    ("y(i) = A(i,j) * x(j)", "csr", "pos(j,p,A(i,j)) precompute(A(i,j) * x(j), p, pw, w) split(pw,pw0,pw1,2) coord(pw1,c)"),
    # private copies of one row, slots, lanes that would meet in memory, lanes with a workspace
    ("y(j) = A(i,j) * x(i)", "csr", "parallelize(i,CPUThread,Temporary)"),
    ("y(j) = A(i,j) * x(i)", "csr", "parallelize(i,CPUVector,Temporary)"),
    ("y(j) = A(i,j) * x(i)", "csr", "precompute(x(i), i, i, w) parallelize(i,CPUThread,ParallelReduction)"),
    # every part of a merge that runs in parallel writes its own places
    ("y(j) = sum(i, A(i,j)) + x(j)", "csc", "parallelize(j,CPUThread,NoRaces)"),
)


@pytest.mark.parametrize("target", ("interpret", "c"))
@pytest.mark.parametrize(("statement", "form", "schedule"), CASES, ids=[schedule for _, _, schedule in CASES])
def test_a_schedule_that_was_wrong_is_right(statement: str, form: str, schedule: str, target: str, rng: np.random.Generator) -> None:
    dense = rng.integers(1, 5, (6, 6)) * (rng.random((6, 6)) < 0.5)
    x = rng.integers(1, 5, 6)
    kernel = sl.program(statement, formats={"A": form}, schedule=schedule, target=target)
    plain = sl.program(statement, formats={"A": form}, target="interpret")
    operand = sl.asarray(dense).to(form)
    assert np.array_equal(kernel(A=operand, x=x).to_numpy(), plain(A=operand, x=x).to_numpy())


@pytest.mark.parametrize("target", ("interpret", "c"))
def test_a_bound_is_checked_although_its_variable_was_split(target: str) -> None:
    kernel = sl.program("y(i) = b(i)", schedule="bound(i,ib,4,MaxExact) split(ib,i0,i1,2)", target=target)
    assert kernel(np.arange(4)).to_numpy().tolist() == [0, 1, 2, 3]
    with pytest.raises(sl.ShapeError, match="bound"):
        kernel(np.arange(5))
