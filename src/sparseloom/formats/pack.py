"""Storage from coordinates and back, with NumPy.

Packing sorts the entries into storage order and hands each level its nodes; unpacking walks from the values up to the root.
Entries travel as *columns*: one array of coordinates per level, of whatever integer type they came in. So arrays that
already have the right order and type are shared rather than copied.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, assert_never

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import INDEX_DTYPES, INT64, DType, computed, value_dtype, width_for
from sparseloom.core.errors import FormatError, ShapeError, StorageError
from sparseloom.formats.format import Format
from sparseloom.formats.level import Index, LevelData, Mask
from sparseloom.formats.levels import Compressed, Singleton
from sparseloom.formats.named import coo
from sparseloom.formats.room import is_countable, require_array, require_places
from sparseloom.formats.storage import NO_INDICES, Storage

Values = NDArray[Any]
Columns = list[Index]
Duplicates = Literal["sum", "refuse", "keep"]
INT32_LIMIT = 2**31 - 1
_LARGEST_KEY = 2**63 - 1


def pack(
    format: Format,
    shape: Sequence[int],
    coordinates: ArrayLike,
    values: ArrayLike,
    fill: Scalar = 0,
    index_dtype: DType | None = None,
    duplicates: Duplicates = "sum",
    int32_limit: int = INT32_LIMIT,
) -> Storage:
    """Store entries given in any order: ``coordinates[mode, e]`` and ``values[e]`` belong to entry e.

    Entries with equal coordinates are summed in the order given, or refused, or kept where the format can keep
    them apart (elsewhere they are summed). Places that no entry names hold the fill. Indices are int32 when the limit
    holds every size and the number of entries, unless ``index_dtype`` says otherwise. Arrays are shared where they
    already have the wanted form.
    """
    shape = _checked_shape(format, shape)
    stored = _usable_values(values)
    columns = _level_columns(format, _checked_coordinates(shape, coordinates, stored))
    return _pack_columns(format, shape, columns, stored, fill, index_dtype, duplicates, int32_limit)


def listed(shape: Sequence[int], coordinates: ArrayLike, values: ArrayLike, fill: Scalar = 0, int32_limit: int = INT32_LIMIT) -> Storage:
    """Entries as they are given, in no order and perhaps repeated: a list that is yet to be sorted."""
    count = len(shape) - 1
    first, rest = Compressed(ordered=False, unique=False), (Singleton(ordered=False, unique=False),) * count
    format = Format((first, *rest), tuple(range(len(shape))))
    sizes = _checked_shape(format, shape)
    stored = _usable_values(values)
    columns = _checked_coordinates(sizes, coordinates, stored)
    index_dtype = _index_dtype(None, max((*sizes, len(stored))), int32_limit)
    crds = [np.require(column, index_dtype, ("C", "A")) for column in columns]
    pos = np.array((0, len(stored)), index_dtype)
    return Storage(format, sizes, (LevelData({"pos": pos, "crd": crds[0]}), *(LevelData({"crd": crd}) for crd in crds[1:])), stored, fill)


def unpack(storage: Storage) -> tuple[NDArray[np.int64], Values]:
    """The coordinates (order x n, int64) and values of the stored entries, in storage order.

    Unused places of padded levels, and the parts of blocks outside the tensor, are no entries. For dense storage these
    are all coordinates.
    """
    columns, values = _mode_columns(storage)
    coordinates = np.empty((len(storage.shape), len(values)), np.int64)
    for mode, column in enumerate(columns):
        coordinates[mode] = column
    return coordinates, values


def convert(storage: Storage, format: Format, int32_limit: int = INT32_LIMIT) -> Storage:
    """The same tensor in another format; arrays are shared where the layout allows.

    Stored entries stay stored, zeros too; from dense storage only values other than the fill are taken. Entries
    stored twice are summed when the new format is unique.
    """
    if format.order != len(storage.shape):
        raise FormatError(f"a tensor of order {len(storage.shape)} cannot be stored as {format}, which is for order {format.order}")
    if format == storage.format:
        return storage
    if is_weaker(format, storage.format):
        return replace(storage, format=format)
    if storage.format.is_dense:
        return from_dense(to_dense(storage), format, storage.fill, int32_limit=int32_limit)
    columns, values = _mode_columns(storage)
    index_dtype = INT64 if storage.index_dtype == INT64 else None
    return _pack_columns(format, storage.shape, _level_columns(format, columns), values, storage.fill, index_dtype, "keep", int32_limit)


def without_fill(storage: Storage) -> Storage:
    """The same tensor as a sorted list of the entries that differ from the fill; repeated ones are summed first."""
    merged = convert(storage, coo(len(storage.shape)))
    coordinates, values = unpack(merged)
    kept = values == values if storage.fill != storage.fill else values != storage.fill
    return pack(merged.format, storage.shape, coordinates[:, kept], values[kept], storage.fill)


def to_dense(storage: Storage) -> Values:
    """The tensor as a NumPy array of its shape, which shares the values of dense storage. Repeated entries are summed."""
    format, shape = storage.format, storage.shape
    if format.is_dense and not format.blocks:
        stored = storage.values.reshape(format.level_sizes(shape))
        return stored.transpose(np.argsort(format.modes)) if format.modes else stored
    if not format.is_unique:
        storage = convert(storage, coo(len(shape)))
    require_array(shape, storage.dtype.itemsize)
    columns, values = _mode_columns(storage)
    array = np.full(shape, storage.fill, storage.dtype)
    array[tuple(columns)] = values
    return array


def from_dense(
    array: ArrayLike, format: Format, fill: Scalar = 0, index_dtype: DType | None = None, int32_limit: int = INT32_LIMIT
) -> Storage:
    """Store a NumPy array: all of it when the format is dense, else the values other than the fill."""
    array = np.asarray(array)
    shape = _checked_shape(format, array.shape)
    array = array.astype(value_dtype(array.dtype), copy=False)
    if format.is_dense and not format.blocks:
        values = np.ascontiguousarray(array.transpose(format.modes)).ravel()
        return Storage(format, shape, tuple(LevelData() for _ in format.levels), values, fill, NO_INDICES)
    kept = array == array if fill != fill else array != fill  # a fill of nan leaves out nan
    columns = _level_columns(format, np.nonzero(kept))
    return _pack_columns(format, shape, columns, array[kept], fill, index_dtype, "sum", int32_limit)


def pattern(storage: Storage) -> Mask:
    """Which coordinates are stored, as a boolean array of the tensor's shape. The inside of a block counts as stored."""
    require_array(storage.shape, 1)
    present = np.full(storage.shape, storage.format.is_dense)
    if not storage.format.is_dense:
        present[tuple(_mode_columns(storage)[0])] = True
    return present


