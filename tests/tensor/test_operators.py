"""Operators, ufuncs and reductions on tensors, compared with NumPy on the same numbers."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg

from sparseloom.core.errors import ConversionWarning, DTypeError, ShapeError
from sparseloom.tensor import Tensor, asarray, full, functions, random, zeros

FORMATS = ["dense", "csr", "csc", "coo"]
BINARY = [operator.add, operator.sub, operator.mul, operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


def matrix(format: str, seed: int = 1, dtype: Any = np.int64) -> Tensor:
    """Small integers, so that every result is exact."""
    return random((6, 5), 0.5, format, seed=seed, dtype=dtype)


def same(result: Tensor, expected: Any) -> None:
    assert isinstance(result, Tensor)
    assert result.shape == np.shape(expected)
    assert result.dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(result.to_numpy(), expected)


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.__name__)
@pytest.mark.parametrize(("left", "right"), [("csr", "csr"), ("dense", "csc")])
def test_binary_operators(op: Any, left: str, right: str) -> None:
    a, b = matrix(left), matrix(right, seed=2)
    same(op(a, b), op(a.to_numpy(), b.to_numpy()))


@pytest.mark.parametrize(("left", "right"), list(itertools.combinations(["dense", "csr", "csc", "coo"], 2)))
def test_sums_of_different_formats(left: str, right: str) -> None:
    a, b = matrix(left), matrix(right, seed=2)
    same(a + b, a.to_numpy() + b.to_numpy())


NUMBERS = [
    (operator.add, 1),
    (operator.mul, 2.5),
    (operator.mul, 1j),
    (operator.gt, True),
    (operator.sub, np.int8(3)),
    (operator.mul, np.float32(2)),
    (operator.gt, np.float64(0.5)),
    (operator.add, np.float32(0.5)),
]


@pytest.mark.parametrize(("op", "other"), NUMBERS)
def test_numbers(op: Any, other: Any) -> None:
    a = matrix("csr")
    same(op(a, other), op(a.to_numpy(), other))
    same(op(other, a), op(other, a.to_numpy()))
    dense = a.to("dense")
    same(op(dense, other), op(a.to_numpy(), other))


@pytest.mark.parametrize("other", [2.5, np.float64(2)])
def test_weak_and_strong_numbers_promote_as_in_numpy(other: Any) -> None:
    a = matrix("csr", dtype=np.float32)
    assert (a * other).dtype == (a.to_numpy() * other).dtype
    assert (a + other).dtype == (a.to_numpy() + other).dtype


@pytest.mark.parametrize("format", ["dense", "csr"])
def test_division_and_powers(format: str) -> None:
    a = matrix(format)
    same(a / 2, a.to_numpy() / 2)
    same(a**2, a.to_numpy() ** 2)
    same(a.astype(float) / np.arange(1.0, 6), a.to_numpy() / np.arange(1.0, 6))
    dense = np.arange(1, 31).reshape(6, 5)
    same(a / dense, a.to_numpy() / dense)
    same(2 / asarray(dense), 2 / dense)


@pytest.mark.parametrize("shape", [(5,), (1, 5), (6, 1), (1, 1), (1,), (), (2, 6, 5), (2, 1, 5), (3, 1, 1)], ids=str)
@pytest.mark.parametrize("format", ["dense", "csr"])
def test_broadcasting(shape: tuple[int, ...], format: str) -> None:
    a = matrix(format)
    other = np.arange(1, 1 + int(np.prod(shape))).reshape(shape)
    op = operator.mul if format == "csr" else operator.sub
    same(op(a, other), op(a.to_numpy(), other))
    same(op(other, a), op(other, a.to_numpy()))


def test_sparse_tensors_of_size_one_stretch() -> None:
    row, column = random((1, 5), 0.6, "csr", seed=3, dtype=int), random((6, 1), 0.6, "csc", seed=4, dtype=int)
    a = matrix("csr")
    same(a * row, a.to_numpy() * row.to_numpy())
    same(a + column, a.to_numpy() + column.to_numpy())
    same(row + column, row.to_numpy() + column.to_numpy())
    empty = zeros((0, 5), "csr", int)
    same(empty + row, np.zeros((0, 5), int) + row.to_numpy())


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(ShapeError, match=r"add cannot combine the shapes \(6, 5\) and \(6, 4\): sizes must agree or be 1"):
        matrix("csr") + zeros((6, 4))
    with pytest.raises(ShapeError, match=r"\(6, 5\) @ \(6,\): the last mode of the left has size 5, but 6 is needed"):
        matrix("csr") @ np.zeros(6)
    with pytest.raises(ShapeError, match="multiply by a number with"):
        matrix("csr") @ 2


@pytest.mark.parametrize("format", ["dense", "csr"])
def test_unary_operators(format: str) -> None:
    a = matrix(format)
    assert a.conj().storage.values is a.storage.values
    same(-a, -a.to_numpy())
    same(abs(-a), a.to_numpy())
    same(+a, a.to_numpy())
    c = a.astype(complex) * (1 + 2j)
    same(c.conj(), c.to_numpy().conj())
    same(c.real, c.to_numpy().real)
    same(c.imag, c.to_numpy().imag)


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_truths(format: str) -> None:
    a, b = matrix(format) > 50, matrix(format, seed=2) > 50
    x, y = a.to_numpy(), b.to_numpy()
    same(a & b, x & y)
    same(a | b, x | y)
    same(a ^ b, x ^ y)
    same(~a, ~x)
    same(np.bitwise_and(a, b), x & y)
    same(matrix(format) & matrix(format, seed=2), matrix(format).to_numpy() & matrix(format, seed=2).to_numpy())


UFUNCS = [("dense", "sin"), *(("csr", name) for name in "sqrt exp sin tanh log1p square floor isnan".split())]


@pytest.mark.parametrize(("format", "name"), UFUNCS)
def test_ufuncs(format: str, name: str) -> None:
    a = matrix(format, dtype=float)
    function = getattr(np, name)
    result = function(a)
    assert isinstance(result, Tensor)
    np.testing.assert_allclose(result.to_numpy(), function(a.to_numpy()), rtol=1e-14)
    if function(0.0) == 0:
        assert result.nnz <= a.nnz or format == "dense"


def test_binary_ufuncs_and_arrays_on_the_left() -> None:
    a = matrix("csr")
    dense = np.arange(30).reshape(6, 5)
    same(np.add(dense, a), dense + a.to_numpy())
    same(dense * a, dense * a.to_numpy())
    same(np.maximum(a, 40), np.maximum(a.to_numpy(), 40))
    same(np.minimum(dense, a), np.minimum(dense, a.to_numpy()))
    same(np.matmul(dense.T, a), dense.T @ a.to_numpy())
    same(dense.T @ a, dense.T @ a.to_numpy())
    assert np.add.reduce(a, axis=None) == a.to_numpy().sum()


def test_ufuncs_that_are_not_offered() -> None:
    a = matrix("csr")
    for call, text in (
        (lambda: np.isnat(a), r"np\.isnat is not offered on tensors; convert with to_numpy\(\) first"),
        (lambda: np.add(a, a, order="F"), r"np\.add with these options is not offered"),
        (lambda: np.maximum.accumulate(a), r"np\.maximum\.accumulate is not offered"),
        (lambda: np.modf(a, out=(a, a)), "out= of two results is not offered"),
    ):
        with pytest.raises(DTypeError, match=text):
            call()
    with pytest.raises(TypeError):
        a + "text"
    assert (a == "text") is False
    assert (a != None) is True  # noqa: E711


@pytest.mark.parametrize("format", ["dense", "csr", "csc"])
def test_products(format: str) -> None:
    a = matrix(format)
    x = a.to_numpy()
    same(a @ np.arange(5), x @ np.arange(5))
    same(np.arange(6) @ a, np.arange(6) @ x)
    same(a @ np.arange(10).reshape(5, 2), x @ np.arange(10).reshape(5, 2))
    same(a.T @ np.arange(6), x.T @ np.arange(6))
    same(a.dot(np.arange(5)), x @ np.arange(5))
    same(a.dot(2), x * 2)
    same(asarray(np.arange(5)) @ np.arange(5), np.arange(5) @ np.arange(5))


def test_products_of_stacks() -> None:
    a, b = np.arange(24).reshape(2, 3, 4), np.arange(40).reshape(2, 4, 5)
    same(asarray(a) @ b, a @ b)
    same(asarray(a) @ b[0], a @ b[0])
    same(asarray(a[:1]) @ b, a[:1] @ b)
    same(asarray(a) @ np.arange(4), a @ np.arange(4))


REDUCTIONS = [
    *(("csr", axis, name) for axis in (None, 0) for name in ("sum", "prod", "min", "max", "any", "all", "mean")),
    *((format, -1, "sum") for format in (*FORMATS, "dcsr", "ell", "bcsr(2,3)")),
    *((format, 1, "max") for format in FORMATS),
    ("csr", (0, 1), "sum"),
]


@pytest.mark.parametrize(("format", "axis", "name"), REDUCTIONS)
def test_reductions(format: str, axis: Any, name: str) -> None:
    a = matrix(format)
    expected = getattr(a.to_numpy(), name)(axis=axis)
    result = getattr(a, name)(axis=axis)
    if axis is None:
        assert not isinstance(result, Tensor)
        assert result.dtype == expected.dtype
    else:
        assert result.dtype == expected.dtype
        result = result.to_numpy()
    np.testing.assert_allclose(result, expected, rtol=1e-14)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.float32, np.complex64])
def test_sums_have_numpys_dtypes(dtype: Any) -> None:
    a = matrix("csr", dtype=dtype)
    assert a.sum().dtype == a.to_numpy().sum().dtype
    assert a.sum(axis=0, dtype=np.complex128).dtype == np.complex128
    np.testing.assert_allclose(a.sum(), a.to_numpy().sum(), rtol=1e-6)


@pytest.mark.parametrize("name", ["sum", "prod", "min", "max", "any", "all"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_absent_entries_take_part_with_their_fill(name: str, axis: Any) -> None:
    numbers = np.array([[3, 2, 2], [2, 2, 2], [4, 5, 6], [2, 1, 2]])
    a = asarray(numbers, format="csr", fill=2)
    assert a.nnz == 5
    result = getattr(a, name)(axis=axis)
    np.testing.assert_array_equal(result.to_numpy() if axis is not None else result, getattr(numbers, name)(axis=axis))


def test_reductions_of_other_orders_and_forms() -> None:
    t = random((3, 4, 5), 0.4, "csf", seed=3, dtype=int)
    for axis in [None, 0, 1, 2, (0, 2), (1, 2)]:
        result = t.sum(axis=axis)
        np.testing.assert_array_equal(result if axis is None else result.to_numpy(), t.to_numpy().sum(axis=axis))
        result = t.max(axis=axis, keepdims=True)
        expected = t.to_numpy().max(axis=axis, keepdims=True)
        np.testing.assert_array_equal(result.to_numpy(), expected)
    assert np.sum(t) == t.to_numpy().sum()
    assert np.max(t, axis=0).shape == (4, 5)
    assert asarray(3.0).sum() == 3.0


def test_reductions_that_are_refused() -> None:
    with pytest.raises(ShapeError, match="the smallest value along modes"):
        zeros((0, 3), "csr").min()
    with pytest.raises(ShapeError, match="axis 2 is outside the 2 modes"):
        matrix("csr").sum(axis=2)
    with pytest.raises(ShapeError, match="names a mode twice"):
        matrix("csr").sum(axis=(0, 0))
    with pytest.raises(DTypeError, match="an axis is an integer"):
        matrix("csr").sum(axis="x")
    assert zeros((0, 3), "csr").sum() == 0


def test_functions_on_tensors() -> None:
    a, b = matrix("csr"), matrix("csc", seed=2)
    x, y = a.to_numpy(), b.to_numpy()
    same(functions.where(a > 50, a, 0), np.where(x > 50, x, 0))
    same(functions.maximum(a, b), np.maximum(x, y))
    same(functions.equal(a, b), x == y)
    np.testing.assert_allclose(functions.sqrt(a).to_numpy(), np.sqrt(x))
    assert functions.sqrt(4.0).item() == 2.0


def test_functions_have_their_own_names() -> None:
    assert [getattr(functions, name).__name__ for name in functions.__all__] == functions.__all__


def test_nan_and_infinity_beside_absent_entries() -> None:
    a = asarray(np.array([[0, 1.0], [2, 0]]), format="csr")
    result = (a * np.array([[np.inf, np.inf], [np.nan, np.nan]])).to_numpy()
    assert result[0, 0] == 0 and result[0, 1] == np.inf
    assert np.isnan(result[1, 0]) and result[1, 1] == 0
    assert np.isnan(asarray(np.array([[0, np.nan]]), format="csr").max())


def test_f_of_zero_fills_in() -> None:
    a = matrix("csr", dtype=float)
    same(a + 1, a.to_numpy() + 1)
    np.testing.assert_allclose(np.cos(a).to_numpy(), np.cos(a.to_numpy()))
    np.testing.assert_array_equal((a == 0).to_numpy(), a.to_numpy() == 0)


def test_numpy_functions_do_not_answer_wrongly_for_sparse_tensors() -> None:
    a = matrix("csr")
    assert np.array_equal(a, a) and not np.allclose(a, 1) and np.linalg.norm(a) == np.linalg.norm(a.to_numpy())
    for call in (lambda: np.median(a), lambda: np.linalg.svd(a), lambda: np.histogram(a), lambda: np.linalg.trace(a)):
        with pytest.raises(DTypeError, match=r"is not offered on sparse tensors; convert with to_numpy\(\) first"):
            call()
    dense = a.to("dense")
    assert np.array_equal(dense, a.to_numpy())
    assert np.concatenate([dense, dense]).shape == (12, 5)
    assert (np.shape(a), np.ndim(a), np.size(a)) == ((6, 5), 2, 30)
    assert np.transpose(a).shape == (5, 6)
    assert np.mean(a) == a.to_numpy().mean()


def test_user_arrays_are_not_changed() -> None:
    matrix_ = sp.random_array((20, 20), density=0.2, format="csr", rng=1)
    before = [matrix_.indptr.copy(), matrix_.indices.copy(), matrix_.data.copy()]
    a = asarray(matrix_)
    x = np.ones(20)
    x.flags.writeable = False
    _ = (a + 1, a @ x, a * a, -a, a.sum(axis=0), a.max(), a.T @ x, np.sin(a))
    for old, new in zip(before, (matrix_.indptr, matrix_.indices, matrix_.data), strict=True):
        np.testing.assert_array_equal(old, new)


def test_an_operand_that_must_be_copied_is_said() -> None:
    with pytest.warns(ConversionWarning, match="not contiguous") as caught:
        matrix("csr") + np.arange(10)[::2]
    assert caught[0].filename == __file__


def test_tensors_are_linear_operators() -> None:
    n = 40
    laplacian = sp.diags_array([-np.ones(n - 1), 2.1 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1], format="csr")
    a = asarray(laplacian)
    linear = scipy.sparse.linalg.aslinearoperator(a)
    assert (linear.shape, linear.dtype) == ((n, n), np.float64)
    x = np.arange(float(n))
    np.testing.assert_allclose(linear.matvec(x), laplacian @ x)
    np.testing.assert_allclose(linear.rmatvec(x), laplacian.T @ x)
    np.testing.assert_allclose(linear.matmat(np.eye(n)[:, :3]), laplacian.toarray()[:, :3])
    solution, info = scipy.sparse.linalg.cg(a, x, rtol=1e-10)
    assert info == 0
    np.testing.assert_allclose(laplacian @ solution, x, atol=1e-6)
    largest = scipy.sparse.linalg.eigsh(a, k=2, return_eigenvectors=False, v0=np.arange(1.0, n + 1))
    np.testing.assert_allclose(np.sort(largest), np.linalg.eigvalsh(laplacian.toarray())[-2:], rtol=1e-8)


def test_the_adjoint_of_a_complex_operator() -> None:
    dense = np.array([[1 + 2j, 0, 3], [0, 1j, 0]])
    a = asarray(dense, format="csr")
    x = np.array([1.0 + 1j, 2])
    np.testing.assert_allclose(a.rmatvec(x), dense.conj().T @ x)
    np.testing.assert_allclose(scipy.sparse.linalg.aslinearoperator(a).rmatvec(x), dense.conj().T @ x)


def test_fills_go_through_operators() -> None:
    a = full((3, 3), np.inf, "csr")
    np.testing.assert_array_equal((a + 1).to_numpy(), np.full((3, 3), np.inf))
    np.testing.assert_array_equal(np.minimum(a, 5.0).to_numpy(), np.full((3, 3), 5.0))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "complex128", "bool", "float16"])
@pytest.mark.parametrize("rows", [1, 3, 4, 17])
@pytest.mark.parametrize("order", ["C", "F"])
def test_dense_rows_times_a_sparse_matrix(dtype: str, rows: int, order: Any, rng: np.random.Generator) -> None:
    sparse = random((300, 90), 0.2, "csr", seed=3, dtype=np.int64).astype(dtype)
    dense = np.asarray(rng.integers(0, 3, (rows, 300)).astype(dtype), order=order)
    wide = "float64" if dtype == "float16" else dtype
    expected = (dense.astype(wide) @ sparse.to_numpy().astype(wide)).astype(dtype)
    for left in (dense, asarray(np.ascontiguousarray(dense))):
        made = left @ sparse
        same(made, expected)
        assert made.format.is_dense
        made.arrays["values"][:] = 0
        same(left @ sparse, expected)


@pytest.mark.parametrize("columns", range(1, 9))
@pytest.mark.parametrize("format", ["csr", "csc", "coo", "dcsr", "bsr"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_products_with_few_columns(columns: int, format: str, dtype: str, rng: np.random.Generator) -> None:
    sparse = random((400, 300), 0.1, "csr", seed=4, dtype=np.int64).astype(dtype)
    dense = rng.integers(0, 3, (300, columns)).astype(dtype)
    made = asarray(sp.bsr_array(sparse.to_scipy())) if format == "bsr" else sparse.to(format)
    same(made @ dense, sparse.to_numpy() @ dense)
