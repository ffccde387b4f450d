"""Linear algebra, orders and creation, compared with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from surface.against_numpy import check, numbers, same

import sparseloom as sl
from sparseloom.core.errors import NotationError, ShapeError

SHAPES = {"A": (6, 5), "B": (3, 2), "S": (4, 4), "T": (3, 4, 5), "V": (7,), "W": (4,)}
LINEAR = [
    "xp.kron(A, B)", "xp.kron(B, S)", "xp.kron(V, B)", "xp.diagonal(A)", "A.diagonal(1)", "xp.diagonal(A, -2)",
    "xp.diagonal(T, axis1=1, axis2=2)", "xp.diagonal(T, 1, 2, 0)", "xp.diagonal(A, 9)", "xp.diag(V)", "xp.diag(V, 2)", "xp.diag(V, -1)",
    "xp.diag(A, 1)", "xp.tril(A)", "xp.triu(A, 1)", "xp.tril(T, -1)", "xp.triu(T, k=-2)",
]  # fmt: skip
PRODUCTS = [
    "xp.matmul(S, W)", "xp.dot(S, S)", "xp.tensordot(T, S, axes=([1], [0]))", "xp.tensordot(A, A, 2)",
    "xp.tensordot(T, T, axes=((0, 2), (0, 2)))", "xp.outer(V, W)", "xp.inner(V, V)", "xp.inner(S, W)", "xp.vdot(V, V)", "xp.vecdot(S, W)",
    "A.trace()", "xp.trace(S, 1)", "xp.tensordot(V, W, 0)",
]  # fmt: skip
ORDER = [
    "xp.sort(A)", "xp.sort(A, axis=0)", "xp.sort(T, axis=1)", "xp.sort(A, axis=None)", "xp.argsort(A, stable=True)",
    "xp.argsort(T, axis=0, stable=True)", "xp.unique(A)", "xp.unique(T, return_counts=True)", "xp.unique(A, return_index=True)",
    "xp.unique(A, return_index=True, return_inverse=True, return_counts=True)", "xp.sort(xp.unique_values(A))", "xp.unique_counts(A)",
    "xp.unique_inverse(A)", "xp.unique_all(T)", "xp.nonzero(A)", "xp.argwhere(T)", "xp.flatnonzero(A)",
    "xp.take(A, np.array([2, 0, 2]), axis=1)", "A.take([1, 7])", "xp.take(T, np.array([[0, 1], [1, 1]]), axis=0)",
    "xp.take_along_axis(A, np.argsort(np.ones((6, 5)), axis=1, stable=True), axis=1)",
    "xp.take_along_axis(A, np.array([[1, 0, 5, 2, 3]]), axis=0)", "xp.take(V, 9, mode='wrap')", "xp.where(A)",
]  # fmt: skip
LIKE = [
    "xp.zeros_like(A)", "xp.ones_like(A)", "xp.full_like(A, 3)", "xp.zeros_like(T, dtype=float)", "xp.full_like(A, 2, shape=(3,))",
    "xp.empty_like(A).shape",
]  # fmt: skip


def test_linear_algebra_as_in_numpy(rng: np.random.Generator) -> None:
    check(rng, LINEAR, SHAPES)


def test_products_as_in_numpy(rng: np.random.Generator) -> None:
    check(rng, PRODUCTS, SHAPES, ("float64",), through="sl")
    same(sl.vdot(sl.asarray([1j, 2]), [3j, 1]), np.vdot([1j, 2], [3j, 1]), "vdot")
    a = sl.random((5, 5), 0.5, "csr", seed=1, dtype=int)
    same(sl.matrix_power(a, 5), np.linalg.matrix_power(a.to_numpy(), 5), "matrix_power")
    same(np.linalg.matrix_power(a, 0), np.linalg.matrix_power(a.to_numpy(), 0), "matrix_power")


def test_orders_as_in_numpy(rng: np.random.Generator) -> None:
    check(rng, ORDER, SHAPES)


@pytest.mark.parametrize("dtype", ["float64", "int8", "uint16", "bool"])
def test_topk(dtype: str, rng: np.random.Generator) -> None:
    for shape, axis in (((6, 5), -1), ((6, 5), 0), ((3, 4, 5), 1), ((7,), 0)):
        array = numbers(rng, shape, dtype)
        for k in (0, 1, 3, shape[axis]):
            for largest in (True, False):
                key = -array.astype(int) if largest else array.astype(int)
                places = np.take(np.argsort(key, axis=axis, kind="stable"), np.arange(k), axis)
                for format in ("s" * len(shape), "dense"):
                    found = sl.topk(sl.asarray(array, format=format), k, axis, largest)
                    same(found.indices, places, f"places of {k} along {axis}")
                    same(found.values, np.take_along_axis(array, places, axis), f"values of {k} along {axis}")


def test_creation(rng: np.random.Generator) -> None:
    check(rng, LIKE, SHAPES)
    for arguments in ((4,), (4, 6), (4, 3, 1), (3, 5, -2), (3, 3, 7)):
        same(sl.eye(*arguments), np.eye(*arguments), f"eye{arguments}")
    assert str(sl.eye(3).format) == "csr" and sl.eye(10**6).nnz == 10**6
    assert (sl.ones_like(sl.eye(3)).fill, sl.ones_like(sl.eye(3)).nnz, str(sl.zeros_like(sl.eye(3)).format)) == (1, 0, "csr")
    same(sl.ones((2, 3)), np.ones((2, 3)), "ones")
    same(sl.arange(3, 9, 2), np.arange(3, 9, 2), "arange")
    same(sl.linspace(0, 1, 5), np.linspace(0, 1, 5), "linspace")


def test_entries_are_cleaned() -> None:
    a = sl.from_coo([[0, 1, 2], [1, 0, 2]], [5.0, 0.0, 7.0], shape=(3, 3), format="csr")
    assert (a.nnz, a.eliminate_zeros().nnz, str(a.eliminate_zeros().format)) == (3, 2, "csr")
    arrays = {"pos0": [0, 3], "crd0": [0, 1, 1], "crd1": [0, 1, 1], "values": np.ones(3)}
    repeated = sl.from_arrays("uq+", (2, 2), {name: np.asarray(array) for name, array in arrays.items()})
    assert (repeated.nnz, repeated.sum_duplicates().nnz) == (3, 2)
    assert a.sum_duplicates().storage.values is a.storage.values


SETTINGS: list[tuple[Any, Any]] = [
    ((2, 3), 5.0), ((slice(1, 5, 2), slice(None, None, -1)), 2.0), (([0, 3], [1, 2]), [7.0, 8.0]), ((slice(None), 2), np.arange(7.0)),
    (np.arange(35).reshape(7, 5) % 4 == 0, 3.0), (-1, 1.0), ((slice(0, 2), [4, 0]), np.full((2, 2), 9.0)), (([1, 2], slice(0, 2)), 6.0),
    ((0, 0), 0.0),
]  # fmt: skip


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bcsr(2,3)", "dense"])
def test_entries_are_set_through_a_builder(format: str) -> None:
    a = sl.random((7, 5), 0.4, format, seed=5)
    array, builder = a.to_numpy().copy(), a.builder()
    for key, value in SETTINGS:
        builder[key] = value
        array[key] = value
    builder[3, 3] += 2.5
    array[3, 3] += 2.5
    assert builder.cost.startswith("sorts 1 entries that were set into ")
    made = builder.build()
    assert (str(made.format), builder.cost) == (format if format != "dense" else "dense(2)", "nothing")
    np.testing.assert_array_equal(made.to_numpy(), array)
    with pytest.raises(NotationError, match=r"A = B.build\(\), which moves them once"):
        a[2, 3] = 5.0
    with pytest.raises(ShapeError, match="cannot be set where"):
        builder[0] = np.ones(3)


def test_what_is_sparse_stays_sparse() -> None:
    a = sl.random((6, 5), 0.3, "csr", seed=1)
    products = sl.kron(a, a), sl.outer(a[0], a[1]), sl.tensordot(a, a, ((0,), (0,)))
    for made in (*products, sl.diag(np.ones(3)), sl.tril(a), a.diagonal(), sl.sort(a)):
        assert not made.format.is_dense
