"""Random operands: how one is stored, what it holds, and the same tensor as the dense oracle sees it.

The oracle's view is made from the drawn entries alone, one at a time, and not from the packed arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
from fuzz.families import Family

from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import kind_of
from sparseloom.formats.format import Format
from sparseloom.formats.level import LevelData
from sparseloom.formats.levels import Compressed, Offset
from sparseloom.formats.pack import pack
from sparseloom.formats.storage import Storage
from sparseloom.formats.text import as_format
from sparseloom.notation.interpret import Operand

FORMATS: dict[int, tuple[str, ...]] = {
    0: ("",),
    1: ("d", "d", "s", "s", "u", "s~", "u~", "b"),
    2: (
        "dd", "dd", "ds", "ds", "ds", "ss", "sd", "uq", "uq", "ds:1,0", "ss:1,0", "dd:1,0", "uq:1,0", "sd:1,0", "du", "ds~", "u~q~",
        "uq+", "bcsr(2,2)", "bcsr(2,3)", "bcsr(1,2)", "ell", "ell", "dp:1,0", "su", "uu", "ud", "du~", "su~", "u~q~+",
        "db", "db", "bb", "sb", "bs", "bd:1,0", "bu", "dia", "dia", "do:1,0",
    ),
    3: (
        "ddd", "sss", "sss", "dss", "uqq", "dsd", "dds", "ssd", "sdd", "sds", "sss:2,0,1", "dss:1,2,0", "uqq:2,1,0", "ddd:2,1,0",
        "dsd:1,0,2", "ddp", "spd", "uqd", "duq", "suq", "sss:1,2,0", "u~q~q~+", "dsb", "bss", "dbd", "bbs:2,0,1",
    ),
    4: ("dddd", "ssss", "uqqq", "dsds", "ddss", "ssss:3,1,0,2", "dddd:1,0,3,2", "sdsd"),
}  # fmt: skip
RESULTS: dict[int, tuple[str, ...]] = {
    1: ("s", "s", "u", "u~", "sd:0,0/2", "b"),
    2: (
        "ds", "ds", "ss", "uq", "sd", "ds:1,0", "ss:1,0", "dd:1,0", "du", "uq:1,0", "bcsr(2,2)", "bcsr(1,2)", "bcsr(2,3)",
        "ssdd:1,0,0,1/3,2", "ell", "dp:1,0", "sp", "ds~", "u~q~", "ds:1,0", "db", "bb:1,0", "bd", "sb", "dia", "do:1,0",
        "pp", "bsdd:0,1,0,1/2,2",
    ),
    3: (
        "sss", "dss", "uqq", "dsd", "dds", "ssd", "sss:2,0,1", "ddd:2,0,1", "duq", "dssddd:0,1,2,0,1,2/2,1,2", "ddp", "spd", "uqd", "uqs",
        "sss:1,0,2", "dds:2,0,1", "dds:0,2,1", "uqq:2,1,0", "dss:1,2,0", "dsb", "bss:2,1,0", "dbd",
    ),
    4: ("ssss", "uqqq", "dsds", "ddss", "ssss:3,1,0,2", "ddds:1,0,3,2", "uqqq:1,3,0,2", "ddss:2,0,3,1"),
}  # fmt: skip
DENSITIES = (0.0, 0.1, 0.3, 0.3, 0.6, 0.9, 1.0)


@dataclass(frozen=True)
class Spec:
    """Everything that decides an operand but its shape; the entries follow from ``seed``."""

    format: str
    dtype: str
    seed: int
    smallest: int = -3
    index: str = "int32"
    fill: Scalar = 0
    density: float = 0.4
    repeats: bool = False
    specials: bool = False
    slack: bool = False  # index arrays with room behind the last entry

    def level_format(self, order: int) -> Format:
        return as_format(self.format, order)


def draw_spec(random: Random, family: Family, order: int, specials: bool) -> Spec:
    """A random way to store an operand of this order."""
    dtype = random.choice(family.dtypes)
    form = random.choice(FORMATS[order])
    sparse = not as_format(form, order).is_dense
    fill: Scalar = 0
    if sparse and random.random() < 0.1:
        fill = _fill(random, dtype)
    return Spec(
        form,
        dtype,
        random.getrandbits(31),
        family.smallest if np.dtype(dtype).kind not in "ub" else 0,
        random.choice(("int32", "int32", "int64")),
        fill,
        random.choice(DENSITIES),
        "u" in form and random.random() < 0.6,
        specials and "float" in dtype,
        sparse and random.random() < 0.08,
    )


def _fill(random: Random, dtype: str) -> Scalar:
    match kind_of(np.dtype(dtype)):
        case "b":
            return True
        case "f":
            return random.choice((1.0, 2.0, -1.0, float("inf"), float("-inf"), float("nan")))
        case "i":
            return random.choice((1, -1, 2, np.iinfo(dtype).max))
        case "u":
            return random.choice((1, 2, int(np.iinfo(dtype).max)))
    return random.choice((1 + 0j, 2j))


def entries(spec: Spec, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The coordinates and values that an operand stores: every place if it is dense, else some rows full and some empty."""
    rng = np.random.default_rng(spec.seed)
    form = spec.level_format(len(shape))
    kept = np.ones(shape, bool) if form.is_dense else rng.random(shape) < spec.density
    if not form.is_dense and shape and shape[0] > 1:
        style, row = rng.random(), int(rng.integers(shape[0]))
        if style < 0.25:
            kept[row] = False
        elif style < 0.35:
            kept[row] = True
    coordinates = np.argwhere(kept).T if shape else np.zeros((0, 1), np.int64)
    if spec.repeats and coordinates.shape[1]:
        again = rng.integers(coordinates.shape[1], size=int(rng.integers(1, 4)))
        coordinates = np.concatenate([coordinates, coordinates[:, again]], axis=1)
    values = _values(rng, spec, coordinates.shape[1])
    return coordinates, values


