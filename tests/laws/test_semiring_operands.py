"""Operands under a semiring: what they do not store is the semiring's zero, in whatever format and dtype they arrive or are declared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparseloom as sl

ROADS = np.array([[3.0, 0.0, 0.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
TOLLS = np.array([1.0, 5.0, 7.0])
FORMATS = ("csr", "csc", "coo", "sd", "dd", "ell", "bcsr(2,2)", "su", "ss:1,0", "db", "bb", "dia")


def min_plus(roads: np.ndarray) -> list[float]:
    return [float(value) for value in (roads + TOLLS).min(axis=1)]


@pytest.mark.parametrize("target", ["interpret", "c"])
@pytest.mark.parametrize("form", FORMATS)
def test_a_declared_format_invents_no_entries(form: str, target: str) -> None:
    kernel = sl.program("y(i) = A(i,j) * x(j)", formats={"A": form}, semiring="min_plus", target=target)
    absent = np.where(ROADS == 0, np.inf, ROADS)
    for given in (sp.csr_array(ROADS), sp.csc_array(ROADS), sp.coo_array(ROADS), sl.asarray(sp.csr_array(ROADS)).to("ell")):
        assert kernel(given, TOLLS).to_numpy().tolist() == min_plus(absent)


@pytest.mark.parametrize("form", FORMATS)
def test_a_dense_operand_is_taken_as_it_is_in_every_declared_format(form: str) -> None:
    kernel = sl.program("y(i) = A(i,j) * x(j)", formats={"A": form}, semiring="min_plus")
    assert kernel(ROADS, TOLLS).to_numpy().tolist() == min_plus(ROADS)


@pytest.mark.parametrize("form", FORMATS)
def test_what_a_result_held_before_is_filled_with_the_zero(form: str) -> None:
    kernel = sl.program("R(i,j) += A(i,j)", formats={"A": "csr", "R": form}, semiring="min_plus")
    before = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 9.0], [4.0, 0.0, 0.0]])
    want = [[1, np.inf, np.inf], [np.inf, np.inf, 2], [4, np.inf, np.inf]]
    assert kernel(sp.csr_array(ROADS), R=sp.csc_array(before)).to_numpy().tolist() == want


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.bool_, np.float32])
def test_integers_that_have_no_infinity_meet_floats(dtype: Any) -> None:
    made = sl.evaluate("y(i) = A(i,j) * x(j)", A=sp.csr_array(ROADS.astype(dtype)), x=TOLLS, semiring="min_plus")
    held = ROADS.astype(dtype).astype(float)
    assert made.to_numpy().tolist() == min_plus(np.where(held == 0, np.inf, held))


def test_a_preview_of_integers_that_meet_floats() -> None:
    kernel = sl.program("y(i) = A(i,j) * x(j)", formats={"A": "csr"}, semiring="min_plus")
    assert "INFINITY" in kernel.preview({"A": "int32"}).stages.show("c")


@pytest.mark.parametrize("form", ["dd", "csr", "coo"])
def test_what_a_diagonal_does_not_reach_is_the_zero(form: str) -> None:
    A = sp.csr_array(ROADS)
    made = sl.evaluate("R(i,i) = A(i,j) * A(j,i)", A=A, semiring="min_plus", format=form)
    want = np.full((3, 3), np.inf)
    want[0, 0] = 6
    assert made.to_numpy().tolist() == want.tolist()


PADDING = ("csr", "coo", "sd", "pd", "bcsr(2,2)", "dia", "do:1,0", "ell", "db", "ssdd:0,1,0,1/2,3")


FACTORS = (np.array([-1, -3, -5]), np.array([-1, 2, -5], np.int8), np.array([-1.0, -np.inf, np.nan]))


@pytest.mark.parametrize(
    ("target", "forms", "ring"),
    [*(("interpret", PADDING, ring) for ring in ("min_times", "max_times", "min_plus", "max_plus")), ("c", PADDING[::2], "min_times")],
)
def test_padding_is_never_multiplied(target: str, forms: tuple[str, ...], ring: str) -> None:
    places, values = np.array([[0, 0, 2], [0, 2, 1]]), np.array([3, -2, 4])
    for x in FACTORS if target == "interpret" else FACTORS[::2]:
        dtype = x.dtype
        A = sl.from_coo(places, values.astype(dtype), (3, 3), format="coo")
        made = []
        for form in forms:
            kernel = sl.program("y(i) = A(i,j) * x(j)", formats={"A": form}, semiring=ring, target=target)
            made.append(kernel(A, x).to_numpy().tolist())
        assert all(str(one) == str(made[0]) for one in made), dict(zip(forms, made, strict=True))
    add, multiply = (np.minimum if "min" in ring else np.maximum), (np.multiply if "times" in ring else np.add)
    assert made[0][2] == multiply(4.0, -np.inf)
    assert made[0][1] == (np.inf if add is np.minimum else -np.inf)
