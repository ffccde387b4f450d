"""Checking storage that comes from outside: every promise its format makes, in a few passes over the arrays.

The contents of the values are free. All else that generated code relies on is checked here, so that no array a user
hands in can make it read or write outside its arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparseloom.core.dtypes import KNOWN_DTYPES, is_value_dtype
from sparseloom.core.errors import StorageError
from sparseloom.formats.level import Checked, Fault, Level, LevelData
from sparseloom.formats.room import is_countable
from sparseloom.formats.storage import Storage

_MODE_NAMES = "ijklmn"


def check(storage: Storage, name: str = "tensor") -> None:
    """Raise a StorageError that names the array and the place if the storage breaks a promise of its format."""
    format = storage.format
    _check_shape(storage, name)
    sizes = format.level_sizes(storage.shape)
    counts = [1]
    above = Checked(1)
    widths: list[np.dtype[Any]] = []
    for k, (level, data) in enumerate(zip(format.levels, storage.levels, strict=True)):
        strange = sorted({*data.arrays} - {*level.array_names} | {*data.scalars} - {*level.scalar_names})
        found = Fault(strange[0], None, "does not belong to this level") if strange else level.check(data, sizes[k], above)
        found = _width_fault(level, data, widths) or found if isinstance(found, Checked) else found
        match found:
            case Fault():
                raise fault_error(storage, name, k, found)
            case Checked():
                above = found
                counts.append(found.positions)
    _check_values(storage, name, counts[-1])
    for head, end in format.chains:
        _check_unordered_chain(storage, name, head, end, counts[head], sizes)


def _width_fault(level: Level, data: LevelData, widths: list[np.dtype[Any]]) -> Fault | None:
    """The first array whose dtype is not that of the arrays before it: generated code knows one width of indices per tensor."""
    for name, array in data.arrays.items():
        if name in level.truth_names:
            continue
        widths.append(array.dtype)
        if array.dtype != widths[0]:
            what = f"has dtype {array.dtype}, but the arrays before it have {widths[0]}; all indices of a tensor have one"
            return Fault(name, None, what)
    return None


def fault_error(storage: Storage, name: str, k: int, fault: Fault) -> StorageError:
    """The fault with the tensor and the level it was found in."""
    level, mode = type(storage.format.levels[k]).__name__.lower(), storage.format.modes[k]
    mode_name = _MODE_NAMES[mode] if mode < len(_MODE_NAMES) else str(mode)
    return StorageError(f"{name}: level {k} ({level}, mode {mode_name}): {fault}")


def _check_shape(storage: Storage, name: str) -> None:
    """One size per mode and one set of arrays per level."""
    format, shape = storage.format, storage.shape
    if len(shape) != format.order or any(type(size) is not int or size < 0 for size in shape):
        raise StorageError(f"{name}: the shape {shape!r} must be {format.order} sizes of at least 0, as the format {format} has")
    if not is_countable(format, shape):
        raise StorageError(f"{name}: the shape {shape!r} has a size that does not fit in 64 bits")
    if len(storage.levels) != len(format.levels):
        raise StorageError(f"{name}: the format {format} has {len(format.levels)} levels, but there is data for {len(storage.levels)}")


def _check_values(storage: Storage, name: str, positions: int) -> None:
    """One value per position. Where coordinates are stored there may be room for more, as SciPy's arrays have."""
    values: Any = storage.values
    if not isinstance(values, np.ndarray) or isinstance(values, np.ma.MaskedArray):
        raise StorageError(f"{name}: values must be a NumPy array, not {type(values).__name__}")
    if not is_value_dtype(values.dtype):
        raise StorageError(f"{name}: values have dtype {values.dtype}; there are {KNOWN_DTYPES}, in native byte order")
    if values.ndim != 1:
        raise StorageError(f"{name}: values have {values.ndim} dimensions; they are stored in one")
    if not (values.flags.c_contiguous and values.flags.aligned):
        raise StorageError(f"{name}: values are not contiguous and aligned; copy them with np.ascontiguousarray")
    if len(values) < positions or (storage.format.is_dense and len(values) != positions):
        raise StorageError(f"{name}: values has {len(values)} elements; the format {storage.format} needs {positions}")


def _check_unordered_chain(storage: Storage, name: str, head: int, end: int, parent_count: int, sizes: tuple[int, ...]) -> None:
    """Find tuples that repeat in a chain of levels that does not keep them in order, so that only sorting brings them together."""
    levels, ordered = storage.format.levels, True
    claims = []
    for k in range(head, end + 1):
        ordered = ordered and levels[k].ordered
        if levels[k].unique and not ordered:
            claims.append(k)
    if not claims:
        return
    keys = list(levels[head].unpack(storage.levels[head], sizes[head], parent_count))
    keys += [levels[k].unpack(storage.levels[k], sizes[k], len(keys[0]))[1] for k in range(head + 1, end + 1)]
    for k in claims:
        tuples = keys[: k - head + 2]
        order = np.lexsort(tuples[::-1])
        repeats = keys[0][order[1:]] >= 0  # not at unused places
        for key in tuples:
            repeats &= key[order[1:]] == key[order[:-1]]
        if repeats.any():
            at = int(repeats.argmax())
            left, right = int(order[at]), int(order[at + 1])
            coordinate = tuples[-1][right]
            what = f"= {coordinate} repeats crd[{left}] below the same parent; coordinates must be unique"
            raise fault_error(storage, name, k, Fault("crd", right, what))
