"""Problems that differ in names alone: one executable runs for all of them, and whatever a user reads is in the user's names."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import sparseloom as sl
from sparseloom.core.errors import FormatError
from sparseloom.core.settings import settings
from sparseloom.programs.execution import Specialization, specialize
from sparseloom.programs.renaming import renamed


def matrix(seed: int = 1, shape: tuple[int, int] = (30, 30), format: str = "csr") -> sl.Tensor:
    return sl.asarray(sp.random_array(shape, density=0.2, format="csr", rng=seed)).to(format)


def special(kernel: sl.Kernel) -> Specialization:
    made = kernel._last
    assert isinstance(made, Specialization)
    return made


def test_names_by_order_of_appearance() -> None:
    kernel = sl.program("z(q,r) = M(q,s) * N(s,r) * M(q,r)", {"M": "csr", "N": "csr", "z": "csr"})
    kernel(matrix(), matrix(2))
    own = special(kernel)
    problem, statistics, names = renamed(own.problem, own.statistics)
    assert str(problem.assign.lhs.indices) == "(IndexVar('i'), IndexVar('j'))"
    assert dict(names.sources) == {"T0": "M", "T1": "N", "T2": "M"}
    assert set(statistics.cheapest) == {"T0", "T1", "T2"}


@pytest.mark.parametrize(
    ("one", "other", "sparse"),
    [
        ("y(i) = A(i,j) * x(j)", "x(j) = y(j,i) * A(i)", "Ay"),
        ("y(i) = A(i,j) * x(j) + 2 * x(i)", "k(k2) = a(k2,l) * b(l) + 2 * b(k2)", "Aa"),
        ("y(i) = A(3,j) * x(j) * x(i)", "y(k) = A(3,j) * x(j) * x(k)", "AA"),
    ],
)
def test_other_names_run_the_same_kernel(one: str, other: str, sparse: str) -> None:
    a, x = matrix(), np.arange(30.0)
    first, second = (sl.program(text, {name: "csr"}) for text, name in zip((one, other), sparse, strict=True))
    np.testing.assert_array_equal(first(a, x).to_numpy(), second(a, x).to_numpy())
    assert special(first).executable is special(second).executable
    assert "stages" not in special(second).__dict__  # nothing was planned in its own names
    assert second.source != first.source


def test_a_tensor_that_is_read_twice_is_two_operands() -> None:
    a, b = matrix(1), matrix(2)
    formats = {"A": "csr", "B": "csr", "C": "csr"}
    both = sl.program("C(i,j) = A(i,k) * B(k,j)", formats)
    one = sl.program("C(i,j) = A(i,k) * A(k,j)", {"A": "csr", "C": "csr"})
    both(a, b)
    np.testing.assert_allclose(one(a).to_numpy(), a.to_numpy() @ a.to_numpy())
    assert special(one).executable.stages.lowered.function == special(both).executable.stages.lowered.function
    dense = a.to_numpy()
    for text, want in [
        ("C(i,j) = A(i,j) * A(j,i)", dense * dense.T), ("C(i,j) = A(i,j) + A(j,i)", dense + dense.T),
        ("C(i,j) = A(i,j) * A(i,j)", dense**2),
        ("C(i,j) = A(i,k) * A(j,k)", dense @ dense.T), ("C(i,j) = A(i,j) * A(i,k) * A(k,j)", dense * (dense @ dense)),
    ]:  # fmt: skip
        for format in ("csr", "csc", "coo"):
            np.testing.assert_allclose(sl.evaluate(text, A=a.to(format)).to_numpy(), want)


def test_what_is_read_is_in_the_users_names() -> None:
    a, x = matrix(), np.ones(30)
    sl.einsum("ij,j->i", a, x)
    kernel = sl.program("erg(zeile) = Matrix(zeile,spalte) * vektor(spalte)", {"Matrix": "csr"})
    kernel(a, x)
    told = kernel.explain()
    assert "driven by Matrix (180 times)" in told
    assert "Matrix2_pos" in kernel.source
    assert "T0" not in told + kernel.source + kernel.plan
    turned = sl.program("C(i,j) = Links(i,j) + Rechts(i,j)", {"Links": "csr", "Rechts": "csc", "C": "csr"})
    turned(a, a)
    assert "Links is converted from csr to csc" in turned.explain() and "30 times" in turned.explain()


def test_errors_are_in_the_users_names(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.ones(5)
    sl.evaluate("riesig(i,j) = x(i) * x(j)", x=x)
    large = np.ones(1 << 20)
    with pytest.raises(FormatError, match="riesig would be dense"):
        sl.evaluate("riesig(i,j) = x(i) * x(j)", x=large)


def test_positions_that_outgrow_their_width_do_so_for_all_names() -> None:
    a = matrix(3, (40, 40))
    limit = settings.int32_limit
    try:
        settings.int32_limit = 100
        for text in ("C(i,j) = A(i,k) * A(k,j)", "D(k,j) = B(k,i) * B(i,j)"):
            made = sl.evaluate(text, {text[9]: a})
            np.testing.assert_allclose(made.to_numpy(), a.to_numpy() @ a.to_numpy())
    finally:
        settings.int32_limit = limit


def test_whoever_looks_into_a_kernel_first_runs_what_was_seen() -> None:
    a, x = matrix(), np.ones(30)
    i, j = sl.indices("i j")
    statement = sl.asarray(a, name="A")[i, j] * sl.asarray(x, name="x")[j]
    y = sl.zeros(30, name="y")
    y[i] = statement
    assert y.schedule() is not None
    assignment = y.assignment
    assert assignment is not None
    made = specialize(assignment.statement, assignment.operands)
    assert made.stages is not None
    assert made.executable is made
    np.testing.assert_allclose(made.run(assignment.operands).values, a.to_numpy() @ x)
