"""Tensors with modes up to 2^62, and what they mean: a dictionary from coordinates to numbers, in plain Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

import sparseloom as sl
from sparseloom.formats.pack import unpack
from sparseloom.formats.text import as_format
from sparseloom.formats.validate import check

Entries = dict[tuple[int, ...], int]

EXTENTS = (2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1, 2**32 + 5, 2**33, 10**12, 2**40 + 3, 2**53 + 1, 2**61 + 7, 2**62)
SMALL = (1, 2, 3, 5, 8)
# Levels from the outermost on; "d" stands only where the mode is small, and blocks divide or do not divide it.
LEVELS = {
    0: ("",),
    1: ("s", "s", "u", "s~", "u~", "p", "d", "sd/3"),
    2: (
        "ss", "ss", "uq", "uq", "u~q~", "u~q~+", "s~s~", "su", "su~", "sp", "pp", "ds", "sd", "dp", "dd",
        "ssdd/2,2", "ssdd/3,2", "dsdd/2,2",
    ),
    3: ("sss", "sss", "uqq", "u~q~q~", "suq", "ssp", "dss", "ssd", "sds", "us~s", "dsd", "ppp"),
    4: ("ssss", "uqqq", "u~q~q~q~", "ssuq", "dsss"),
}


def draw_extent(rng: np.random.Generator) -> int:
    """Mostly a mode that 32 bits do not count."""
    if rng.random() < 0.2:
        return int(rng.choice(SMALL))
    extent = EXTENTS[rng.integers(len(EXTENTS))]
    return extent if rng.random() < 0.7 else int(rng.integers(2**31, 2**62))


def draw_format(rng: np.random.Generator, shape: Sequence[int]) -> str:
    """A format whose full levels are over small modes."""
    while True:
        levels = str(rng.choice(LEVELS[len(shape)]))
        letters, _, blocks = levels.partition("/")
        if blocks:
            modes = [*range(len(shape))] * 2
            text = f"{letters}:{','.join(map(str, modes))}/{blocks}"
            full = [mode for mode, letter in zip(range(len(shape)), letters, strict=False) if letter == "d"]
        else:
            modes = [int(mode) for mode in rng.permutation(len(shape))]
            text = letters + (":" + ",".join(map(str, modes)) if modes != sorted(modes) else "")
            full = [mode for mode, letter in zip(modes, letters.replace("~", "").replace("+", ""), strict=True) if letter == "d"]
        if all(shape[mode] <= 16 for mode in full):
            return text


def draw_coordinates(rng: np.random.Generator, shape: Sequence[int], count: int) -> list[tuple[int, ...]]:
    """Few places in every mode, so that entries of different tensors meet; the ends of the mode and of 32 bits among them."""
    pools = []
    for size in shape:
        corners = [0, 1, size - 1, size - 2, size // 2, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1]
        own = np.random.default_rng(size % 2**32)  # the same for every tensor with this extent
        corners += [int(own.integers(0, size)) for _ in range(3)]
        pools.append([place for place in corners if 0 <= place < size])
    anywhere = rng.random() < 0.15
    return [
        tuple(int(rng.integers(0, size)) if anywhere else pool[rng.integers(len(pool))] for size, pool in zip(shape, pools, strict=True))
        for _ in range(count if all(shape) else 0)
    ]


def draw_tensor(rng: np.random.Generator, shape: Sequence[int], form: str | None = None) -> tuple[sl.Tensor, Entries]:
    """A tensor and what it means. Some have their coordinates twice, or in 32 bits although the modes are longer."""
    count = int(rng.integers(0, 40)) if rng.random() < 0.9 else 600
    coordinates = draw_coordinates(rng, shape, count)
    values = [int(value) for value in rng.integers(1, 5, len(coordinates))]
    entries: Entries = {}
    for place, value in zip(coordinates, values, strict=True):
        entries[place] = entries.get(place, 0) + value
    form = draw_format(rng, shape) if form is None else form
    columns = np.array(coordinates, np.int64).reshape(len(coordinates), len(shape)).T
    if len(shape) and form == "u~" + "q~" * (len(shape) - 2) + "q~+" * (len(shape) > 1):
        arrays = {"pos0": np.array([0, len(values)]), **{f"crd{k}": np.ascontiguousarray(c) for k, c in enumerate(columns)}}
        tensor = sl.from_arrays(form, tuple(shape), {**arrays, "values": np.array(values, np.float64)})
    else:
        tensor = sl.from_coo(columns, np.array(values, np.float64), tuple(shape), form)
    narrow = all(max(place, default=0) < 2**31 for place in entries)
    if narrow and rng.random() < 0.5 and not all(level.full for level in tensor.format.levels):
        tensor = in_32_bits(tensor)
    assert_same(tensor, entries, f"made as {form}")
    return tensor, entries


def in_32_bits(tensor: sl.Tensor) -> sl.Tensor:
    """The same tensor with int32 index arrays, which a user may hand in whatever the extents are."""
    arrays = {name: a.astype(np.int32) if name[:3] in ("pos", "crd", "len") else a for name, a in tensor.arrays.items()}
    return sl.from_arrays(tensor.format, tensor.shape, arrays, tensor.fill)


def meaning(tensor: sl.Tensor) -> Entries:
    """The entries of a tensor that are not zero, with repeated ones added up."""
    coordinates, values = unpack(tensor.storage)
    found: Entries = {}
    for place, value in zip(map(tuple, coordinates.T.tolist()), values.tolist(), strict=True):
        found[place] = found.get(place, 0) + value
    return without_zeros(found)


def without_zeros(entries: Mapping[tuple[int, ...], int]) -> Entries:
    """What is not zero."""
    return {place: value for place, value in entries.items() if value}


def assert_same(tensor: Any, entries: Mapping[tuple[int, ...], int], what: str) -> None:
    """Whether a tensor keeps the promises of its format and has just these entries."""
    check(tensor.storage, what)
    found, wanted = meaning(tensor), without_zeros(entries)
    if found != wanted:
        more = {place: value for place, value in found.items() if wanted.get(place) != value}
        less = {place: value for place, value in wanted.items() if found.get(place) != value}
        raise AssertionError(f"{what}: {tensor.shape} {tensor.format}: found {some(more)}, wanted {some(less)}")


def some(entries: Entries) -> str:
    """The first few entries."""
    shown = ", ".join(f"{place}: {value}" for place, value in list(entries.items())[:4])
    return f"{{{shown}{', ...' if len(entries) > 4 else ''}}}"


def contract(result: Sequence[str], operands: Iterable[tuple[Entries, Sequence[str]]]) -> Entries:
    """The sum of products over the variables that the result lacks, one pair of entries after another."""
    rows: list[tuple[dict[str, int], int]] = [({}, 1)]
    for entries, variables in operands:
        joined = []
        for (known, so_far), (place, value) in product(rows, entries.items()):
            bound = dict(known)
            if all(bound.setdefault(var, at) == at for var, at in zip(variables, place, strict=True)):
                joined.append((bound, so_far * value))
        rows = joined
    total: Entries = {}
    for known, value in rows:
        place = tuple(known[var] for var in result)
        total[place] = total.get(place, 0) + value
    return total


def added(*parts: tuple[int, Entries]) -> Entries:
    """The sum of tensors, each times a number."""
    total: Entries = {}
    for factor, entries in parts:
        for place, value in entries.items():
            total[place] = total.get(place, 0) + factor * value
    return total


def order_of(form: str, order: int) -> tuple[int, ...]:
    """The modes of a format in the order in which they are stored."""
    return as_format(form, order).modes[:order]
