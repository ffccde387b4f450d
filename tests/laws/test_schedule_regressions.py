"""Scheduled statements that were wrong once: each is compared with the dense oracle, in the interpreter and in C."""

from __future__ import annotations

import numpy as np
import pytest
from fuzz.drawing import Case
from fuzz.operands import Spec
from fuzz.runner import Tally, prepare_unscheduled
from fuzz.scheduled_runner import attempt
from fuzz.schedules import Scheduled
from numpy.typing import NDArray

import sparseloom as sl
from sparseloom.core.trees import walk
from sparseloom.formats.validate import check
from sparseloom.loops import nodes as ir
from sparseloom.notation.text import parse
from sparseloom.schedule.schedule import Schedule

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
    # positions of coordinates found again, whose block ends with the last row
    ("y(i) = A(i,j) * x(j)", "csr", "fuse(i,j,f) pos(f,p,A(i,j)) coord(p,c) pos(c,q,A(i,j))"),
    # a workspace over positions, whose consumer no longer reads the operand
    ("y(i) = A(i,j) * x(j)", "csr", "pos(j,p,A(i,j)) precompute(A(i,j) * x(j), p, pw, w) coord(p,c)"),
    ("y(i) = A(i,j) * x(j)", "csr", "pos(j,p,A(i,j)) precompute(A(i,j) * x(j), p, pw, w) split(pw,pw0,pw1,2) coord(pw1,c)"),
    # private copies of one row, slots, lanes that would meet in memory, lanes with a workspace
    ("y(j) = A(i,j) * x(i)", "csr", "parallelize(i,CPUThread,Temporary)"),
    ("y(j) = A(i,j) * x(i)", "csr", "precompute(x(i), i, i, w) parallelize(i,CPUThread,ParallelReduction)"),
    # a workspace whose consumer has a producer of its own, which walks positions that nothing else reads
    ("y(i) = absolute(sum(j, A(i,j) * x(j)))", "csr", "pos(j,p,A(i,j)) coord(p,c) precompute(A(i,j) * x(j), {i,c}, {iw,cw}, w)"),
    # a workspace that may turn out unset, between the digits of a result's variable
    ("y(i,j,k) = A(i,j) * x(k)", "csr", "split(k,k0,k1,4) precompute(A(i,j), {j,k0}, {jw,k0w}, w)"),
    # a variable that was renamed in one producer and cut into blocks outside it
    ("y(i) = A(i,j) * x(j)", "csr", "precompute(x(j),j,jw,w) split(j,j0,j1,2) pos(j1,p,A(i,j)) precompute(A(i,j),p,q,v)"),
    # a sum of truth values that moves out of a sum of numbers
    ("y(i) = 2 * (A(i,j) > x(j))", "csr", "split(j,j0,j1,4) precompute(A(i,j) > x(j), j0, j0, w)"),
    # a row of a level that repeats coordinates, in two blocks of positions
    ("y(i) = A(i,j) * x(j)", "coo", "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,3) parallelize(p0,CPUThread,Atomics)"),
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


def found(statement: str, form: str, sizes: dict[str, int], schedule: str, **specs: Spec) -> Scheduled:
    """A scheduled case as the random tests draw them."""
    case = Case((0, 0), parse(statement).assign, sizes, specs, form, None, None)
    job = prepare_unscheduled(case, Tally())
    assert job is not None
    return Scheduled(case, Schedule.from_text(job.prepared.unscheduled(), schedule).trace)


