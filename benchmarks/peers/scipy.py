"""What a SciPy user writes. SciPy computes on one thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.entrants import Entrant, returning

MOST_TAKEN = 100_000_000  # numbers in a temporary array


def load() -> None:
    """Import SciPy."""
    import scipy.sparse  # noqa: F401


def spmv(A: Any, x: Any) -> Entrant:
    """A x."""
    return returning(lambda: A @ x)


def spmm(A: Any, B: Any) -> Entrant:
    """A B, B dense."""
    return returning(lambda: A @ B)


def add(A: Any, B: Any) -> Entrant:
    """A + B."""
    return returning(lambda: A + B)


def add_three(A: Any, B: Any, C: Any) -> Entrant:
    """A + B + C, one sum after the other."""
    return returning(lambda: A + B + C)


def product(A: Any, B: Any) -> Entrant:
    """A B, both sparse. The rows of the result are unsorted."""
    return returning(lambda: A @ B)


def sorted_product(A: Any, B: Any) -> Entrant:
    """A B, both sparse, and its rows sorted."""

    def run() -> Any:
        made = A @ B
        made.sort_indices()
        return made

    return returning(run)


def masked(M: Any, A: Any, B: Any) -> Entrant:
    """The whole product, then the mask."""
    return returning(lambda: (A @ B) * M)


def csr_to_csc(A: Any) -> Entrant:
    """Transpose."""
    return returning(lambda: A.tocsc())


def csr_to_coo(A: Any) -> Entrant:
    """Columns and values are shared, as ours are; older versions copy unless they are told."""
    return returning(lambda: A.tocoo(copy=False))


def coo_to_csr(A: Any) -> Entrant:
    """SciPy is told, as we know, that no entry comes twice; else it would look."""
    given = A.copy()
    given.has_canonical_format = True
    return returning(lambda: given.tocsr())


def fused(A: Any, B: Any, x: Any) -> Entrant:
    """(A + B) x."""
    return returning(lambda: (A + B) @ x)


def hadamard(A: Any, B: Any, x: Any) -> Entrant:
    """(A * B) x, element by element."""
    return returning(lambda: A.multiply(B) @ x)


def sddmm(S: Any, C: Any, D: Any) -> Entrant:
    """SciPy has no sampled product; the usual idiom takes the rows of both factors for every entry."""
    rows = _rows(S, C)
    return returning(lambda: S.data * np.einsum("pk,pk->p", C[rows], D[S.indices]))


def attention(S: Any, C: Any, D: Any, E: Any) -> Entrant:
    """The sampled product by the usual idiom, then times a dense matrix."""
    rows = _rows(S, C)

    def run() -> Any:
        sampled = type(S)((S.data * np.einsum("pk,pk->p", C[rows], D[S.indices]), S.indices, S.indptr), shape=S.shape)
        return sampled @ E

    return returning(run)


def block_spmm(A: Any, B: Any) -> Entrant:
    """A B with A in blocks of 4 x 4."""
    blocked = A.tobsr((4, 4))
    return returning(lambda: blocked @ B)


def right_to_left(*operands: Any) -> Entrant:
    """A product of matrices and a vector, the last factor first; a vector among matrices scales."""

    def run() -> Any:
        *others, made = operands
        for factor in reversed(others):
            made = factor * made if factor.ndim == 1 else factor @ made
        return made

    return returning(run)


def left_to_right(*operands: Any) -> Entrant:
    """A product of matrices, the first factors first."""

    def run() -> Any:
        made, *others = operands
        for factor in others:
            made = made @ factor
        return made

    return returning(run)


def _rows(S: Any, C: Any) -> Any:
    """The row of every entry, unless taking rows of the factors would fill the memory."""
    if S.nnz * C.shape[1] > MOST_TAKEN:
        raise MemoryError(f"two arrays of {S.nnz * C.shape[1]:.0e} numbers would be made")
    return np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))


def solvers(matrix: Any, b: Any) -> dict[str, Callable[[Any], Any]]:
    """Solvers of SciPy for whatever stands for a symmetric matrix of this shape, by name."""
    from scipy.sparse.linalg import cg, eigsh

    of = f"{matrix.shape[0]} x {matrix.shape[1]}"
    return {
        f"eigsh, {of}": lambda operator: eigsh(operator, k=3, v0=b, return_eigenvectors=False),
        f"cg, {of}": lambda operator: cg(operator, b, rtol=1e-10)[0],
    }
