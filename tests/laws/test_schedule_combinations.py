"""Combinations of steps that were wrong once, in the interpreter and in C, for all sizes around the blocks'."""

from __future__ import annotations

import numpy as np
import pytest

import sparseloom as sl

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
