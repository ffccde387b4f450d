"""PyData/Sparse: COO arrays share their coordinates and values, and keep their fill value; GCXS and DOK go through COO."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sparseloom.tensor.entry import Intake
from sparseloom.tensor.interop.numpy import from_numpy
from sparseloom.tensor.interop.scipy import from_coordinates


def is_pydata_sparse(kind: type) -> bool:
    """Whether this is one of the classes of the ``sparse`` package."""
    return any(parent.__module__.partition(".")[0] == "sparse" for parent in kind.__mro__)


def from_pydata_sparse(array: Any) -> Intake:
    """Read a COO array, or what converts to one."""
    notes: tuple[str, ...] = ()
    if not hasattr(array, "coords"):
        notes = (f"converted from PyData/Sparse's {type(array).__name__}, which has no counterpart here",)
        array = array.to_coo() if hasattr(array, "to_coo") else array.tocoo()
    shape = tuple(int(size) for size in array.shape)
    if not shape:
        return from_numpy(array.todense())
    entry = from_coordinates(shape, tuple(array.coords), array.data)
    return entry._replace(storage=replace(entry.storage, fill=array.fill_value.item()), notes=entry.notes + notes)
