"""How foreign data enters: a storage that shares the user's arrays where it can, and a note for each copy that it could not avoid."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import FLOAT16, INDEX_DTYPES, VALUE_DTYPES, DType, value_dtype
from sparseloom.core.errors import ConversionWarning, StorageError
from sparseloom.core.notices import notify
from sparseloom.formats.format import Format
from sparseloom.formats.level import LevelData
from sparseloom.formats.pack import stored_count
from sparseloom.formats.storage import Storage, apart, lend, sealed, with_values
from sparseloom.formats.validate import check
from sparseloom.programs.conversion import convert, placement
from sparseloom.programs.guard import Guard
from sparseloom.programs.laying import Kind

NATIVE = frozenset((*VALUE_DTYPES, FLOAT16))
NO_ARRAYS = LevelData()


class Intake(NamedTuple):
    """A storage, and what had to be copied or converted to make it.

    ``unexpected`` marks a copy that the user may not expect, such as that of a matrix with unsorted indices.
    """

    storage: Storage
    notes: tuple[str, ...] = ()
    unexpected: bool = False
    guard: Guard | None = None  # of the caller's own arrays, where they are shared
    help: str = ""  # how to do without the copy


SORT = "call sort_indices() on the matrix, or pass the tensor that sl.asarray makes of it"
SUM = "call sum_duplicates() on the matrix, or pass the tensor that sl.asarray makes of it"


def as_sorted(storage: Storage) -> Intake:
    """What was put in order as it entered."""
    return Intake(storage, ("the tensor was copied: its coordinates are not sorted",), True, None, SORT)


def warn(entry: Intake) -> None:
    """Say what was copied, and how to do without."""
    notify("; ".join(entry.notes) + (f"\n  help: {entry.help}" if entry.help else ""), ConversionWarning)


def converted(intake: Intake, note: str) -> Intake:
    """What was made of an object that stores it otherwise: that it was copied is to be expected."""
    return Intake(intake.storage, (note, *intake.notes), guard=intake.guard)


Layout = tuple[tuple[int, ...], tuple[int, ...], DType]


def layout_of(array: NDArray[Any]) -> Layout:
    """How an array is read, which its owner can change without making a new one. Its memory stays: who is referred to is not resized."""
    return array.shape, array.strides, array.dtype


@dataclass
class Seen:
    """Arrays that were found valid for a format and a shape, how many entries they hold, and the storage last made of them.

    The caller may have changed them since, so the guard looks at them again.
    """

    arrays: tuple[weakref.ref[NDArray[Any]], ...]
    layouts: tuple[Layout, ...]
    format: Format
    shape: tuple[int, ...]
    count: int
    storage: weakref.ref[Storage]
    guard: Guard
    kind: tuple[object, Kind] | None = None  # how the compiler sees them, and what follows from their layout

    def still_holds(self, arrays: tuple[NDArray[Any], ...]) -> bool:
        """Whether these are the same arrays, and still valid."""
        for reference, layout, array in zip(self.arrays, self.layouts, arrays, strict=True):
            if reference() is not array or layout != layout_of(array):
                return False
        return self.guard.holds()


_SEEN: dict[tuple[int, ...], Seen] = {}


def seen_before(arrays: tuple[NDArray[Any], ...], format: Format, shape: tuple[int, ...], build: Callable[[int], Storage]) -> Intake | None:
    """The storage of arrays that were valid before and still are, else ``None``. ``build`` makes it anew from the entry count.

    Arrays are known by identity. They are held weakly, and a dead array takes its record with it, so a new array at an old
    address is not mistaken for it. The storage is held weakly too, because it holds the arrays.
    """
    seen = record_of(arrays)
    if seen is None or seen.shape != shape or seen.format is not format or not seen.still_holds(arrays):
        return None
    storage = seen.storage()
    if storage is None:
        storage = build(seen.count)
        seen.storage = weakref.ref(storage)
    return Intake(storage, guard=seen.guard)


def record_of(arrays: tuple[NDArray[Any], ...]) -> Seen | None:
    """What is known of arrays that were seen before."""
    return _SEEN.get(tuple(map(id, arrays)))


def remember(arrays: tuple[NDArray[Any], ...], storage: Storage, count: int, guard: Guard) -> None:
    """Record that these arrays are valid, until one of them dies."""
    key = tuple(map(id, arrays))

    def forget(_: object) -> None:
        _SEEN.pop(key, None)

    references = tuple(weakref.ref(array, forget) for array in arrays)
    _SEEN[key] = Seen(references, tuple(map(layout_of, arrays)), storage.format, storage.shape, count, weakref.ref(storage), guard)


@dataclass
class _Sorted:
    """Arrays whose entries come in no order, and what they are in order: its structure, and where its values are among theirs."""

    arrays: tuple[weakref.ref[NDArray[Any]], ...]
    layouts: tuple[Layout, ...]
    format: Format
    shape: tuple[int, ...]
    guard: Guard
    made: Storage
    sources: NDArray[np.int64]


_SORTED: dict[tuple[int, ...], _Sorted] = {}


def sorted_before(arrays: tuple[NDArray[Any], ...], format: Format, shape: tuple[int, ...]) -> Storage | None:
    """Arrays in order, the last of which has the values, if they were sorted before and their entries still stand where they did."""
    known = _SORTED.get(tuple(map(id, arrays)))
    if known is None or known.format != format or known.shape != shape or tuple(map(layout_of, arrays)) != known.layouts:
        return None
    if any(reference() is not array for reference, array in zip(known.arrays, arrays, strict=True)) or not known.guard.holds():
        return None
    made = lend(known.made)
    return with_values(made, arrays[-1].reshape(-1).take(known.sources))


def remember_sorted(arrays: tuple[NDArray[Any], ...], loose: Storage, format: Format) -> None:
    """Record how the entries of arrays are sorted, until one of them dies."""
    key = tuple(map(id, arrays))

    def forget(_: object) -> None:
        _SORTED.pop(key, None)

    placed, sources = placement(loose, format)
    references = tuple(weakref.ref(array, forget) for array in arrays)
    layouts, guard = tuple(map(layout_of, arrays)), Guard.of_copies(arrays[:-1])
    _SORTED[key] = _Sorted(references, layouts, format, loose.shape, guard, sealed(with_values(placed, np.empty(0, loose.dtype))), sources)


def usable_values(values: NDArray[Any], notes: list[str]) -> NDArray[Any]:
    """The values as a flat native array: themselves if they are one, else a copy and a note."""
    flat = values if values.ndim == 1 else values.reshape(-1)
    if flat is not values and not np.may_share_memory(flat, values) and values.size:
        notes.append("the values were copied: they are not contiguous in memory")
    return _usable(flat, value_dtype(values.dtype), "the values were", notes)


def usable_indices(arrays: tuple[NDArray[Any], ...], notes: list[str]) -> tuple[NDArray[Any], ...]:
    """Index arrays of one dtype, int32 or int64: themselves where they can be used, else copies and a note."""
    # Each by itself: beside integers, truths would pass as 0 and 1. Integers that meet uint64 become floats.
    common = np.result_type(*arrays) if all(array.dtype.kind in "iu" for array in arrays) else np.dtype(object)
    if common not in INDEX_DTYPES:
        if common.kind not in "iu" or common == np.uint64:
            raise StorageError(f"index arrays must hold integers, not {', '.join(str(a.dtype) for a in arrays)}")
        common = np.dtype(np.int32) if common.itemsize < 4 else np.dtype(np.int64)
    return tuple(_usable(array, common, "an index array was", notes) for array in arrays)


def _usable(array: NDArray[Any], dtype: np.dtype[Any], what: str, notes: list[str]) -> NDArray[Any]:
    if array.dtype != dtype:
        swapped = array.dtype.newbyteorder("=") == dtype
        notes.append(f"{what} copied: " + ("the byte order is not native" if swapped else f"{array.dtype} became {dtype}"))
        return array.astype(dtype)
    if not (array.flags.c_contiguous and array.flags.aligned):
        notes.append(f"{what} copied: not contiguous and aligned in memory")
        return array.copy()
    return array


def shared_or_sorted(storage: Storage, notes: list[str], given: tuple[NDArray[Any], ...] = ()) -> Intake:
    """Check foreign arrays. Where all that is wrong is their order or repeated coordinates, make a sorted copy and say so.

    How the arrays that were ``given`` are sorted is remembered, so that it is done once for all calls with them.
    """
    try:
        guard = Guard(storage)
    except StorageError:
        loose = replace(storage, format=storage.format.promising(ordered=False, unique=False))
        check(loose)
        packed = convert(loose, storage.format)
        repeated = stored_count(loose) - stored_count(packed)
        reason = f"{repeated} repeated coordinates were summed" if repeated > 0 else "its coordinates are not sorted"
        if given and repeated == 0 and not notes and not storage.format.blocks and len(given[-1].reshape(-1)) == len(storage.values):
            remember_sorted(given, loose, storage.format)
        notes.append(f"the tensor was copied: {reason}")
        return Intake(apart(packed, storage), tuple(dict.fromkeys(notes)), True, None, SUM if repeated > 0 else SORT)
    return Intake(storage, tuple(dict.fromkeys(notes)), bool(notes), guard)
