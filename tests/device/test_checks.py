"""Storage on a device is validated there: the same verdict, in the same words, as in main memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from device.stand_in import StandIn

import sparseloom as sl
from sparseloom.core.errors import StorageError
from sparseloom.formats.level import LevelData
from sparseloom.formats.storage import Storage
from sparseloom.formats.validate import check
from sparseloom.programs.cuda.checks import check_on_device
from sparseloom.programs.cuda.storages import to_device

FORMATS = ("csr", "csc", "coo", "dcsr", "s", "csf", "coo3")


def verdict(judge: Any, storage: Storage) -> str:
    try:
        judge(storage, "A")
    except StorageError as fault:
        return str(fault)
    return "sound"


def unknown(storage: Storage) -> Storage:
    """A storage on the device, of whose positions nothing is known."""
    made = to_device(storage)
    for array in made.indices:
        array.ends = None  # type: ignore[attr-defined]
    return made


def drawn(format: str, rng: np.random.Generator) -> Storage:
    shape: tuple[int, ...] = {"s": (9,), "csf": (4, 5, 6), "coo3": (4, 5, 6)}.get(format, (6, 7))
    return sl.random(shape, float(rng.uniform(0, 0.6)), "coo" if format == "coo3" else format, seed=int(rng.integers(1 << 30))).storage


def damaged(storage: Storage, rng: np.random.Generator) -> Storage:
    """The same with one number changed, or two exchanged."""
    levels = [LevelData({name: array.copy() for name, array in level.arrays.items()}, level.scalars) for level in storage.levels]
    arrays = [array for level in levels for array in level.arrays.values() if len(array)]
    if arrays:
        array = arrays[rng.integers(len(arrays))]
        place, other = rng.integers(len(array), size=2)
        match rng.integers(4):
            case 0:
                array[place] += rng.integers(-2, 3)
            case 1:
                array[[place, other]] = array[[other, place]]
            case 2:
                array[place] = array[other]
            case _:
                array[place] = rng.choice([-(2**31), -1, 5, 7, 100, 2**31 - 1])
    return replace(storage, levels=tuple(levels), seal=None)


@pytest.mark.parametrize("format", FORMATS)
def test_the_device_says_what_the_host_says(device: StandIn, rng: np.random.Generator, format: str) -> None:
    for _ in range(40):
        storage = drawn(format, rng)
        assert verdict(check_on_device, unknown(storage)) == "sound"
        wrong = damaged(storage, rng)
        on_host, on_device = verdict(check, wrong), verdict(check_on_device, unknown(wrong))
        # Several things may be wrong: the host looks for what is out of range before it looks at the order.
        assert on_device == on_host or (on_host != "sound" and on_device.split("]")[0].split("[")[0] == on_host.split("]")[0].split("[")[0])


def test_long_indices_are_checked_too(device: StandIn) -> None:
    storage = sl.from_arrays("csr", (2, 3), {"pos1": np.array([0, 2, 3]), "crd1": np.array([0, 2, 1]), "values": np.ones(3)}).storage
    assert storage.index_dtype == np.int64
    assert verdict(check_on_device, unknown(storage)) == "sound"
    storage.indices[1][1] = 3
    assert verdict(check_on_device, unknown(storage)) == "A: level 1 (compressed, mode j): crd[1] = 3 is outside the level's size 3"


def test_what_cannot_be_checked_is_refused(device: StandIn) -> None:
    assert "there is no check for Padded there" in verdict(check_on_device, to_device(sl.random((4, 4), 0.5, "ell", seed=1).storage))
    storage = to_device(sl.random((4, 4), 0.5, "csr", seed=1).storage)
    assert "values has 3 elements" in verdict(check_on_device, replace(storage, values=to_device(sl.zeros(3).storage).values))
