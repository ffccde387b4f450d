"""Statements that random testing once found wrong, each as small as it could be made. All three oracles must agree on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fuzz.drawing import Case
from fuzz.operands import Spec
from fuzz.runner import attempt

import sparseloom as sl
from sparseloom.notation.text import parse


def found(text: str, form: str, sizes: dict[str, int], dtype: str | None = None, semiring: str | None = None, **specs: Spec) -> Case:
    """A case as the random tests draw them."""
    return Case((0, 0), parse(text).assign, sizes, specs, form, dtype, semiring)


FOUND = {
    "a logical reduction of numbers reduces truth values": found(
        "R(i) = xor(r, A(i) * B(r))", "d", {"i": 4, "r": 3}, A=Spec("d", "int32", 1), B=Spec("d", "uint8", 2, 0)
    ),
    "a logical reduction of complex numbers": found("R = all(r, A(r))", "", {"r": 4}, A=Spec("s", "complex128", 3)),
    "a logical reduction into a result of another dtype": found(
        "R(j,i) = and(A(j), B(i,l))",
        "dd",
        {"j": 5, "i": 2, "l": 3},
        "complex128",
        A=Spec("d", "int64", 4),
        B=Spec("dd:1,0", "int8", 5),
    ),
    "an accumulation of truth values": found("R += A", "", {}, None, "or_and", R=Spec("", "bool", 6, 0), A=Spec("", "float64", 7)),
    "a reduction over a variable that nothing has": found(
        "R(i) = A(i) + sum({r}, B)", "d", {"i": 2, "r": 4}, A=Spec("s", "float64", 8), B=Spec("", "float64", 9)
    ),
    "a sign before a sum of a truth value and numbers": found(
        "R(k) = -(True + A(i,k))", "d", {"k": 3, "i": 3}, A=Spec("ds", "float64", 10)
    ),
    "a difference of unsigned and wider terms": found(
        "R(i,j) = A(i,j) - B(j,i)", "dd", {"i": 3, "j": 3}, A=Spec("ds", "int64", 11), B=Spec("ds", "uint8", 12, 0)
    ),
    "sums of narrow and of wide integers are not joined": found(
        "R(i) = A(i,j) + B(i,j)", "d", {"i": 2, "j": 90}, A=Spec("dd", "int8", 13, 2), B=Spec("dd", "int64", 14)
    ),
    "a conversion that needs the order of deeper loops": found(
        "R(k,i) = A(j,k) * B(i,j,k) - C(j) * B(j,i,k) + H(j,k)",
        "dd",
        {"k": 2, "i": 2, "j": 2},
        A=Spec("ell", "float64", 15),
        B=Spec("sss:1,2,0", "float32", 16),
        C=Spec("d", "float64", 17),
        H=Spec("ell", "float64", 18),
    ),
    "a number alone is the fill": found("A(i,j) = 3", "ss:1,0", {"i": 1, "j": 2}),
    "an unordered operand beside a dense one": found(
        "R(j,i) = A(i) - B(j,i)", "dd", {"j": 3, "i": 4}, A=Spec("d", "float64", 19), B=Spec("ds~", "float64", 20)
    ),
    "an unordered operand whose absent entries count": found("R = 1 * A(i)", "", {"i": 4}, A=Spec("s~", "bool", 21, 0, fill=True)),
    "a constant expression does not annihilate": found("R = sum(r, A(r)) * isinf(0)", "", {"r": 1}, A=Spec("d", "float32", 22)),
    "a maximum with a complex result": found(
        "R(i) = max(r, A(i) * B(r))", "d", {"i": 2, "r": 3}, "complex128", A=Spec("s", "int64", 23), B=Spec("s", "int8", 24)
    ),
    "what a diagonal does not reach is no product": found("R(i,i) = prod(r, A(i,r))", "dd", {"i": 3, "r": 2}, A=Spec("ds", "int32", 25)),
    "nor if the product is reduced from outside": found(
        "R(i,i) = prod(r, A(i,r))", "dd", {"i": 3, "r": 2}, A=Spec("ds:1,0", "int32", 26, fill=1)
    ),
    "a conversion stores no more entries than its operand": found(
        "R(k,i,j) = C(i,j,k)", "sss:2,0,1", {"k": 2, "i": 5, "j": 2}, C=Spec("ssd", "float64", 14696046, density=0.1)
    ),
    "a reduction over nothing is stored as any other": found(
        "y(i) = any(j, A(i,j))", "s", {"i": 2, "j": 0}, A=Spec("uq", "int8", 27, fill=2)
    ),
}


@pytest.mark.parametrize("what", FOUND)
def test_what_was_wrong_once_stays_right(what: str) -> None:
    assert attempt(FOUND[what]) is None


@pytest.mark.parametrize("target", ["c", "interpret"])
def test_tests_of_infinity_are_truth_values(target: str) -> None:
    values = np.array([-np.inf, np.inf, 1.0])
    result = sl.evaluate("y(i) = 2.0 * isinf(x(i))", x=values, target=target)
    np.testing.assert_array_equal(result.to_numpy(), [2, 2, 0])


def test_index_arrays_of_two_widths_are_refused() -> None:
    """Generated code knows one width per tensor: two of them made it read outside its arrays."""
    arrays = {"pos1": np.array([0, 1, 2], np.int32), "crd1": np.array([0, 1], np.int64), "values": np.ones(2)}
    with pytest.raises(sl.StorageError) as caught:
        sl.from_arrays("csr", (2, 2), arrays)
    assert str(caught.value) == (
        "tensor: level 1 (compressed, mode j): crd has dtype int64, but the arrays before it have int32; all indices of a tensor have one"
    )


def test_whether_a_sparse_result_can_be_assembled_does_not_depend_on_the_data() -> None:
    few, many = np.eye(4), np.ones((4, 4))
    for left, right in ((few, many), (many, few)):
        B, C = sl.asarray(left, format="csr"), sl.asarray(right, format="csr")
        result = sl.evaluate("A(i) = B(j,i) * C(i,j)", B=B, C=C, format="s")
        np.testing.assert_array_equal(result.to_numpy(), [1, 1, 1, 1])


@pytest.mark.parametrize("target", ["c", "interpret"])
def test_a_number_that_a_dtype_cannot_hold_widens_it(target: str) -> None:
    """It was cut to the operand's bits: 257 equalled 1, and 1 was below -1."""
    small = np.array([1, 2], np.uint8)
    below = sl.evaluate("y(i) = x(i) < -1", x=small, target=target)
    np.testing.assert_array_equal(below.to_numpy(), [False, False])
    added = sl.evaluate("y(i) = x(i) + 300", x=small, target=target)
    assert added.dtype == np.uint16
    np.testing.assert_array_equal(added.to_numpy(), [301, 302])
    for form in ("s", "d"):
        np.testing.assert_array_equal((sl.asarray(small).to(form) == 257).to_numpy(), [False, False])


