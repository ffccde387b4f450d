"""Malformed storage at every door."""

from __future__ import annotations

from random import Random

import numpy as np
from fuzz.hostile_storage import through_from_arrays, through_scipy

NAME = "storage"
COUNT = 5000


def trial(rng: np.random.Generator) -> str:
    """One damaged tensor through one door."""
    door = (through_from_arrays, through_scipy)[rng.integers(2)]
    answer = door(Random(int(rng.integers(2**62))))
    assert not answer.startswith("wrong"), answer
    return "right" if answer == "accepted" else answer
