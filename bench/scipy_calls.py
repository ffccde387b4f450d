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


def fused(A: Any, B: Any, x: Any) -> Entrant:
    return returning(lambda: (A + B) @ x)


def sddmm(S: Any, C: Any, D: Any) -> Entrant:
    """SciPy has no sampled product; the usual idiom takes the rows of both factors for every entry."""
    rows = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
    return returning(lambda: S.data * np.einsum("pk,pk->p", C[rows], D[S.indices]))
