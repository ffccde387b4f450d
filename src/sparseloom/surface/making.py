"""Tensors that follow from a shape or another tensor: identities, ranges, and those filled with one value."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import value_dtype
from sparseloom.core.errors import DeviceError
from sparseloom.formats.format import Format
from sparseloom.formats.storage import sealed
from sparseloom.formats.text import as_format
from sparseloom.programs.conversion import store
from sparseloom.surface.entries import array_of, by_numpy, dense_tensor, format_for, tensor_of
from sparseloom.tensor import creation
from sparseloom.tensor.builder import Builder
from sparseloom.tensor.table import enter, offered
from sparseloom.tensor.tensor import Tensor

enter(creation.zeros, "creation", None, None, None)
enter(creation.full, "creation", None, None, None)


@offered("creation", methods=None, numpy=None)
def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float, format: Format | str = "csr") -> Tensor:
    """Ones on the ``k``-th diagonal of a sparse matrix.

    >>> sl.eye(2, 3, k=1).to_numpy()
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    shape = (N, N if M is None else M)
    length = max(0, min(shape[0] + min(k, 0), shape[1] - max(k, 0)))
    along = np.arange(length)
    coordinates = np.stack((along - min(k, 0), along + max(k, 0)))
    return Tensor(store(as_format(format, 2), shape, coordinates, np.ones(length, value_dtype(dtype))))


@offered("creation", methods=None, numpy=None)
def ones(shape: Any, format: Format | str | None = None, dtype: Any = float, name: str | None = None) -> Tensor:
    """A tensor of ones: dense, unless a format is given; a sparse one stores nothing and has 1 as its fill.

    >>> sl.ones(3).to_numpy()
    array([1., 1., 1.])
    """
    return creation.full(shape, 1, format, float if dtype is None else dtype, name)


@offered("creation", methods=None, numpy=None)
def empty(shape: Any, format: Format | str | None = None, dtype: Any = float, name: str | None = None) -> Tensor:
    """A tensor to be filled, which holds zeros.

    >>> sl.empty((2, 3)).shape
    (2, 3)
    """
    return creation.zeros(shape, format, dtype, name)


def require_main_memory(device: Any) -> None:
    """Refuse to create tensors elsewhere than in main memory."""
    if device not in (None, "cpu"):
        raise DeviceError(f"tensors are created on the device 'cpu', not on {device!r}\n  help: move them with to_device()")


def _like(x: Any, dtype: Any, shape: Any, device: Any) -> tuple[Any, Any, Format | None]:
    """Shape, dtype and format of a tensor that is to be like another."""
    tensor = tensor_of(x)
    require_main_memory(device)
    sizes = tensor.shape if shape is None else tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    kind = tensor.dtype if dtype is None else value_dtype(dtype)
    if tensor.format.is_dense:
        return sizes, kind, None
    return sizes, kind, tensor.format if len(sizes) == tensor.ndim else format_for(sizes, 0, tensor.format)


@offered("creation", methods=None)
def zeros_like(x: Any, /, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None) -> Tensor:
    """Zeros in the shape, dtype and format of another tensor; a sparse one stores nothing.

    >>> str(sl.zeros_like(sl.eye(2)).format)
    'csr'
    """
    sizes, kind, format = _like(x, dtype, shape, device)
    return creation.zeros(sizes, format, kind)


@offered("creation", methods=None)
def empty_like(x: Any, /, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None) -> Tensor:
    """As ``zeros_like``.

    >>> sl.empty_like(sl.eye(3)).nnz
    0
    """
    return zeros_like(x, dtype, shape=shape, device=device)


@offered("creation", methods=None)
def full_like(
    x: Any, /, fill_value: Scalar, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Tensor:
    """One value in the shape, dtype and format of another tensor; a sparse one stores nothing and has it as its fill.

    >>> sl.full_like(sl.eye(2), 7.0).to_numpy()
    array([[7., 7.],
           [7., 7.]])
    """
    sizes, kind, format = _like(x, dtype, shape, device)
    return creation.full(sizes, kind.type(fill_value).item(), format, kind)


@offered("creation", methods=None)
def ones_like(x: Any, /, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None) -> Tensor:
    """Ones in the shape, dtype and format of another tensor; a sparse one stores nothing and has 1 as its fill.

    >>> sl.ones_like(sl.eye(2)).to_numpy()
    array([[1., 1.],
           [1., 1.]])
    """
    return full_like(x, 1, dtype, shape=shape, device=device)


@offered("creation", methods=None, numpy=None, standard=None)
def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Tensor:
    """Evenly spaced numbers, as NumPy's: a dense vector.

    >>> sl.arange(3).to_numpy()
    array([0, 1, 2])
    """
    first, last = (0, start) if stop is None else (start, stop)
    return Tensor(sealed(dense_tensor(np.arange(first, last, step, dtype=dtype)).storage))


@offered("creation", methods=None, numpy=None, standard=None)
def linspace(start: Any, stop: Any, num: int, dtype: Any = None, endpoint: bool = True) -> Tensor:
    """So many evenly spaced numbers from one to another: a dense vector.

    >>> sl.linspace(0, 1, 3).to_numpy()
    array([0. , 0.5, 1. ])
    """
    return dense_tensor(np.linspace(start, stop, num, endpoint, dtype=dtype))


@offered("creation", methods=None, standard="")
def meshgrid(*vectors: Any, indexing: Any = "xy") -> list[Tensor]:
    """The coordinates of a grid, dense: one tensor for each vector.

    >>> [x.to_numpy() for x in sl.meshgrid([1, 2], [3])]
    [array([[1, 2]]), array([[3, 3]])]
    """
    made = by_numpy(np.meshgrid, *[array_of(tensor_of(x)) for x in vectors], indexing=indexing)
    return list(made)


@offered("entries", numpy=None)
def builder(x: Any, /) -> Builder:
    """What takes down entries, ``B[i, j] = value``, for ``B.build()`` to store them all at once.

    >>> B = sl.builder(sl.eye(2))
    >>> B[0, 1] = 5.0
    >>> B.build().to_numpy()
    array([[1., 5.],
           [0., 1.]])
    """
    return Builder(tensor_of(x))


@offered("entries", numpy=None)
def eliminate_zeros(x: Any, /) -> Tensor:
    """The same tensor without stored values that are what absent ones are worth.

    >>> sl.eliminate_zeros(sl.from_coo([[0, 1]], [0.0, 5.0])).nnz
    1
    """
    tensor = tensor_of(x)
    return tensor if tensor.format.is_dense else tensor.to(tensor.format, drop_zeros=True)


@offered("entries", numpy=None)
def sum_duplicates(x: Any, /) -> Tensor:
    """The same tensor with every coordinate stored once, in order: itself, unless its format lets entries repeat.

    >>> sl.sum_duplicates(sl.from_coo([[1, 1]], [2.0, 5.0])).nnz
    1
    """
    tensor = tensor_of(x)
    if tensor.format.is_dense or (tensor.format.is_unique and all(level.ordered for level in tensor.format.levels)):
        return tensor
    return tensor.to(tensor.format.promising(ordered=True)).to(format_for(tensor.shape, tensor.nnz, tensor.format))
