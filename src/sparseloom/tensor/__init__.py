"""Tensors: what users hold, make, index and compute with."""

from __future__ import annotations

from sparseloom.notation.nodes import IndexVar
from sparseloom.tensor.assignment import Assignment, deferred
from sparseloom.tensor.builder import Builder
from sparseloom.tensor.creation import asarray, from_arrays, from_coo, full, random, zeros
from sparseloom.tensor.expression import Expression, indices
from sparseloom.tensor.tensor import Tensor

__all__ = [
    "Assignment", "Builder", "Expression", "IndexVar", "Tensor", "asarray", "deferred", "from_arrays", "from_coo", "full", "indices",
    "random", "zeros",
]  # fmt: skip
