"""The campaign itself: what it counts as the same, and what it tells of the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conformance.campaign import section, share
from conformance.replay import MOST, Call, NoOpinion, Tally, absent_quotient, applied, difference, listed, refused

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
    told = {"same": 5, "count": tally.count, "others": tally.others, "named": {}, "examples": tally.examples, "made": 11}
    text = section("A library", {**told, "different": 6, "tests": 1, "calls": 1})
    assert "6 of them different. 5 of the 8 that were compared give the same: 62.5 %." in text


def test_what_differs_on_purpose_is_counted_apart() -> None:
    def reason(call: Call) -> str | None:
        return "three is too many" if call.expected == 3 else None

    tally = Tally(np.asarray, reasons=(reason,))
    tally.compare("f", "1", lambda: 1, lambda: 1)
    tally.compare("f", "2", lambda: 2, lambda: 1.0, lambda: 1.0)
    tally.compare("f", "3", lambda: 3, lambda: 4, lambda: 5)
    tally.compare("f", "4", lambda: 4, lambda: fail(sl.ShapeError("no")), lambda: fail(ValueError("no")))
    tally.compare("f", "5", lambda: 5, lambda: fail(sl.DTypeError("values of type float128 are not supported")))
    tally.compare("f", "6", lambda: 6, lambda: 7, lambda: 8)
    tally.compare("f", "7", lambda: 7, lambda: fail(TypeError("no")), lambda: fail(TypeError("unexpected keyword argument 'x'")))
    tally.compare("f", "8", lambda: 8, lambda: fail(sl.ShapeError("no")), lambda: fail(NoOpinion()))
    assert tally.others == {"WRONG values": {"f": 1}, "refused: no": {"f": 2}}
    assert [word.split(": ")[0] for word in tally.named] == ["WRONG values", "WRONG values", "refused", "refused"]
    told = {"same": 1, "count": tally.count, "others": tally.others, "named": tally.named, "examples": tally.examples}
    text = section("A library", {**told, "made": 8, "different": 8, "tests": 1, "calls": 0.5})
    assert "8 of them different. A sample of 50 % was compared. 1 of the 8" in text
    assert "1 of the 8 that were compared give the same: 12.5 %. Of those with dtypes that tensors have: 14.3 %." in text
    assert "Without the 3 that differ on purpose: 25.0 %." in text
    assert "| what differs on purpose, and why | calls | of | for example |" in text


def test_an_array_to_be_filled_is_not_the_one_that_the_library_fills() -> None:
    given = np.zeros(2)

    def fills(x: int, out: np.ndarray) -> np.ndarray:
        out[:] = x
        return out

    assert applied(fills, lambda x: x + 1)(1, out=given).tolist() == [2, 2]
    assert not given.any()


def test_tensors_that_are_too_large_for_arrays_are_compared_by_their_entries() -> None:
    one = listed((10**9, 10**9), [[5, 0, 7], [1, 2, 3]], [1.0, 2.0, 0.0])
    other = listed((10**9, 10**9), [[0, 5], [2, 1]], [2.0, 1.0])
    assert difference(one, other) is None
    assert difference(one, listed((10**9, 10**8), [[0, 5], [2, 1]], [2.0, 1.0])) == "WRONG values"


def test_differences_are_named() -> None:
    one = np.array([1.0, np.nan])
    assert difference(one, one + 1e-14) is None
    assert difference((one, one), [one, one]) is None
    assert difference(one, one[:1]) == "another shape"
    assert difference(one, one[:, None]) == "another number of modes: 1 for 2"
    assert difference(one, one.astype("f4")) == "another dtype"
    assert difference(one, one + 1e-3) == "WRONG values"
    assert refused(KeyError("x")) == "a fault: KeyError: 'x'"


def test_an_absent_quotient_is_told_from_a_wrong_one() -> None:
    reason = absent_quotient(np.asarray)
    expected = np.array([np.nan, 2.0])
    assert reason(Call("__truediv__", "", np.array([0.0, 2.0]), None, expected)) is not None
    assert reason(Call("__truediv__", "", np.array([1.0, 2.0]), None, expected)) is None
    assert reason(Call("__truediv__", "", np.array([0.0, 3.0]), None, expected)) is None
    assert reason(Call("__mul__", "", np.array([0.0, 2.0]), None, expected)) is None


def test_not_all_is_never_rounded_to_all() -> None:
    assert [share({"same": same, "count": 10_000}) for same in (10_000, 9_999, 9_000)] == ["100.0 %", "99.9 %", "90.0 %"]
