"""The array surface: functions that NumPy has too, on tensors of any format. One file per family; ``tensor/table.py`` is the table of all.

Importing any of them gives tensors their methods.
"""

from __future__ import annotations

from sparseloom.surface import namespace as array_api
from sparseloom.surface.methods import FAMILIES
from sparseloom.tensor.table import TABLE

__all__ = ["FAMILIES", "TABLE", "array_api"]
