"""The campaign itself: what it counts as the same, and what it tells of the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conformance.campaign import section
from conformance.replay import MOST, Tally, difference, refused

import sparseloom as sl


def fail(problem: Exception) -> Any:
    raise problem


def test_calls_are_compared_and_answered_as_the_library_does() -> None:
    tally = Tally(np.asarray)
    assert tally.compare("f", "1", lambda: 1, lambda: 1) == 1
    assert tally.compare("f", "2", lambda: 2, lambda: 3) == 2
    assert tally.compare("f", "3", lambda: 3, lambda: fail(sl.ShapeError("no 3 of x3"))) == 3
    with pytest.raises(ValueError, match="theirs"):
        tally.compare("f", "4", lambda: fail(ValueError("theirs")), lambda: fail(ValueError("ours")))
    with pytest.raises(ValueError, match="theirs"):
        tally.compare("g", "5", lambda: fail(ValueError("theirs")), lambda: 5)
    for _ in range(2 * MOST):
        tally.compare("h", "", lambda: tally.compare("inner", "", lambda: 1, lambda: 1), lambda: 1)
    assert tally.same == {"f": 2, "h": MOST}
    assert tally.others == {"WRONG values": {"f": 1}, "refused: no N of x3": {"f": 1}, "accepted, but not by the library": {"g": 1}}
    told = {"same": 5, "count": tally.count, "others": tally.others, "examples": tally.examples, "made": 11, "different": 6, "tests": 1}
    assert "6 of them different. 5 of the 8 that were compared give the same: 62.5 %." in section("A library", told)


def test_differences_are_named() -> None:
    one = np.array([1.0, np.nan])
    assert difference(one, one + 1e-14) is None
    assert difference((one, one), [one, one]) is None
    assert difference(one, one[:1]) == "another shape"
    assert difference(one, one[:, None]) == "another number of modes: 1 for 2"
    assert difference(one, one.astype("f4")) == "another dtype"
    assert difference(one, one + 1e-3) == "WRONG values"
    assert refused(KeyError("x")) == "a fault: KeyError: 'x'"