def entries_alone(storage: Storage) -> Values:
    """The values of the stored entries, as ``unpack`` gives them."""
    format = storage.format
    is_plain = not format.blocks and not format.shares_values and all(level.compact for level in format.levels)
    return storage.values[: position_counts(storage)[-1]] if is_plain else _mode_columns(storage)[1]


def stored_count(storage: Storage) -> int:
    """How many entries are stored, repeated ones included; unused places do not count."""
    format = storage.format
    ragged = any(size % block for size, block in zip(storage.shape, format.blocks, strict=False))
    if ragged or format.shares_values or not all(level.compact for level in format.levels):
        return len(_mode_columns(storage)[1])
    return position_counts(storage)[-1]


def _usable_values(values: ArrayLike) -> Values:
    """The values in a dtype and layout that can be stored: themselves if they have one."""
    given = np.asarray(values)
    return np.require(given, value_dtype(given.dtype), ("C", "A")).reshape(given.shape)


def _checked_shape(format: Format, shape: Sequence[int]) -> tuple[int, ...]:
    """The shape as plain integers, if the format can have it."""
    sizes = tuple(int(size) for size in shape)
    if len(sizes) != format.order:
        raise FormatError(f"the shape {sizes} has {len(sizes)} modes; the format {format} is for {format.order}")
    if any(size < 0 for size in sizes):
        raise ShapeError(f"the shape {sizes} has a negative size")
    if not is_countable(format, sizes):
        raise ShapeError(f"the shape {sizes} has a size that does not fit in 64 bits")
    return sizes


