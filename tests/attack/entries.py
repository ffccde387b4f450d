"""Doors for numbers: coordinates, fills and sizes of all the kinds that are not what they should be."""

from __future__ import annotations

import decimal
import fractions
from typing import Any

import numpy as np
from attack.arrays import FOREIGN_VALUES, HUGE, VALUE_DTYPES, pick, relaid, retyped
from attack.uses import any_format, assert_usable, same
from levels.random_storage import random_entries, summed

import sparseloom as sl

FILLS: tuple[Any, ...] = (
    None, 1j, 1.5, -1, 0, 1, True, float("nan"), float("inf"), -0.0, 300, 2**31, 2**63, 2**64, 10**400, "x", "1", b"1", [], [0], (1,), {},
    object(),
    np.float32(0.1), np.int8(-3), np.uint64(2**63), np.array(2), np.array([2]), np.array([1, 2]), np.ma.masked, np.datetime64("2020-01-01"),
    decimal.Decimal("0.1"), fractions.Fraction(1, 3), np.float16(0.5), np.longdouble(2), np.bool_(True), float, Ellipsis,
)  # fmt: skip
SIZES: tuple[Any, ...] = (
    -1, 0, 1, 3, 2**31, 2**62, 2**63 - 1, 2**63, 2**64, 10**30, 1.0, 2.5, float("nan"), True, "3", None, np.int8(3), np.uint64(2**63),
    np.array(3), np.array([3]), 3j, [3], object(),
)  # fmt: skip


def bad_coordinates(rng: np.random.Generator) -> str:
    """``from_coo`` with coordinates, values or both that are wrong or strange."""
    order = int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.integers(1, 6, order))
    coordinates, values = random_entries(rng, shape)
    given: Any = coordinates
    meaning: np.ndarray | None = summed(shape, coordinates, values)
    match rng.integers(9):
        case 0 | 1 if coordinates.size:
            given = coordinates.copy()
            given[tuple(int(rng.integers(n)) for n in given.shape)] = pick(rng, HUGE)
            meaning = None if ((given < 0) | (given >= np.array(shape)[:, None])).any() else summed(shape, given, values)
        case 2:
            given = relaid(rng, coordinates)
        case 3:
            given = retyped(rng, coordinates)
            same = type(given) is np.ndarray and (given.dtype, given.shape) == (coordinates.dtype, coordinates.shape)
            meaning = meaning if same else None
        case 4:
            given, meaning = coordinates[:-1], None
        case 5:
            given, meaning = np.concatenate((coordinates, coordinates[:, :1]), 1), None if coordinates.size else meaning
        case 6:
            given, meaning = [list(map(float, row)) for row in coordinates], None
        case 7:
            given, meaning = [[0, 1], [0]], None
    strange = pick(rng, (False, False, False, True))
    if strange:
        values = pick(rng, (values.astype(object), relaid(rng, values), values.reshape(1, -1), None, "x", values[:-1], _cast(rng, values)))
        with np.errstate(all="ignore"):
            meaning = None if meaning is None else _as_numbers(shape, coordinates, values)
    without_shape = rng.random() < 0.2
    form = any_format(rng, order) if rng.random() < 0.7 else None
    try:
        tensor = sl.from_coo(given, values, None if without_shape else shape, format=form)
    except MemoryError:
        assert without_shape  # a coordinate of 2**32 asks for so many rows
        return "no memory"
    if given is not coordinates and meaning is None and without_shape:
        return "right"  # the sizes follow from the coordinates, whatever they are
    assert meaning is not None or coordinates.size == 0, f"accepted although wrong: {given} {values} gave {tensor.to_numpy()}"
    if meaning is not None and not without_shape:
        assert_usable(rng, tensor, meaning)
    return "right"


def _cast(rng: np.random.Generator, values: np.ndarray) -> np.ndarray:
    try:
        return values.astype(pick(rng, FOREIGN_VALUES))
    except (TypeError, ValueError):
        return np.zeros(len(values), "V8")


