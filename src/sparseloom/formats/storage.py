"""The stored form of one tensor: its format, shape, arrays and values.

Storage is what kernels take and return. It is never changed after it is made, except for the values of an output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import DType
from sparseloom.formats.format import Format
from sparseloom.formats.level import LevelData


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Storage:
    """One tensor's arrays. ``values`` is one-dimensional and C-contiguous, one value per position of the last level."""

    format: Format
    shape: tuple[int, ...]
    levels: tuple[LevelData, ...]
    values: NDArray[Any]
    fill: Scalar = 0

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self.values.dtype

    @property
    def index_dtype(self) -> DType | None:
        """The dtype of the index arrays; None if there are none."""
        return next((array.dtype for level in self.levels for array in level.arrays.values()), None)
