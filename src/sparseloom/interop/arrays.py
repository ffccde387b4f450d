"""A storage as a plain dictionary of named arrays: ``pos1``, ``crd1``, ... by level, and ``values``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import known_fill, value_dtype
from sparseloom.core.errors import ShapeError, StorageError
from sparseloom.formats.format import Format
from sparseloom.formats.level import LevelData
from sparseloom.formats.storage import Storage
from sparseloom.formats.validate import check


def arrays_of(storage: Storage) -> dict[str, NDArray[Any]]:
    """The arrays of a storage by name. The scalars of a level come as arrays of order 0."""
    named: dict[str, NDArray[Any]] = {}
    for k, data in enumerate(storage.levels):
        named.update((f"{name}{k}", array) for name, array in data.arrays.items())
        named.update((f"{name}{k}", np.array(value)) for name, value in data.scalars.items())
    named["values"] = storage.values
    return named


def one_integer(name: str, value: Any) -> int:
    """A number of a storage, which may come as an array of order 0."""
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "iu":
        raise StorageError(f"{name} must be one integer, not {array.size} values of {array.dtype}")
    return int(array.item())


def plain_array(given: Any) -> NDArray[Any]:
    """Anything array-like as NumPy's own array. One with a mask is refused: what it hides is no value."""
    rows = given if isinstance(given, (list, tuple)) else (given,)
    if any(isinstance(row, np.ma.MaskedArray) for row in rows):
        raise StorageError("a masked array has entries without a value; give array.filled(value), or only the entries it has")
    try:
        return np.asarray(given)
    except ValueError as problem:
        raise ShapeError(f"the lists do not form an array: {problem}") from None


def storage_of(format: Format, shape: tuple[int, ...], arrays: Mapping[str, Any], fill: Scalar = 0) -> Storage:
    """The storage with these arrays, checked; the counterpart of ``arrays_of``."""
    wanted = {f"{name}{k}" for k, level in enumerate(format.levels) for name in (*level.array_names, *level.scalar_names)} | {"values"}
    if wanted != set(arrays):
        wrong = ", ".join(sorted(wanted ^ set(arrays)))
        raise StorageError(f"the format {format} has the arrays {', '.join(sorted(wanted))}; missing or strange: {wrong}")
    levels = tuple(
        LevelData(
            {name: plain_array(arrays[f"{name}{k}"]) for name in level.array_names},
            {name: one_integer(f"{name}{k}", arrays[f"{name}{k}"]) for name in level.scalar_names},
        )
        for k, level in enumerate(format.levels)
    )
    values = plain_array(arrays["values"])
    values = values.astype(value_dtype(values.dtype), copy=False)
    storage = Storage(format, shape, levels, values, known_fill(fill, values.dtype))
    check(storage)
    return storage
