"""Data from other libraries, recognised by name. Stand-ins with the same attributes serve where the library is not installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparseloom.core.errors import DeviceError, DTypeError, StorageError
from sparseloom.formats import named
from sparseloom.tensor import asarray


class Device:
    """A device as PyTorch names it."""

    def __init__(self, type: str) -> None:
        self.type = type

    def __str__(self) -> str:
        return self.type


class Tensor:
    """What PyTorch's tensors offer, as far as reading them needs it."""

    __module__ = "torch"

    def __init__(self, layout: str, shape: tuple[int, ...], device: str = "cpu", dense_dim: int = 0, **parts: np.ndarray[Any, Any]) -> None:
        self.layout, self.shape, self.device, self.parts, self._dense = f"torch.{layout}", shape, Device(device), parts, dense_dim

    def detach(self) -> Tensor:
        return self

    def resolve_conj(self) -> Tensor:
        return self

    def resolve_neg(self) -> Tensor:
        return self

    def dense_dim(self) -> int:
        return self._dense

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("parts", {}):
            return lambda: self.parts[name]
        raise AttributeError(name)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **options: Any) -> Any:
        return self.parts["array"].__dlpack__(**options)


def test_torch_dense_is_shared() -> None:
    array = np.arange(6.0).reshape(2, 3)
    tensor = asarray(Tensor("strided", (2, 3), array=array))
    assert np.shares_memory(tensor.to_numpy(), array)


@pytest.mark.parametrize(("layout", "names", "format"), [
    ("sparse_csr", ("crow_indices", "col_indices"), named.csr), ("sparse_csc", ("ccol_indices", "row_indices"), named.csc)])  # fmt: skip
def test_torch_compressed_is_shared(layout: str, names: tuple[str, str], format: Any) -> None:
    parts = {names[0]: np.array([0, 1, 3]), names[1]: np.array([1, 0, 1]), "values": np.array([5.0, 6, 7])}
    tensor = asarray(Tensor(layout, (2, 2), **parts))
    assert tensor.format == format
    assert np.shares_memory(tensor.arrays["crd1"], parts[names[1]])
    expected = np.array([[0, 5], [6, 7]])
    np.testing.assert_array_equal(tensor.to_numpy(), expected if layout == "sparse_csr" else expected.T)


def test_torch_coo_is_shared() -> None:
    parts = {"_indices": np.array([[0, 1, 1], [1, 0, 1]]), "_values": np.array([5.0, 6, 7])}
    tensor = asarray(Tensor("sparse_coo", (2, 2), **parts))
    assert np.shares_memory(tensor.arrays["crd0"], parts["_indices"])
    np.testing.assert_array_equal(tensor.to_numpy(), [[0, 5], [6, 7]])


def test_torch_refusals() -> None:
    with pytest.raises(DeviceError, match=r"is on mps, neither in main memory nor on a CUDA device; give tensor.cpu\(\)"):
        asarray(Tensor("strided", (2,), device="mps"))
    with pytest.raises(StorageError, match=r"layout torch\.sparse_bsc is not taken"):
        asarray(Tensor("sparse_bsc", (2, 2)))
    with pytest.raises(StorageError, match="hybrid"):
        asarray(Tensor("sparse_coo", (2, 2), dense_dim=1))
    strange = {"crow_indices": np.array([0, 1, 1]), "col_indices": np.array([1]), "values": np.array(["x"])}
    with pytest.raises(DTypeError, match="cannot share the memory of this ndarray: DLPack only supports"):
        asarray(Tensor("sparse_csr", (2, 2), **strange))


class COO:
    """What PyData/Sparse's COO offers."""

    __module__ = "sparse.numba_backend._coo.core"

    def __init__(self, coords: Any, data: Any, shape: tuple[int, ...], fill_value: float = 0) -> None:
        self.coords, self.data, self.shape, self.fill_value = coords, data, shape, np.float64(fill_value)

    def todense(self) -> Any:
        return np.full(self.shape, self.data)


class GCXS:
    """PyData/Sparse's compressed class: it knows how to become COO."""

    __module__ = "sparse.numba_backend._compressed.compressed"

    def __init__(self, coo: COO) -> None:
        self.coo, self.shape = coo, coo.shape

    def tocoo(self) -> COO:
        return self.coo


def test_pydata_sparse_is_shared_and_keeps_its_fill() -> None:
    coords, data = np.array([[0, 1], [2, 0], [1, 1]]), np.array([3.0, 4.0])
    tensor = asarray(COO(coords, data, (2, 3, 2), fill_value=np.inf))
    assert np.shares_memory(tensor.arrays["crd1"], coords)
    assert np.shares_memory(tensor.arrays["values"], data)
    assert (tensor.fill, tensor.nnz) == (np.inf, 2)
    assert tensor.to_numpy()[0, 2, 1] == 3
    assert tensor.to_numpy()[0, 0, 0] == np.inf


def test_other_pydata_classes_go_through_coo() -> None:
    tensor = asarray(GCXS(COO(np.array([[0], [1]]), np.array([2.0]), (2, 2))))
    assert tensor.notes == ("converted from PyData/Sparse's GCXS, which has no counterpart here",)
    np.testing.assert_array_equal(tensor.to_numpy(), [[0, 2], [0, 0]])
    assert asarray(COO(np.empty((0, 1), int), np.array(2.0), ())).item() == 2.0


class Foreign:
    """Any library's array that speaks DLPack."""

    def __init__(self, array: np.ndarray[Any, Any], device: int = 1, problem: Exception | None = None) -> None:
        self.array, self.device, self.problem = array, device, problem

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.device, 0)

    def __dlpack__(self, **options: Any) -> Any:
        if self.problem is not None:
            raise self.problem
        return self.array.__dlpack__(**options)


def test_dlpack_is_shared() -> None:
    array = np.arange(6.0).reshape(2, 3)
    assert np.shares_memory(asarray(Foreign(array)).to_numpy(), array)
    turned = asarray(Foreign(array.T))
    assert np.shares_memory(turned.to_numpy(), array)
    np.testing.assert_array_equal(turned.to_numpy(), array.T)


def test_dlpack_refusals() -> None:
    with pytest.raises(DeviceError, match="DLPack kind 10"):
        asarray(Foreign(np.zeros(2), device=10))
    with pytest.raises(DTypeError, match="cannot share the memory of this Foreign: NumPy only supports stream=None"):
        asarray(Foreign(np.zeros(2), device=2))
    with pytest.raises(DTypeError, match="cannot share the memory of this Foreign: bfloat16"):
        asarray(Foreign(np.zeros(2), problem=BufferError("bfloat16")))


def test_dense_tensors_are_given_out_by_dlpack() -> None:
    tensor = asarray(np.arange(6.0).reshape(2, 3))
    array = np.from_dlpack(tensor)
    assert np.shares_memory(array, tensor.to_numpy())
    with pytest.raises(DTypeError, match="only dense tensors can be shared by DLPack"):
        np.from_dlpack(tensor.to("csr"))


class Frame:
    """Something that only knows how to become a NumPy array."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.arange(4.0)


def test_anything_with_an_array_method_is_taken() -> None:
    np.testing.assert_array_equal(asarray(Frame()).to_numpy(), np.arange(4.0))
