"""PyData/Sparse, as its users call it: GCXS for matrices, COO for tensors."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from benchmarks.entrants import Entrant, returning
from sparseloom.tensor.tensor import Tensor


@cache
def load() -> Any:
    """Import PyData/Sparse."""
    import sparse

    return sparse


def spmv(A: Any, x: Any) -> Entrant:
    """A x."""
    left = _matrix(A)
    return returning(lambda: left @ x)


def spmm(A: Any, B: Any) -> Entrant:
    """A B, B dense."""
    left = _matrix(A)
    return returning(lambda: left @ B)


def add(A: Any, B: Any) -> Entrant:
    """A + B."""
    left, right = _matrix(A), _matrix(B)
    return _making(lambda: left + right)


def add_three(A: Any, B: Any, C: Any) -> Entrant:
    """A + B + C."""
    first, second, third = map(_matrix, (A, B, C))
    return _making(lambda: first + second + third)


def product(A: Any, B: Any) -> Entrant:
    """A B, both sparse."""
    left, right = _matrix(A), _matrix(B)
    return _making(lambda: left @ right)


def masked(M: Any, A: Any, B: Any) -> Entrant:
    """The whole product, then the mask."""
    mask, left, right = map(_matrix, (M, A, B))
    return _making(lambda: (left @ right) * mask)


def ttv(B: Tensor, c: Any) -> Entrant:
    """A tensor times a vector; the answer is the values, fibre by fibre."""
    tensor = _tensor(B)
    return Entrant(lambda: load().tensordot(tensor, c, axes=([2], [0])), lambda: _values(load().tensordot(tensor, c, axes=([2], [0])), B))


def _values(made: Any, tensor: Tensor) -> Any:
    fibres = np.unique(np.stack([level.arrays["crd"] for level in tensor.to("coo(3)").storage.levels[:2]]), axis=1)
    dense = made if isinstance(made, np.ndarray) else made.todense()
    return dense[tuple(fibres)]


def _matrix(matrix: Any) -> Any:
    return load().GCXS((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape, compressed_axes=(0,))


def _tensor(tensor: Tensor) -> Any:
    entries = tensor.to("coo(3)").storage
    return load().COO(np.stack([level.arrays["crd"] for level in entries.levels]), entries.values, shape=tensor.shape)


def _making(run: Any) -> Entrant:
    return Entrant(run, lambda: run().to_scipy_sparse().tocsr())