def _checked_coordinates(shape: tuple[int, ...], coordinates: ArrayLike, values: Values) -> Columns:
    """One column per mode, if they are integers within the shape and as many as the values."""
    given = np.asarray(coordinates)
    if given.ndim != 2 or given.shape[0] != len(shape) or values.ndim != 1 or given.shape[1] != len(values):
        raise StorageError(
            f"coordinates must have one row per mode and one column per value: ({len(shape)}, n) beside (n,), "
            f"not {given.shape} beside {values.shape}"
        )
    if given.size and given.dtype.kind not in "iu":
        raise StorageError(f"coordinates must be integers, not {given.dtype}")
    for mode, size in enumerate(shape):
        column = given[mode]
        if len(column) and (column.min() < 0 or column.max() >= size):
            place = int(np.flatnonzero((column < 0) | (column >= size))[0])
            raise StorageError(f"coordinates[{mode}, {place}] = {column[place]} is outside the size {size} of mode {mode}")
    native = given if given.dtype in INDEX_DTYPES else given.astype(np.int64)
    return list(native)


def _level_columns(format: Format, columns: Sequence[Index]) -> Columns:
    """From one column per mode to one per level: blocks, then places in the block, where the format is blocked."""
    if not format.blocks:
        return [columns[mode] for mode in format.modes]
    split: Columns = []
    for mode, is_within in zip(format.modes, format.within_blocks, strict=True):
        block = format.blocks[mode]
        split.append(columns[mode] % block if is_within else columns[mode] // block)
    return split


def _whole_columns(format: Format, columns: Columns) -> Columns:
    """From one column per level to one per mode."""
    if not format.blocks:
        return [columns[level] for level in np.argsort(format.modes)]
    whole: Columns = [np.zeros(0, np.int64)] * format.order
    for mode, column, is_within in zip(format.modes, columns, format.within_blocks, strict=True):
        # In 64 bits, since the end of the last block may pass the int32 limit.
        whole[mode] = whole[mode] + column if is_within else column.astype(np.int64) * format.blocks[mode]
    return whole


def _pack_columns(
    format: Format,
    shape: tuple[int, ...],
    columns: Columns,
    values: Values,
    fill: Scalar,
    index_dtype: DType | None,
    duplicates: Duplicates,
    int32_limit: int,
) -> Storage:
    """Sort, settle repeated entries, build the levels from the root down, and put the values in their places."""
    sizes = format.level_sizes(shape)
    order = _storage_order(columns, sizes)
    if order is not None:
        columns, values = [column[order] for column in columns], values[order]
    keep = duplicates == "keep" and _keeps_repeated(format)
    if not keep:
        columns, values = _merge_repeated(format, columns, values, duplicates)
    index_dtype = _index_dtype(index_dtype, max((*shape, len(values))), int32_limit)
    levels, positions, count = _build_levels(format, sizes, columns, values, index_dtype, keep)
    if format.levels and not format.levels[-1].full and format.levels[-1].compact and count == len(values):
        return Storage(format, shape, levels, np.ascontiguousarray(values), fill)  # one entry per position, in order
    require_places(format, sizes, count * values.dtype.itemsize)
    placed = np.full(count, fill, values.dtype)
    placed[positions] = values
    return Storage(format, shape, levels, placed, fill)


def _storage_order(columns: Columns, sizes: tuple[int, ...]) -> NDArray[np.int64] | None:
    """The stable permutation that sorts entries by their columns, or None if they are sorted."""
    if not columns or len(columns[0]) < 2:
        return None
    count, space = len(columns[0]), math.prod(sizes)
    if space > _LARGEST_KEY:
        return np.lexsort(columns[::-1])
    key = columns[0].astype(np.int64)
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        key *= size
        key += column
    if not (key[1:] < key[:-1]).any():
        return None
    bits = count.bit_length()
    if space << bits > _LARGEST_KEY:
        return np.argsort(key, kind="stable")
    # With the entry's number in the low bits a plain sort is stable, and faster than argsort.
    key <<= bits
    key |= np.arange(count)
    key.sort()
    key &= (1 << bits) - 1
    return key


def _keeps_repeated(format: Format) -> bool:
    """Whether equal entries can have places of their own. Above a full level they cannot: each would bring all its fill along."""
    repeating = [end for _, end in format.chains if not format.levels[end].unique]
    return bool(repeating) and not any(level.full for level in format.levels[repeating[0] + 1 :])


def _merge_repeated(format: Format, columns: Columns, values: Values, duplicates: Duplicates) -> tuple[Columns, Values]:
    """Sum sorted entries whose coordinates are equal, or refuse them."""
    first = _starts(columns, len(values))
    starts = np.flatnonzero(first)
    if len(starts) == len(values):
        return columns, values
    match duplicates:
        case "refuse":
            place = int(first.argmin())
            where = ", ".join(str(column[place]) for column in _whole_columns(format, columns))
            raise StorageError(f"the coordinates ({where}) are given more than once; sum or drop the repeated entries")
        case "sum" | "keep":
            return [column[starts] for column in columns], _sums(values, starts)
        case _:
            assert_never(duplicates)


def _sums(values: Values, starts: Index) -> Values:
    """The sums of entries from each start on; those of halves are rounded in the end."""
    with np.errstate(over="ignore"):
        return np.add.reduceat(values, starts, dtype=computed(values.dtype)).astype(values.dtype, copy=False)


def _starts(columns: Sequence[Index], count: int) -> Mask:
    """Where the tuple of these columns differs from the one before it."""
    starts = np.zeros(count, np.bool_)
    starts[:1] = True
    for column in columns:
        starts[1:] |= column[1:] != column[:-1]
    return starts


def _index_dtype(wanted: DType | None, largest: int, int32_limit: int) -> DType:
    """The type of index arrays that must hold numbers up to ``largest``."""
    if wanted is None:
        return width_for(largest, int32_limit)
    wanted = np.dtype(wanted)
    if wanted not in INDEX_DTYPES:
        raise FormatError(f"indices are int32 or int64, not {wanted}")
    if largest > np.iinfo(wanted).max:
        raise FormatError(f"{wanted} indices cannot hold {largest}, the largest size or number of entries here; use int64")
    return wanted


def _build_levels(
    format: Format, sizes: tuple[int, ...], columns: Columns, values: Values, index_dtype: DType, keep: bool
) -> tuple[tuple[LevelData, ...], Index, int]:
    """The data of every level, where the value of every entry is stored, and how many values are."""
    entries = len(values)
    levels: list[LevelData] = []
    positions: Index = np.zeros(entries, np.int64)
    count, separate = 1, False
    for head, end in format.chains:
        if not format.levels[head].full:
            # The entries below each place are counted in 64 bits, which become the level's own.
            require_places(format, sizes[:head], count * (INT64.itemsize + index_dtype.itemsize))
        # Below a level that keeps repeated entries apart, every entry has nodes of its own.
        separate = separate or (keep and not format.levels[end].unique)
        each = separate or end + 1 == len(columns) or format.levels[end].full
        first = None if each else _starts(columns[: end + 1], entries)
        _refuse_branches(format, head, end, columns, first, entries)
        nodes = slice(None) if first is None else np.flatnonzero(first)
        parents = positions[nodes]
        for k in range(head, end + 1):
            level, coordinates = format.levels[k], columns[k][nodes]
            if level.shares_values:
                data, parents, count = level.pack_values(parents, coordinates, values, sizes[k], count, index_dtype)
            else:
                data, parents, count = level.pack(parents, coordinates, sizes[k], count, index_dtype)
            levels.append(data)
        positions = parents if first is None else parents[np.cumsum(first) - 1]
    return tuple(levels), positions, count


def _refuse_branches(format: Format, head: int, end: int, columns: Columns, first: Mask | None, entries: int) -> None:
    """Refuse several coordinates of a branchless level below one coordinate of a unique level above it."""
    nodes = entries if first is None else int(np.count_nonzero(first))
    for k in range(head, end):
        level = format.levels[k]
        if level.unique and not level.full and np.count_nonzero(_starts(columns[: k + 1], entries)) != nodes:
            raise FormatError(
                f"the format {format} stores exactly one coordinate in level {k + 1} below each coordinate of level {k}, "
                f"but this tensor has several; let level {k} repeat, as in coo, or use a compressed level"
            )


def position_counts(storage: Storage) -> list[int]:
    """How many positions there are at the root and at every level."""
    counts = [1]
    for level, data, size in zip(storage.format.levels, storage.levels, storage.format.level_sizes(storage.shape), strict=True):
        counts.append(level.count(data, size, counts[-1]))
    return counts


def passed_counts(storage: Storage) -> list[int]:
    """How many positions loops may pass at the root and at every level."""
    format, sizes = storage.format, storage.format.level_sizes(storage.shape)
    levels = zip(format.levels, storage.levels, sizes, position_counts(storage), strict=False)
    return [1, *(level.passed(data, size, parents) for level, data, size, parents in levels)]


def _mode_columns(storage: Storage) -> tuple[Columns, Values]:
    """One column of coordinates per mode, and the values, of all entries in storage order."""
    columns, positions = _stored_columns(storage)
    values = storage.values[: position_counts(storage)[-1]]
    if positions is not None:
        values = values[positions]
    columns = _whole_columns(storage.format, columns)
    if not storage.format.blocks:
        return columns, values
    inside = np.ones(len(values), np.bool_)
    for column, size in zip(columns, storage.shape, strict=True):
        inside &= column < size
    return (columns, values) if inside.all() else ([column[inside] for column in columns], values[inside])


def _stored_columns(storage: Storage) -> tuple[Columns, Index | None]:
    """One column of coordinates per level, and where the entries' values are stored (None: all of them in order)."""
    format, counts = storage.format, position_counts(storage)
    sizes = format.level_sizes(storage.shape)
    columns: Columns = []
    kept: Index | None = None  # where the entries' values are stored
    here: Index | None = None  # the entries' positions in the current level, None for all of them in order
    for k in reversed(range(len(format.levels))):
        parents, coordinates = format.levels[k].unpack(storage.levels[k], sizes[k], counts[k])
        if format.levels[k].shares_values:
            kept = format.levels[k].slots(storage.levels[k], sizes[k], counts[k])
        elif here is not None:
            parents, coordinates = parents[here], coordinates[here]
        if not format.levels[k].compact:
            used = np.flatnonzero(parents >= 0)
            parents, coordinates = parents[used], coordinates[used]
            columns = [column[used] for column in columns]
            kept = used if kept is None else kept[used]
        columns.insert(0, coordinates)
        here = None if format.levels[k].branchless and here is None else parents
    return columns, kept


def is_weaker(format: Format, than: Format) -> bool:
    """Whether storage of one format is also storage of the other, which promises no more about order and uniqueness."""
    return (
        format.modes == than.modes
        and format.blocks == than.blocks
        and all(
            a == b.promising(a.ordered, a.unique) and a.ordered <= b.ordered and a.unique <= b.unique
            for a, b in zip(format.levels, than.levels, strict=True)
        )
    )
