"""Unstored entries in closed form: no loop visits coordinates that it need not, and results are those of the dense oracle."""

from __future__ import annotations

import re

import numpy as np
import pytest

import sparseloom as sl

N, ROW = 500, 4
A = sl.random((N, N), ROW / N, "csr", seed=1)
T = sl.random((40, 50, 60), 0.01, "csf", seed=2)
VECTOR = np.random.default_rng(3).normal(size=N)

# Statements whose unstored terms have one value along the reduction, and how often the innermost loop may run for each entry of A or T.
FAMILIES = [
    "y(i) = max(j, A(i,j))", "y(i) = min(j, A(i,j))", "y(i) = prod(j, A(i,j))", "y(i) = any(j, A(i,j))", "y(i) = all(j, A(i,j))",
    "y(i) = sum(j, A(i,j) + 1)", "y(i) = sum(j, exp(A(i,j)))", "y(i) = sum(j, A(i,j) >= 0)", "y(i) = prod(j, A(i,j) + 2)",
    "y(i) = sum(j, A(i,j) + b(i))", "y(i) = max(j, A(i,j) - b(i))", "y(i) = max(j, A(i,j) * b(j))", "s = max({i,j}, A(i,j))",
    "s = max(i, sum(j, A(i,j) + 1))", "y(i) = b(i) + 2 * max(j, A(i,j))", "y(i) = max(j, A(i,j) + B(i,j))", "y(i) = max({j,k}, T(i,j,k))",
    "y(i) = sum(j, where(A(i,j) > 0, 1, -1))", "C(i,j) = max(k, T(i,j,k))",
]  # fmt: skip
NESTED = 3  # a stored term, its count, and loops for what is combined


def operands(statement: str) -> dict[str, object]:
    known = {"A": A, "B": sl.random((N, N), ROW / N, "csr", seed=4), "T": T, "b": VECTOR}
    return {name: value for name, value in known.items() if re.search(rf"\b{name}\(", statement)}


def visited(kernel: sl.Kernel) -> int:
    """How often the loop that runs most often runs."""
    counts = re.findall(r"\((?:at most )?([\d,]+) times\)", kernel.explain())
    return max(int(count.replace(",", "")) for count in counts)


@pytest.mark.parametrize("form", ["csr", "dcsr", "coo", "csc"])
@pytest.mark.parametrize("statement", FAMILIES)
def test_no_loop_visits_coordinates_that_are_not_stored(statement: str, form: str) -> None:
    given = operands(statement)
    if "A" in given:
        given["A"] = A.to(form)
    kernel = sl.program(statement, {name: value.format for name, value in given.items() if isinstance(value, sl.Tensor)})
    made = kernel(**given)
    entries = sum(value.nnz for value in given.values() if isinstance(value, sl.Tensor))
    assert ("applied in closed form" in kernel.explain()) == ("any" not in statement)  # what is not stored is no truth
    assert visited(kernel) <= NESTED * max(entries, N, T.shape[0] * T.shape[1])
    dense = {name: sl.asarray(value.to_numpy() if isinstance(value, sl.Tensor) else value) for name, value in given.items()}
    np.testing.assert_allclose(made.to_numpy(), sl.evaluate(statement, **dense).to_numpy())


def test_a_product_visits_the_entries_of_its_sparse_factor() -> None:
    kernel = sl.program("C(i,k) = max(j, A(i,j) * D(j,k))", {"A": "csr"})
    wide = np.random.default_rng(5).normal(size=(N, 8))
    made, plain = kernel(A, wide), sl.program("C(i,k) = A(i,j) * D(j,k)", {"A": "csr"})
    plain(A, wide)
    assert visited(kernel) <= visited(plain)
    np.testing.assert_allclose(made.to_numpy(), np.max(A.to_numpy()[:, :, None] * wide, 1))