def test_an_output_that_shares_memory_with_index_arrays_is_filled_after_they_are_read() -> None:
    """The loops read positions that they had just overwritten."""
    A = sl.asarray(np.array([[1, 2, 0], [0, 3, 4], [5, 0, 6]]), format="csr")
    A = sl.from_arrays("csr", (3, 3), {name: array.astype(np.int64) for name, array in A.arrays.items()})
    x = np.array([1, 10, 100])
    wanted = A.to_numpy() @ x
    filled = sl.program("y(i) = A(i,j) * x(j)", formats={"A": "csr"})(A, x, out=A.arrays["pos1"][1:])
    np.testing.assert_array_equal(filled.to_numpy(), wanted)


@pytest.mark.parametrize(
    ("schedule", "shape"),
    [("fuse(i,j,f)", (2**32, 2**31)), ("fuse(i,j,f) divide(f,f0,f1,4)", (2**40, 2**42)), ("split(i,i0,i1,1000)", (2**63 - 1, 2))],
)
def test_loops_longer_than_64_bits_count_are_refused(schedule: str, shape: tuple[int, int]) -> None:
    """Their length wrapped around, and nothing was visited."""
    A = sl.from_coo([[shape[0] - 2], [1]], [1.0], shape=shape, format="dcsr")
    with pytest.raises(sl.ShapeError, match="more than 64 bits count"):
        sl.program("s = A(i,j)", formats={"A": "dcsr"}, schedule=schedule)(A)
    positions = sl.program("s = A(i,j)", formats={"A": "dcsr"}, schedule="fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,4)")
    assert positions(A).item() == 1


def test_shapes_that_no_dense_array_has_broadcast() -> None:
    A = sl.from_coo([[2**40 - 1], [2**41]], [1.0], shape=(2**40, 2**42), format="dcsr")
    assert (A + A * 2).sum() == 3
    with pytest.raises(sl.ShapeError, match="does not fit in 64 bits"):
        sl.zeros((2**64,), format="s")


def test_what_is_not_text_is_refused_as_a_statement_and_as_a_schedule() -> None:
    with pytest.raises(sl.NotationError, match="a statement is text such as"):
        sl.program(None)  # type: ignore[arg-type]
    with pytest.raises(sl.ScheduleError, match="it must be text or a Schedule, not int"):
        sl.program("y(i) = x(i)", schedule=7)  # type: ignore[arg-type]


