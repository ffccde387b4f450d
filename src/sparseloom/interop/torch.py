"""PyTorch: sparse CSR, CSC, BSR and COO tensors share their index and value arrays, in main memory and on a CUDA device, both ways.

PyTorch itself is imported only to make a tensor of it. A tensor of which PyTorch wants a gradient is refused: none would flow.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import bfloat16, is_bfloat16
from sparseloom.core.errors import DeviceError, DTypeError, FormatError, StorageError
from sparseloom.formats.named import bcsr, coo, csc, csr
from sparseloom.formats.pack import convert
from sparseloom.formats.storage import Storage, apart, open_up
from sparseloom.interop.device import compressed_on_device, coordinates_on_device, flat, from_device, wants_gradient
from sparseloom.interop.dlpack import capsule, device_of, from_dlpack, shared_array
from sparseloom.interop.entry import Intake
from sparseloom.interop.numpy import from_numpy, to_numpy
from sparseloom.interop.scipy import from_compressed, from_coordinates, is_bsr
from sparseloom.programs.cuda.streams import TORCH


def reader_for(kind: type) -> Callable[[Any], Intake] | None:
    """How objects of this class are read, if it is PyTorch's tensor class or one derived from it."""
    is_tensor = any(parent.__module__ == "torch" and parent.__name__ == "Tensor" for parent in kind.__mro__)
    return from_torch if is_tensor else None


def _refuse_gradient(tensor: Any) -> None:
    """Refuse a tensor of which a gradient is wanted: results are constants to PyTorch, so that it would be wrong in silence."""
    if wants_gradient(tensor):
        raise DTypeError(
            "the PyTorch tensor requires a gradient, but none flows through what is computed here\n"
            "  help: give tensor.detach() if it is not wanted, or compute under torch.no_grad()"
        )


def from_torch(tensor: Any) -> Intake:
    """Read a PyTorch tensor of any layout that has a counterpart here."""
    _refuse_gradient(tensor)
    if tensor.device.type == "cuda":
        return _from_cuda(tensor)
    if tensor.device.type != "cpu":
        raise DeviceError(f"the PyTorch tensor is on {tensor.device}, neither in main memory nor on a CUDA device; give tensor.cpu()")
    tensor = tensor.detach()
    shape = tuple(int(size) for size in tensor.shape)
    match str(tensor.layout):
        case "torch.strided":
            return from_dlpack(tensor.resolve_conj().resolve_neg()) if not _is_bfloat16(tensor) else from_numpy(_array(tensor))
        case "torch.sparse_csr":
            return from_compressed(csr, shape, *map(_array, (tensor.crow_indices(), tensor.col_indices(), tensor.values())))
        case "torch.sparse_csc":
            return from_compressed(csc, shape, *map(_array, (tensor.ccol_indices(), tensor.row_indices(), tensor.values())))
        case "torch.sparse_bsr":
            three = tensor.crow_indices(), tensor.col_indices(), tensor.values()
            rows, columns = map(int, three[2].shape[-2:])
            return from_compressed(bcsr((rows, columns)), shape, *map(_array, three))
        case "torch.sparse_coo":
            if tensor.dense_dim():
                raise StorageError("hybrid sparse tensors of PyTorch are not taken; give tensor.to_dense() or its indices and values")
            return from_coordinates(shape, tuple(_array(tensor._indices())), _array(tensor._values()))
    raise StorageError(f"the PyTorch layout {tensor.layout} is not taken; give tensor.to_sparse_csr()")


def _is_bfloat16(tensor: Any) -> bool:
    return str(getattr(tensor, "dtype", "")) == "torch.bfloat16"


def _array(tensor: Any) -> NDArray[Any]:
    """A NumPy array over the memory of a tensor. NumPy takes the bits of bfloat16, which it does not know, and ml_dtypes names them."""
    if not _is_bfloat16(tensor):
        return shared_array(tensor)
    return shared_array(tensor.view(sys.modules["torch"].int16)).view(bfloat16())


