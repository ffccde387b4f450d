"""Statements on which systems of this kind have failed: the right values, or a refusal that explains itself."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np
import pytest

import sparseloom as sl

DENSITY = 0.35


class Data:
    """Small whole numbers in any format, and the same as NumPy arrays."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.arrays: dict[str, np.ndarray] = {}

    def tensor(self, name: str, shape: tuple[int, ...], form: str, dtype: Any = float, density: float = DENSITY) -> sl.Tensor:
        values = self.rng.integers(1, 5, shape) * (self.rng.random(shape) < density)
        if shape and shape[0] > 1:
            values[self.rng.integers(shape[0])] = 0  # an empty slice
        self.arrays[name] = values.astype(dtype)
        return sl.asarray(self.arrays[name], format=form)


@pytest.fixture
def data(rng: np.random.Generator) -> Data:
    return Data(rng)


def check(result: sl.Tensor, wanted: Any) -> None:
    np.testing.assert_array_equal(result.to_numpy(), wanted)


def test_a_reduction_over_a_dense_operand_beside_a_sparse_one(data: Data) -> None:
    B, c = data.tensor("B", (4, 5), "ds"), data.tensor("c", (5,), "d")
    wanted = data.arrays["B"].sum(1) + data.arrays["c"].sum()
    check(sl.evaluate("a(i) = B(i,j) + c(j)", B=B, c=c), wanted)


@pytest.mark.parametrize("forms", [("s", "d"), ("d", "s"), ("s", "s")])
@pytest.mark.parametrize("sign", "+-")
@pytest.mark.parametrize("result", ["d", "s"])
def test_sums_and_differences_of_vectors(data: Data, forms: tuple[str, str], sign: str, result: str) -> None:
    b, c = data.tensor("b", (9,), forms[0]), data.tensor("c", (9,), forms[1])
    wanted = data.arrays["b"] + data.arrays["c"] if sign == "+" else data.arrays["b"] - data.arrays["c"]
    check(sl.evaluate(f"a(i) = b(i) {sign} c(i)", b=b, c=c, format=result), wanted)


def test_mttkrp_on_a_permuted_tensor(data: Data) -> None:
    B, C, D = data.tensor("B", (3, 4, 5), "sss:1,2,0"), data.tensor("C", (3, 2), "dd"), data.tensor("D", (4, 2), "dd")
    wanted = np.einsum("kli,lj,kj->ij", data.arrays["B"], data.arrays["D"], data.arrays["C"])
    check(sl.evaluate("A(i,j) = B(k,l,i) * D(l,j) * C(k,j)", B=B, C=C, D=D), wanted)


@pytest.mark.parametrize("form", ["sd", "ds"])
def test_copies_into_compressed_rows_of_dense_ones(data: Data, form: str) -> None:
    B = data.tensor("B", (5, 3), form)
    result = sl.evaluate("A(i,j) = B(i,j)", B=B, format="sd")
    check(result, data.arrays["B"])
    assert result.nnz == 3 * np.count_nonzero(data.arrays["B"].any(1))


def test_a_contraction_of_an_outer_mode(data: Data) -> None:
    G, p = data.tensor("G", (4, 3, 5), "sss"), data.tensor("p", (4,), "s")
    wanted = np.einsum("ijk,i->jk", data.arrays["G"], data.arrays["p"])
    for form in ("dense", "ss", "csr", "csc", "coo"):
        check(sl.evaluate("A(j,k) = G(i,j,k) * p(i)", G=G, p=p, format=form), wanted)


def test_a_matrix_plus_its_transpose(data: Data) -> None:
    A = data.tensor("A", (5, 5), "ds")
    check(sl.evaluate("J(j,l) = A(l,j) + A(j,l)", A=A), data.arrays["A"] + data.arrays["A"].T)


def test_a_broadcast_of_a_sparse_matrix(data: Data) -> None:
    B, C = data.tensor("B", (3, 4, 2), "sss"), data.tensor("C", (3, 4), "ss")
    check(sl.evaluate("A(i,j,k) = B(i,j,k) + C(i,j)", B=B, C=C), data.arrays["B"] + data.arrays["C"][:, :, None])


def test_a_repeated_result_index(data: Data) -> None:
    A = data.tensor("A", (4, 4), "ds")
    check(sl.evaluate("B(i,i) = A(i,j) * A(j,i)", A=A), np.diag(np.einsum("ij,ji->i", data.arrays["A"], data.arrays["A"])))


def test_an_outer_product_of_slices_accumulates(data: Data) -> None:
    X, Y = data.tensor("X", (3, 2, 3), "sss"), data.tensor("Y", (3, 2, 2), "sss")
    text = "Z(j,k,l,m) = X(i,j,k) * Y(i,l,m)"
    for form in ("dense", "ssss"):
        check(sl.evaluate(text, X=X, Y=Y, format=form), np.einsum("ijk,ilm->jklm", data.arrays["X"], data.arrays["Y"]))


def test_no_row_of_a_contraction_is_lost(data: Data) -> None:
    B, C = data.tensor("B", (5, 3, 2), "ssd"), data.tensor("C", (3, 2, 4), "ddd")
    text = "A(k,i) = B(k,j,l) * C(j,l,i)"
    check(sl.evaluate(text, B=B, C=C, format="dense"), np.einsum("kjl,jli->ki", data.arrays["B"], data.arrays["C"]))