def _as_numbers(shape: tuple[int, ...], coordinates: np.ndarray, values: Any) -> np.ndarray | None:
    """The dense tensor, if the values are one number for each entry."""
    if isinstance(values, np.ndarray) and (values.ndim != 1 or values.dtype.kind not in "biufc" or values.size != coordinates.shape[1]):
        return None
    numbers = np.asarray(values)
    if numbers.dtype.kind not in "biufc" or numbers.shape != (coordinates.shape[1],):
        return None
    return summed(shape, coordinates, numbers.astype(numbers.dtype.newbyteorder("=")))


def bad_fill(rng: np.random.Generator) -> str:
    """A fill of any kind: it is the value that was given, or an error."""
    fill, dtype = pick(rng, FILLS), np.dtype(pick(rng, VALUE_DTYPES))
    form = pick(rng, ("csr", "coo", "ell", "bcsr(2,2)", "du~", "db", "dia"))
    eye = np.eye(3).astype(dtype)
    match rng.integers(4):
        case 0:
            if fill is None:
                return "right"  # None says that there is no fill to set
            tensor = sl.asarray(sl.asarray(eye, format=form), fill=fill)
        case 1:
            arrays = sl.asarray(eye, format=form).arrays
            tensor = sl.from_arrays(form, (3, 3), arrays, fill=fill)
        case 2:
            tensor = sl.from_coo([[0, 1, 2], [0, 1, 2]], np.ones(3, dtype), (3, 3), format=form, fill=fill)
        case _:
            if fill is None:
                return "right"
            tensor = sl.full((3, 3), fill, format=form, dtype=dtype)
            eye = np.zeros((3, 3), dtype)
            if isinstance(fill, float) and dtype.kind in "iu":
                fill = int(fill)  # whoever asks for integers gets what stands before the point
    given = np.asarray(float(fill) if isinstance(fill, int) and 2**63 <= fill < 2**100 and dtype.kind in "fc" else fill)
    assert given.size == 1 and given.dtype.kind in "biufc", f"the fill {fill!r} was accepted for {dtype} as {tensor.fill!r}"
    assert same(given.reshape(()).astype(dtype), tensor.fill), f"the fill {fill!r} became {tensor.fill!r} for {dtype}"
    rounded = dtype.kind in "bfc"
    assert rounded or same(given.reshape(()), tensor.fill), f"the fill {fill!r} became {tensor.fill!r} for {dtype}"
    wanted = np.where(eye != 0, eye, np.array(tensor.fill, dtype))
    if form != "bcsr(2,2)" or tensor.fill == 0:
        assert_usable(rng, tensor, wanted)
    return "right"


def bad_shape(rng: np.random.Generator) -> str:
    """Sizes of any kind: the shape is what was given, or an error. Dense tensors that do not fit memory may say so."""
    sizes = [pick(rng, SIZES) for _ in range(int(rng.integers(0, 4)))]
    shape = pick(rng, (tuple(sizes), list(sizes), np.array(sizes[:1]) if sizes else None, sizes[0] if sizes else "33"))
    form = pick(rng, (None, "coo", "csf", "csr", "dense", "ell", "bcsr(2,2)", "db", "dia"))
    try:
        match rng.integers(4):
            case 0:
                tensor = sl.zeros(shape, form)
            case 1:
                tensor = sl.full(shape, 2, form)
            case 2:
                count = len(shape) if isinstance(shape, (tuple, list)) else 1
                tensor = sl.from_coo(np.zeros((count, 0), np.int64), np.zeros(0), shape, form)
            case _:
                density = pick(rng, (0.0, 0.5, 1e-9, -1, 2, float("nan"), 1e-300))
                seed = pick(rng, (1, None, -1, 2**70, "x", 1.5))
                tensor = sl.random(shape, density, form, seed=seed)
    except MemoryError:
        return "no memory"
    given = shape if isinstance(shape, (tuple, list)) else (shape,)
    assert len(tensor.shape) == len(given), f"{shape!r} became {tensor.shape}"
    right = (type(n) is int and n >= 0 and bool(n == m) for n, m in zip(tensor.shape, given, strict=True))
    assert all(right), f"{shape!r} became {tensor.shape}"
    return "right"
