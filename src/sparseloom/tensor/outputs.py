"""Results that are filled again: what may be an output, and which tensors have their entries at the same places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from sparseloom.core.errors import StorageError
from sparseloom.formats.storage import Storage, same_arrays, share_memory, with_own_indices
from sparseloom.tensor.creation import asarray
from sparseloom.tensor.tensor import Tensor


def as_output(out: Any) -> Tensor:
    """What a result is written to: a tensor, or an array in memory that can be shared."""
    if isinstance(out, Tensor):
        return out
    if isinstance(out, (list, tuple, int, float, complex, np.generic)):
        raise StorageError(
            f"out cannot be {type(out).__name__}: nothing that is written there would be seen again\n"
            "  help: pass an array or an sl.Tensor, or leave out= away"
        )
    return asarray(out, copy=False)


def structure_of(storage: Storage) -> Storage:
    """Where the entries of a storage stand, kept apart from what a caller can change."""
    own = storage if storage.is_sealed else with_own_indices(storage)
    return replace(own, values=np.empty(0, storage.dtype))


def overlaps(out: Storage, operands: Mapping[str, Storage], result: str) -> bool:
    """Whether filling ``out`` would change an operand: its values, or the index arrays that the loops follow."""
    read = (s for name, s in operands.items() if name != result)
    return share_memory((out.values,), (array for s in read for array in (s.values, *s.indices)))


def is_stored_alike(one: Storage, other: Storage) -> bool:
    """Whether two tensors have their entries at the same places."""
    if one.format != other.format or one.shape != other.shape or one.dtype != other.dtype:
        return False
    has_same_scalars = all(a.scalars == b.scalars for a, b in zip(one.levels, other.levels, strict=True))
    return has_same_scalars and same_arrays(one.indices, other.indices)
