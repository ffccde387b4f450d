"""PyTorch: sparse CSR, CSC and COO tensors share their index and value arrays; dense ones come in by DLPack.

PyTorch itself is imported only to make a tensor of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.errors import DeviceError, DTypeError, StorageError
from sparseloom.formats.named import coo, csc, csr
from sparseloom.formats.pack import convert
from sparseloom.formats.storage import Storage
from sparseloom.tensor.entry import Intake
from sparseloom.tensor.interop.dlpack import from_dlpack, shared_array
from sparseloom.tensor.interop.numpy import to_numpy
from sparseloom.tensor.interop.scipy import from_compressed, from_coordinates


def is_torch(kind: type) -> bool:
    """Whether this is PyTorch's tensor class or one derived from it."""
    return any(parent.__module__ == "torch" and parent.__name__ == "Tensor" for parent in kind.__mro__)


def from_torch(tensor: Any) -> Intake:
    """Read a PyTorch tensor of any layout that has a counterpart here."""
    if tensor.device.type != "cpu":
        raise DeviceError(f"the PyTorch tensor is on {tensor.device}, not in main memory; give tensor.cpu()")
    tensor = tensor.detach()
    shape = tuple(int(size) for size in tensor.shape)
    match str(tensor.layout):
        case "torch.strided":
            return from_dlpack(tensor.resolve_conj())
        case "torch.sparse_csr":
            return from_compressed(csr, shape, *map(shared_array, (tensor.crow_indices(), tensor.col_indices(), tensor.values())))
        case "torch.sparse_csc":
            return from_compressed(csc, shape, *map(shared_array, (tensor.ccol_indices(), tensor.row_indices(), tensor.values())))
        case "torch.sparse_coo":
            if tensor.dense_dim():
                raise StorageError("hybrid sparse tensors of PyTorch are not taken; give tensor.to_dense() or its indices and values")
            return from_coordinates(shape, tuple(shared_array(tensor._indices())), shared_array(tensor._values()))
    raise StorageError(f"the PyTorch layout {tensor.layout} is not taken; give tensor.to_sparse_csr()")


def to_torch(storage: Storage) -> Any:
    """A PyTorch tensor over the same memory: strided for dense, sparse_csr, sparse_csc or sparse_coo for these."""
    import torch

    if storage.fill != 0:
        raise StorageError(f"PyTorch's sparse tensors can only leave out zeros, and absent entries are {storage.fill}; use to_numpy()")
    if storage.dtype in (np.dtype(np.uint16), np.dtype(np.uint32), np.dtype(np.uint64)):
        raise DTypeError(f"PyTorch computes little with {storage.dtype}; convert with astype first")
    format, order = storage.format, len(storage.shape)
    if format.is_dense:
        return torch.from_numpy(_writable(to_numpy(storage)))
    if format in (csr, csc):
        make = torch.sparse_csr_tensor if format == csr else torch.sparse_csc_tensor
        pos, crd = (torch.from_numpy(_writable(storage.levels[1].arrays[name])) for name in ("pos", "crd"))
        return make(pos, crd, torch.from_numpy(_writable(storage.values)), storage.shape)
    entries = convert(storage, coo(order))
    coordinates = np.stack([level.arrays["crd"] for level in entries.levels]).astype(np.int64)
    made = torch.sparse_coo_tensor(torch.from_numpy(coordinates), torch.from_numpy(_writable(entries.values)), storage.shape)
    return made._coalesced_(True)


def _writable(array: NDArray[Any]) -> NDArray[Any]:
    """PyTorch has no read-only tensors, so a read-only array is copied rather than opened to writing."""
    return array if array.flags.writeable else array.copy()