def test_terms_that_vary_where_nothing_is_stored_are_all_visited() -> None:
    kernel = sl.program("y(i) = max(j, A(i,j) + x(j))", {"A": "csr"})
    np.testing.assert_allclose(kernel(A, VECTOR).to_numpy(), np.max(A.to_numpy() + VECTOR, 1))
    assert visited(kernel) == N * N
    assert "closed form" not in kernel.explain()


@pytest.mark.parametrize("target", ["interpret", "c"])
def test_infinities_and_nan_are_those_of_every_term(target: str) -> None:
    rows = np.array([[np.inf, 0, 1], [np.nan, 0, 2], [np.inf, 1, 1], [0, 0, 0]])
    given = sl.asarray(rows).to("csr")
    for statement, wanted in [
        ("y(i) = max(j, A(i,j))", [np.inf, np.nan, np.inf, 0]),
        ("y(i) = prod(j, A(i,j))", [0, 0, np.inf, 0]),  # one unstored 0 decides
        ("y(i) = sum(j, A(i,j) + 1)", [np.inf, np.nan, np.inf, 3]),
        ("y(i) = sum(j, A(i,j) - b(i))", [-np.inf, np.nan, 2, -0.0]),
    ]:
        if "b(i)" in statement:
            b = np.array([np.inf, 1, np.inf, 0])
            made = sl.evaluate("y(i) = max(j, A(i,j) * 0 + b(i))", A=sl.asarray(np.ones((4, 3))).to("csr"), b=b, target=target)
            assert made.to_numpy().tolist() == b.tolist()  # nothing is unstored: infinity is not taken zero times
            continue
        np.testing.assert_array_equal(sl.evaluate(statement, A=given, target=target).to_numpy(), wanted)


@pytest.mark.parametrize("steps", [
    "split(j,j0,j1,3)", "fuse(i,j,f)", "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,8) parallelize(p0,CPUThread,Atomics)",
    "pos(j,p,A(i,j))", "parallelize(i,CPUThread,NoRaces)", "parallelize(j,CPUVector,ParallelReduction)", "split(i,i0,i1,4) unroll(i1,4)",
    "precompute(A(i,j),{j},{jw},w)",
])  # fmt: skip
@pytest.mark.parametrize("statement", ["y(i) = max(j, A(i,j))", "y(i) = sum(j, A(i,j) + 1)", "y(i) = prod(j, A(i,j))"])
def test_schedules_mean_the_loops_over_what_is_stored(statement: str, steps: str) -> None:
    small = sl.random((9, 11), 0.3, "csr", seed=6)
    wanted = sl.evaluate(statement, A=sl.asarray(small.to_numpy())).to_numpy()
    for target in ("interpret", "c"):
        np.testing.assert_allclose(sl.program(statement, {"A": "csr"}, steps, target=target)(small).to_numpy(), wanted)


@pytest.mark.parametrize("op", ["max", "min", "prod", "sum"])
def test_over_nothing_a_reduction_is_its_identity(op: str) -> None:
    nothing = sl.asarray(np.zeros((2, 0))).to("csr")
    wanted = {"max": -np.inf, "min": np.inf, "prod": 1, "sum": 0}[op]
    for statement in (f"y(i) = {op}(j, A(i,j) + 1)", f"y(i) = 2 * {op}(j, A(i,j) + 1)"):
        made = sl.evaluate(statement, A=nothing).to_numpy()
        assert made.tolist() == [wanted * (2 if "2 *" in statement else 1)] * 2


def test_integers_wrap_as_every_term_does() -> None:
    given = sl.asarray(np.array([[1, 0, 0, 0], [0, 0, 0, 0]], np.int8)).to("csr")
    assert sl.evaluate("y(i) = prod(j, A(i,j) + 3)", A=given).to_numpy().tolist() == [108, 81]
    assert sl.evaluate("y(i) = prod(j, A(i,j) + 100)", A=given, dtype="int8").to_numpy().tolist() == [
        int(np.prod(row, dtype=np.int8)) for row in np.array([[101, 100, 100, 100], [100] * 4], np.int8)
    ]
