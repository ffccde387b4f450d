"""Scheduled statements that were wrong once: each is compared with the dense oracle, in the interpreter and in C."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import sparseloom as sl
from sparseloom.formats.validate import check

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
    # blocks that lie behind the last row
    ("y(i) = A(i,j) * x(j)", "csr", "divide(i,i0,i1,4) fuse(i1,j,f) pos(f,p,A(i,j))"),
    ("y(i) = A(i,j) * x(j)", "dcsr", "divide(i,i0,i1,5) fuse(i1,j,f) pos(f,p,A(i,j))"),
    ("y(i) = A(i,j) * x(j)", "csr", "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,3) coord(p1,c) pos(c,q,A(i,j))"),
    ("y(i) = A(i,j) * x(j)", "bcsr(1,2)", "fuse(i_block,j_block,f) split(f,f0,f1,4)"),
    # positions of two levels, fused
    ("y(i) = A(i,j) * x(j)", "dcsr", "pos(i,ip,A(i,j)) pos(j,jp,A(i,j)) fuse(ip,jp,f) split(f,f0,f1,4)"),
    ("y(i) = A(i,j) * x(j)", "ell", "pos(i,ip,A(i,j)) pos(j,jp,A(i,j)) fuse(ip,jp,f) split(f,f0,f1,4)"),
    ("y(i) = A(i,j) * x(j)", "csr", "pos(i,ip,A(i,j)) pos(j,jp,A(i,j)) split(ip,ip0,ip1,4) fuse(ip1,jp,f)"),
    ("y(i) = A(i,j) * x(j)", "dcsr", "pos(i,ip,A(i,j)) pos(j,jp,A(i,j)) divide(ip,ip0,ip1,4) split(ip1,a,b,2) fuse(b,jp,f) coord(f,c)"),
    ("y(i) = A(i,j) * x(j)", "coo", "pos(i,ip,A(i,j)) pos(j,jp,A(i,j)) split(ip,ip0,ip1,4) fuse(ip1,jp,f)"),
    # unused places of a padded level
    ("y(i) = A(i,j) * x(j)", "ell", "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,3) reorder(p1,p0)"),
    ("y(i) = A(i,j) * x(j)", "ell", "fuse(i,j,f) split(f,f0,f1,4) pos(f1,p,A(i,j))"),
    ("y(i) = A(i,j) * x(j)", "ell", "fuse(i,j,f) pos(f,p,A(i,j)) precompute(A(i,j) * x(j), p, pw, w)"),
    # coordinates found again in blocks of positions, of dense and of sparse levels
    ("y(i) = A(i,j) * x(j)", "csr", "pos(i,ip,A(i,j)) split(ip,ip0,ip1,2) coord(ip1,c)"),
    ("y(i) = A(i,j) * x(j)", "csr", "pos(j,jp,A(i,j)) split(jp,jp0,jp1,2) coord(jp1,c) pos(c,q,A(i,j))"),
    ("y = A(i,j) * x(j)", "dcsr", "pos(i,ip,A(i,j)) split(ip,ip0,ip1,2) coord(ip1,c) fuse(c,j,f) pos(f,p,A(i,j))"),
    # a workspace over positions, whose consumer no longer reads the operand
    ("y(i) = A(i,j) * x(j)", "csr", "pos(j,p,A(i,j)) precompute(A(i,j) * x(j), p, pw, w) coord(p,c)"),
    ("y(i) = A(i,j) * x(j)", "csr", "pos(j,p,A(i,j)) precompute(A(i,j) * x(j), p, pw, w) split(pw,pw0,pw1,2) coord(pw1,c)"),
    # private copies of one row, slots, lanes that would meet in memory, lanes with a workspace
    ("y(j) = A(i,j) * x(i)", "csr", "parallelize(i,CPUThread,Temporary)"),
    ("y(j) = A(i,j) * x(i)", "csr", "parallelize(i,CPUVector,Temporary)"),
    ("y(j) = A(i,j) * x(i)", "csr", "precompute(x(i), i, i, w) parallelize(i,CPUThread,ParallelReduction)"),
    ("y = A(i,j) * x(j) - 3", "sd", "parallelize(j,CPUThread,Temporary) precompute(A(i,j) * x(j), i, iw, w) reorder(j,iw)"),
    # every part of a merge that runs in parallel writes its own places
    ("y(j) = sum(i, A(i,j)) + x(j)", "csc", "parallelize(j,CPUThread,NoRaces)"),
)

TENSORS = (
    # every row of an appended result's dense level ends, whichever loops run
    ("R(i,j) = 3", {"R": "ds"}, "split(i,i0,i1,4)"),
    ("R(i,j,k) = 0", {"R": "dds"}, "split(j,j0,j1,16)"),
    ("R(i,j,k) = A(i,j,k)", {"A": "sss", "R": "dds"}, "split(j,j0,j1,2)"),
    ("R(i,j,k) = A(i,j,k) * B(i,j,k)", {"A": "sss", "B": "sss", "R": "sds"}, "pos(j,p,A(i,j,k))"),
    ("R(i,j,k) = A(i,j,k) * B(i,j,k)", {"A": "dss", "B": "sss", "R": "sds"}, "fuse(i,j,f) pos(f,p,A(i,j,k))"),
    ("R(i,j,k) = A(i,j,k) * B(i,j,k)", {"A": "sds", "B": "sss", "R": "sds"}, "fuse(j,k,f) pos(f,p,A(i,j,k))"),
    (
        "R(i,j,k) = A(i,j,k) * B(i,j,k)",
        {"A": "sss", "B": "sss", "R": "dds"},
        "fuse(i,j,f) pos(f,p,A(i,j,k)) split(p,p0,p1,2) coord(p1,c)",
    ),
    # an operand that is absent further down stands in its block nevertheless
    (
        "R(i,j,k) = A(i,j,k) * (B(i,j,k) + 1)",
        {"A": "ddd", "B": "dds", "R": "ddd"},
        "reorder(k,j,i) pos(i,ip,B(i,j,k)) split(ip,ip0,ip1,2) coord(ip1,c) pos(c,q,A(i,j,k))",
    ),
    # parts of a parallel merge whose loop goes from block to block
    (
        "R(i,j,k) = A(i,j,k) + B(i,j,k)",
        {"A": "sdd", "B": "dsd", "R": "ddd"},
        "divide(j,j0,j1,7) reorder(j1,j0) parallelize(j0,CPUThread,NoRaces)",
    ),
)


def sparse(rng: np.random.Generator, shape: tuple[int, ...], density: float) -> NDArray[np.int64]:
    """Small integers, most of them 0."""
    return rng.integers(1, 5, shape) * (rng.random(shape) < density)


@pytest.mark.parametrize("target", ("interpret", "c"))
@pytest.mark.parametrize(("statement", "form", "schedule"), CASES, ids=[schedule for _, _, schedule in CASES])
def test_a_schedule_that_was_wrong_is_right(statement: str, form: str, schedule: str, target: str, rng: np.random.Generator) -> None:
    dense = sparse(rng, (6, 6), 0.5)
    x = rng.integers(1, 5, 6)
    kernel = sl.program(statement, formats={"A": form}, schedule=schedule, target=target)
    plain = sl.program(statement, formats={"A": form}, target="interpret")
    operand = sl.asarray(dense).to(form)
    assert np.array_equal(kernel(A=operand, x=x).to_numpy(), plain(A=operand, x=x).to_numpy())


@pytest.mark.parametrize("density", (0.0, 0.2, 0.7))
@pytest.mark.parametrize("target", ("interpret", "c"))
@pytest.mark.parametrize(("statement", "formats", "schedule"), TENSORS)
def test_a_scheduled_tensor_that_was_wrong_is_right(
    statement: str, formats: dict[str, str], schedule: str, target: str, density: float, rng: np.random.Generator
) -> None:
    operands = {name: sl.asarray(sparse(rng, (3, 4, 5), density)).to(form) for name, form in formats.items() if name != "R"}
    sizes = {} if operands else {v: n for v, n in {"i": 3, "j": 4, "k": 5}.items() if v in statement}
    kernel = sl.program(statement, formats=formats, schedule=schedule, target=target, sizes=sizes)
    plain = sl.program(statement, formats=formats, target="interpret", sizes=sizes)
    made, expected = kernel(**operands), plain(**operands)
    check(made.storage, "R")
    assert np.array_equal(made.to_numpy(), expected.to_numpy())


def test_truth_values_that_repeat_are_not_counted_apart() -> None:
    """Two entries of one coordinate are one truth value, so in a sum of numbers they must be put together first."""
    kernel = sl.program("y = 2 * x(j)", formats={"x": "u"}, schedule="pos(j,p,x(j))")
    assert kernel(np.array([1.0, 0.0, 3.0])).to_numpy() == 8
    with pytest.raises(sl.ScheduleError, match="S413"):
        kernel(np.array([True, False, True]))


@pytest.mark.parametrize("target", ("interpret", "c"))
def test_a_block_with_nothing_to_reduce_is_still_appended(target: str) -> None:
    a = np.ones((2, 3))
    for schedule in ("", "reorder(r,j)"):
        kernel = sl.program("R(i,j) = max({r}, A(i,j))", formats={"R": "sd"}, schedule=schedule, sizes={"r": 0}, target=target)
        assert np.array_equal(kernel(A=a).to_numpy(), np.full((2, 3), -np.inf))


@pytest.mark.parametrize("target", ("interpret", "c"))
def test_a_bound_is_checked_although_its_variable_was_split(target: str) -> None:
    kernel = sl.program("y(i) = b(i)", schedule="bound(i,ib,4,MaxExact) split(ib,i0,i1,2)", target=target)
    assert kernel(np.arange(4)).to_numpy().tolist() == [0, 1, 2, 3]
    with pytest.raises(sl.ShapeError, match="bound"):
        kernel(np.arange(5))
