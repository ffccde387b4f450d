"""Random shapes, formats and entries for the laws of formats."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sparseloom.formats.format import Format
from sparseloom.formats.level import Level
from sparseloom.formats.levels import Bitmap, Compressed, Dense, Padded, Singleton
from sparseloom.formats.named import bcsr, coo, csc, csf, csr, dcsc, dcsr, dense, dia, ell

MATRIX_FORMATS = (dense(2), csr, csc, dcsr, dcsc, coo(), csf(2), bcsr((2, 3)), bcsr(1), ell, dia, Format((Dense(), Dense()), (1, 0)))


def named_formats(order: int) -> tuple[Format, ...]:
    """The formats with names that a tensor of this order can have."""
    return tuple(dict.fromkeys((dense(order), coo(order), csf(order), *(MATRIX_FORMATS if order == 2 else ()))))


def random_shape(rng: np.random.Generator, order: int) -> tuple[int, ...]:
    """Small sizes, often one and sometimes zero."""
    return tuple(int(size) for size in rng.choice([0, 1, 1, 2, 3, 4, 5, 7], order, p=[0.04, 0.1, 0.1, 0.16, 0.15, 0.15, 0.15, 0.15]))


def random_format(rng: np.random.Generator, order: int) -> Format:
    """A random stack of levels over a random mode order, sometimes blocked."""
    modes = [int(mode) for mode in rng.permutation(order)]
    if order == 2 and rng.random() < 0.1:
        return Format(dia.levels, tuple(modes))
    blocks: tuple[int, ...] = ()
    if order and order < 3 and rng.random() < 0.25:
        modes += [int(mode) for mode in rng.permutation(order)]
        blocks = tuple(int(block) for block in rng.integers(1, 4, order))
    levels: list[Level] = []
    while len(levels) < len(modes):
        levels += _random_chain(rng, len(modes) - len(levels))
    return Format(tuple(levels), tuple(modes), blocks)


def _random_chain(rng: np.random.Generator, room: int) -> list[Level]:
    """A dense, compressed, padded or bitmap level, or a chain that ends in a singleton."""
    ordered = bool(rng.random() < 0.8)
    match int(rng.integers(0, 6)):
        case 0 | 1:
            return [Dense()]
        case 2:
            return [Padded()]
        case 5:
            return [Bitmap()]
        case 3:
            return [Compressed(ordered, bool(rng.random() < 0.8))]
        case _:
            length = int(rng.integers(1, room + 1))
            middle = [Singleton(bool(rng.random() < 0.8), False) for _ in range(length - 2)]
            end = [Singleton(bool(rng.random() < 0.8), bool(rng.random() < 0.8))] if length > 1 else []
            return [Compressed(ordered, False), *middle, *end]


def random_entries(rng: np.random.Generator, shape: tuple[int, ...], repeat: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates in any order and small whole values, zeros among them; with ``repeat`` coordinates may come twice."""
    space = int(np.prod(shape))
    count = int(rng.integers(0, space + 1)) if space and rng.random() < 0.9 else 0
    places = rng.integers(0, space, count) if repeat and count else rng.permutation(space)[:count]
    coordinates = np.zeros((len(shape), count), np.int64)
    if shape:
        coordinates[:] = np.unravel_index(places, shape)
    return coordinates, rng.integers(-3, 4, count).astype(np.float64)


def summed(shape: tuple[int, ...], coordinates: np.ndarray, values: np.ndarray, fill: float = 0) -> np.ndarray:
    """The dense tensor of these entries, by plain loops."""
    array = np.full(shape, fill, values.dtype)
    seen: set[tuple[int, ...]] = set()
    for coordinate, value in zip(coordinates.T.tolist(), values, strict=True):
        place = tuple(coordinate)
        array[place] = array[place] + value if place in seen else value
        seen.add(place)
    return array


def cases(seed: int, count: int) -> Iterator[tuple[np.random.Generator, Format, tuple[int, ...]]]:
    """Random generators with a random format and shape, of orders 0 to 4."""
    for k in range(count):
        rng = np.random.default_rng([seed, k])
        order = int(rng.integers(0, 5))
        yield rng, random_format(rng, order), random_shape(rng, order)
