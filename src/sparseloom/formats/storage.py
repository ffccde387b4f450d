"""The stored form of one tensor: its format, shape, arrays and values.

Storage is what kernels take and return. We never change it after it is made, except for the values of an output. A caller may:
arrays that came from outside, or were handed out, can be written to at any time. A *seal* tells them apart from our own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import methodcaller
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import BOOL, DType
from sparseloom.formats.format import Format
from sparseloom.formats.level import LevelData

Copy = Callable[[NDArray[Any]], NDArray[Any]]
copy_of: Copy = methodcaller("copy")  # of an array wherever it is


class Seal:
    """Put on index arrays that we made. While it is whole nobody else can reach them, so they are as valid as when they were made.

    Storages that share index arrays share the seal. It is broken when the arrays are handed out; arrays that several tensors have in
    common (``shared``) are never handed out.
    """

    __slots__ = ("broken", "shared")

    def __init__(self) -> None:
        self.broken = False
        self.shared = False


NO_INDICES = Seal()
"""For our own storage without index arrays: values may change at any time, and nothing else can."""

CALLERS_VALUES = Seal()
"""For storage without index arrays whose values are a caller's."""


class _Passable:
    """Room for how a storage is laid before a kernel (``runtime.laying``). It is no field, so no copy takes it along."""

    __slots__ = ("laid",)
    laid: Any


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Storage(_Passable):
    """One tensor's arrays. ``values`` is one-dimensional and C-contiguous, one value per position of the last level.

    Without a ``seal`` the arrays may be a caller's, who may change them.
    """

    format: Format
    shape: tuple[int, ...]
    levels: tuple[LevelData, ...]
    values: NDArray[Any]
    fill: Scalar = 0
    seal: Seal | None = None

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self.values.dtype

    @property
    def device(self) -> str:
        """Where the arrays are: ``cpu`` or ``cuda``."""
        return self.values.device

    @property
    def index_dtype(self) -> DType | None:
        """The dtype of the index arrays; None if there are none. Truth values that say what is stored have their own."""
        return next((array.dtype for array in self.indices if array.dtype != BOOL), None)

    @property
    def indices(self) -> tuple[NDArray[Any], ...]:
        """All index arrays, from the first level to the last."""
        return tuple(array for level in self.levels for array in level.arrays.values())

    @property
    def is_sealed(self) -> bool:
        """Whether nobody but us can change the index arrays."""
        return not self.seal.broken if self.seal is not None else not self.indices


def same_arrays(some: Iterable[NDArray[Any]], others: Iterable[NDArray[Any]]) -> bool:
    """Whether arrays hold the same, one by one."""
    return all(mine is theirs or np.array_equal(mine, theirs) for mine, theirs in zip(some, others, strict=True))


def share_memory(some: Sequence[NDArray[Any]], others: Iterable[NDArray[Any]]) -> bool:
    """Whether some array may be changed by writing to one of the others."""
    return any(_may_overlap(mine, theirs) for theirs in others for mine in some)


def _may_overlap(mine: Any, theirs: Any) -> bool:
    """Whether two arrays may have memory in common; those on a device know that of each other."""
    if mine.device != "cpu" or theirs.device != "cpu":
        return mine.device == theirs.device and bool(mine.overlaps(theirs))
    return np.may_share_memory(mine, theirs)


def sealed(storage: Storage) -> Storage:
    """A storage whose arrays we made, and nobody else has."""
    return replace(storage, seal=Seal() if storage.indices else NO_INDICES)


def copied(storage: Storage, copy: Copy = copy_of) -> Storage:
    """The same tensor with arrays of its own."""
    return replace(with_own_indices(storage, copy), values=copy(storage.values))


def with_own_indices(storage: Storage, copy: Copy = copy_of) -> Storage:
    """The same tensor with index arrays of its own."""
    return replace(storage, levels=_own(storage.levels, copy), seal=Seal() if storage.indices else NO_INDICES)


def _own(levels: tuple[LevelData, ...], copy: Copy = copy_of) -> tuple[LevelData, ...]:
    """Copies of levels."""
    return tuple([LevelData({name: copy(array) for name, array in level.arrays.items()}, level.scalars) for level in levels])


def lend(storage: Storage, copy: Copy = copy_of) -> Storage:
    """The storage whose index arrays a result may have in common with it: itself if they are sealed, else a copy."""
    levels, seal = lend_levels(storage, copy)
    return storage if levels is storage.levels else replace(storage, levels=levels, seal=seal)


def lend_levels(storage: Storage, copy: Copy = copy_of) -> tuple[tuple[LevelData, ...], Seal | None]:
    """The levels that a result may have in common with a storage, and their seal: its own if they are sealed, else copies."""
    seal = storage.seal
    if seal is not None and not seal.broken:
        seal.shared = True
    elif storage.indices:
        return _own(storage.levels, copy), Seal()
    return storage.levels, seal


def open_up(storage: Storage) -> Storage:
    """The storage, of which a caller may see all arrays, and could change them."""
    if storage.seal is not None and storage.indices:
        storage.seal.broken = True
    return storage


def hand_out(storage: Storage) -> Storage:
    """The storage whose arrays become those of an object that may change. Index arrays that other tensors need too are copied."""
    is_shared = storage.seal is not None and storage.seal.shared
    return open_up(with_own_indices(storage) if is_shared and storage.indices else storage)


def derived(made: Storage, source: Storage) -> Storage:
    """What was made from another storage, with the seal it deserves: of its own, unless they have arrays in common."""
    if made is source:
        return made
    if not share_memory(made.indices, source.indices):
        return sealed(made)
    if source.seal is not None:
        source.seal.shared = True
    return replace(made, seal=source.seal)


def apart(made: Storage, source: Storage, copy: Copy = copy_of) -> Storage:
    """A result without any array that a caller may change: those it has in common with such a source are copied."""
    if source.is_sealed and source.seal is not CALLERS_VALUES:
        return made
    if share_memory(made.indices, source.indices):
        made = with_own_indices(made, copy)
    if _may_overlap(made.values, source.values):
        made = replace(made, values=copy(made.values))
    return made
