"""The stored form of one tensor: its format, shape, arrays and values.

Storage is what kernels take and return. We never change it after it is made, except for the values of an output. A caller may:
arrays that came from outside, or were handed out, can be written to at any time. A *seal* (index arrays) and an *owner* (values) tell them
apart from our own, and know whether several tensors have them in common. Such arrays are copied before a caller can write to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from operator import methodcaller
from typing import Any
from weakref import WeakSet

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

    def share(self) -> bool:
        """Let another storage have the index arrays too, unless a caller can change them."""
        self.shared = True  # before the question: another thread sets ``broken`` and then asks for ``shared``
        return not self.broken

    def open(self) -> bool:
        """Let a caller write to the index arrays, unless several storages have them."""
        was_broken, self.broken = self.broken, True
        if self.shared and not was_broken:
            self.broken = False
        return self.broken


NO_INDICES = Seal()
"""For storage without index arrays."""


class Owner:
    """One tensor's ownership of values that we made. Owners of the same memory know of each other as long as they live.

    Most values have one owner all their life, so nothing is set before a second one comes.
    """

    is_open = False  # whether a caller may have the array, and write to it
    _group: WeakSet[Owner] | None = None

    @property
    def is_shared(self) -> bool:
        """Whether another tensor has the same memory."""
        return self._group is not None and len(self._group) > 1

    def another(self) -> Owner | None:
        """An owner of the same memory for another tensor; None if a caller can write to it."""
        if self.is_open:
            return None
        group = self.__dict__.setdefault("_group", WeakSet((self,)))  # which is one step, so that two threads get the same group
        made = Owner()
        made._group = group
        group.add(made)
        return None if self.is_open else made  # asked last: ``open`` in another thread looks at the group after it has set ``is_open``

    def open(self) -> bool:
        """Let a caller write to the memory, unless another tensor has it."""
        was_open, self.is_open = self.is_open, True
        if self.is_shared and not was_open:
            self.is_open = False
        return self.is_open


class _Passable:
    """Room for how a storage is laid before a kernel (``runtime.laying``). It is no field, so no copy takes it along."""

    __slots__ = ("laid",)
    laid: Any


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Storage(_Passable):
    """One tensor's arrays. ``values`` is one-dimensional and C-contiguous, one value per position of the last level.

    Without a ``seal`` the index arrays may be a caller's, who may change them; without an ``owner`` the values may be.
    """

    format: Format
    shape: tuple[int, ...]
    levels: tuple[LevelData, ...]
    values: NDArray[Any]
    fill: Scalar = 0
    seal: Seal | None = None
    owner: Owner | None = None

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


def _slot_by_slot() -> Callable[..., None]:
    """``__init__`` of a storage: a result has a new one, and that of a frozen dataclass takes as long as a small kernel."""
    put_format, put_shape, put_levels, put_values, put_fill, put_seal, put_owner = (
        Storage.__dict__[one.name].__set__ for one in fields(Storage)
    )

    def __init__(
        self: Storage,
        format: Format,
        shape: tuple[int, ...],
        levels: tuple[LevelData, ...],
        values: NDArray[Any],
        fill: Scalar = 0,
        seal: Seal | None = None,
        owner: Owner | None = None,
    ) -> None:
        put_format(self, format)
        put_shape(self, shape)
        put_levels(self, levels)
        put_values(self, values)
        put_fill(self, fill)
        put_seal(self, seal)
        put_owner(self, owner)

    return __init__


Storage.__init__ = _slot_by_slot()  # type: ignore[method-assign]


def same_arrays(some: Iterable[NDArray[Any]], others: Iterable[NDArray[Any]]) -> bool:
    """Whether arrays hold the same, one by one."""
    return all(mine is theirs or np.array_equal(mine, theirs) for mine, theirs in zip(some, others, strict=True))


def has_arrays_of(one: Storage, other: Storage) -> bool:
    """Whether both are the same arrays in the same format; what is absent may differ."""
    return one is other or (one.values is other.values and one.format is other.format and one.levels is other.levels)


def is_stored_alike(one: Storage, other: Storage) -> bool:
    """Whether two tensors have their entries at the same places."""
    if one.format != other.format or one.shape != other.shape or one.dtype != other.dtype:
        return False
    has_same_scalars = all(a.scalars == b.scalars for a, b in zip(one.levels, other.levels, strict=True))
    return has_same_scalars and same_arrays(one.indices, other.indices)


def share_memory(some: Sequence[NDArray[Any]], others: Iterable[NDArray[Any]]) -> bool:
    """Whether some array may be changed by writing to one of the others."""
    return any(_may_overlap(mine, theirs) for theirs in others for mine in some)


def _may_overlap(mine: Any, theirs: Any) -> bool:
    """Whether two arrays may have memory in common; those on a device know that of each other."""
    if mine is theirs:
        return bool(mine.nbytes)
    if mine.device != "cpu" or theirs.device != "cpu":
        return mine.device == theirs.device and bool(mine.overlaps(theirs))
    return np.may_share_memory(mine, theirs)


def _new_seal(storage: Storage) -> Seal:
    return Seal() if storage.indices else NO_INDICES


def sealed(storage: Storage) -> Storage:
    """A storage whose arrays we made, and nobody else has."""
    return replace(storage, seal=_new_seal(storage), owner=Owner())


def with_values(storage: Storage, values: NDArray[Any], fill: Scalar | None = None) -> Storage:
    """The same structure with other values, which we made."""
    return replace(storage, values=values, fill=storage.fill if fill is None else fill, owner=Owner())


def copied(storage: Storage, copy: Copy = copy_of) -> Storage:
    """The same tensor with arrays of its own."""
    return with_values(with_own_indices(storage, copy), copy(storage.values))


def with_own_indices(storage: Storage, copy: Copy = copy_of) -> Storage:
    """The same tensor with index arrays of its own."""
    return replace(storage, levels=_own(storage.levels, copy), seal=_new_seal(storage))


def with_own_values(storage: Storage, copy: Copy = copy_of) -> Storage:
    """The storage, for values to be written into: itself, or a copy if another tensor has the same values."""
    owner = storage.owner
    return with_values(storage, copy(storage.values)) if owner is not None and owner.is_shared else storage


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
    if storage.indices and (seal is None or not seal.share()):
        return _own(storage.levels, copy), Seal()
    return storage.levels, seal


def open_up(storage: Storage, copy: Copy = copy_of) -> Storage:
    """The storage whose arrays a caller may see and change. What other tensors need too is copied."""
    if storage.seal is not None and storage.indices and not storage.seal.open():
        storage = with_own_indices(storage, copy)
        return open_up(storage, copy)
    return open_values(storage, copy)


def open_values(storage: Storage, copy: Copy = copy_of) -> Storage:
    """The storage whose values a caller may change, and that keeps the memory that it has. Values that other tensors need are copied."""
    if storage.owner is not None and not storage.owner.open():
        return open_values(with_values(storage, copy(storage.values)), copy)
    return storage


def derived(made: Storage, source: Storage) -> Storage:
    """What was made from another storage, with the seal and the owner it deserves: of its own, unless they have arrays in common."""
    if made is source:
        return made
    seal: Seal | None = _new_seal(made)
    owner: Owner | None = Owner()
    if share_memory(made.indices, source.indices):
        seal = source.seal if source.seal is not None and source.seal.share() else None
    if _may_overlap(made.values, source.values):
        owner = None if source.owner is None else source.owner.another()
    return replace(made, seal=seal, owner=owner)


def apart(made: Storage, source: Storage, copy: Copy = copy_of) -> Storage:
    """What was made from another storage, as a tensor that nobody changes through that, nor the other way round.

    They may have arrays in common for now, which are copied when a caller asks for them; what a caller can change already is copied here.
    """
    made = derived(replace(source) if made is source else made, source)
    if made.seal is None:
        made = with_own_indices(made, copy)
    return made if made.owner is not None else with_values(made, copy(made.values))
