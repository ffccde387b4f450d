"""A variable that stands twice on the left: what no iteration assigns is 0, however the operands are stored."""

from __future__ import annotations

import numpy as np
import pytest

import sparseloom as sl

B = np.array([0.0, 2.0, 0.0, 3.0])


@pytest.mark.parametrize("target", ["interpret", "c"])
@pytest.mark.parametrize("stored", ["d", "s", "u"])
@pytest.mark.parametrize("form", ["dd", "csr", "csc", "coo", "dcsr", "sd", "ell", "bcsr(2,2)", "db", "bb", "dia"])
def test_a_function_that_is_not_zero_at_zero_on_a_diagonal(form: str, stored: str, target: str) -> None:
    made = sl.evaluate("R(i,i) = cos(b(i))", b=sl.asarray(B).to(stored), format=form, target=target)
    assert made.fill == 0
    assert made.to_numpy().tolist() == np.diag(np.cos(B)).tolist()


@pytest.mark.parametrize("stored", ["d", "s"])
@pytest.mark.parametrize("form", ["ddd", "sss", "dss:1,2,0", "uqq"])
def test_a_plane_across_a_cube(form: str, stored: str) -> None:
    given = sl.asarray(B).to(stored)
    made = sl.evaluate("R(i,j,i) = cos(b(i)) + c(j)", b=given, c=given, format=form).to_numpy()
    want = np.zeros((4, 4, 4))
    for i, j in np.ndindex(4, 4):
        want[i, j, i] = np.cos(B[i]) + B[j]
    assert made.tolist() == want.tolist()


@pytest.mark.parametrize("form", ["dd", "csr"])
def test_a_number_on_a_diagonal(form: str) -> None:
    assert sl.evaluate("R(i,i) = 3", sizes={"i": 2}, format=form).to_numpy().tolist() == [[3, 0], [0, 3]]


def test_a_diagonal_of_a_tensor_that_was_filled_with_something_else() -> None:
    (i,) = sl.indices("i")
    y = sl.full((2, 2), 7.0, format="csr")
    y[i, i] = sl.asarray(np.array([1.0, 2.0]))[i]
    assert y.to_numpy().tolist() == [[1, 0], [0, 2]]
