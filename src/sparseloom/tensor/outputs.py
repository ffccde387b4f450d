"""Results that are filled again: what may be an output, and which tensors have their entries at the same places."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparseloom.core.errors import StorageError
from sparseloom.formats.storage import Storage, is_stored_alike, lend, share_memory, with_values
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


@dataclass(frozen=True)
class Assembled:
    """A result that was assembled: its structure, how many values it has, and where the entries of its operands were."""

    tensor: weakref.ref[Tensor]
    structure: Storage
    places: int
    operands: Mapping[str, Storage]

    def is_of(self, tensor: Tensor) -> bool:
        """Whether a tensor is the result, in the format and shape in which it was assembled."""
        return self.tensor() is tensor and (self.structure.format, self.structure.shape) == (tensor.format, tensor.shape)

    def check(self, operands: Mapping[str, Storage], result: str) -> None:
        """Refuse operands whose entries are elsewhere than those that the result was assembled from."""
        for name, storage in operands.items():
            if not is_stored_alike(storage, self.operands[name]):
                raise StorageError(
                    f"{name} is not stored as it was when {result} was assembled, and only values may change\n"
                    f"  help: assemble again: {result} = kernel.assemble(...)"
                )


def remember_assembled(known: dict[int, Assembled], tensor: Tensor, operands: Mapping[str, Storage]) -> None:
    """Keep the structure of a result and of its operands, as long as the result lives."""
    key, made = id(tensor), tensor.storage
    reference = weakref.ref(tensor, lambda _: known.pop(key, None))
    structures = {name: _structure_of(storage) for name, storage in operands.items()}
    known[key] = Assembled(reference, _structure_of(made), len(made.values), structures)


def _structure_of(storage: Storage) -> Storage:
    """Where the entries of a storage are, kept apart from what a caller can change now or later."""
    return with_values(lend(storage), np.empty(0, storage.dtype))


def overlaps(out: Storage, operands: Mapping[str, Storage], result: str) -> bool:
    """Whether filling ``out`` would change an operand: its values, or the index arrays that the loops follow."""
    read = (s for name, s in operands.items() if name != result)
    return share_memory((out.values,), (array for s in read for array in (s.values, *s.indices)))
