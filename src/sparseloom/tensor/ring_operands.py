"""Operands under a semiring: what is absent is its zero, and integers of different widths meet in one dtype."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from sparseloom.core.algebra import Scalar, same_value
from sparseloom.core.dtypes import DType
from sparseloom.core.errors import FormatError
from sparseloom.formats.format import Format
from sparseloom.formats.storage import Storage
from sparseloom.tensor.operators import cast


def under_semiring(storages: Mapping[str, Storage], wanted: Mapping[str, Format | None], zero: Scalar, common: DType) -> dict[str, Storage]:
    """The operands under a semiring with this zero, where all of them promote to ``common``.

    A dense operand stays as it is; what is to be stored sparsely leaves out the semiring's zero and nothing else.
    """
    made = {}
    for name, storage in storages.items():
        form = wanted[name]
        if storage.format.is_dense:
            stays = form is None or form.is_dense
            made[name] = storage if stays else _filled_with(storage, zero, common)
            continue
        if storage.fill != 0 and not same_value(storage.fill, zero):
            raise FormatError(f"absent entries of {name} are {storage.fill}, but under this semiring they must be its zero, {zero}")
        made[name] = _filled_with(storage, zero, common)
    return made


def _filled_with(storage: Storage, zero: Scalar, common: DType) -> Storage:
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
