"""Matrices whose entries lie in rows, each a run of its own (csr, csc): rows and columns of them without a list of coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparseloom.core.dtypes import DType
from sparseloom.core.settings import settings
from sparseloom.formats.format import Format
from sparseloom.formats.level import LevelData
from sparseloom.formats.levels.compressed import Compressed
from sparseloom.formats.levels.dense import Dense
from sparseloom.formats.storage import Storage, sealed
from sparseloom.tensor.keys import Part
from sparseloom.tensor.picking import Index, select_mode
from sparseloom.tensor.runs import copied_runs

_LOOKED_UP = 4  # a table of all columns may have so many times as many places as there are entries


def has_rows(format: Format) -> bool:
    """Whether entries lie in rows, none of them twice."""
    match format.levels:
        case (Dense(), Compressed(unique=True)):
            return not format.blocks
    return False


def pick_rows(storage: Storage, parts: Sequence[Part]) -> tuple[Storage, list[Part]]:
    """The rows that an array or a slice of the outermost mode wants, run by run, and what is wanted of them."""
    mode = storage.format.modes[0]
    wanted = parts[mode]
    if isinstance(wanted, slice) and wanted != slice(None):
        wanted = np.arange(storage.shape[mode])[wanted]
    if not isinstance(wanted, np.ndarray):
        return storage, list(parts)
    pos, crd = storage.levels[1].arrays["pos"], storage.levels[1].arrays["crd"]
    starts = pos[:-1].astype(np.int64)[wanted]
    counts = pos[1:].astype(np.int64)[wanted] - starts
    ends = np.zeros(len(wanted) + 1, np.int64)
    np.cumsum(counts, out=ends[1:])
    picked = _of_rows(storage, len(wanted), ends, copied_runs(crd, starts, counts), copied_runs(storage.values, starts, counts))
    return picked, [slice(None) if m == mode else part for m, part in enumerate(parts)]


def of_columns(storage: Storage, parts: Sequence[Part]) -> Storage | None:
    """All rows with the columns that a slice or an array wants, if these ascend; nothing where something else is asked for."""
    outer, inner = storage.format.modes
    wanted = parts[inner]
    if not isinstance(parts[outer], slice) or parts[outer] != slice(None):
        return None
    if isinstance(wanted, slice) and wanted == slice(None):
        return storage
    pos, crd = storage.levels[1].arrays["pos"], storage.levels[1].arrays["crd"]
    if isinstance(wanted, slice) and (wanted.step or 1) > 0:
        chosen, places, size = select_mode(crd, wanted, storage.shape[inner])
    elif isinstance(wanted, np.ndarray) and (np.diff(wanted) > 0).all() and storage.shape[inner] <= _LOOKED_UP * (len(crd) + len(wanted)):
        numbers, size = np.full(storage.shape[inner], -1, crd.dtype), len(wanted)
        numbers[wanted] = np.arange(size)
        found = numbers[crd]
        chosen = np.flatnonzero(found >= 0)
        places = found[chosen]
    else:
        return None
    narrow = _of_rows(storage, storage.shape[outer], np.searchsorted(chosen, pos), places.astype(crd.dtype), storage.values[chosen])
    shape = tuple(size if mode == inner else narrow.shape[mode] for mode in (0, 1))
    return sealed(Storage(narrow.format, shape, narrow.levels, narrow.values, narrow.fill))


def column_of(storage: Storage, column: int) -> tuple[Index, Any]:
    """The rows that have an entry in a column, and these entries."""
    pos, crd = storage.levels[1].arrays["pos"], storage.levels[1].arrays["crd"]
    chosen = np.flatnonzero(crd == column)
    return np.searchsorted(pos, chosen, "right") - 1, storage.values[chosen]


def rows_beside(storages: Sequence[Storage], dtype: DType) -> Storage:
    """The rows of matrices in one format side by side: each row is one of the first, then one of the next."""
    first, inner = storages[0], storages[0].format.modes[1]
    segments = [storage.levels[1].arrays["pos"].astype(np.int64) for storage in storages]
    bases = np.cumsum([0, *(len(storage.values) for storage in storages)])
    offsets = np.cumsum([0, *(storage.shape[inner] for storage in storages)])
    starts = np.stack([pos[:-1] + base for pos, base in zip(segments, bases, strict=False)], axis=1).ravel()
    counts = np.stack([np.diff(pos) for pos in segments], axis=1).ravel()
    narrow = [storage.levels[1].arrays["crd"] for storage in storages]
    kind = np.result_type(np.int64 if offsets[-1] > settings.int32_limit else np.int32, *narrow)
    columns = np.concatenate([crd.astype(kind) + kind.type(offset) for crd, offset in zip(narrow, offsets, strict=False)])
    values = np.concatenate([storage.values.astype(dtype, copy=False) for storage in storages])
    ends, rows = np.sum(segments, axis=0), len(segments[0]) - 1
    made = _of_rows(first, rows, ends, copied_runs(columns, starts, counts), copied_runs(values, starts, counts))
    shape = tuple(int(offsets[-1]) if mode == inner else size for mode, size in enumerate(made.shape))
    return sealed(Storage(made.format, shape, made.levels, made.values, made.fill))


def _of_rows(like: Storage, rows: int, pos: Index, crd: Any, values: Any) -> Storage:
    """A matrix of so many rows, stored as another one, with indices as wide as they must be."""
    width = np.dtype(np.int64) if pos[-1] > settings.int32_limit else np.result_type(crd, like.levels[1].arrays["pos"])
    below = LevelData({"pos": pos.astype(width, copy=False), "crd": crd.astype(width, copy=False)})
    shape = tuple(rows if mode == like.format.modes[0] else size for mode, size in enumerate(like.shape))
    return sealed(Storage(like.format, shape, (like.levels[0], below), values, like.fill))
