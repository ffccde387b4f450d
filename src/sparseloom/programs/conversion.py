"""Conversion between formats: the identity ``B(i,j) = A(i,j)`` compiled as any other statement.

    the same order          appended; where the last coordinates and the values stay as they are, both tensors share them
    another order           counted and filled (csr to csc), or listed and sorted (csr to a list by columns)
    no order                counted and filled by columns, then by rows; listed and sorted where modes are long
    repeated entries        summed, unless the new format may repeat them too
    blocks, on either side  where need be by way of the format that the loops ask for

What no kernel can read or write yet, and what is so small that compiling would take longer, is converted by ``formats.pack``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparseloom.compiler import Stages, lower_concrete
from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import BOOL, INT32, INT64, DType, width_for
from sparseloom.core.errors import DeviceError, FormatError, NotationError, ToolchainError
from sparseloom.core.settings import settings
from sparseloom.core.trees import walk
from sparseloom.formats import pack
from sparseloom.formats.format import Format
from sparseloom.formats.level import Level, LevelData
from sparseloom.formats.levels.compressed import Compressed
from sparseloom.formats.levels.dense import Dense
from sparseloom.formats.named import coo, name_of
from sparseloom.formats.one_level import with_one_level_changed
from sparseloom.formats.parts import is_tree, where
from sparseloom.formats.room import require_room
from sparseloom.formats.storage import Storage, copied, derived, lend, same_arrays, sealed, share_memory
from sparseloom.iteration.assembly import can_insert
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.layout import compressed
from sparseloom.iteration.making import Appended, Inserted, Making
from sparseloom.iteration.rows import SHORT_ROWS, is_long
from sparseloom.notation.nodes import Access, Assign, Forall, IndexVar, TensorVar
from sparseloom.plan.plan import Plan, choose_loops, plan_loops
from sparseloom.plan.statistics import Statistics, rounded
from sparseloom.programs.binding import allocate, bind_entry, gather, read_result
from sparseloom.programs.calling import IndexOverflow
from sparseloom.programs.guard import ascends
from sparseloom.programs.large import duplicate
from sparseloom.toolchain.worth import machine_here


def convert(storage: Storage, format: Format, drop_zeros: bool = False) -> Storage:
    """The same tensor in another format; arrays are shared where the layout allows.

    Stored entries stay stored, zeros too, unless ``drop_zeros`` leaves out those equal to the fill; from dense storage only values
    other than the fill are taken. Entries stored twice are summed when the new format is unique.
    """
    if format.order != len(storage.shape):
        raise FormatError(f"a tensor of order {len(storage.shape)} cannot be stored as {format}, which is for order {format.order}")
    if not drop_zeros and (format == storage.format or pack.is_weaker(format, storage.format)):
        return pack.convert(storage, format, settings.int32_limit)
    require_host(storage, format)
    if drop_zeros and format == storage.format and format.is_unique and is_tree(format):
        return derived(where(storage, _differs(storage.values, storage.fill)), storage)
    made = None if _is_left_to_numpy(storage, format) else _converted(storage, format, drop_zeros)
    if made is None and not drop_zeros:
        made = with_one_level_changed(storage, format)
    if made is None:
        made = pack.convert(pack.without_fill(storage) if drop_zeros else storage, format, settings.int32_limit)
    return derived(made, storage)


def _differs(values: NDArray[Any], fill: Scalar) -> NDArray[np.bool_]:
    """Which values are not the fill; NaN is NaN."""
    return np.asarray(values == values if fill != fill else values != fill)


def require_host(storage: Storage, format: Format) -> None:
    """Refuse to convert what is on a device."""
    if storage.device != "cpu":
        raise DeviceError(
            f"a tensor on {storage.device} cannot be converted there, from {name_of(storage.format)} to {name_of(format)}\n"
            f"  help: convert it in main memory: t.to_host().to({name_of(format)!r}).to_device()"
        )


def store(format: Format, shape: Sequence[int], coordinates: ArrayLike, values: ArrayLike, fill: Scalar = 0) -> Storage:
    """Entries given in any order, one column of coordinates per entry; repeated ones are summed."""
    is_small = len(shape) == 0 or np.size(values) < settings.small_conversion
    if is_small or format.order != len(shape) or not format.is_unique:
        made = pack.pack(format, shape, coordinates, values, fill, int32_limit=settings.int32_limit)
    else:
        entries = pack.listed(shape, coordinates, values, fill, settings.int32_limit)
        made = convert(replace(entries, format=coo(len(shape))) if ascends(entries) else entries, format)
    common = share_memory((*made.indices, made.values), (np.asarray(coordinates), np.asarray(values)))
    return copied(made, duplicate) if common else sealed(made)


def _is_left_to_numpy(storage: Storage, format: Format) -> bool:
    """Whether there is too little to do for a kernel, or a kernel would do too much or what it must not."""
    is_small = len(storage.values) < settings.small_conversion
    stays_repeated = not storage.format.is_unique and not format.is_unique
    has_few_in_blocks = bool(format.blocks) and is_long(max(storage.shape, default=0), len(storage.values))
    return is_small or stays_repeated or has_few_in_blocks


def _converted(storage: Storage, format: Format, drop_zeros: bool, detours: int = 2) -> Storage | None:
    """What compiled kernels make; None if there is no kernel for these formats, or no compiler."""
    if _is_sorted_by_rows(storage, format):
        return _sorted_by_rows(storage, format, drop_zeros)
    given = storage.index_dtype
    first = width_for(max(storage.shape, default=0), settings.int32_limit, (given,))
    for width in dict.fromkeys((first, INT64)):
        try:
            facts = _facts(storage), Statistics.of({"A": storage})
            plan = _plan(storage.format, storage.dtype, given, storage.fill, format, width, drop_zeros, settings.int32_limit, *facts)
            if isinstance(plan, _Plan):
                return _run(storage, plan)
            between = _converted(storage, plan, False, detours - 1) if detours else None
            return None if between is None else _converted(between, format, drop_zeros, detours - 1)
        except IndexOverflow:
            continue
        except NotationError:
            near = compressed(format)
            made = None if near == format or not detours else _converted(storage, near, drop_zeros, detours - 1)
            return None if made is None else _converted(made, format, False, 0)
        except ToolchainError:
            return None
    return None


def _is_sorted_by_rows(storage: Storage, format: Format) -> bool:
    """Whether the entries of a matrix come in no order, and are so many that they can be put into columns, and then into rows."""
    given = storage.format
    if format.order != 2 or given.blocks or format.blocks or not format.is_unique:
        return False
    is_loose = not all(level.ordered for level in given.levels)
    walks = (given.levels[0].full or given.chains[-1][0] == 0) and _is_listed(given.levels[-1])
    makes = (format.levels[0].full or _is_listed(format.levels[0])) and _is_listed(format.levels[-1])
    return is_loose and walks and makes and sum(storage.shape) <= len(storage.values)


def _is_listed(level: Level) -> bool:
    """Whether a level stores the coordinates of its entries one behind the other."""
    return level.compact and level.can_append


def _sorted_by_rows(storage: Storage, format: Format, drop_zeros: bool) -> Storage | None:
    """Put entries that come in no order into columns, then into rows, where they then stand in order; equal ones come one after another.

    What inserts entries only walks through them, so that nothing is lost by taking them for entries that are in order and all different.
    """
    rows = Format((Dense(), Compressed()), format.modes)
    across, given = Format(rows.levels, rows.modes[::-1]), _taken_in_order(storage, rows.modes)
    columns = given if given.format.modes == across.modes else _converted(given, across, False)
    made = None if columns is None else _converted(columns, rows, False)
    if made is None:
        return None
    repeats = not storage.format.is_unique and _has_equal_neighbours(made)
    if not repeats and not drop_zeros and format.promising(ordered=True) == rows:
        return replace(made, format=format)
    return _converted(replace(made, format=rows.promising(unique=not repeats)), format, drop_zeros)


def _has_equal_neighbours(storage: Storage) -> bool:
    """Whether some row has a coordinate twice; the last of a row may equal the first of the next."""
    starts, columns = (storage.levels[-1].arrays[name] for name in ("pos", "crd"))
    same = columns[1:] == columns[:-1]
    if same.any():
        same[starts[(starts > 0) & (starts < len(columns))] - 1] = False
    return bool(same.any())


def _taken_in_order(storage: Storage, modes: tuple[int, ...]) -> Storage:
    """The same arrays, taken for entries in order that are all different; a list of them has its columns in the order of these modes."""
    given, levels = storage.format, storage.levels
    ends = {end for _, end in given.chains}
    ordered = tuple(level.promising(True, k in ends or level.unique) for k, level in enumerate(given.levels))
    if given.levels[0].full or given.modes == modes:
        return replace(storage, format=Format(ordered, given.modes))
    first, last = levels[0].arrays, levels[1].arrays
    swapped = LevelData({**first, "crd": last["crd"]}), LevelData({**last, "crd": first["crd"]})
    return replace(storage, format=Format(ordered, modes), levels=swapped)


def _facts(storage: Storage) -> tuple[tuple[str, int], ...]:
    """The extents, rounded, so that tensors that are alike are converted alike."""
    return tuple((f"i{mode}", int(rounded(size))) for mode, size in enumerate(storage.shape))


@dataclass(frozen=True)
class _Plan:
    """The compiled identity between two formats. One that shares takes over the last coordinates and the values."""

    format: Format
    target: TensorVar
    stages: Stages
    shares: bool


@lru_cache(maxsize=1024)
def _plan(
    given: Format,
    dtype: DType,
    index_dtype: DType | None,
    fill: Scalar,
    format: Format,
    width: DType,
    drop_zeros: bool,
    int32_limit: int,
    extents: tuple[tuple[str, int], ...],
    statistics: Statistics,
) -> _Plan | Format:
    """The kernel for a conversion; or a format to convert to first, from which there is one."""
    variables = tuple(IndexVar(f"i{mode}") for mode in range(format.order))
    ordered = format.promising(ordered=True)  # storage of it is also storage of one that promises less
    source = TensorVar("A", format.order, given, dtype, index_dtype, fill)
    target = TensorVar("B", format.order, ordered, dtype, width, fill)
    shares = not drop_zeros and width == index_dtype and _has_same_leaves(given, ordered)
    drops = drop_zeros or (given.is_dense and not format.is_dense)
    assign = Assign(Access(target, variables), Access(source, variables))
    plain = Plan(assign, (), share=False, rows=SHORT_ROWS)
    concrete = choose_loops(plain)
    if concrete.conversions:
        return concrete.conversions[0].target.format
    if shares and isinstance(concrete.making, Appended):
        concrete = replace(concrete, making=_taking_leaves(concrete))
    if not isinstance(concrete.making, Appended) or not concrete.making.takes_leaves:
        concrete = plan_loops(concrete, dict(extents), statistics, machine_here())
    stages = lower_concrete(assign, replace(concrete, drops=drops), int32_limit)
    return _Plan(format, target, stages, shares)


def _taking_leaves(concrete: Concrete) -> Making:
    """How rows are made above last coordinates and values that are taken over: entries that tell their rows are counted."""
    assign, order = concrete.assign, tuple(n.var for n in walk(concrete.stmt) if isinstance(n, Forall))
    tells_rows = all(n.tensor.format.chains[-1][0] == 0 for n in walk(assign.rhs) if isinstance(n, Access))
    return Inserted(order=order, takes_leaves=True) if tells_rows and can_insert(assign) else Appended(takes_leaves=True)


def _run(storage: Storage, plan: _Plan) -> Storage:
    lowered, storages = plan.stages.lowered, {"A": storage}
    sizes = {f"i{mode}": size for mode, size in enumerate(storage.shape)}
    require_room(plan.format, storage.shape, storage.dtype.itemsize)
    values = allocate(plan.target, storage.shape) if plan.format.is_dense else None
    arguments = gather(lowered, storages, sizes, values, len(storage.values))

    def read(found: Sequence[Any]) -> Storage:
        if not plan.shares:
            return replace(read_result(lowered, storage.shape, storages, found), format=plan.format)
        made = {place: found[k] for place, k in lowered.parts.items()}
        head = plan.format.chains[-1][0]
        count = made[head, "count"]
        mine, theirs = plan.format.levels[-1].coordinate_array, storage.format.levels[-1].coordinate_array
        made[len(plan.format.levels) - 1, str(mine)] = _first(storage.levels[-1].arrays[str(theirs)], count)
        levels = [LevelData({part: made[k, part] for part in level.array_names}) for k, level in enumerate(plan.format.levels)]
        return Storage(plan.format, storage.shape, tuple(levels), _first(storage.values, count), storage.fill)

    return bind_entry(plan.stages.entry, lowered, arguments, read).run()


def _first(array: NDArray[Any], count: int) -> NDArray[Any]:
    """The elements that are used; the array itself if all are."""
    return array if len(array) == count else array[:count]


def _has_same_leaves(source: Format, target: Format) -> bool:
    """Whether entries stand in the same order in both, each once, so that the last coordinates and the values are the same arrays."""
    ordered = all(level.ordered for level in (*source.levels, *target.levels))
    last = (source.levels[-1:], target.levels[-1:])
    return (
        ordered and source.is_unique and source.modes == target.modes and not (source.blocks or target.blocks)
        and all(level.compact and level.coordinate_array is not None for levels in last for level in levels)
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _ConversionPlan:
    """Where the entries of one storage go in another format: ``made`` is its structure, ``sources`` are their numbers plus one."""

    indices: tuple[NDArray[Any], ...]  # what it was made from: copies, if a caller can change them
    made: Storage
    sources: NDArray[np.int64]

    def is_of(self, storage: Storage) -> bool:
        """Whether the entries still stand where they did."""
        return same_arrays(self.indices, storage.indices)


_plans: WeakKeyDictionary[Storage, dict[tuple[Format, DType | None], _ConversionPlan]] = WeakKeyDictionary()


def converted(storage: Storage, target: TensorVar) -> tuple[Storage, Callable[[], None]]:
    """A storage in another format, and what brings its values up to date.

    The structure is worked out once per storage, by converting the numbers of its entries; values are then gathered, so that a change
    to them is never missed. Index arrays that a caller can change are compared with what they were.
    """
    require_host(storage, target.format)
    if not storage.format.is_unique:
        made = with_indices_as(convert(storage, target.format), target.index_dtype)
        return made, lambda: np.copyto(made.values, convert(storage, target.format).values)
    plans, key = _plans.setdefault(storage, {}), (target.format, target.index_dtype)
    plan = plans.get(key)
    if plan is None or not plan.is_of(storage):
        own = lend(storage)  # so that they are copied before a caller can change them
        placed, sources = placement(own, target.format)
        plan = plans[key] = _ConversionPlan(own.indices, with_indices_as(placed, target.index_dtype), sources)
    sources = plan.sources
    made = replace(plan.made, values=np.empty(len(sources), storage.dtype), fill=storage.fill)
    missing = sources < 0

    def refresh() -> None:
        # All at once: another thread may be computing with these values, and they are hardly ever different.
        values = storage.values.take(sources, mode="wrap") if len(storage.values) else made.values.copy()
        values[missing] = storage.fill
        made.values[:] = values

    return made, refresh


def placement(storage: Storage, format: Format) -> tuple[Storage, NDArray[np.int64]]:
    """The structure of a storage in another format, and which of its entries each value there is; -1 for one that is none of them."""
    placed = convert(replace(storage, owner=None, values=np.arange(1, len(storage.values) + 1), fill=0), format)
    return placed, placed.values - 1


def with_indices_as(storage: Storage, dtype: DType | None) -> Storage:
    """The same storage with index arrays of a given dtype. What does not fit into it is an overflow."""
    if dtype is None or storage.index_dtype in (None, dtype):
        return storage
    if dtype == INT32 and max(*storage.shape, *pack.position_counts(storage)) > np.iinfo(np.int32).max:
        raise IndexOverflow("an operand that is converted needs more than 32 bits for its indices")

    def widened(array: NDArray[Any]) -> NDArray[Any]:
        return array if array.dtype == BOOL else array.astype(dtype)

    levels = tuple(replace(level, arrays={part: widened(a) for part, a in level.arrays.items()}) for level in storage.levels)
    return replace(storage, levels=levels)
