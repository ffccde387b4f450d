"""What Python and NumPy ask of an object, and what tensors say when they do not offer something."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from sparseloom.core.errors import DTypeError, ShapeError, StorageError
from sparseloom.tensor import Tensor, asarray, full, hints, random, zeros

FORMATS = ["dense", "csr", "csc", "coo", "dcsr", "bcsr(2,3)", "ell", "dd:1,0"]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "duplicate",
    [lambda t: pickle.loads(pickle.dumps(t)), copy.deepcopy, copy.copy, Tensor.copy],
    ids=["pickle", "deepcopy", "copy", "method"],
)
def test_tensors_survive_pickling_and_copying(format: str, duplicate: Any) -> None:
    tensor = asarray(random((7, 5), 0.4, format, seed=5), name="A")
    again = duplicate(tensor)
    assert (again.format, again.shape, again.dtype, again.fill, again.name) == (tensor.format, tensor.shape, tensor.dtype, tensor.fill, "A")
    np.testing.assert_array_equal(again.to_numpy(), tensor.to_numpy())
    assert not np.shares_memory(again.arrays["values"], tensor.arrays["values"])


def test_pickles_hold_arrays_text_and_numbers_only() -> None:
    tensor = full((3, 4), np.inf, "csr", name="A")
    _, parts = tensor.__reduce__()[:2]
    assert [type(part) for part in parts] == [type, str, tuple, dict, float, str, tuple]
    assert all(isinstance(array, np.ndarray) for array in parts[3].values())


def test_numbers() -> None:
    assert float(asarray(2.5)) == 2.5
    assert int(asarray([3])) == 3
    assert complex(asarray(1j)) == 1j
    assert asarray([[7]]).item() == 7
    assert bool(asarray(1.0)) and not bool(zeros(()))
    with pytest.raises(ShapeError, match="only a tensor with one coordinate is a number"):
        float(asarray([1.0, 2]))


def test_truth_length_iteration_and_membership() -> None:
    tensor = random((7, 5), 0.4, "csr", seed=5)
    assert len(tensor) == 7
    with pytest.raises(ShapeError, match="ambiguous"):
        bool(tensor)
    with pytest.raises(DTypeError, match="cannot be iterated"):
        iter(tensor)
    with pytest.raises(DTypeError, match="'in' is not offered"):
        _ = 1.0 in tensor
    with pytest.raises(DTypeError, match="has no length"):
        len(asarray(1.0))
    with pytest.raises(TypeError):
        hash(tensor)


def test_sparse_tensors_do_not_become_arrays_silently() -> None:
    tensor = random((7, 5), 0.4, "csr", seed=5)
    with pytest.raises(TypeError, match=r"write to_numpy\(\)"):
        np.asarray(tensor)
    dense = tensor.to("dense")
    assert np.shares_memory(np.asarray(dense), dense.arrays["values"])
    assert np.asarray(dense, np.float32).dtype == np.float32
    np.testing.assert_array_equal(tensor.toarray(), dense.to_numpy())


@pytest.mark.parametrize("name", sorted(hints.INSTEAD))
def test_missing_attributes_say_what_to_write(name: str) -> None:
    tensor = random((7, 5), 0.4, "csr", seed=5)
    with pytest.raises(AttributeError) as caught:
        getattr(tensor, name)
    assert str(caught.value) == f"'Tensor' object has no attribute {name!r}; write {hints.INSTEAD[name]}"


def test_unknown_attributes_are_plain() -> None:
    with pytest.raises(AttributeError, match=r"^'Tensor' object has no attribute 'frobnicate'$"):
        asarray(1.0).frobnicate  # noqa: B018


def test_facts() -> None:
    tensor = random((7, 5), 0.4, "csr", seed=5, dtype=np.float32)
    assert (tensor.ndim, tensor.size, tensor.nnz, tensor.fill) == (2, 35, 14, 0)
    assert tensor.nbytes == 8 * 4 + 14 * 4 + 14 * 4
    assert set(tensor.arrays) == {"pos1", "crd1", "values"}
    assert set(tensor.to("ell").arrays) == {"len1", "crd1", "width1", "values"}
    assert tensor.count_nonzero() == 14
    np.testing.assert_array_equal(np.stack(tensor.T.nonzero()), np.stack(tensor.to_numpy().T.nonzero()))
    with pytest.raises(StorageError, match="almost all coordinates are nonzero"):
        full((2, 2), 1.0, "csr").nonzero()
    assert full((2, 2), 1.0, "csr").count_nonzero() == 4


def test_astype_shares_the_structure() -> None:
    tensor = random((7, 5), 0.4, "csr", seed=5)
    short = tensor.astype("f4")
    assert short.dtype == np.float32
    assert all(mine is theirs for mine, theirs in zip(short.storage.indices, tensor.storage.indices, strict=True))
    assert not np.shares_memory(short.arrays["crd1"], tensor.arrays["crd1"])
    assert tensor.astype(float, copy=False) is tensor
    assert not np.shares_memory(tensor.astype(float).arrays["values"], tensor.arrays["values"])
    with pytest.raises(DTypeError, match="datetime64"):
        tensor.astype("M8[s]")
    infinite = full((2, 2), 2.5, "csr").astype(int)
    assert infinite.fill == 2
