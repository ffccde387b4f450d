"""SciPy: every sparse class is read, stands on either side of an operator, and is given back, without a warning."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparseloom as sl

A = np.array([[1.0, 0, 2, 0], [0, 3, 0, 0], [4, 0, 0, 5], [0, 0, 0, 0]])
B = np.array([[0.0, 1, 2, 0], [0, 0, 0, 7], [4, 0, 1, 0], [2, 0, 0, 3]])
ARRAYS = (sp.csr_array, sp.csc_array, sp.coo_array, sp.bsr_array, sp.dia_array, sp.lil_array, sp.dok_array)
MATRICES = (sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, sp.bsr_matrix, sp.dia_matrix, sp.lil_matrix, sp.dok_matrix)
OPERATORS = (operator.matmul, operator.mul, operator.add, operator.sub, operator.eq)


@pytest.fixture(autouse=True)
def warnings_are_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def is_tensor(result: Any, expected: Any) -> None:
    assert type(result) is sl.Tensor
    np.testing.assert_array_equal(result.to_numpy(), expected)


@pytest.mark.parametrize("kind", ARRAYS + MATRICES, ids=lambda kind: kind.__name__)
def test_every_class_is_read_and_stands_on_the_left(kind: Any) -> None:
    given, tensor = kind(A), sl.asarray(B, format="csr")
    is_tensor(sl.asarray(given), A)
    is_tensor(given @ tensor, A @ B)


@pytest.mark.parametrize("kind", [*ARRAYS, *MATRICES], ids=lambda kind: kind.__name__)
def test_every_class_is_an_operand_by_position_and_by_name(kind: Any) -> None:
    """A dok array is a dict of its entries, and no dict of operands."""
    given, text = kind(A), "y(i) = A(i,j)"
    for kernel in (sl.program(text), sl.program(text, {"A": "csr"})):
        for made in (kernel(given), kernel(A=given), kernel({"A": given}), kernel.bind(given)()):
            is_tensor(made, A.sum(axis=1))
    for made in (sl.evaluate(text, given), sl.evaluate(text, {"A": given}), sl.einsum("ij->i", given)):
        is_tensor(made, A.sum(axis=1))
    is_tensor(sl.program("C(i,k) = A(i,j) * B(j,k)")(given, B), A @ B)


@pytest.mark.parametrize("apply", OPERATORS, ids=lambda apply: apply.__name__)
def test_operators_agree_with_numpy_on_both_sides(apply: Any) -> None:
    tensor = sl.asarray(B, format="csr")
    for given in (sp.csr_array(A), sp.dok_array(A), sp.lil_array(A)):
        is_tensor(apply(given, tensor), apply(A, B))
        is_tensor(apply(tensor, given), apply(B, A))


def test_the_star_of_a_matrix_is_its_product_and_that_of_an_array_is_not() -> None:
    tensor = sl.asarray(B, format="csr")
    is_tensor(sp.csr_matrix(A) * tensor, A @ B)
    is_tensor(sp.csr_array(A) * tensor, A * B)
    is_tensor(tensor * sp.csr_matrix(A), A * B)  # whoever stands on the left decides


def test_vectors_and_scalars_stand_beside() -> None:
    vector = sl.asarray(np.arange(4.0))
    is_tensor(sp.csr_array(A) @ vector, A @ np.arange(4.0))
    is_tensor(sp.csr_array(A) / sl.asarray(np.array(2.0)), A / 2)


def test_only_operators_get_past_the_refusal_of_sparse_tensors() -> None:
    tensor = sl.asarray(B, format="csr")
    for ask in (np.asarray, sp.csr_array(A).multiply, sp.csr_array(A).maximum):
        with pytest.raises(sl.DTypeError, match=r"does not become an array silently, because it may be huge; write to_numpy\(\)"):
            ask(tensor)
    np.testing.assert_array_equal(sp.csr_array(A).multiply(sl.asarray(B)).toarray(), A * B)


def test_arrays_of_other_orders() -> None:
    cube = np.zeros((3, 4, 2))
    cube[0, 1, 1], cube[2, 3, 0] = 5, 6
    given = sp.coo_array(cube)
    tensor = sl.asarray(given)
    assert tensor.format == sl.coo(3) and np.shares_memory(tensor.arrays["values"], given.data)
    is_tensor(given * tensor, cube * cube)
    is_tensor(given + tensor, 2 * cube)
    back = tensor.to("csf").to_scipy()
    assert (back.format, back.shape) == ("coo", (3, 4, 2))
    np.testing.assert_array_equal(back.toarray(), cube)
    row = sp.csr_array(np.array([0, 1.0, 0]))
    is_tensor(sl.asarray(row), [0, 1, 0])
    np.testing.assert_array_equal(sl.asarray(row).to_scipy().toarray(), [0, 1, 0])


@pytest.mark.parametrize(("format", "kind"), [
    ("csr", "csr"), ("csc", "csc"), ("coo", "coo"), ("bcsr(2,2)", "bsr"), ("dia", "dia"), ("dcsr", "csr")])  # fmt: skip
def test_tensors_are_given_out(format: str, kind: str) -> None:
    tensor = sl.asarray(A).to(format)
    given = tensor.to_scipy()
    assert given.format == kind and isinstance(given, sp.sparray)
    np.testing.assert_array_equal(given.toarray(), A)
    given.sum(axis=0)
    if format != "dcsr":
        assert np.shares_memory(given.data, tensor.arrays["values"])


def test_index_arrays_of_either_width_are_shared() -> None:
    given = sp.csr_array(A)
    given.indices, given.indptr = given.indices.astype(np.int64), given.indptr.astype(np.int64)
    tensor = sl.asarray(given)
    assert np.shares_memory(tensor.arrays["crd1"], given.indices) and tensor.notes == ()