FOUND = {
    "a list that is filled in several branches is not followed while it is filled": found(
        "R(k,i,l,j) += B(j,k,l) * C(i,k,j)",
        "ddss:2,0,3,1",
        {"k": 1, "i": 3, "l": 1, "j": 2},
        "fuse(k, j, f)",
        R=Spec("ssss", "float64", 1240278961, density=1.0),
        B=Spec("sss", "float64", 2, density=0.3),
        C=Spec("sss", "float64", 3, density=0.3),
    ),
    "an unordered operand in a producer": found(
        "R(i,n) = A(i)", "dd", {"i": 6, "n": 2}, "precompute(A(i), n, nw, w)", A=Spec("s~", "int64", 2, density=0.9)
    ),
    "an unordered operand that only drives a loop is not searched": found(
        "R = A(i) * B(i,k)",
        "",
        {"i": 3, "k": 5},
        "pos(i,p,B(i,k)) precompute(A(i),p,q,w) precompute(w(p),k,kw,v)",
        A=Spec("d", "int64", 2),
        B=Spec("ds~", "int64", 3, density=0.9),
    ),
    "an unordered operand beside a workspace": found(
        "R(j) = A(j) + A(j) + True", "d", {"j": 6}, "precompute(A(j) + True, j, jw, w)", A=Spec("s~", "float64", 4, density=0.9)
    ),
    "positions of unordered levels whose fused variable was cut and put together": found(
        "R = A(j,i)",
        "",
        {"j": 3, "i": 4},
        "fuse(j,i,f) split(f,f0,f1,5) fuse(f0,f1,g) pos(g,p,A(j,i))",
        A=Spec("ds~", "int64", 5, density=0.9),
    ),
    "a workspace over positions, found again in those of another operand": found(
        "R = B(i,j) * C(i,j)",
        "",
        {"i": 3, "j": 4},
        "fuse(i,j,f) pos(f,p,B(i,j)) precompute(B(i,j),p,q,w) coord(p,c) pos(c,r,C(i,j))",
        B=Spec("ds", "int64", 6),
        C=Spec("ss", "int64", 7),
    ),
    "a workspace over positions where the operand is absent": found(
        "R(i) = A(i,j) - C(i)",
        "d",
        {"i": 4, "j": 3},
        "pos(j,p,A(i,j)) precompute(A(i,j),p,p,w)",
        A=Spec("ss", "int64", 8, density=0.2),
        C=Spec("s", "int64", 9),
    ),
    "positions of one operand, found again in those of one that is absent": found(
        "R(i) = b(i) + A(i,j) * B(j,k)",
        "d",
        {"i": 4, "j": 3, "k": 2},
        "pos(j,p,A(i,j)) coord(p,c) pos(c,q,B(j,k))",
        b=Spec("s", "int64", 10),
        A=Spec("ss", "int64", 11, density=0.2),
        B=Spec("ss", "int64", 12),
    ),
    "blocks of a dense level's positions below a sparse level without an entry": found(
        "R(i) = A(j,i)",
        "d",
        {"j": 2, "i": 3},
        "divide(i,i0,i1,4) precompute(A(j,i), {i0,i1}, {a,b}, w) pos(b,p,A(j,i)) precompute(A(j,i),p,q,v)",
        A=Spec("sd", "int64", 18, density=0.0),
    ),
    "positions that are only written about, found again": found(
        "R = any(r, A(i,j) * B(r))",
        "",
        {"i": 2, "j": 2, "r": 3},
        "pos(r,p,B(r)) precompute(B(r), {i,j,p}, {i,j,p}, w) coord(p,c)",
        A=Spec("ss", "float64", 13),
        B=Spec("s", "float64", 14),
    ),
    "factors that are absent together are taken together": found(
        "R(i,j) = A(i) * B(j) * (False * C(i,j))",
        "ss",
        {"i": 3, "j": 4},
        "precompute(A(i) * (False * C(i,j)), j, jw, w)",
        A=Spec("s", "float64", 15, density=1.0),
        B=Spec("d", "float64", 16),
        C=Spec("ss", "bool", 17, 0, fill=True, density=0.3),
    ),
    "rows of blocks that end in a loop whose blocks a fused one cuts": found(
        "R(j,k) = A(k)",
        "bcsr(2,3)",
        {"j": 5, "k": 7},
        "divide(k_block,k_block0,k_block1,2) fuse(j_block,k_block0,f) divide(f,f0,f1,3)",
        A=Spec("d", "float64", 3),
    ),
    "absent terms that count are reduced into a block of an appended result": found(
        "R(n,i) = sum(r0, cos(A(i,r0)) * B(r0))",  # B varies along r0, so unstored terms have no closed form
        "sd",
        {"n": 2, "i": 3, "r0": 2},
        "reorder(r0,i)",
        A=Spec("ss", "float64", 3, 0, density=0.6),
        B=Spec("d", "float64", 5),
    ),
    "the same sum without B, whose unstored terms are applied in closed form": found(
        "R(n,i) = sum(r0, cos(A(i,r0)))",
        "sd",
        {"n": 2, "i": 3, "r0": 2},
        "split(i,i0,i1,2) unroll(i1,2)",
        A=Spec("ss", "float64", 3, 0, density=0.6),
    ),
    "a workspace over the digits of positions that are found again": found(
        "R = A(i) - A(i)",
        "",
        {"i": 7},
        "pos(i,p,A(i)) divide(p,p0,p1,2) precompute(-A(i),p1,p1w,w) divide(p1,a,b,3) coord(b,c) pos(c,q,A(i))",
        A=Spec("d", "float64", 3),
    ),
    "coordinates found again twice, of blocks of two operands": found(
        "R = A(i) * B(i)",
        "",
        {"i": 9},
        "pos(i,p,B(i)) split(p,p0,p1,2) coord(p1,c) pos(c,q,A(i)) split(q,q0,q1,2) coord(q1,d)",
        A=Spec("d", "int64", 4),
        B=Spec("s", "int64", 4, density=0.8),
    ),
    "coordinates of two levels found again twice": found(
        "R = A(i,j) * B(i,j)",
        "",
        {"i": 5, "j": 4},
        "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,2) coord(p1,c) pos(c,q,B(i,j)) split(q,q0,q1,2) coord(q1,d) split(d,d0,d1,3)",
        A=Spec("ss", "int64", 3),
        B=Spec("ss", "int64", 4),
    ),
    "a dense result whose rows are covered by blocks that may be absent": found(
        "R(j,i) = B(i,j)",
        "dd:1,0",
        {"j": 9, "i": 5},
        "reorder(i_within,j_block,j_within) split(j_block,j_block0,j_block1,2)",
        B=Spec("bcsr(2,2)", "float64", 5, density=0.3),
    ),
    "a dense result covered by blocks of rows below which others are looked up": found(
        "R(j,i) = B(i,j)",
        "dd",
        {"j": 9, "i": 5},
        "reorder(j_block,j_within,i_block,i_within)",
        B=Spec("bcsr(2,2)", "float64", 5, density=0.3),
    ),
    "a workspace over coordinates of two levels found again twice": found(
        "R = A(i,j) * B(i,j)",
        "",
        {"i": 5, "j": 4},
        "fuse(i,j,f) pos(f,p,A(i,j)) coord(p,c) pos(c,q,A(i,j)) coord(q,d) precompute(A(i,j) * B(i,j), d, dw, w)",
        A=Spec("ds", "int64", 3),
        B=Spec("ss", "int64", 4),
    ),
    "a sum of truth values inside a sum of integers is taken out as it is": found(
        "R(i,j) = A(i,j) * 2 + (B(i) + C(j))",
        "dd",
        {"i": 6, "j": 6},
        "precompute(B(i) + C(j), j, jw, w)",
        A=Spec("ds", "bool", 5, 0, density=0.1),
        B=Spec("d", "bool", 5, 0, density=0.9),
        C=Spec("s", "bool", 7, 0, density=0.6),
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_a_scheduled_case_that_was_wrong_is_right(name: str) -> None:
    assert attempt(FOUND[name]) is None


@pytest.mark.parametrize("target", ("interpret", "c"))
@pytest.mark.parametrize(
    ("steps", "named"),
    [
        ("bound(i,ib,4,MaxExact) split(ib,i0,i1,2)", "bound(i, ib, 4, MaxExact): i runs from 0 up to 5"),
        ("bound(i,ib,9,MaxConstraint) split(ib,i0,i1,2) bound(i0,ic,2,MaxExact)", "bound(i0, ic, 2, MaxExact): i0 runs from 0 up to 3"),
        ("divide(i,i0,i1,2) bound(i1,ib,2,MaxConstraint)", "bound(i1, ib, 2, MaxConstraint): i1 runs from 0 up to 3"),
        ("pos(i,p,b(i)) bound(p,q,1,MinConstraint)", "bound(p, q, 1, MinConstraint)"),
    ],
)
def test_a_bound_that_does_not_hold_is_named(steps: str, named: str, target: str) -> None:
    with pytest.raises(sl.ShapeError) as caught:
        sl.program("y(i) = b(i)", schedule=steps, target=target)(np.arange(5))
    assert str(caught.value).splitlines()[0] == f"a bound that the schedule promises does not hold for these operands: {named}"


def test_the_schedule_of_a_tensor_goes_on_with_text_and_json() -> None:
    i, x, y = sl.IndexVar("i"), sl.asarray(np.arange(5.0), name="x"), sl.zeros(5, name="y")
    y[i] = 2 * x[i]
    start = y.schedule()
    made = start.then_text("split(i,i0,i1,2)").then_text("unroll(i1,2)")
    assert start.then_json(made.to_json()).trace == made.trace
    made.compile("interpret")()
    assert y.to_numpy().tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]


SPLIT = "pos(f,p,A({0})) split(p,p0,p1,3) parallelize(p0,CPUThread,Atomics)"
ROWS = (
    ("Y(i,k) = A(i,j) * X(j,k)", "csr", "fuse(i,j,f) " + SPLIT.format("i,j")),
    ("Y(i,k) = A(i,j) * X(j,k)", "dcsr", "fuse(i,j,f) " + SPLIT.format("i,j") + " parallelize(k,CPUVector,NoRaces)"),
    ("Y(i,k) = A(i,j) * X(j,k)", "csr", "fuse(i,j,f) " + SPLIT.format("i,j") + " split(k,k0,k1,2)"),
    ("Y(i,j,l) = A(i,j,k) * X(k,l)", "csf", "fuse(i,j,g) fuse(g,k,f) " + SPLIT.format("i,j,k")),
    ("Y(i,l) = A(i,j,k) * X(k,l)", "csf", "fuse(i,j,g) fuse(g,k,f) " + SPLIT.format("i,j,k")),
    ("Y(i,k) = A(i,j) * X(j,k)", "csr", "fuse(i,j,f) " + SPLIT.format("i,j").replace("Atomics", "Temporary")),
)


@pytest.mark.parametrize("target", ("interpret", "c"))
@pytest.mark.parametrize(("statement", "form", "schedule"), ROWS)
def test_a_row_that_blocks_of_positions_share_takes_one_atomic_per_element(
    statement: str, form: str, schedule: str, target: str, rng: np.random.Generator
) -> None:
    shape = (5, 4, 6) if form == "csf" else (5, 6)
    A, X = rng.integers(1, 5, shape) * (rng.random(shape) < 0.5), rng.integers(1, 5, (6, 4))
    kernel = sl.program(statement, {"A": form}, schedule, target=target)
    plain = sl.program(statement, {"A": form}, target="interpret")
    assert np.array_equal(kernel(A=A, X=X).to_numpy(), plain(A=A, X=X).to_numpy())
    entries = [n for n in walk(kernel.preview().stages.lowered.function) if isinstance(n, ir.For) and n.var.name == "p"]
    assert entries
    assert not any(isinstance(n, ir.Store) and n.atomic for loop in entries for n in walk(loop))


def test_parts_of_a_sparse_result_whose_blocks_are_empty_are_joined() -> None:
    kernel = sl.program("R(i,j) = A(i,j) * x(i)", {"A": "dcsr", "R": "sd"}, "parallelize(i,CPUThread,NoRaces)", target="c")
    for _ in range(5):  # whether threads have parts of their own is up to chance
        assert kernel(np.zeros((300, 0)), np.ones(300)).to_numpy().shape == (300, 0)


@pytest.mark.parametrize("steps", ["reorder(r, i_each)", "fuse(i_each, r, f)"])
def test_a_sum_of_nothing_still_makes_an_entry_of_a_block(steps: str) -> None:
    """A sum over no terms that may not be skipped: a loop over them outside, or fused with, that over the block would never run."""
    with pytest.raises(sl.ScheduleError, match="S616"):
        sl.program("y(i) = sum(r, cos(A(i)) * b(r))", formats={"A": "s", "y": "sd:0,0/2"}, schedule=steps)


@pytest.mark.parametrize("target", ("interpret", "c"))
@pytest.mark.parametrize("steps", ["", "precompute(A(k) + B(l), j, jw, w)", "fuse(k, j, f) precompute(A(k) + B(l), f, fw, w)"])
def test_a_sum_of_nothing_that_moved_into_a_workspace_makes_no_entry(steps: str, target: str) -> None:
    """``A(k) + B(l)`` is there for every l, but there is none."""
    formats = {"A": "s", "C": "ss", "R": "ss"}
    kernel = sl.program("R(k,j) = (A(k) + B(l)) * C(k,j)", formats, steps, target=target)
    assert kernel(np.ones(3), np.zeros(0), np.ones((3, 4))).nnz == 0
    assert kernel(np.ones(3), np.zeros(2), np.ones((3, 4))).nnz == 12


@pytest.mark.parametrize("target", ("interpret", "c"))
@pytest.mark.parametrize("steps", ["", "precompute(A(i,j) * x(j), i, iw, w)", "precompute(A(i,j), i, iw, w)"])
def test_a_dense_sum_of_nothing_makes_an_entry_wherever_it_is_made(steps: str, target: str) -> None:
    kernel = sl.program("y(i) = sum(j, A(i,j) * x(i))", {"y": "s"}, steps.replace("x(j)", "x(i)"), target=target)
    assert kernel(np.ones((3, 0)), np.ones(3)).nnz == kernel(np.ones((3, 2)), np.ones(3)).nnz == 3


@pytest.mark.parametrize("target", ("interpret", "c"))
@pytest.mark.parametrize("unit", ["CPUThread, ParallelReduction", "CPUThread, Temporary", "CPUVector, ParallelReduction"])
@pytest.mark.parametrize("size", [0, 5])
def test_a_product_that_was_folded_to_nothing_is_still_a_reduction(size: int, unit: str, target: str) -> None:
    kernel = sl.program("R = prod({r}, 0)", schedule=f"parallelize(r, {unit})", sizes={"r": size}, target=target)
    assert kernel().to_numpy() == (0 if size else 1)