def _from_cuda(given: Any) -> Intake:
    """Read a PyTorch tensor on a CUDA device."""
    tensor, shape = given.detach(), tuple(int(size) for size in given.shape)
    match str(tensor.layout):
        case "torch.strided":
            return from_device(tensor.resolve_conj().resolve_neg(), TORCH)
        case "torch.sparse_csr":
            three = tensor.crow_indices(), tensor.col_indices(), tensor.values()
            return compressed_on_device(given, csr, shape, _flat(three), "give tensor.cpu(), which is put in order here")
        case "torch.sparse_csc":
            three = tensor.ccol_indices(), tensor.row_indices(), tensor.values()
            return compressed_on_device(given, csc, shape, _flat(three), "give tensor.cpu(), which is put in order here")
        case "torch.sparse_coo" if not tensor.dense_dim():
            data = flat(tensor._values(), TORCH, "values")
            return coordinates_on_device(given, shape, _flat(tuple(tensor._indices())), data, "give tensor.coalesce()")
    raise StorageError(f"the PyTorch layout {tensor.layout} is not taken from a device; give tensor.to_sparse_csr()")


def _flat(tensors: Any) -> tuple[Any, ...]:
    return tuple(flat(each, TORCH, "an index array") for each in tensors)


def _to_cuda(torch: Any, storage: Storage) -> Any:
    """A PyTorch tensor over the memory of a tensor on a CUDA device."""
    if storage.format.is_dense and not storage.format.blocks:
        return torch.from_dlpack(_Shared(storage))
    arrays = [torch.from_dlpack(array) for array in (storage.values, *storage.indices)]
    if storage.format in (csr, csc):
        make = torch.sparse_csr_tensor if storage.format == csr else torch.sparse_csc_tensor
        return make(arrays[1], arrays[2], arrays[0], storage.shape, check_invariants=False)
    if storage.format == coo(len(storage.shape)):
        places = torch.stack(arrays[2:]).to(torch.int64)
        return torch.sparse_coo_tensor(places, arrays[0], storage.shape, check_invariants=False)._coalesced_(True)
    raise FormatError(f"PyTorch has no sparse tensor like {storage.format}\n  help: convert it first: t.to_host().to('csr').to_device()")


class _Shared:
    """A dense tensor on a device, as DLPack's protocol has it."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def __dlpack__(self, **options: Any) -> Any:
        return capsule(self._storage, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return device_of(self._storage)


def give(tensor: Any) -> Any:
    """A PyTorch tensor over the same memory: strided for dense, sparse_csr, sparse_csc, sparse_bsr or sparse_coo for these."""
    import torch

    storage = tensor.opened()
    if storage.fill != 0:
        raise StorageError(f"PyTorch's sparse tensors can only leave out zeros, and absent entries are {storage.fill}; use to_numpy()")
    if storage.dtype in (np.dtype(np.uint16), np.dtype(np.uint32), np.dtype(np.uint64)):
        raise DTypeError(f"PyTorch computes little with {storage.dtype}; convert with astype first")
    if storage.device != "cpu":
        return _to_cuda(torch, storage)
    format, order = storage.format, len(storage.shape)
    if format.is_dense:
        return _tensor(torch, to_numpy(storage))
    if format in (csr, csc):
        make = torch.sparse_csr_tensor if format == csr else torch.sparse_csc_tensor
        pos, crd = (_tensor(torch, storage.levels[1].arrays[name]) for name in ("pos", "crd"))
        return make(pos, crd, _tensor(torch, storage.values), storage.shape, check_invariants=False)
    if is_bsr(storage):
        pos, crd = (_tensor(torch, storage.levels[1].arrays[name]) for name in ("pos", "crd"))
        blocks = _tensor(torch, storage.values.reshape(-1, *format.blocks))
        return torch.sparse_bsr_tensor(pos, crd, blocks, storage.shape, check_invariants=False)
    entries = storage if format == coo(order) else open_up(apart(convert(storage, coo(order)), storage))
    coordinates = np.stack([level.arrays["crd"] for level in entries.levels]).astype(np.int64)
    arrays = torch.from_numpy(coordinates), _tensor(torch, entries.values)
    return torch.sparse_coo_tensor(*arrays, storage.shape, check_invariants=False)._coalesced_(True)


def _tensor(torch: Any, array: NDArray[Any]) -> Any:
    """A PyTorch tensor over the memory of an array."""
    held = _writable(array)
    return torch.from_numpy(held.view(np.int16)).view(torch.bfloat16) if is_bfloat16(held.dtype) else torch.from_numpy(held)


def _writable(array: NDArray[Any]) -> NDArray[Any]:
    """PyTorch has no read-only tensors, so a read-only array is copied rather than opened to writing."""
    return array if array.flags.writeable else array.copy()
