"""Functions of one tensor that NumPy computes of the values: exp, log, sin and the like, for which it has vectors and a C library has none.

log1p(A)      A: csr      the index arrays are A's, and the values np.log1p(A's values)

Each value is within 4 units in the last place of the exact one, and depends on nothing but the operand's value: not on where it stands, nor
on the number of threads. Kernels, which fuse such functions with others, call the C library for each value.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from sparseloom.core import algebra
from sparseloom.core.dtypes import DType
from sparseloom.formats.format import Format
from sparseloom.formats.storage import Storage, lend, sealed, with_values
from sparseloom.programs.large import duplicate

_IN_KERNELS = ("sqrt", "divide", "arctan2", "hypot")  # which processors have, or which have two arguments
OFFERED = frozenset(name for name, op in algebra.OPERATORS.items() if op.rule == "inexact" and name not in _IN_KERNELS)


def by_values(op: str, storage: Storage) -> Storage | None:
    """The function of all values, in the operand's structure; None if the result has another, or a kernel is to compute it."""
    if storage.device != "cpu" or not _keeps_values(storage.format):
        return None
    dtype = algebra.compute_dtype(op, (storage.dtype,))
    if storage.format.is_dense:
        return sealed(Storage(storage.format, storage.shape, storage.levels, algebra.compute(op, (storage.values,), dtype)))
    fill = _of_fill(op, storage.fill, dtype)
    return None if fill != 0 else with_values(lend(storage, duplicate), algebra.compute(op, (storage.values,), dtype), fill)


@lru_cache(maxsize=256, typed=True)
def _of_fill(op: str, fill: algebra.Scalar, dtype: DType) -> algebra.Scalar:
    """The function of what is not stored."""
    made: algebra.Scalar = np.asarray(algebra.compute(op, (fill,), dtype)).astype(dtype).item()
    return made


@lru_cache(maxsize=256)
def _keeps_values(format: Format) -> bool:
    """Whether every value is that of one coordinate, and the result of an operator is stored as its operand."""
    if format.is_dense:
        return not format.blocks and format.modes == tuple(range(format.order))
    return format.is_unique and all(level.compact and level.ordered for level in format.levels) and not format.levels[-1].shares_values
