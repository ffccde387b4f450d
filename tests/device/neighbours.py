"""What CuPy and PyTorch offer, as far as reading their arrays on a device needs it, over a stand-in's memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparseloom.programs.cuda.arrays import DeviceArray, copied_in


class Number:
    """A device as CuPy and PyTorch name it."""

    type = "cuda"

    def __init__(self, number: int = 0) -> None:
        self.id = self.index = number

    def __str__(self) -> str:
        return f"cuda:{self.id}"


class Pointer:
    """Where an array is, as CuPy says it."""

    def __init__(self, ptr: int) -> None:
        self.ptr = ptr


class ndarray:
    """An array on a device, in any order of modes."""

    __module__ = "cupy"

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.memory: DeviceArray = copied_in(array.ravel(order="K"))
        self.shape, self.strides, self.dtype = array.shape, array.strides, array.dtype
        self.device, self.data = Number(), Pointer(self.memory.address)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        strides = None if np.empty(self.shape, self.dtype).strides == self.strides else self.strides
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.memory.address, False), "strides": strides, "version": 3}

    def detach(self) -> ndarray:
        return self

    def resolve_conj(self) -> ndarray:
        return self

    def resolve_neg(self) -> ndarray:
        return self


class Plain:
    """An array of a library that nobody knows."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = ndarray(array)
        self.device = self._array.device
        self.stream: int | None = None

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self._array.__cuda_array_interface__, "stream": self.stream}


class csr_matrix:
    """A matrix of cupyx.scipy.sparse."""

    __module__ = "cupyx.scipy.sparse._csr"

    def __init__(self, matrix: Any) -> None:
        self.shape = matrix.shape
        self.indptr, self.indices, self.data = map(ndarray, (matrix.indptr, matrix.indices, matrix.data))


class csc_matrix:
    """The same by columns."""

    __module__ = "cupyx.scipy.sparse._csc"
    __init__ = csr_matrix.__init__


class coo_matrix:
    """Entries by coordinates."""

    __module__ = "cupyx.scipy.sparse._coo"

    def __init__(self, matrix: Any) -> None:
        self.shape = matrix.shape
        self.row, self.col, self.data = map(ndarray, (matrix.row, matrix.col, matrix.data))


class Tensor:
    """A tensor of PyTorch on a device."""

    __module__ = "torch"

    def __init__(self, layout: str, shape: tuple[int, ...], **parts: Any) -> None:
        self.layout, self.shape, self.device, self._parts = f"torch.{layout}", shape, Number(), parts

    def detach(self) -> Tensor:
        return self

    def resolve_conj(self) -> Tensor:
        return self

    def resolve_neg(self) -> Tensor:
        return self

    def dense_dim(self) -> int:
        return 0

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._parts["array"].__cuda_array_interface__

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("_parts", {}):
            return lambda: self._parts[name]
        raise AttributeError(name)
