"""What a SciPy user writes."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrants import Entrant, returning


def spmv(A: Any, x: Any) -> Entrant:
    return returning(lambda: A @ x)


def spmm(A: Any, B: Any) -> Entrant:
    return returning(lambda: A @ B)


def add(A: Any, B: Any) -> Entrant:
    return returning(lambda: A + B)


def add_three(A: Any, B: Any, C: Any) -> Entrant:
    return returning(lambda: A + B + C)


def product(A: Any, B: Any) -> Entrant:
    """The rows of the result are unsorted."""
    return returning(lambda: A @ B)


def sorted_product(A: Any, B: Any) -> Entrant:
    def run() -> Any:
        made = A @ B
        made.sort_indices()
        return made

    return returning(run)


def csr_to_csc(A: Any) -> Entrant:
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
    return returning(lambda: (A + B) @ x)


def sddmm(S: Any, C: Any, D: Any) -> Entrant:
    """SciPy has no sampled product; the usual idiom takes the rows of both factors for every entry."""
    rows = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
    return returning(lambda: S.data * np.einsum("pk,pk->p", C[rows], D[S.indices]))