def test_column_sums_into_a_sparse_vector(data: Data) -> None:
    B = data.tensor("B", (3, 4), "dd")
    result = sl.evaluate("A(k) = B(l,k)", B=B, format="s")
    check(result, data.arrays["B"].sum(0))
    assert result.nnz == 4


def test_a_product_with_a_transpose_into_a_vector(data: Data) -> None:
    B, C = data.tensor("B", (4, 5), "ds"), data.tensor("C", (5, 4), "ds")
    wanted = np.einsum("ji,ij->i", data.arrays["B"], data.arrays["C"])
    for form in ("d", "s"):
        check(sl.evaluate("A(i) = B(j,i) * C(i,j)", B=B, C=C, format=form), wanted)


def test_a_product_of_sparse_matrices(data: Data) -> None:
    B, C = data.tensor("B", (4, 5), "ss"), data.tensor("C", (5, 3), "ss")
    for form in ("dense", "ss", "csr", "csc", "coo"):
        check(sl.evaluate("A(i,k) = B(i,j) * C(j,k)", B=B, C=C, format=form), data.arrays["B"] @ data.arrays["C"])


@pytest.mark.parametrize(
    "text",
    [
        "X(i,k) = B(i,j) * C(j,k)",
        "X(i,l) = A(k,i) * D(k,j) * A(j,l)",
        "X(i,k) = A(j,i) * A(j,k)",
        "X(i,l) = A(i,j) * B(j,k) * C(k,l)",
        "X(i,k) = (A(i,j) + B(i,j)) * (A(j,k) + B(j,k) + C(j,k))",
    ],
)
def test_chains_of_sparse_products(data: Data, text: str) -> None:
    operands = {name: data.tensor(name, (4, 4), "ds") for name in "ABCD" if f"{name}(" in text}
    A, B, C, D = (data.arrays.get(name) for name in "ABCD")
    wanted = {
        "X(i,k) = B(i,j) * C(j,k)": lambda: B @ C,
        "X(i,l) = A(k,i) * D(k,j) * A(j,l)": lambda: A.T @ D @ A,
        "X(i,k) = A(j,i) * A(j,k)": lambda: A.T @ A,
        "X(i,l) = A(i,j) * B(j,k) * C(k,l)": lambda: A @ B @ C,
        "X(i,k) = (A(i,j) + B(i,j)) * (A(j,k) + B(j,k) + C(j,k))": lambda: (A + B) @ (A + B + C),
    }[text]()
    check(sl.evaluate(text, format="dense", **operands), wanted)


def test_logical_operators_on_sparse_matrices(data: Data) -> None:
    A, B, C = (data.tensor(name, (6, 7), "ds", bool) for name in "ABC")
    result = sl.evaluate("X(i,j) = xor(and(A(i,j), C(i,j)), and(B(i,j), C(i,j)))", A=A, B=B, C=C)
    check(result, (data.arrays["A"] & data.arrays["C"]) ^ (data.arrays["B"] & data.arrays["C"]))
    assert result.nnz <= np.count_nonzero(data.arrays["C"])


def test_a_contraction_of_coordinate_lists(data: Data) -> None:
    A, B = data.tensor("A", (3, 2, 4, 3), "uqqq"), data.tensor("B", (3, 4, 2, 3), "uqqq")
    text = "C(i,j,m,n) = A(i,j,k,l) * B(l,k,m,n)"
    check(sl.evaluate(text, A=A, B=B, format="dense"), np.einsum("ijkl,lkmn->ijmn", data.arrays["A"], data.arrays["B"]))


def test_positions_of_a_large_dense_result_are_counted_in_64_bits() -> None:
    source = sl.program("A(i,j) = B(i,j,k) * c(k)", formats={"B": "sss"}).source
    assert not re.search(r"\bint32_t i\b", source)
    assert "int64_t i" in source


def test_renamed_indices_share_one_kernel() -> None:
    A, x = np.eye(3), np.arange(3.0)
    first = sl.program("y(i) = A(i,j) * x(j)", formats={"A": "csr"})
    second = sl.program("out(row) = M(row,col) * v(col)", formats={"M": "csr"})
    first(A, x)
    second(A, x)
    assert first._last is not None and second._last is not None
    addresses = {ctypes.cast(kernel._last.stages.entry, ctypes.c_void_p).value for kernel in (first, second)}  # type: ignore
    assert len(addresses) == 1


@pytest.mark.parametrize("result", ["d", "s"])
def test_the_code_of_a_wide_sum_grows_linearly(data: Data, result: str) -> None:
    def length(count: int) -> int:
        names = [f"b{k}" for k in range(count)]
        text = "a(i) = " + " + ".join(f"{name}(i)" for name in names)
        kernel = sl.program(text, formats={"a": result, **dict.fromkeys(names, "s")})
        operands = {name: data.tensor(name, (12,), "s") for name in names}
        check(kernel(**operands), sum(data.arrays[name] for name in names))
        return len(kernel.source)

    assert length(10) < 6 * length(2)
