"""What a nest is thought to cost: what drives each of its loops, and which products and sums become statements of their own."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp
from fuzz.cutting import cut_eagerly

import sparseloom as sl
from sparseloom.plan.machine import NestCosts
from sparseloom.plan.network import visits

RNG = np.random.default_rng(3)
SPARSE = sp.random_array((1500, 1500), density=4 / 1500, format="csr", rng=RNG)
LONG = sp.random_array((800, 6000), density=1e-3, format="csr", rng=RNG)
x, z, w = RNG.random(1500), RNG.random(1500), RNG.random(6000)


def test_a_loop_visits_what_drives_it() -> None:
    by_rows = ((0, 1.0), (2, 0.01))
    other_rows = ((1, 1.0), (2, 0.01))
    found = list(visits([by_rows, other_rows], 0b111, (100, 200, 1000), NestCosts()))
    assert [(visit.variable, visit.count) for visit in found] == [(0, 100), (1, 20_000), (2, pytest.approx(2000))]
    assert found[-1].cost == pytest.approx(20_000 * 2.0 + 20_000 * 20 * 2.0)  # the merge begins for each pair, and passes both rows
    crossed = list(visits([((0, 0.5), (1, 0.1)), ((1, 0.5), (0, 0.1))], 0b11, (50, 50), NestCosts()))  # one of them is converted
    assert sorted(visit.variable for visit in crossed) == [0, 1]
    chained = list(visits([((0, 1.0), (1, 0.01)), ((1, 1.0), (2, 0.01))], 0b111, (100, 200, 1000), NestCosts()))
    assert [(visit.variable, visit.count) for visit in chained] == [(0, 100), (1, 200), (2, 2000)]


def test_orders_that_contradict_each_other_cost_a_conversion() -> None:
    costs = NestCosts(convert=1e9)
    conflict = sum(visit.cost for visit in visits([((0, 1.0), (1, 0.1)), ((1, 1.0), (0, 0.1))], 0b11, (50, 50), costs))
    agree = sum(visit.cost for visit in visits([((0, 1.0), (1, 0.1)), ((0, 1.0), (1, 0.1))], 0b11, (50, 50), costs))
    assert conflict > 1e9 > agree


def visited(text: str, **operands: object) -> int:
    """The most coordinates that a statement of the plan visits, from what every kernel counts for ``explain``."""
    kernel = sl.program(text, {name: "csr" for name, value in operands.items() if sp.issparse(value)})
    kernel(**operands)
    return max(int(found.replace(",", "")) for found in re.findall(r"([\d,]+) times\)", kernel.explain()))


S, L, X = SPARSE, LONG, np.ones((1500, 3))
SQUARES = (SPARSE.toarray() ** 2).sum(axis=0)
FAMILIES = {
    "normal equations": ("y(i) = A(i,j) * A(k,j) * x(k)", {"A": S, "x": x}, S @ (S.T @ x)),
    "normal equations, many right sides": ("y(i,r) = A(i,j) * A(k,j) * x(k,r)", {"A": S, "x": X}, S @ (S.T @ X)),
    "weighted Laplacian": ("y(u) = B(u,e) * w(e) * B(v,e) * x(v)", {"B": L, "w": w, "x": x[:800]}, L @ (w * (L.T @ x[:800]))),
    "other end": ("y(e) = B(u,e) * B(u,f) * w(f)", {"B": L, "w": w}, L.T @ (L @ w)),
    "scaled columns": ("C(i,j) = A(i,j) / sqrt(sum(k, A(k,j)**2))", {"A": S}, S.toarray() / np.sqrt(np.maximum(SQUARES, 1e-300))),
    "scaled columns, dense": ("y(i) = A(i,j) * x(j) / (1 + sum(k, A(k,j)))", {"A": S, "x": x}, S @ (x / (1 + S.sum(axis=0)))),
    "both directions": ("y(i) = A(i,j) * x(j) + A(j,i) * z(j)", {"A": S, "x": x, "z": z}, S @ x + S.T @ z),
    "added to a vector": ("y(i) = z(i) - A(j,i) * x(j)", {"A": S, "x": x, "z": z}, z - S.T @ x),
    "a series": ("y(i) = x(i) + A(i,j)*x(j) + A(i,j)*A(j,k)*x(k) / 2", {"A": S, "x": x}, x + S @ x + S @ (S @ x) / 2),
}


@pytest.mark.parametrize(("text", "operands", "wanted"), FAMILIES.values(), ids=FAMILIES)
def test_no_nest_visits_many_more_coordinates_than_there_are_entries(
    text: str, operands: dict[str, object], wanted: np.ndarray
) -> None:
    entries = sum(value.nnz for value in operands.values() if sp.issparse(value))
    assert visited(text, **operands) <= 4 * entries + 6000
    np.testing.assert_allclose(sl.evaluate(text, **operands).to("dense").to_numpy(), wanted, rtol=1e-9, atol=1e-12)


def test_a_sum_that_is_needed_once_a_row_stays_where_it_is() -> None:
    assert "t1" not in sl.plan("C(i,j) = A(i,j) / sum(k, A(i,k))", A=SPARSE)
    assert "t1" not in sl.plan("y(i) = z(i) + A(i,j) * x(j)", A=SPARSE, x=x, z=z)


def test_a_sum_without_an_entry_leaves_none_in_a_sparse_result() -> None:
    """Where a column of B is empty, the product has no entry, although the sum is a statement of its own."""
    full, sparse = sp.csr_array(np.ones((300, 300))), sp.random_array((300, 300), density=0.001, format="csr", rng=RNG)
    made = sl.evaluate("C(i,j) = A(i,j) * sum(k, B(k,j))", A=full, B=sparse)
    assert "t1: b" in sl.plan("C(i,j) = A(i,j) * sum(k, B(k,j))", A=full, B=sparse)
    assert made.nnz == 300 * np.count_nonzero(sparse.sum(axis=0))




NESTED = (
    "C(i,j) = A(i,j) * sum(k, B(k,j) * max(l, A(k,l)))",
    "y(i) = sum(j, A(i,j) * sum(k, B(k,j) * sum(l, A(k,l) * x(l)))) / (1 + sum({k,j}, A(k,j)))",
    "C(i,j) = A(i,j) - sum(k, A(k,j)) * sum(l, A(i,l))",
    "s = 2 + sum({i,j}, A(i,j) / (1 + sum(k, B(k,j))))",
    "y(i) = max(j, A(i,j) / (1 + sum(k, A(k,j)))) + u(i)",
    "C(i,j) = exp(A(i,j)) / sum(k, exp(A(k,j)))",
    "C(i,j) = where(A(i,j) > sum(k, B(k,j)), A(i,j), 0)",
    "C(j,i) = A(i,j) * sum(k, B(k,j)) * sum(l, A(i,l))",
    "y(j) = sum(i, A(i,j) * u(i)) - x(j) + max(i, B(i,j))",
    "C(i,j) = B(i,j) + A(i,j) * prod(k, A(k,j))",
)


@pytest.mark.parametrize("text", NESTED)
@pytest.mark.parametrize("forms", [("csr", "csr"), ("csc", "coo"), ("dcsr", "csc"), ("db", "csr")], ids="-".join)
def test_sums_that_are_computed_first_change_nothing(text: str, forms: tuple[str, str]) -> None:
    tensors = [sl.random((4, 5), 0.5, form, seed=seed) for seed, form in enumerate(forms)]
    given = {"A": tensors[0], "B": tensors[1], "x": RNG.random(5), "u": RNG.random(4)}
    formats = {name: form for name, form in zip("AB", forms, strict=True) if f"{name}(" in text}
    plain = sl.program(text, formats, optimize=False, target="interpret")
    operands = {name: given[name] for name in plain.operand_names}
    with cut_eagerly():
        cut = sl.program(text, formats, target="interpret")(**operands)
        assert "t1" in sl.plan(text, **operands) or "csc" in formats.values()
    wanted = plain(**operands)
    np.testing.assert_allclose(np.asarray(cut.to("dense").to_numpy()), wanted.to("dense").to_numpy(), rtol=1e-12)
