"""Tensors: what users hold, make, index, compute with, read and write."""

from __future__ import annotations

from sparseloom.notation.nodes import IndexVar
from sparseloom.tensor.assignment import Assignment, deferred
from sparseloom.tensor.builder import Builder
from sparseloom.tensor.creation import asarray, from_arrays, from_coo, full, random, zeros
from sparseloom.tensor.expression import Expression, indices
from sparseloom.tensor.io.files import read, write
from sparseloom.tensor.surface import namespace as array_api
from sparseloom.tensor.surface.methods import FAMILIES
from sparseloom.tensor.surface.table import TABLE
from sparseloom.tensor.tensor import Tensor

__all__ = [
    "FAMILIES", "TABLE", "Assignment", "Builder", "Expression", "IndexVar", "Tensor", "array_api", "asarray", "deferred", "from_arrays",
    "from_coo", "full", "indices", "random", "read", "write", "zeros",
]  # fmt: skip
