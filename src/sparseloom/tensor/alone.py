"""Tensors that alone refer to their index arrays: no caller can change these, so one check of them is enough.

    a = sl.asarray(sp.csr_array(dense))      the matrix is gone: its arrays are the tensor's
    a = sl.asarray(A)                        A may be changed: what entries stand where is looked at again with every call

Python counts who refers to an object. The counts of a tensor are compared with those of one that is known to have its arrays alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.formats.level import LevelData
from sparseloom.formats.named import csr
from sparseloom.formats.storage import Storage

# Where Python does not count them exactly, nobody is known to be alone.
_count: Callable[[object], int] = getattr(sys, "getrefcount", id) if getattr(sys, "_is_gil_enabled", lambda: True)() else id
_ALONE: list[tuple[int, ...]] = []


def is_alone(tensor: Any) -> bool:
    """Whether nobody but this tensor refers to its index arrays, or to what holds them."""
    if not _ALONE:
        pos, crd = np.zeros(2, np.int32), np.zeros(2, np.int32)[:1]
        made = type(tensor)(Storage(csr, (1, 1), (LevelData(), LevelData({"pos": pos, "crd": crd})), np.zeros(1)))
        del pos, crd
        _ALONE.extend((_first(made._storage.levels), _references(made)))
    # Most tensors that are not alone are told by one look.
    return _first(tensor._storage.levels) == _ALONE[0] and _references(tensor) == _ALONE[1]


def _first(levels: tuple[LevelData, ...]) -> tuple[int, ...]:
    """How many refer to the first array."""
    for data in levels:
        for array in data.arrays.values():
            return (_count(array),)
    return ()


def _references(tensor: Any) -> tuple[int, ...]:
    """The most that refer to any of the storage, its levels, their arrays, and the arrays that these are parts of."""
    levels = [data for data in tensor._storage.levels if data.arrays]
    arrays = [array for data in levels for array in data.arrays.values()]
    holders = _count(tensor._storage), _count(tensor._storage.levels), max(map(_count, levels)), max(_count(data.arrays) for data in levels)
    return *holders, max(map(_count, arrays)), max(map(_of_whole, arrays))


def _of_whole(array: NDArray[Any]) -> int:
    """How many refer to the array that this one is a part of; as many as for one that is a part of nobody's array if it is whole."""
    whole = array.base
    if whole is None:
        whole = np.empty(0)[:].base
        return _count(whole) + 1  # the part
    return _count(whole) if type(whole) is np.ndarray and whole.base is None else -1
