"""Laws of validation: what we pack is accepted, and broken promises are found exactly where a slow reading finds them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from levels.random_storage import MATRIX_FORMATS, cases, named_formats, random_entries
from levels.slow_checker import keeps_its_promises

from sparseloom.core.errors import StorageError
from sparseloom.formats.format import Format
from sparseloom.formats.level import LevelData
from sparseloom.formats.pack import pack
from sparseloom.formats.storage import Storage
from sparseloom.formats.text import parse_format
from sparseloom.formats.validate import check

FORMATS = (*MATRIX_FORMATS, *named_formats(3), *(parse_format(text) for text in ("s~s", "ds~", "uq~", "u~q~", "u~q~+", "us", "up", "pq~")))
EXTREMES = (-1, 0, 1, 2**31 - 1, -(2**31), 2**62, -(2**63), 2**63 - 1)


def is_accepted(storage: Storage) -> bool:
    """Whether the check lets the storage pass."""
    try:
        check(storage)
    except StorageError as error:
        assert str(error).startswith("tensor: ")
        return False
    return True


def filled(rng: np.random.Generator, format: Format) -> Storage:
    """Storage with at least one entry, of one entry per row where the format cannot branch."""
    shape = tuple(int(size) for size in rng.integers(1, 6, format.order))
    coordinates, values = random_entries(rng, shape)
    if "q" in format.text and "u" not in format.text:
        coordinates = coordinates[:, np.unique(coordinates[0], return_index=True)[1]]
        values = values[: coordinates.shape[1]]
    index_dtype = np.dtype(rng.choice(["int32", "int64"]))
    return pack(format, shape, coordinates, values, index_dtype=index_dtype, duplicates="keep")


def mutated(rng: np.random.Generator, storage: Storage) -> Storage:
    """The storage with one array or number changed, which may or may not break a promise."""
    k = int(rng.integers(-1, len(storage.levels)))
    if k < 0 or not storage.levels[k].arrays:
        return replace(storage, values=mutated_array(rng, storage.values) if rng.random() < 0.5 else storage.values[:-1])
    data = storage.levels[k]
    arrays, scalars = dict(data.arrays), dict(data.scalars)
    if scalars and rng.random() < 0.2:
        scalars["width"] += int(rng.integers(-2, 3))
    else:
        name = str(rng.choice(list(arrays)))
        arrays[name] = mutated_array(rng, arrays[name])
    return replace(storage, levels=(*storage.levels[:k], LevelData(arrays, scalars), *storage.levels[k + 1 :]))


def mutated_array(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """One element changed, two exchanged, the length changed, or another type or layout."""
    changed = array.copy()
    match int(rng.integers(0, 9)):
        case 0 | 1 if len(array):
            changed[rng.integers(len(array))] += rng.choice([-2, -1, 1, 2])
        case 2 if len(array) and array.dtype.kind == "i":
            extreme = int(rng.choice(EXTREMES))
            limits = np.iinfo(array.dtype)
            changed[rng.integers(len(array))] = min(max(extreme, limits.min), limits.max)
        case 3 | 4 if len(array) > 1:
            a, b = rng.integers(0, len(array), 2)
            changed[[a, b]] = changed[[b, a]]
        case 5:
            changed = changed[:-1]
        case 6:
            changed = np.append(changed, changed[-1:])
        case 7 if len(array) > 1:
            a, b = rng.integers(0, len(array), 2)
            changed[a] = changed[b]
        case 8 if array.dtype.kind == "i":
            types = [array.astype(kind) for kind in (float, np.uint8, object)]
            layouts = [array[None], np.repeat(array, 2)[::2], array[::-1]]
            changed = (types + layouts)[int(rng.integers(6))]
    return changed


@pytest.mark.parametrize("seed", range(2))
def test_what_is_packed_is_accepted(seed):
    for rng, format, shape in cases(300 + seed, 200):
        coordinates, values = random_entries(rng, shape)
        storage = pack(format, shape, coordinates, values, duplicates="keep")
        assert is_accepted(storage)
        assert keeps_its_promises(storage)


def test_mutations_are_judged_as_a_slow_reading_judges_them():
    rejected = 0
    for k in range(3000):
        rng = np.random.default_rng([7, k])
        storage = mutated(rng, filled(rng, FORMATS[k % len(FORMATS)]))
        right = keeps_its_promises(storage)
        assert is_accepted(storage) == right, (k, storage)
        rejected += not right
    assert rejected >= 1000


def test_mutations_of_random_stacks_are_judged_as_a_slow_reading_judges_them():
    for rng, format, shape in cases(400, 1500):
        coordinates, values = random_entries(rng, shape)
        storage = mutated(rng, pack(format, shape, coordinates, values, duplicates="keep"))
        assert is_accepted(storage) == keeps_its_promises(storage), storage


@pytest.mark.parametrize("format", [f for f in FORMATS if f.order == 2], ids=str)
def test_garbage_never_gets_through(format):
    for k in range(30):
        rng = np.random.default_rng([8, k])
        levels = tuple(
            LevelData(
                {name: rng.integers(-2, 4, rng.integers(0, 6)).astype(rng.choice(["int32", "int64"])) for name in level.array_names},
                {name: int(rng.integers(-1, 3)) for name in level.scalar_names},
            )
            for level in format.levels
        )
        storage = Storage(format, (3, 2), levels, np.ones(int(rng.integers(0, 9))))
        assert is_accepted(storage) == keeps_its_promises(storage)
