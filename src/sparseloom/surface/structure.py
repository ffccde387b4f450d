"""What functions do to the levels of sparse tensors: no entry becomes a list of coordinates. Each gives None where levels do not allow it.

    triangle     entries whose last two coordinates compare        a mask over the values
    on_diagonal  entries of a matrix that lie on a diagonal        the same
    merged       rows of a matrix put behind each other            every f-th end of a row stays, and columns are moved
    joined_along  segments of one after those of another         arrays behind each other, with offsets
    kron         K(i,k,j,l) = A(i,j) * B(k,l)                      a kernel; then rows are i,k and columns j,l
    reversed     a matrix turned around by both modes              all arrays backwards
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sparseloom.core.dtypes import DType, width_for
from sparseloom.core.settings import settings
from sparseloom.formats.format import Format
from sparseloom.formats.level import LevelData
from sparseloom.formats.levels import Compressed, Dense, Singleton
from sparseloom.formats.named import csf, csr
from sparseloom.formats.parts import below_one, coordinates_of, is_tree, joined, where
from sparseloom.formats.storage import Storage, apart, sealed
from sparseloom.programs.large import duplicate
from sparseloom.tensor.indexing import select
from sparseloom.tensor.operators import Statement, variables
from sparseloom.tensor.rows import has_rows, rows_beside

_PAIRS = Format((Dense(), Dense(), Compressed(unique=False), Singleton()), (0, 1, 2, 3))
_FEW_ROWS = 2**20  # so many ends of rows are no burden


def triangle(storage: Storage, k: int, lower: bool) -> Storage | None:
    """The entries that are not above, or not below, the ``k``-th diagonal of the last two modes."""
    behind = _behind(storage, len(storage.shape) - 2, len(storage.shape) - 1)
    return None if behind is None else apart(where(storage, behind <= k if lower else behind >= k), storage, duplicate)


def on_diagonal(storage: Storage, offset: int, one: int, other: int) -> Storage | None:
    """The diagonal of a matrix as a sparse vector."""
    behind = _behind(storage, one, other) if len(storage.shape) == 2 else None
    if behind is None:
        return None
    chosen = np.flatnonzero(behind == offset)
    first = coordinates_of(storage, storage.format.modes.index(one)).take(chosen)
    size = max(0, min(storage.shape[one] + min(offset, 0), storage.shape[other] - max(offset, 0)))
    along = first + min(offset, 0) if len(chosen) else first
    order = None if storage.format.modes == (0, 1) or bool((along[1:] > along[:-1]).all()) else np.argsort(along)
    values = storage.values.take(chosen)
    if order is not None:
        along, values = along[order], values[order]
    entries = LevelData({"pos": np.array((0, len(chosen)), first.dtype), "crd": along})
    return sealed(Storage(csf(1), (size,), (entries,), values, storage.fill))


def _behind(storage: Storage, one: int, other: int) -> np.ndarray[tuple[int], np.dtype[np.signedinteger]] | None:
    """How much the coordinates of one mode lie behind those of another, for every entry of a tree."""
    modes = storage.format.modes
    if not is_tree(storage.format) or not storage.format.is_unique or storage.device != "cpu":
        return None
    return coordinates_of(storage, modes.index(other)) - coordinates_of(storage, modes.index(one))


def merged(storage: Storage, shape: tuple[int, ...]) -> Storage | None:
    """A csr matrix with so many rows put behind each other in one as the new shape asks for."""
    if storage.format != csr or len(shape) != 2 or not shape[0] or not storage.shape[1] or not shape[1] or shape[1] % storage.shape[1]:
        return None
    often, columns = shape[1] // storage.shape[1], storage.shape[1]
    pos, crd = storage.levels[1].arrays["pos"], storage.levels[1].arrays["crd"]
    width = width_for(max(shape), settings.int32_limit, (crd.dtype,))
    moved = np.tile(np.arange(often, dtype=width) * columns, shape[0])
    ends = pos[::often].copy()
    below = LevelData({"pos": ends.astype(width, copy=False), "crd": crd[: int(pos[-1])] + np.repeat(moved, np.diff(pos))})
    values = storage.values[: int(pos[-1])].copy()
    return sealed(Storage(csr, shape, (storage.levels[0], below), values, storage.fill))


def joined_along(storages: Sequence[Storage], mode: int, dtype: DType) -> Storage | None:
    """Tensors of one format behind each other along the mode of their first level, or rows side by side."""
    form = storages[0].format
    if any(storage.format != form for storage in storages):
        return None
    if is_tree(form) and form.is_unique and mode == form.modes[0]:
        entries, size = sum(len(storage.values) for storage in storages), sum(storage.shape[mode] for storage in storages)
        width = width_for(max(entries, size), settings.int32_limit, [storage.index_dtype for storage in storages])
        return sealed(joined(storages, dtype, width))
    return rows_beside(storages, dtype) if has_rows(form) else None


def rolled(storage: Storage, by: int, mode: int) -> Storage | None:
    """What is beyond the end comes first: two parts that change places."""
    size = storage.shape[mode]
    if not size or not by % size:
        return apart(storage, storage, duplicate)
    form, cut = storage.format, size - by % size
    if not is_tree(form) or not form.is_unique or not (mode == form.modes[0] or has_rows(form)):
        return None
    parts = [select(storage, (slice(None),) * mode + (part,)) for part in (slice(cut, None), slice(None, cut))]
    return joined_along(parts, mode, storage.dtype)


def below_first(storage: Storage) -> Storage | None:
    """A tensor of compressed levels with a new first mode of size 1."""
    form = storage.format
    if form != csf(len(storage.shape)) or not storage.shape:
        return None
    return apart(below_one(storage, csf(len(storage.shape) + 1)), storage, duplicate)


def kron(left: Storage, right: Storage) -> Storage | None:
    """The Kronecker product of two csr matrices."""
    (m, n), (p, q) = left.shape, right.shape
    entries = len(left.values) * len(right.values)
    if left.format != csr or right.format != csr or m * p > max(_FEW_ROWS, 16 * entries) or not math.prod((m, n, p, q)):
        return None
    i, k, j, h = variables(4)
    statement = Statement()
    factors = statement.access(left, (i, j)), statement.access(right, (k, h))
    pairs = statement.run((i, k, j, h), statement.product(factors), (m, p, n, q), _PAIRS)
    first, second = pairs.levels[2].arrays, pairs.levels[3].arrays
    width = width_for(max(m * p, n * q, len(pairs.values)), settings.int32_limit, (first["crd"].dtype,))
    columns = first["crd"].astype(width)
    columns *= width.type(q)
    columns += second["crd"]
    below = LevelData({"pos": first["pos"].astype(width, copy=False), "crd": columns})
    return sealed(Storage(csr, (m * p, n * q), (LevelData(), below), pairs.values, 0))


def reversed_both(storage: Storage) -> Storage | None:
    """A matrix that is stored by rows or by columns, with both modes turned around."""
    if not has_rows(storage.format):
        return None
    pos, crd = storage.levels[1].arrays["pos"], storage.levels[1].arrays["crd"]
    size, count = storage.shape[storage.format.modes[1]], int(pos[-1])
    turned = crd[count - 1 :: -1] if count else crd[:0]
    columns = crd.dtype.type(max(size - 1, 0)) - turned
    below = LevelData({"pos": count - pos[::-1], "crd": columns})
    values = np.ascontiguousarray(storage.values[:count][::-1])
    return sealed(replace(storage, levels=(storage.levels[0], below), values=values))
