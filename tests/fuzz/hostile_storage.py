"""Damaged index arrays, run in a process of their own: ``python -m fuzz.hostile_storage from_arrays SEED COUNT``.

Each mutation is judged first by the slow checker. What breaks no promise must be accepted and give the right result; all else must be an
error that names the array and the place. One line of JSON per mutation that was answered otherwise, and a last one with the counts.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import scipy.sparse as sp
from levels.slow_checker import keeps_its_promises

import sparseloom as sl
from sparseloom.formats.level import LevelData
from sparseloom.formats.pack import pack
from sparseloom.formats.storage import Storage
from sparseloom.formats.text import as_format

FORMATS = {"csr": 2, "csc": 2, "uq": 2, "sss": 3, "dcsr": 2, "uqq": 3, "db": 2, "dia": 2}
MATRICES = {"csr": sp.csr_array, "csc": sp.csc_array, "coo": sp.coo_array}
STRANGE = (-1, -7, 2**31 - 1, -(2**31), 99)
NAMES_ARRAY = re.compile(r"\b(pos|crd|present|offsets|values|indptr|indices|coords|coordinate arrays?|data|index arrays?)\b")
NAMES_PLACE = re.compile(r"\[[\d, ]+\]|elements|dtype|dimensions|must hold integers|contiguous|beside")


def base(random: Random, form: str) -> Storage:
    """A sound storage with a few entries."""
    rng = np.random.default_rng(random.getrandbits(31))
    shape = tuple(int(n) for n in rng.integers(2, 6, FORMATS[form]))
    kept = rng.random(shape) < 0.5
    coordinates = np.argwhere(kept).T
    values = rng.integers(1, 9, coordinates.shape[1]).astype(float)
    return pack(as_format(form, len(shape)), shape, coordinates, values, index_dtype=np.dtype(random.choice(("int32", "int64"))))


def damage(random: Random, array: np.ndarray) -> np.ndarray:
    """One array with one thing changed; sometimes to what it was."""
    array, place = array.copy(), random.randrange(max(len(array), 1))
    match random.randrange(9):
        case 0 if len(array):
            array[place] = np.int64(random.choice(STRANGE)).astype(array.dtype)
        case 1 if len(array):
            array[place] += np.int64(random.choice((-2, -1, 1, 2))).astype(array.dtype)
        case 2 if len(array) > 1:
            other = random.randrange(len(array))
            array[[place, other]] = array[[other, place]]
        case 3 if len(array) > 1:
            array[place] = array[place - 1]
        case 4:
            array = array[: random.randrange(len(array) + 1)]
        case 5:
            array = np.append(array, np.array([random.choice((0, 1, *STRANGE))]).astype(array.dtype))
        case 6:
            array = array[::-1].copy()
        case 7:
            array = np.insert(array, place, array[place] if len(array) else 0)
        case _:
            array = array.astype(random.choice(("int16", "uint32", "float64", "int32", "int64", ">i4")))
    return array


def dense_of(storage: Storage) -> np.ndarray:
    """What sound storage holds, entry by entry: not of padded levels."""
    dense = np.zeros(storage.shape)

    def below(level: int, position: int, path: tuple[int, ...]) -> None:
        if level == len(storage.format.levels):
            place = tuple(path[storage.format.modes.index(mode)] for mode in range(len(path)))
            dense[place] += storage.values[position]
            return
        arrays = storage.levels[level].arrays
        match sorted(arrays):
            case []:
                size = storage.shape[storage.format.modes[level]]
                for c in range(size):
                    below(level + 1, position * size + c, (*path, c))
            case ["crd"]:
                below(level + 1, position, (*path, int(arrays["crd"][position])))
            case ["present"]:
                size = storage.shape[storage.format.modes[level]]
                for c in np.flatnonzero(arrays["present"][position * size :][:size]).tolist():
                    below(level + 1, position * size + c, (*path, c))
            case ["offsets"]:
                width = storage.levels[level].scalars["width"]
                for k, offset in enumerate(arrays["offsets"].tolist()):
                    if 0 <= position + offset < min(width, storage.shape[storage.format.modes[level]]):
                        below(level + 1, k * width + position + offset, (*path, position + offset))
            case _:
                for p in range(int(arrays["pos"][position]), int(arrays["pos"][position + 1])):
                    below(level + 1, p, (*path, int(arrays["crd"][p])))

    below(0, 0, ())
    return dense


def through_from_arrays(random: Random) -> str:
    """Hand damaged arrays to ``from_arrays`` and sum them up."""
    storage = base(random, random.choice(list(FORMATS)))
    named = {(k, part): array for k, level in enumerate(storage.levels) for part, array in level.arrays.items()}
    for _ in range(random.choice((1, 1, 1, 2))):
        chosen = random.choice([*named, None])
        if chosen is None:
            values = storage.values
            storage = replace(storage, values=random.choice((values[:-1], np.append(values, 5.0), values.reshape(1, -1), values)))
        else:
            named[chosen] = damage(random, named[chosen])
    scalars = [level.scalars for level in storage.levels]
    levels = tuple(LevelData({part: a for (n, part), a in named.items() if n == k}, scalars[k]) for k in range(len(storage.levels)))
    storage = replace(storage, levels=levels)
    widths = {array.dtype for array in named.values()}
    sound = len(widths) == 1 and storage.values.ndim == 1 and keeps_its_promises(storage)
    given = {f"{part}{k}": array for (k, part), array in named.items()} | {"values": storage.values}
    given |= {f"{part}{k}": np.array(value) for k, level in enumerate(scalars) for part, value in level.items()}
    indices = "ijk"[: len(storage.shape)]
    text = f"y(i) = A({','.join(indices)})"

    def call() -> np.ndarray:
        tensor = sl.from_arrays(storage.format, storage.shape, given)
        return sl.evaluate(text, A=tensor).to_numpy()

    return judge(sound, lambda: dense_of(storage).sum(axis=tuple(range(1, len(indices)))), call)


def through_scipy(random: Random) -> str:
    """Damage the arrays of a SciPy matrix behind its back, and multiply with it."""
    kind = random.choice(list(MATRICES))
    form = {"csr": "ds", "csc": "ds:1,0", "coo": "uq"}[kind]
    storage = base(random, {"ds": "csr", "ds:1,0": "csc", "uq": "uq"}[form])
    matrix = MATRICES[kind](dense_of(storage))
    parts = ["row", "col", "data"] if kind == "coo" else ["indptr", "indices", "data"]
    part = random.choice(parts)
    array = getattr(matrix, part)
    changed = random.choice((array[:-1], np.append(array, 1.0), array)) if part == "data" else damage(random, array)
    setattr(matrix, part, changed)
    loose = as_format({"ds": "du~", "ds:1,0": "du~:1,0", "uq": "u~q~+"}[form], 2)
    if kind == "coo":
        row, col = (np.asarray(getattr(matrix, name)) for name in ("row", "col"))
        arrays = [{"pos": np.array([0, len(matrix.data)]), "crd": _native(row)}, {"crd": _native(col)}]
        exact_lengths = len(row) == len(col) == len(matrix.data)
    else:
        arrays = [{}, {"pos": _native(matrix.indptr), "crd": _native(matrix.indices)}]
        exact_lengths = True
    seen = Storage(loose, matrix.shape, tuple(LevelData(a) for a in arrays), np.asarray(matrix.data))
    sound = exact_lengths and keeps_its_promises(seen)
    x = np.arange(1.0, matrix.shape[1] + 1)

    def call() -> np.ndarray:
        return sl.evaluate("y(i) = A(i,j) * x(j)", A=matrix, x=x).to_numpy()

    return judge(sound, lambda: dense_of(seen) @ x, call)


def _native(array: np.ndarray) -> np.ndarray:
    """Index arrays of other integer types are converted on entry."""
    return array.astype(np.int64) if array.dtype.kind in "iu" else array


def judge(sound: bool, wanted: Any, call: Any) -> str:
    """What was answered; "wrong ..." if it should have been answered otherwise."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sl.ConversionWarning)
            got = call()
    except sl.SparseloomError as error:
        text = str(error)
        if sound:
            return f"wrong: refused although sound: {text}"
        if isinstance(error, sl.CompilerBug) or not (NAMES_ARRAY.search(text) and NAMES_PLACE.search(text)):
            return f"wrong: does not name array and place: {text}"
        return "refused"
    if not sound:
        return "wrong: accepted although damaged"
    if not np.array_equal(got, wanted()):
        return f"wrong: {got} instead of {wanted()}"
    return "accepted"


def main(way: str, seed: int, count: int) -> None:
    """Run ``count`` mutations."""
    step = {"from_arrays": through_from_arrays, "scipy": through_scipy}[way]
    answers: Counter[str] = Counter()
    for number in range(count):
        random = Random(f"{way}/{seed}/{number}")
        try:
            answer = step(random)
        except (sl.CompilerBug, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, MemoryError) as error:
            answer = f"wrong: {type(error).__name__}: {error}"
        answers[answer.split(":")[0]] += 1
        if answer.startswith("wrong"):
            print(json.dumps([way, seed, number, answer]))
    print(json.dumps(dict(answers)))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