def test_a_folder_that_does_not_exist_is_named_as_it_was_given(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        sl.write(tmp_path / "missing" / "a.mtx", np.eye(2))
    assert caught.value.filename == str(tmp_path / "missing" / "a.mtx")


@pytest.mark.parametrize("form", ["sd", "ds", "ss"])
def test_a_sum_inside_a_row_of_a_sparse_result_is_added_up(form: str) -> None:
    rng = np.random.default_rng(3)
    X, Y = rng.integers(-3, 4, (5, 2)), rng.integers(-3, 4, (5, 4)) * (rng.random((5, 4)) < 0.5)
    result = sl.evaluate("Z(j,k) = X(i,j) * Y(i,k)", X=X, Y=sl.asarray(Y, format="csr"), format=form)
    np.testing.assert_array_equal(result.to_numpy(), X.T @ Y)


def test_a_diagonal_of_a_sparse_result_closes_the_rows_beside_it() -> None:
    A = np.array([[0.0, 2.0], [3.0, 0.0]])
    result = sl.evaluate("R(i,i,j) = A(i,j)", A=sl.asarray(A, format="csr"), format="dds")
    wanted = np.zeros((2, 2, 2))
    wanted[[0, 1], [0, 1]] = A
    np.testing.assert_array_equal(result.to_numpy(), wanted)


def test_a_workspace_is_never_converted() -> None:
    """A sum beside sparse factors, into COO by columns: the loops disagree about the order of what they make themselves."""
    rng = np.random.default_rng(4)
    a, b, c = (rng.integers(-3, 4, size) * (rng.random(size) < 0.8) for size in (3, 3, 5))
    d, e, f = (rng.integers(-3, 4, shape) * (rng.random(shape) < 0.6) for shape in ((5, 3), (4, 3), (4, 5, 3)))
    given = {"A": (a, "s"), "B": (b, "s"), "C": (c, "s"), "D": (d, "coo"), "E": (e, "dcsr"), "F": (f, "ddp")}
    operands = {name: sl.asarray(values, format=form) for name, (values, form) in given.items()}
    result = sl.evaluate("R(k,j) = A(k) * B(k) * C(j) * D(j,k) + E(i,k) * F(i,j,k)", format="u~q~", **operands)
    np.testing.assert_array_equal(result.to_numpy(), (d * (a * b)[None, :] * c[:, None]).T + np.einsum("ik,ijk->kj", e, f))


def test_what_three_operands_lack_stays_absent_in_a_product_with_infinity() -> None:
    """B and C are absent where D has an entry: their sum then takes the product with it, although A is infinite there."""
    B, C, D = np.diag([1.0, 0, 0, 2]), np.diag([0, 3.0, 0, 0]), np.diag([0, 0, 4.0, 5]) + np.eye(4, k=1)
    stored = {name: sl.asarray(values, format="csr") for name, values in (("B", B), ("C", C), ("D", D))}
    A = sl.from_coo(np.zeros((2, 0), int), np.zeros(0), (4, 4), format="csr", fill=-np.inf)
    result = sl.evaluate("R(i,j) = A(i,j) * (B(i,j) + C(i,j)) + D(i,j)", A=A, **stored, format="dd")
    with np.errstate(invalid="ignore"):
        wanted = np.where(B + C != 0, -np.inf * (B + C) + D, D)
    np.testing.assert_array_equal(result.to_numpy(), wanted)


def test_a_kernel_tells_widths_of_indices_apart_below_a_bitmap() -> None:
    """The truth values of the bitmap are as wide in both."""
    kernel = sl.program("y(i) = A(i,j)", formats={"A": "bs"})
    for dtype in (np.int32, np.int64):
        arrays = {"present0": np.array([True, False]), "pos1": np.array([0, 2, 2], dtype), "crd1": np.array([0, 2], dtype)}
        A = sl.from_arrays("bs", (2, 3), {**arrays, "values": np.array([3.0, 4.0])})
        assert kernel(A).to_numpy().tolist() == [7, 0]


def test_rows_are_set_out_beside_an_operand_in_blocks() -> None:
    """A row of B could be met again and again by what a sum walks; D is walked in blocks, and has no say in that."""
    rng = np.random.default_rng(3)
    a, b, c, d = (rng.integers(1, 4, shape) * (rng.random(shape) < 0.6) for shape in (4, 3, 4, (3, 5)))
    A, B, C, D = (sl.asarray(values, format=form) for values, form in ((a, "s"), (b, "s"), (c, "s"), (d, "bcsr(2,3)")))
    result = sl.evaluate("R(k) = A(l) * (B(k) + C(l)) * D(i,j)", A=A, B=B, C=C, D=D, format="s")
    np.testing.assert_array_equal(result.to_numpy(), (a[:, None] * (b[None, :] + c[:, None])).sum(0) * d.sum())


def test_a_guarded_complex_sum_is_not_made_of_vectors() -> None:
    """gcc 12 added what the guard leaves out: -1+1j instead of 1j."""
    steps = (
        "divide(j,j0,j1,2,f(j)) split(j0,j00,j01,16) precompute(f(j),{j00,j01},{j00w,j01w},w) "
        "parallelize(j01,CPUThread,ParallelReduction)"
    )
    assert sl.program("R = f(j)", schedule=steps)(np.array([1, -2 + 2j, 1 - 1j])).to_numpy() == 1j
