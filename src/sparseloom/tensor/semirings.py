"""Tensors under a semiring: what they do not store is its zero."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparseloom.core.algebra import Scalar, same_value
from sparseloom.core.dtypes import DType
from sparseloom.formats.storage import Storage
from sparseloom.tensor.operators import cast


def filled_with(storage: Storage, zero: Scalar, common: DType) -> Storage:
    """The same entries under another fill."""
    dtype = dtype_under(zero, storage.dtype, common)
    same = storage if storage.dtype == dtype else cast(replace(storage, fill=0), dtype)
    return replace(same, fill=zero)


def dtype_under(zero: Scalar, own: DType, common: DType) -> DType:
    """The dtype of a sparse operand under a semiring: its own, or that to which all promote if it is an integer or its own has no zero."""
    return common if np.issubdtype(common, np.integer) or not _holds(own, zero) else own


def _holds(dtype: DType, value: Scalar) -> bool:
    """Whether a dtype has this very value."""
    if dtype.kind in "iu" and not np.isfinite(value):
        return False
    with np.errstate(all="ignore"):
        return same_value(np.asarray(value).astype(dtype).item(), value)
