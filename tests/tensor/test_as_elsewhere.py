"""What NumPy, SciPy and PyData/Sparse offer on their arrays: stored entries alone, outputs, other words for the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparseloom as sl


def some(rng: np.random.Generator, shape: tuple[int, ...] = (4, 5), dtype: Any = float) -> np.ndarray:
    return (rng.integers(-3, 4, shape) * (rng.random(shape) < 0.5)).astype(dtype)


def array_of(value: Any) -> np.ndarray:
    if sp.issparse(value):
        return value.toarray()
    return value.to_numpy() if isinstance(value, sl.Tensor) else np.asarray(value)


@pytest.mark.parametrize("name", "max min nanmax nanmin argmax argmin".split())
@pytest.mark.parametrize("dtype", [float, int])
def test_only_stored_entries_count_where_that_is_said(rng: np.random.Generator, name: str, dtype: Any) -> None:
    a = some(rng, dtype=dtype)
    a[2], a[:, 3], a[0, 0] = 0, 0, -1
    if name.startswith("nan") and dtype is float:
        a[1], a[0, 1] = [np.nan, 0, np.nan, 0, 0], np.nan
    stored, tensor = sp.csr_array(a), sl.asarray(a, format="csr")
    for axis in (0, 1) if name.startswith("arg") else (None, 0, 1):
        expected = array_of(getattr(stored, name)(axis=axis, explicit=True))
        found = array_of(getattr(sl, name)(tensor, axis=axis, explicit=True))
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    dense = sl.asarray(a + 5)
    np.testing.assert_array_equal(array_of(getattr(sl, name)(dense, axis=0, explicit=True)), getattr(np, name)(a + 5, axis=0))


def test_the_place_of_a_stored_extreme_is_one_among_all_values() -> None:
    tensor = sl.asarray(np.array([[0, 0, -2], [-1, 0, 0]]), format="csr")
    assert sl.argmax(tensor, explicit=True) == 3
    with pytest.raises(sl.ShapeError, match="no entries are stored, so there is no argmax of them"):
        sl.argmax(sl.zeros((2, 2), "csr"), explicit=True)


@pytest.mark.parametrize("name", "sum prod mean max min".split())
def test_reductions_fill_an_output(rng: np.random.Generator, name: str) -> None:
    a = some(rng)
    for axis in (None, 1):
        out = np.full(() if axis is None else 4, 7.0)
        assert getattr(sl.asarray(a, format="csr"), name)(axis=axis, out=out) is out
        np.testing.assert_allclose(out, getattr(a, name)(axis=axis))
    with pytest.raises(sl.DTypeError, match="out= cannot hold the result"):
        sl.asarray(a, format="csr").sum(axis=0, out=np.zeros(5, int))
    with pytest.raises(sl.ShapeError, match=r"out= has shape \(3, 4\), and the result \(4,\)"):
        getattr(sl.asarray(a, format="csr"), name)(axis=1, out=np.zeros((3, 4)))


def test_a_sparse_output_takes_over_the_result(rng: np.random.Generator) -> None:
    a, b = some(rng), some(rng)
    one, out = sl.asarray(a, format="csr"), sl.asarray(b, format="csc")
    turned = out.T
    assert np.add(one, one, out=out) is out
    assert str(out.format) == "csc"
    np.testing.assert_array_equal(out.to_numpy(), a + a)
    np.testing.assert_array_equal(turned.to_numpy(), b.T)  # what was there before is not changed
    assert np.positive(one, out=out) is out
    np.testing.assert_array_equal(out.to_numpy(), a)
    assert np.clip(one, 0, 1, out=out) is out
    assert np.round(one, out=out) is out
    np.testing.assert_array_equal(out.to_numpy(), a)
    whole = sl.asarray(a.astype(int), format="csr")
    with pytest.raises(sl.DTypeError, match="out= holds int64, and float64 cannot be cast to it by the rule 'same_kind'"):
        np.add(one, one, out=whole)
    with pytest.raises(sl.ShapeError, match=r"out= has shape \(5, 4\), and the result \(4, 5\)"):
        np.add(one, one, out=turned)
    with pytest.raises(sl.DTypeError, match="where= with a sparse tensor as out= is not offered"):
        np.add(one, one, out=out, where=a > 0)


def test_outer_of_ufuncs(rng: np.random.Generator) -> None:
    a, b = some(rng), some(rng, (3,))
    for one, other in (("csr", "s"), ("dense", "s"), ("csr", "dense")):
        found = np.multiply.outer(sl.asarray(a, format=one), sl.asarray(b, format=other))
        np.testing.assert_array_equal(found.to_numpy(), np.multiply.outer(a, b))
    np.testing.assert_array_equal(np.add.outer(b, sl.asarray(a, format="csr")).to_numpy(), np.add.outer(b, a))


@pytest.mark.parametrize("function", [np.modf, np.frexp])
def test_functions_with_two_results(rng: np.random.Generator, function: Callable[..., Any]) -> None:
    a = some(rng) * 1.25
    for found, expected in zip(function(sl.asarray(a, format="csr")), function(a), strict=True):
        assert str(found.format) == "csr"
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found.to_numpy(), expected)


def test_words_of_numpy_and_scipy() -> None:
    assert sl.eye(2, M=3).shape == (2, 3)
    assert sl.ones(3, dtype=None).dtype == float
    assert sl.full((2, 2), fill_value=9.5, dtype="i4").to_numpy().tolist() == [[9, 9], [9, 9]]
    assert sl.full((2, 2), 9.5, "csr", "i4").fill == 9
    for value in (np.inf, np.nan, 1e30, 300):
        with pytest.raises(sl.DTypeError, match="is not a value of type int8"):
            sl.full((2, 2), value, "csr", "int8")
    eye = sl.eye(2)
    assert str(sl.kron(eye, eye, format="csc").format) == str(sl.tril(eye, format="csc").format) == "csc"
    for stacked in (sl.hstack, sl.vstack):
        made = stacked([eye, eye], format="coo", dtype="f4")
        assert (str(made.format), made.dtype) == ("coo", np.float32)
    assert np.stack([eye, eye], dtype="f4").dtype == np.float32
    for call in (sl.ravel, sl.flatten):
        assert call(eye, order=None).to_numpy().tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize(("options", "text"), [({"casting": "blah"}, "casting='blah'"), ({"order": "W"}, "order='W'")])
def test_einsum_knows_the_words_that_numpy_knows(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=f"einsum has no {text}; there are"):
        np.einsum("ij->i", sl.eye(2), **options)
    assert np.einsum("ij->i", sl.eye(2), order="c").to_numpy().tolist() == [1, 1]


def test_absent_nan_are_all_different_where_nan_are() -> None:
    tensor = sl.asarray(np.array([1.0, np.nan, 2.0, np.nan]), format="s", fill=np.nan)
    assert tensor.nnz == 2
    np.testing.assert_array_equal(sl.unique_values(tensor).to_numpy(), [1, 2, np.nan, np.nan])
    np.testing.assert_array_equal(sl.unique_counts(tensor).counts.to_numpy(), [1, 1, 1, 1])
    np.testing.assert_array_equal(sl.unique(tensor).to_numpy(), [1, 2, np.nan])


@pytest.mark.parametrize("name", "zeros_like ones_like empty_like".split())
def test_a_tensor_like_another_is_made_in_main_memory(name: str) -> None:
    assert getattr(sl, name)(sl.eye(2), device="cpu").shape == (2, 2)
    with pytest.raises(sl.DeviceError, match="tensors are created on the device 'cpu', not on 'elsewhere'"):
        getattr(sl, name)(sl.eye(2), device="elsewhere")


def test_a_path_of_einsum_must_end_with_one_tensor() -> None:
    eye = sl.eye(2)
    whole = ["einsum_path", (1, 2), (0, 1)]
    assert np.einsum("ij,jk,kl->il", eye, eye, eye, optimize=whole).to_numpy().tolist() == [[1, 0], [0, 1]]
    for path in ([(1, 2)], [(1,), (0, 1)]):
        with pytest.raises(ValueError, match=r"leaves 2 of 3 operands, and one must be left"):
            np.einsum("ij,jk,kl->il", eye, eye, eye, optimize=["einsum_path", *path])
