"""The entries of a tensor in the order of some modes: as they stand where they are stored so, else after a conversion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.formats.format import Format
from sparseloom.formats.level import Level
from sparseloom.formats.levels.compressed import Compressed
from sparseloom.formats.levels.dense import Dense
from sparseloom.formats.pack import unpack
from sparseloom.formats.storage import Storage
from sparseloom.programs.conversion import convert

_FEW_ROWS = 2**20  # so many positions of rows are no burden
_ROWS_PER_ENTRY = 16


def are_in_order(format: Format, modes: Sequence[int]) -> bool:
    """Whether entries come by the first of these modes, then by the next, and none comes twice."""
    if format.blocks or format.modes != tuple(modes) or not format.is_unique:
        return False
    return all(level.ordered and type(level).slot is Level.slot for level in format.levels)  # of diagonals, values stand by diagonals


def ordered_entries(storage: Storage, modes: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """The coordinates (a row for each mode of the tensor) and values of the entries, sorted by these modes."""
    if not modes or are_in_order(storage.format, modes):
        return unpack(storage)
    rows, count = storage.shape[modes[0]], len(storage.values)
    has_few_rows = len(modes) == 2 and rows <= max(_FEW_ROWS, _ROWS_PER_ENTRY * count)
    first = Dense() if has_few_rows else Compressed()
    return unpack(convert(storage, Format((first, *(Compressed(),) * (len(modes) - 1)), tuple(modes))))
