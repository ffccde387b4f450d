"""What people use today for the same: one call of SciPy or NumPy, where there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparseloom.formats.pack import to_dense
from sparseloom.formats.storage import Storage
from sparseloom.notation.nodes import Access, Apply, Assign
from sparseloom.tensor.tensor import Tensor


@dataclass(frozen=True)
class Peer:
    """A call that does the same, and its name."""

    what: str
    start: Callable[[], Any]

    def agrees(self, made: Storage) -> bool:
        """Whether it gives what we made."""
        found = self.start()
        theirs = found.toarray() if hasattr(found, "toarray") else np.asarray(found)
        ours = to_dense(made)
        scale = float(np.max(np.abs(theirs), initial=0))
        return ours.shape == theirs.shape and bool(np.allclose(ours, theirs, rtol=1e-9, atol=1e-9 * scale))


def peer_of(assign: Assign, operands: Mapping[str, Storage]) -> Peer | None:
    """The call of SciPy for a product or a sum of two matrices or vectors; None if it is something else."""
    match assign:
        case Assign(Access(_, target), Apply(op, (Access(left, rows), Access(right, columns))), None) if op in ("add", "multiply"):
            first, second = (_array(operands[tensor.name]) for tensor in (left, right))
        case _:
            return None
    if first is None or second is None:
        return None
    library = _library(first, second)
    match op, rows, columns:
        case "multiply", (i, j), (j2, *k) if j == j2 and target == (i, *k) and len({i, j, *k}) == 2 + len(k):
            return Peer(f"{left.name} @ {right.name} in {library}", lambda: first @ second)
        case "add", _, _ if rows == columns == target and len(set(rows)) == len(rows):
            return Peer(f"{left.name} + {right.name} in {library}", lambda: first + second)
        case "multiply", _, _ if rows == columns == target and len(set(rows)) == len(rows):
            return Peer(f"{left.name} * {right.name} in {library}", lambda: first * second)
    return None


def _array(storage: Storage) -> Any:
    """An operand as SciPy or NumPy has it; None where they have no such thing."""
    if storage.format.is_dense and not storage.format.blocks:
        return to_dense(storage)
    return Tensor(storage).to_scipy() if len(storage.shape) == 2 else None


def _library(*arrays: Any) -> str:
    return "NumPy" if all(isinstance(array, np.ndarray) for array in arrays) else "SciPy"
