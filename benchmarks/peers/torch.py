"""What a PyTorch user writes: sparse CSR tensors on the CPU. For most of them PyTorch calls MKL, where it was built with it."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

from benchmarks.entrants import Entrant


@cache
def load() -> Any:
    """Import PyTorch."""
    import torch

    warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
    return torch


def use_threads(count: int) -> None:
    """Let PyTorch compute on so many threads."""
    load().set_num_threads(count)


def spmv(A: Any, x: Any) -> Entrant:
    """A x."""
    left, right = _sparse(A), _dense(x)
    return _dense_result(lambda: left @ right)


def spmm(A: Any, B: Any) -> Entrant:
    """A B, B dense."""
    left, right = _sparse(A), _dense(B)
    return _dense_result(lambda: left @ right)


def add(A: Any, B: Any) -> Entrant:
    """A + B."""
    left, right = _sparse(A), _sparse(B)
    return _sparse_result(lambda: left + right, A)


def add_three(A: Any, B: Any, C: Any) -> Entrant:
    """A + B + C, one sum after the other."""
    first, second, third = map(_sparse, (A, B, C))
    return _sparse_result(lambda: first + second + third, A)


def product(A: Any, B: Any) -> Entrant:
    """A B, both sparse."""
    left, right = _sparse(A), _sparse(B)
    return _sparse_result(lambda: left @ right, A)


def sddmm(S: Any, C: Any, D: Any) -> Entrant:
    """PyTorch's sampled product leaves out the values of the pattern, so they are multiplied in."""
    pattern, left, right, vals = _sparse(S), _dense(C), _dense(D).t(), _dense(S.data)

    def run() -> Any:
        return load().sparse.sampled_addmm(pattern, left, right, beta=0.0).values() * vals

    return _dense_result(run)


def attention(S: Any, C: Any, D: Any, E: Any) -> Entrant:
    """The sampled product, then times a dense matrix."""
    pattern, left, right, vals, last = _sparse(S), _dense(C), _dense(D).t(), _dense(S.data), _dense(E)

    def run() -> Any:
        sampled = load().sparse.sampled_addmm(pattern, left, right, beta=0.0)
        scaled = load().sparse_csr_tensor(sampled.crow_indices(), sampled.col_indices(), sampled.values() * vals, sampled.shape)
        return scaled @ last

    return _dense_result(run)


def right_to_left(*operands: Any) -> Entrant:
    """A product of matrices and a vector, the last factor first; a vector among matrices scales."""
    given = [_dense(factor) if hasattr(factor, "strides") else _sparse(factor) for factor in operands]

    def run() -> Any:
        *others, made = given
        for factor in reversed(others):
            made = factor * made if factor.ndim == 1 else factor @ made
        return made

    return _dense_result(run)


def left_to_right(*operands: Any) -> Entrant:
    """A product of matrices, the first factors first."""
    given = [_dense(factor) if hasattr(factor, "strides") else _sparse(factor) for factor in operands]

    def run() -> Any:
        made, *others = given
        for factor in others:
            made = made @ factor
        return made

    return _dense_result(run)


def _sparse(matrix: Any) -> Any:
    torch = load()
    parts = (torch.from_numpy(array) for array in (matrix.indptr, matrix.indices, matrix.data))
    return torch.sparse_csr_tensor(*parts, size=matrix.shape)


def _dense(array: Any) -> Any:
    return load().from_numpy(array)


def _dense_result(run: Any) -> Entrant:
    return Entrant(run, lambda: run().numpy())


def _sparse_result(run: Any, like: Any) -> Entrant:
    def answer() -> Any:
        made = run()
        return type(like)((made.values().numpy(), made.col_indices().numpy(), made.crow_indices().numpy()), shape=tuple(made.shape))

    return Entrant(run, answer)
