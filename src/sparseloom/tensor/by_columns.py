"""Dense rows times a sparse matrix that is stored by rows: ``X @ A`` as the transpose of ``A.T @ X.T``.

For each entry of A, the second adds to a row of neighbouring values; the first adds to one value of every row of the result, anywhere. Both
add the same terms in the same order. Many threads do better by rows of X, of which each takes some.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.formats.format import Format
from sparseloom.formats.storage import Storage, sealed
from sparseloom.interop.numpy import dense_storage, from_numpy, to_numpy
from sparseloom.tensor.indexing import transposed
from sparseloom.tensor.rows import has_rows
from sparseloom.toolchain.teams import get_threads

Product = Callable[[Storage, Storage], Storage]
_FEWEST = 4  # rows; fewer fill no vector
_LEAST = 1 << 14  # products; fewer are done before anything is transposed
_FEW_THREADS = 2


def by_columns(left: Storage | NDArray[Any], right: Storage, product: Product) -> Storage | None:
    """The product of two matrices, if it is better computed from its transpose; else None."""
    if len(right.shape) != 2 or left.shape[0] < _FEWEST:
        return None
    is_host = right.device == "cpu" and (not isinstance(left, Storage) or left.device == "cpu")
    if not is_host or not _is_by_rows(right.format) or right.fill != 0 or left.shape[0] * len(right.values) < _LEAST:
        return None
    if (isinstance(left, Storage) and not left.format.is_dense) or get_threads() > _FEW_THREADS or left.shape[1] != right.shape[0]:
        return None
    array = to_numpy(left) if isinstance(left, Storage) else left
    columns = from_numpy(np.ascontiguousarray(array.T)).storage
    made = to_numpy(product(transposed(right, (1, 0)), columns))
    return sealed(dense_storage(np.ascontiguousarray(made.T)))


def _is_by_rows(format: Format) -> bool:
    """Whether the entries of a matrix come row by row."""
    return has_rows(format) and format.modes == (0, 1)
