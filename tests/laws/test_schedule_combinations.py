"""Combinations of steps that were wrong once, in the interpreter and in C, for all sizes around the blocks'."""

from __future__ import annotations

import numpy as np
import pytest

import sparseloom as sl
from sparseloom.core.errors import ScheduleError

TARGETS = ("interpret", "c")
PARTS = ("parallelize(f, CPUThread, Temporary)", "parallelize(f, CPUThread, Atomics)", "")
# The outer digit is bound under another name, and a part of its range is left where the loop over the halves is cut.
DIGITS = (
    "split(i,io,ii,3) bound(io,b,0,MinConstraint) reorder(ii,b) split(ii,io6,ii6,5) fuse(ii6,b,f)",
    "split(i,io,ii,3) bound(io,b,0,MinExact) reorder(ii,b) fuse(ii,b,f)",
    "divide(i,io,ii,3) bound(io,b,1000,MaxConstraint) bound(b,c,0,MinConstraint) reorder(ii,c) fuse(ii,c,f)",
    "split(i,io,ii,4) bound(ii,b,4,MaxExact) split(b,ba,bb,2) reorder(ba,bb,io) fuse(bb,io,f)",
    "split(i,io,ii,4) split(ii,ia,ib,2) bound(ib,b,0,MinConstraint) reorder(ia,b,io) fuse(b,io,f)",
    "split(i,io,ii,4) split(io,oa,ob,2) bound(oa,b,0,MinConstraint) reorder(ii,ob,b) fuse(ob,b,f)",
)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("steps", DIGITS)
def test_a_part_of_a_bounded_digit_is_not_walked_for_every_other_part(steps: str, part: str, target: str) -> None:
    k = sl.program("R = 2 * A(i) * B(i)", {"A": "s"}, f"{steps} {part}", target=target)
    for size in (0, 1, 4, 7, 12):
        a = np.arange(size) % 3 * 1.0
        assert k(a, np.ones(size)).to_numpy() == 2 * a.sum(), size


ROWS = np.array([[1, 0, 2, 0], [0, 0, 0, 0], [3, 1, 2, 4], [0, 5, 0, 1], [2, 2, 2, 2]], float)
REDUCTIONS = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", ["csr", "dd", "dcsr"])
@pytest.mark.parametrize("part", ["a(i) * {}(m, B(i,m))", "{}(m, B(i,m))", "{}(m, B(i,m)) * a(i)"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_reduction_is_computed_ahead(name: str, part: str, form: str, target: str) -> None:
    steps = f"precompute({part.format(name)}, i, iw, ws)"
    k = sl.program(f"y(i) = a(i) * {name}(m, B(i,m))", {"B": form}, steps, target=target)
    a = np.arange(1.0, 6)
    np.testing.assert_array_equal(k(a, ROWS).to_numpy(), a * REDUCTIONS[name](ROWS, axis=1))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("statement", "steps"),
    [
        ("y(i) = B(i,m) * a(i)", "precompute(sum(m, B(i,m) * a(i)), i, iw, ws)"),
        ("y(i) = B(i,m) * a(i)", "split(m,m0,m1,3) precompute(sum(m, B(i,m) * a(i)), i, iw, ws)"),
        ("y(i) = sum(m, B(i,m)) * a(i)", "split(m,m0,m1,3) precompute(sum(m, B(i,m)), i, iw, ws)"),
        ("y(i) = sum(m, B(i,m)) * a(i)", "split(i,i0,i1,2) precompute(a(i) * sum(m, B(i,m)), {i0,i1}, {ia,ib}, ws)"),
        ("y(i) = sum(m, B(i,m)) * a(i)", "split(i,i0,i1,2) precompute(sum(m, B(i,m)), i1, ib, ws)"),
        ("y(i) = sum(m, B(i,m)) * a(i)", "precompute(sum(m, B(i,m)), i, iw, ws) parallelize(iw, CPUThread, NoRaces)"),
        ("y(i) = sum(m, B(i,m) * max(n, C(n))) * a(i) / 3", "precompute(sum(m, B(i,m) * max(n, C(n))) * a(i), i, iw, ws)"),
        ("y(i) = sum(m, B(i,m)) * a(i)", "precompute(B(i,m), m, mw, v) precompute(a(i) * sum(m, v(m)), i, iw, ws)"),
        ("y(i) = a(i) * sum(m, B(i,m))", "precompute(t, i, iw, ws)"),
    ],
)
def test_a_reduction_is_computed_ahead_wherever_its_loops_are(statement: str, steps: str, target: str) -> None:
    k = sl.program(statement, {"B": "csr"}, steps, target=target)
    operands = {"B": ROWS, "a": np.arange(1.0, 6)} | ({"C": np.array([1.0, 3])} if "C" in statement else {})
    np.testing.assert_array_equal(k(**operands).to_numpy(), operands["a"] * ROWS.sum(1))


def test_a_temporary_does_not_leave_a_loop_that_fills_it() -> None:
    """``i`` is known by ``i0`` and ``i1w`` together, so the loop over ``i0`` would have to go along."""
    with pytest.raises(ScheduleError, match=r"\[S710\].*w\(i1\) reads w, which is filled inside the loop over j"):
        sl.program("R = B(i,j)", {"B": "sd:1,0"}, "split(i, i0, i1, 5) precompute(B(i,j), i1, i1w, w) precompute(w(i1), j, j, w1)")


@pytest.mark.parametrize("op", ["prod", "sum", "max", "all"])
@pytest.mark.parametrize("entries", [0, 1])
def test_a_reduction_that_is_computed_ahead_stays_absent(op: str, entries: int) -> None:
    """The workspace is absent where the scalar is that it takes over."""
    b = sl.from_coo([np.arange(entries)], np.zeros(entries), (2,), format="s")
    c = sl.from_coo([np.arange(0)], np.zeros(0), (2,), format="s")
    text = f"R(i) = {op}(m, a * b(m)) / c(i)"
    want = sl.program(text, {"b": "s", "c": "s"})(np.asarray(2.0), b, c).to_numpy()
    for target in ("c", "interpret"):
        kernel = sl.program(text, {"b": "s", "c": "s"}, f"precompute({op}(m, a * b(m)), i, iw, w)", target=target)
        np.testing.assert_array_equal(kernel(np.asarray(2.0), b, c).to_numpy(), want)
