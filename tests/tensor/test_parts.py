"""Indexing and transposing, compared with NumPy on the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparseloom.core.errors import NotationError, ShapeError
from sparseloom.formats import named
from sparseloom.tensor import Tensor, asarray, random

FORMATS = ["dense", "csr", "csc", "coo", "dcsr", "dcsc", "bcsr(2,3)", "ell", "dd:1,0"]
MASK = np.array([True, False, True, True, False, False, True])
KEYS: list[Any] = [
    0, -1, 3, (2, 3), (-1, -1), (0, 0), np.int64(2), (np.int8(1), np.uint16(3)),
    slice(1, 3), slice(None), slice(None, None, 2), slice(None, None, -1), slice(4, 1, -2), slice(3, 3), slice(5, 2), slice(-3, 100),
    (slice(None), 2), (slice(None), -1), (slice(1, 4), slice(2, 5)), (slice(None, None, 3), slice(None, None, -2)),
    (1, slice(1, 4)), (slice(2, 4), 0), (slice(0, 0), slice(None)),
    ..., (..., 0), (0, ...), (..., slice(1, 3)), (slice(None), ...),
    [0, 2], [3, 0, 0, -1], [], (slice(None), [4, 1]), (slice(1, 5), [0, 0, 2]), MASK, (slice(None), MASK[:5]),
    None, (None, 1), (slice(None), None), (..., None, 2), (None, slice(1, 4), None, 0), ([0], [1]), ([0], 1), (1, [0, 3]),
    ([0, -1, 2], [1, 1, 4]), ([[0], [3]], [1, 2]), np.arange(12).reshape(3, 4) % 7, np.zeros((7, 5), bool),
    np.arange(35).reshape(7, 5) % 3 == 0, (slice(None, None, -1), [2, 0]), (None, [1, 2], slice(3)), (MASK, 1), (MASK, None, slice(2)),
    (MASK, [0, 1, 2, 3]), ((0, 2), 1), (slice(None), slice(None, None, 2**63)), slice(2**70, None, -(2**65)), np.ix_([3, 0, 3], [4, 1]),
    (np.array([[0], [2]]), np.array([[1, 1, 3]])), (np.array([[[2]]]), np.array([[0, 4]])),
]  # fmt: skip
DEEP_KEYS: list[Any] = [
    1, (1, 2), (0, 1, 2), (..., 1), (slice(None), 1), (slice(None), slice(1, 3), 0), (slice(2), ..., slice(None, None, -1)),
    (slice(None), [3, 1]), ([1, 0, 1],), ([0, 2], slice(None), [1, 4]), (slice(None), [0, 1], [[1], [2]]), (0, slice(None), [4, 4]),
    ([1], None, [2], ...), (slice(2), [3, 0], 1), np.arange(12).reshape(3, 4) % 5 == 1, (slice(None), np.arange(20).reshape(4, 5) % 3 == 0),
    (None, ..., None), ([[0, 1], [2, 0]],), (slice(None), 1, ..., [0, 2]), (slice(None), [0, 1], ..., [0, 2]), (slice(None), [2], 1, ...),
    (slice(None), [[0], [3]], ..., 1), (slice(None), 1, ..., 2), np.ix_([1, 0], [3, 3], [0, 4]),
    (np.array([[0], [1]]), slice(2), [1, 2, 4]),
]  # fmt: skip


def values_of(part: Any) -> Any:
    return part.to_numpy() if isinstance(part, Tensor) else part


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_matrices_are_indexed_as_in_numpy(format: str, key: Any) -> None:
    tensor = random((7, 5), 0.4, format, seed=5)
    expected = tensor.to_numpy()[key]
    part = tensor[key]
    assert part.shape == expected.shape
    assert part.dtype == expected.dtype
    assert not isinstance(part, Tensor) or part.format.is_dense == tensor.format.is_dense
    np.testing.assert_array_equal(values_of(part), expected)


@pytest.mark.parametrize("format", ["csf", "coo", "dss", "sss:2,0,1", "dense", "ssd", "uqq:1,2,0"])
@pytest.mark.parametrize("key", DEEP_KEYS, ids=str)
def test_tensors_are_indexed_as_in_numpy(format: str, key: Any) -> None:
    tensor = random((3, 4, 5), 0.4, format, seed=6)
    np.testing.assert_array_equal(values_of(tensor[key]), tensor.to_numpy()[key])


@pytest.mark.parametrize(
    ("format", "key", "kept"),
    [("csr", 0, "s"), ("csr", slice(1, 3), "csr"), ("csr", (slice(None), 1), "s"), ("csc", slice(0, 2), "csc"), ("coo", slice(0, 2), "coo"),
     ("coo", 0, "s"), ("bcsr(2,3)", slice(1, 4), "bcsr(2,3)"), ("ell", 1, "s"), ("dense", 0, "dense(1)")],
)  # fmt: skip
def test_parts_keep_the_kind_of_format(format: str, key: Any, kept: str) -> None:
    assert str(random((7, 5), 0.4, format, seed=5)[key].format) == kept


def test_rows_of_csr_share_memory() -> None:
    tensor = random((100, 50), 0.2, "csr", seed=1)
    assert np.shares_memory(tensor[10:20].storage.values, tensor.storage.values)
    assert np.shares_memory(tensor.T[:, 10:20].storage.levels[1].arrays["crd"], tensor.storage.levels[1].arrays["crd"])


def test_absent_entries_have_the_fill() -> None:
    tensor = asarray(np.array([[np.inf, 1], [np.inf, np.inf]]), format="csr", fill=np.inf)
    assert tensor[0, 0] == np.inf
    assert tensor[1].fill == np.inf
    np.testing.assert_array_equal(tensor[1].to_numpy(), [np.inf, np.inf])


@pytest.mark.parametrize("key", [7, -8, (0, 5), (0, 0, 0), [7], np.ones(3, bool), (..., ...), ([0, 1], [1, 2, 3])], ids=str)
def test_positions_outside_raise_index_error(key: Any) -> None:
    with pytest.raises(IndexError):
        random((7, 5), 0.4, "csr", seed=5)[key]


@pytest.mark.parametrize("key", [1.5, "a", [0.5], True, (0, "b")], ids=str)
def test_other_keys_are_refused_with_a_reason(key: Any) -> None:
    with pytest.raises(NotationError):
        random((7, 5), 0.4, "csr", seed=5)[key]


@pytest.mark.parametrize("format", FORMATS)
def test_tensors_index_tensors(format: str) -> None:
    tensor = random((7, 5), 0.4, format, seed=5)
    dense, mask = tensor.to_numpy(), tensor > 0.5
    np.testing.assert_array_equal(tensor[mask].to_numpy(), dense[dense > 0.5])
    np.testing.assert_array_equal(tensor[asarray(np.array([3, 1]))].to_numpy(), dense[[3, 1]])


@pytest.mark.parametrize("format", FORMATS)
def test_transposing_shares_all_arrays(format: str) -> None:
    tensor = random((7, 5), 0.4, format, seed=5)
    turned = tensor.T
    assert turned.shape == (5, 7)
    assert all(mine is theirs for mine, theirs in zip(turned.storage.indices, tensor.storage.indices, strict=True))
    assert turned.storage.values is tensor.storage.values
    np.testing.assert_array_equal(turned.to_numpy(), tensor.to_numpy().T)
    assert turned.T.format == tensor.format


def test_transpose_of_csr_is_csc_and_takes_axes() -> None:
    assert random((7, 5), 0.4, "csr", seed=5).T.format == named.csc
    tensor = random((2, 3, 4), 0.5, "csf", seed=3)
    for axes in [(1, 2, 0), (0, 2, 1), (-1, 0, 1)]:
        np.testing.assert_array_equal(tensor.transpose(axes).to_numpy(), tensor.to_numpy().transpose(axes))
        np.testing.assert_array_equal(tensor.transpose(*axes).to_numpy(), tensor.to_numpy().transpose(axes))
    np.testing.assert_array_equal(np.transpose(tensor, (2, 0, 1)).to_numpy(), tensor.to_numpy().transpose(2, 0, 1))
    with pytest.raises(ShapeError, match="each of the 3 modes once"):
        tensor.transpose(0, 0, 1)
    assert asarray(3.0).T.shape == ()


@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("target", FORMATS)
def test_conversion_between_any_two_formats(source: str, target: str) -> None:
    tensor = random((7, 5), 0.4, source, seed=5)
    converted = tensor.to(target)
    assert converted.to(converted.format).storage.values is converted.storage.values
    np.testing.assert_array_equal(converted.to_numpy(), tensor.to_numpy())


def test_arrays_along_different_axes_are_not_multiplied_out() -> None:
    tensor, places = random((100_000, 100_000), 1e-9, "csr", seed=1), np.arange(100_000)
    picked = tensor[np.ix_(places[::-1], places)]
    assert (picked.shape, picked.nnz) == (tensor.shape, tensor.nnz)
    assert picked[::-1].nnz == (picked[::-1] * tensor).nnz == tensor.nnz


def test_entries_are_set_where_such_a_key_reads_them() -> None:
    for key in ((slice(None), 1, ..., [0, 2]), np.ix_([2, 0], [1], [3, 4]), (slice(None), slice(None, None, 2**63), 0)):
        expected = np.zeros((3, 4, 5))
        values = np.arange(1.0, expected[key].size + 1).reshape(expected[key].shape)
        expected[key] = values
        builder = asarray(np.zeros((3, 4, 5)), format="csf").builder()
        builder[key] = values
        np.testing.assert_array_equal(builder.build().to_numpy(), expected)
