"""Malformed storage at every door: whatever is accepted reads as it was given, in every use, and all else is a SparseloomError."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
from attack.entering import any_dense_array, damaged_levels, damaged_scipy, stand_in_for_pydata, stand_in_for_torch
from attack.entries import bad_coordinates, bad_fill, bad_shape
from attack.outputs import bad_output
from attack.stored import through_npz, through_pickle
from fuzz.hostile_storage import through_from_arrays, through_scipy

NAME = "storage"
COUNT = 5000
SHORT = 200


def named_place(rng: np.random.Generator) -> str:
    """Damaged arrays, whose errors must also name array and place."""
    door = (through_from_arrays, through_scipy)[int(rng.integers(2))]
    answer = door(Random(int(rng.integers(2**62))))
    assert not answer.startswith("wrong"), answer
    return "right" if answer == "accepted" else "refused"


DOORS: dict[Callable[[np.random.Generator], str], int] = {
    named_place: 4, damaged_levels: 6, damaged_scipy: 6, stand_in_for_torch: 2, stand_in_for_pydata: 2, any_dense_array: 3,
    bad_coordinates: 3, bad_fill: 3, bad_shape: 2, bad_output: 4, through_pickle: 2, through_npz: 3,
}  # fmt: skip


def trial(rng: np.random.Generator) -> str:
    """One tensor through one door."""
    weights = np.array(list(DOORS.values()))
    door = list(DOORS)[int(rng.choice(len(DOORS), p=weights / weights.sum()))]
    return door(rng)