def _values(rng: np.random.Generator, spec: Spec, count: int) -> np.ndarray:
    dtype = np.dtype(spec.dtype)
    values: np.ndarray = rng.integers(spec.smallest, 4, count)
    if dtype.kind == "b":
        return rng.random(count) < 0.7
    if dtype.kind == "c":
        return (values + 1j * rng.integers(-2, 3, count)).astype(dtype)
    values = values.astype(dtype)
    if spec.specials and count:
        places = rng.integers(count, size=1 + count // 8)
        values[places] = rng.choice([np.nan, np.inf, -np.inf, -0.0], size=len(places))
    return values


def store(spec: Spec, shape: tuple[int, ...]) -> Storage:
    """The operand as it is stored."""
    form = spec.level_format(len(shape))
    coordinates, values = entries(spec, shape)
    ordered = as_format(form.text.replace("~", ""), len(shape))
    storage = pack(ordered, shape, coordinates, values, spec.fill, np.dtype(spec.index), "keep" if spec.repeats else "sum")
    if ordered != form:
        storage = replace(_shuffled(storage, np.random.default_rng(spec.seed)), format=form)
    return _with_slack(storage) if spec.slack else storage


def _shuffled(storage: Storage, rng: np.random.Generator) -> Storage:
    """The same entries in another order below each parent of the last chain."""
    head, end = storage.format.chains[-1]
    pos = storage.levels[head].arrays["pos"]
    order = np.concatenate([np.arange(0), *(a + rng.permutation(b - a) for a, b in pairwise(pos))]).astype(int)
    levels = list(storage.levels)
    for k in range(head, end + 1):
        levels[k] = LevelData({**levels[k].arrays, "crd": levels[k].arrays["crd"][order]})
    return replace(storage, levels=tuple(levels), values=storage.values[order])


def _with_slack(storage: Storage) -> Storage:
    """The same tensor in arrays that are longer than needed, as SciPy's may be; what is behind the end must not matter."""
    head, end = storage.format.chains[-1]
    if not isinstance(storage.format.levels[head], Compressed):
        return storage
    levels = list(storage.levels)
    for k in range(head, end + 1):
        crd = levels[k].arrays["crd"]
        levels[k] = LevelData({**levels[k].arrays, "crd": np.append(crd, np.array([-7, 10**6], crd.dtype))})
    return replace(storage, levels=tuple(levels), values=np.append(storage.values, storage.values.dtype.type(77)).astype(storage.dtype))


def seen_densely(spec: Spec, shape: tuple[int, ...]) -> Operand:
    """The operand as the dense oracle sees it: repeated entries summed, and what shares a block with an entry stored too."""
    coordinates, values = entries(spec, shape)
    form = spec.level_format(len(shape))
    dense = np.full(shape, spec.fill, values.dtype)
    stored = np.zeros(shape, bool)
    with np.errstate(all="ignore"):
        for place, value in zip(map(tuple, coordinates.T.tolist()), values, strict=True):
            dense[place] = dense[place] + value if stored[place] else value  # whole numbers, which halves hold
            stored[place] = True
    return Operand(dense, closure(form, stored), spec.fill)


def closure(form: Format, stored: np.ndarray) -> np.ndarray:
    """Which places have a position of their own once these are stored: full levels at the end store whole blocks, bands whole diagonals."""
    if form.is_dense:
        return np.ones(stored.shape, bool)
    if isinstance(form.levels[-1], Offset):
        rows, columns = np.indices(stored.shape)
        return np.isin(columns - rows, (columns - rows)[stored])
    last = max(k for k, level in enumerate(form.levels) if not level.full)
    if last == len(form.levels) - 1:
        return stored
    keys = _level_keys(form, stored.shape, last + 1)
    found = {key for key, present in zip(keys, stored.ravel().tolist(), strict=True) if present}
    return np.array([key in found for key in keys], bool).reshape(stored.shape)


def _level_keys(form: Format, shape: tuple[int, ...], depth: int) -> list[tuple[int, ...]]:
    """For every place, its coordinates at the first ``depth`` levels."""
    columns: list[Any] = []
    seen: set[int] = set()
    for mode, column in ((mode, np.indices(shape)[mode].ravel()) for mode in form.modes[:depth]):
        if form.blocks:
            column = column % form.blocks[mode] if mode in seen else column // form.blocks[mode]
        seen.add(mode)
        columns.append(column.tolist())
    return list(zip(*columns, strict=True))
