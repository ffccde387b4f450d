"""Entries that are stored more than once: their values are added up, whatever the fill or the semiring, and the fill is added to none."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from fuzz.drawing import Case
from fuzz.operands import Spec
from fuzz.runner import compare_all

import sparseloom as sl
from sparseloom.core.settings import settings
from sparseloom.notation.text import parse

STATEMENTS = {1: ("R(i) = A(i)",), 2: ("R(i,j) = A(i,j)", "R(i,j) = A(j,i)")}
OPERANDS = {1: ("u", "u~"), 2: ("du~", "su~", "u~q~+", "uq+")}
RESULTS = {1: ("d", "s", "u~"), 2: ("dd", "ds", "ss:1,0", "uq", "bcsr(2,2)", "ell", "su~", "db", "dia")}
SIZES = {"i": 5, "j": 4}


def cases(fill: float) -> Iterator[Case]:
    for order in (1, 2):
        for text, form, result in product(STATEMENTS[order], OPERANDS[order], RESULTS[order]):
            spec = Spec(form, "float64", 7, fill=fill, density=0.5, repeats=True)
            sizes = {name: SIZES[name] for name in "ij"[:order]}
            yield Case((0, 0), parse(text).assign, sizes, {"A": spec}, result)


@pytest.mark.parametrize("fill", [0.0, 1.0, float("nan")])
def test_copies_add_repeated_values_and_not_the_fill(fill: float) -> None:
    tally = compare_all(list(cases(fill)))
    assert not tally.failures, "\n\n".join(f"{case}\n{problem}" for case, problem in tally.failures)
    assert tally.compared > 60


def repeated(fill: float = 0.0, extent: int = 4) -> sl.Tensor:
    arrays = {"pos0": np.array([0, 3]), "crd0": np.array([1, 2, 1]), "values": np.array([10.0, 5.0, 1.0])}
    return sl.from_arrays("u~", (extent,), arrays, fill)


@pytest.mark.parametrize("target", ["interpret", "c"])
@pytest.mark.parametrize("form", ["d", "s", "u", "u~"])
def test_a_copy_of_a_tensor_filled_with_ones(form: str, target: str) -> None:
    made = sl.evaluate("R(i) = A(i)", A=repeated(1.0), format=form, target=target)
    assert made.to_numpy().tolist() == [1, 11, 5, 1]


def test_a_copy_under_a_semiring_has_room_for_its_entries_and_no_more() -> None:
    made = sl.evaluate("R(i) = A(i)", A=repeated(extent=100_000), format="s", semiring="min_plus")
    assert (made.nnz, made.fill) == (2, np.inf)
    assert made.to_numpy()[:4].tolist() == [np.inf, 11, 5, np.inf]


@pytest.mark.parametrize("fill", [0.0, 1.0])
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "dcsr", "bcsr(2,2)"])
def test_compiled_conversions_add_repeated_values(form: str, fill: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "small_conversion", 0)
    arrays = {"pos0": np.array([0, 4]), "crd0": np.array([2, 0, 2, 1]), "crd1": np.array([1, 0, 1, 2]), "values": np.array([1.0, 2, 4, 8])}
    made = sl.from_arrays("u~q~+", (3, 300), arrays, fill).to(form)
    want = np.full((3, 300), fill)
    want[[2, 0, 1], [1, 0, 2]] = 5, 2, 8
    assert np.array_equal(made.to_numpy(), want)


@pytest.mark.parametrize("fill", [0.0, 1.0])
@pytest.mark.parametrize("target", ["interpret", "c"])
def test_precompute_adds_repeated_values(fill: float, target: str) -> None:
    kernel = sl.program("R(i) = A(i)", formats={"A": "u~", "R": "s"}, schedule="precompute(A(i), i, iw, ws)", target=target)
    assert kernel(repeated(fill)).to_numpy().tolist() == [fill, 11, 5, fill]


def test_only_results_that_are_bounded_never_grow() -> None:
    bounded = sl.program("C(i,j) = A(i,j) + B(i,j)", formats=dict.fromkeys("ABC", "csr"))
    assert "larger_capacity" not in bounded.source
    free = sl.program("C(i,j) = A(i,j) + b(i)", formats={"A": "csr", "C": "csr"})
    assert "larger_capacity" in free.source
