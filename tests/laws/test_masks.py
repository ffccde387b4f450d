"""Rows that sums would walk again and again are set out once, and operands that are found at once are not walked beside others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparseloom as sl

SIZE = 9
MASKED = "C(i,j) = A(i,k) * B(k,j) * M(i,j)"


def _sparse(seed: int, density: float = 0.3) -> Any:
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random((SIZE, SIZE)) < density, rng.integers(1, 9, (SIZE, SIZE)), 0).astype(float)
    dense[3] = dense[:, 5] = 0
    return dense


def _operands(formats: dict[str, str]) -> tuple[dict[str, sl.Tensor], dict[str, Any]]:
    dense = {name: _sparse(seed) for seed, name in enumerate("ABM")}
    return {name: sl.asarray(dense[name], format=formats[name]) for name in dense}, dense


FORMATS = (
    ("csr", "csr", "csr", "csr"),
    ("dcsr", "csr", "dcsr", "dcsr"),
    ("csr", "dcsr", "csr", "coo"),
    ("csr", "csr", "csc", "csr"),
    ("coo", "csr", "coo", "csr"),
    ("csr", "csr", "db", "csr"),
    ("csr", "db", "csr", "csr"),
    ("csr", "csr", "ell", "csr"),
    ("csr", "csr", "csr", "csc"),
)


@pytest.mark.parametrize("target", ["c", "interpret"])
@pytest.mark.parametrize("workspace", [None, "hash", "sort"])
@pytest.mark.parametrize(("a", "b", "mask", "result"), FORMATS)
def test_a_masked_product(a: str, b: str, mask: str, result: str, workspace: str | None, target: str) -> None:
    """The result has an entry where the mask has one and a product is."""
    formats = {"A": a, "B": b, "M": mask, "C": result}
    given, dense = _operands(formats)
    for schedule in (None, ""):
        made = sl.program(MASKED, formats, schedule=schedule, target=target, workspace=workspace)(**given)
        np.testing.assert_array_equal(made.to_numpy(), (dense["A"] @ dense["B"]) * dense["M"])
        assert made.nnz == np.count_nonzero((dense["A"] @ dense["B"]) * dense["M"])


def test_the_mask_is_set_out_once_for_each_row() -> None:
    given, _ = _operands({"A": "csr", "B": "csr", "M": "csr"})
    kernel = sl.program(MASKED, {"A": "csr", "B": "csr", "M": "csr", "C": "csr"}, schedule="")
    kernel(**given)
    told = kernel.explain()
    assert "M_row: a row set out by coordinate" in told and "j: driven by B" in told and "intersects" not in told
    for other in ("A_row", "B_row"):
        assert other not in told


def test_threads_give_the_same() -> None:
    given, dense = _operands({"A": "csr", "B": "csr", "M": "csr"})
    formats = {"A": "csr", "B": "csr", "M": "csr", "C": "csr"}
    before = sl.get_threads()
    try:
        for count in (1, 2, 7):
            sl.set_threads(count)
            made = sl.program(MASKED, formats, schedule="parallelize(i, CPUThread, NoRaces)")(**given)
            np.testing.assert_array_equal(made.to_numpy(), (dense["A"] @ dense["B"]) * dense["M"])
    finally:
        sl.set_threads(before)


def test_two_masks_and_a_tensor() -> None:
    """Each row is set out outside the loops that it does not depend on."""
    rng = np.random.default_rng(8)
    cube = np.where(rng.random((SIZE, SIZE, SIZE)) < 0.2, rng.integers(1, 9, (SIZE,) * 3), 0).astype(float)
    given, dense = _operands({"A": "csr", "B": "csr", "M": "csr"})
    text = "C(i,j) = T(i,k,l) * B(l,j) * M(i,j) * N(i,j)"
    formats = {"T": "csf", "B": "csr", "M": "csr", "N": "dcsr", "C": "csr"}
    made = sl.program(text, formats)(T=sl.asarray(cube, format="csf"), B=given["B"], M=given["M"], N=sl.asarray(dense["A"], format="dcsr"))
    np.testing.assert_array_equal(made.to_numpy(), np.einsum("ikl,lj,ij,ij->ij", cube, dense["B"], dense["M"], dense["A"]))


def test_a_sum_that_is_one_number_is_no_row() -> None:
    given, dense = _operands({"A": "csr", "B": "csr", "M": "csr"})
    e = np.array([1.0, 0.0, 2.0])
    formats = {"A": "csr", "B": "csr", "M": "csr", "C": "csr", "E": "s"}
    made = sl.program("C(i,j) = A(i,k) * B(k,j) * M(i,j) * sum(r, E(r))", formats)(**given, E=e)
    np.testing.assert_array_equal(made.to_numpy(), (dense["A"] @ dense["B"]) * dense["M"] * 3)
    formats = {"C": "ss:1,0", "B": "csr", "E": "s", "R": "uq:1,0"}
    made = sl.program("R(i,j) = C(i,k) * B(k,j) * max(r, E(r))", formats)(C=given["A"], B=given["B"], E=e)
    np.testing.assert_array_equal(made.to_numpy(), (dense["A"] @ dense["B"]) * 2)


def test_an_absent_mask_decides_beside_what_is_no_number() -> None:
    a, b, mask = np.array([[np.nan, 0.0], [1.0, np.inf]]), np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])
    formats = {"A": "csr", "B": "csr", "M": "csr", "C": "csr"}
    made = sl.program(MASKED, formats)(**{name: sl.asarray(x, format="csr") for name, x in (("A", a), ("B", b), ("M", mask))})
    np.testing.assert_array_equal(made.to_numpy(), [[0, np.nan], [1, 0]])


def test_the_structure_is_filled_again() -> None:
    given, dense = _operands({"A": "csr", "B": "csr", "M": "csr"})
    kernel = sl.program(MASKED, {"A": "csr", "B": "csr", "M": "csr", "C": "csr"})
    made = kernel(**given)
    kernel(**{**given, "M": given["M"] * 2}, out=made)
    np.testing.assert_array_equal(made.to_numpy(), (dense["A"] @ dense["B"]) * dense["M"] * 2)


@pytest.mark.parametrize("target", ["c", "interpret"])
@pytest.mark.parametrize(
    ("text", "meaning"), [("y(i) = A(i,j) * M(i,j)", "ij,ij->i"), ("C(i,j) = A(i,j) * M(i,j) * B(i,j)", "ij,ij,ij->ij")]
)
def test_a_bitmap_is_looked_up_beside_others(text: str, meaning: str, target: str) -> None:
    given, dense = _operands({"A": "csr", "B": "csr", "M": "db"})
    names = [name for name in ("A", "M", "B") if f"{name}(" in text]
    formats = {"A": "csr", "B": "csr", "M": "db", "C": "csr"}
    kernel = sl.program(text, {name: form for name, form in formats.items() if f"{name}(" in text}, schedule="", target=target)
    made = kernel(**{name: given[name] for name in names})
    np.testing.assert_array_equal(made.to_numpy(), np.einsum(meaning, *(dense[name] for name in names)))
    assert ("driven by A" if len(names) == 2 else "intersects A, B") in kernel.explain()
