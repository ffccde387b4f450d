"""Small operands for the paper's schedules: empty rows, one long row, and sizes that are no multiples of any constant."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Operands = dict[str, NDArray[np.float64]]

# Rows, columns and how full; empty ones, single entries, and more than one block of everything.
SHAPES = ((1, 1, 1.0), (5, 7, 0.3), (37, 41, 0.15), (0, 3, 0.0), (3, 0, 0.0), (6, 9, 0.0))


def matrix(rng: np.random.Generator, rows: int, columns: int, density: float) -> NDArray[np.float64]:
    """Whole numbers, so that sums are exact; row 1 is empty and row 2 full where there are such rows."""
    made = rng.integers(1, 5, (rows, columns)) * (rng.random((rows, columns)) < density) * 1.0
    if rows > 3 and density > 0:
        made[1], made[2] = 0, rng.integers(1, 5, columns)
    return made


def dense(rng: np.random.Generator, *shape: int) -> NDArray[np.float64]:
    """Whole numbers, none of them absent."""
    return rng.integers(-3, 4, shape).astype(float)


def operands(family: str, rng: np.random.Generator, rows: int, columns: int, density: float) -> tuple[Operands, NDArray[np.float64]]:
    """The operands of SpMV, SpMM or MTTKRP, and the result. Dense matrices have 32 columns, as the paper's bounds promise."""
    match family:
        case "spmv":
            A, x = matrix(rng, rows, columns, density), dense(rng, columns)
            return {"A": A, "x": x}, A @ x
        case "spmm":
            A, B = matrix(rng, rows, columns, density), dense(rng, columns, 32)
            return {"A": A, "B": B}, A @ B
    # The interpreter searches every block, so the tensor stays small.
    rows, middle = min(rows, 6), min(columns, 8)
    slices = [matrix(rng, middle, 5, density) if k != 1 else np.zeros((middle, 5)) for k in range(rows)]
    T, C, D = np.array(slices).reshape(rows, middle, 5), dense(rng, middle, 32), dense(rng, 5, 32)
    return {"B": T, "C": C, "D": D}, np.einsum("ikl,kj,lj->ij", T, C, D)
