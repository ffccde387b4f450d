"""How operands are merged stays as asked for when the loop is cut into blocks."""

from __future__ import annotations

import numpy as np
import pytest

import sparseloom as sl


@pytest.mark.parametrize("target", ("interpret", "c"))
@pytest.mark.parametrize("way", ("Gallop", "TwoFinger"))
@pytest.mark.parametrize("cut", ("split(j,j0,j1,8)", "divide(j,j0,j1,4)", "divide(j,j0,j1,4,A(i,j))", "split(j,j0,j1,8) reorder(j0,i)"))
def test_blocks_of_a_merge(cut: str, way: str, target: str, rng: np.random.Generator) -> None:
    A = rng.integers(1, 5, (6, 40)) * (rng.random((6, 40)) < 0.3)
    x = rng.integers(1, 5, 40) * (rng.random(40) < 0.2)
    kernel = sl.program("y(i) = A(i,j) * x(j)", {"A": "csr", "x": "s"}, f"mergeby(j,{way}) {cut}", target=target)
    assert np.array_equal(kernel(A, x).to_numpy(), A @ x)


def test_a_merge_that_gallops_searches_in_every_block() -> None:
    formats, schedule = {"A": "csr", "x": "s"}, "mergeby(j,{}) split(j,j0,j1,8)"
    texts = [sl.program("y(i) = A(i,j) * x(j)", formats, schedule.format(way)).show("loops") for way in ("Gallop", "TwoFinger")]
    assert texts[0].count("search(") > texts[1].count("search(")
