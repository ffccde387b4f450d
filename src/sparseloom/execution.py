"""Running a statement on real tensors: what is definite only then, converting operands, binding arrays, reading results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sparseloom.compiler import Stages, Work, build, choose_loops, resolve, with_index_dtype
from sparseloom.conversion import convert
from sparseloom.core.dtypes import INT32, INT64, DType, widest, width_for
from sparseloom.core.errors import DTypeError, FormatError, NotationError, ScheduleError, ShapeError, StorageError, ToolchainError
from sparseloom.core.notices import notify
from sparseloom.core.once import cached_property
from sparseloom.core.trees import walk
from sparseloom.explain import explain
from sparseloom.formats.format import Format
from sparseloom.formats.named import csf, name_of
from sparseloom.formats.pack import position_counts, stored_count
from sparseloom.formats.room import require_room
from sparseloom.formats.storage import Storage, with_own_indices
from sparseloom.iteration.accumulate import merges_initial, name_initial
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.rows import SHORT, RowKind, choose_row, is_long, scheduled_row
from sparseloom.lower.promises import broken_promise
from sparseloom.lower.ranges import check_ranges
from sparseloom.notation import printer
from sparseloom.notation.nodes import Access, Assign, Forall, IndexVar, Races, Reduce, Stmt, TensorVar
from sparseloom.relations.bound import BoundRelation
from sparseloom.runtime.binding import Call, allocate, bind_entry, bind_interpreter, gather, is_interpretable, read_result
from sparseloom.runtime.calling import BoundViolated, IndexOverflow
from sparseloom.runtime.library import Entry
from sparseloom.runtime.memory import aligned
from sparseloom.runtime.settings import settings
from sparseloom.schedule.loops import relations_of

TARGETS = ("c", "interpret")


def known_target(name: str) -> str:
    """The name of a target, or a refusal that says which there are."""
    if not isinstance(name, str) or name not in TARGETS:
        raise NotationError(f"there is no target {name!r}; there are {', '.join(TARGETS)}")
    return name


def known_sizes(sizes: Mapping[str, int] | None) -> dict[str, int]:
    """Extents by variable, as Python's own numbers; what is no number is refused."""
    if sizes is None:
        return {}
    if not isinstance(sizes, Mapping):
        raise ShapeError(f"sizes is a mapping from variables to extents, such as {{'i': 10}}, not a {type(sizes).__name__}")
    found: dict[str, Any] = {}
    for name, size in sizes.items():
        if not isinstance(name, str | IndexVar):
            raise ShapeError(f"sizes names variables, and {name!r} is a {type(name).__name__}\n  help: write sizes={{'i': 10}}")
        given: Any = size
        if not isinstance(given, int | float | np.number):
            raise ShapeError(f"sizes says that {name} runs to a {type(size).__name__}; a size is a whole number, at least 0")
        found[str(name)] = int(given) if isinstance(given, np.integer) else given
    return found


def execute(
    assign: Assign,
    operands: Mapping[str, Storage],
    format: Format | None = None,
    dtype: DType | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Storage:
    """Compile and run a statement whose reductions are explicit, on real tensors.

    ``operands`` holds the right side's tensors by name, and the initial value under the result's name for ``+=``. ``format`` and
    ``dtype`` are the result's; left out, the compiler derives them. ``sizes`` gives extents that no operand fixes, by variable.
    """
    return Prepared(assign, operands, format, dtype, sizes or {}).run(operands)


def declared(name: str, storage: Storage) -> TensorVar:
    """A storage as the compiler sees it: everything but its sizes and its data."""
    return TensorVar(name, len(storage.shape), storage.format, storage.dtype, storage.index_dtype, storage.fill)


def weight(storages: Collection[Storage]) -> tuple[Any, ...]:
    """What the loops that the compiler chooses depend on besides formats and shapes: whether threads pay off; where rows may be long,
    roughly how many entries there are; and which of several sparse operands have fewer than others."""
    counts = [len(storage.values) for storage in storages if not storage.format.is_dense]
    wide, entries = any(size > SHORT for storage in storages for size in storage.shape), sum(counts)
    ranks = sorted(range(len(counts)), key=counts.__getitem__) if len(counts) > 1 else ()
    return Work.of(entries), entries.bit_length() if wide else 0, *ranks


def sparse_entries(storages: Iterable[Storage]) -> int:
    """How many entries sparse operands have together."""
    return sum(len(storage.values) for storage in storages if not storage.format.is_dense)


class Prepared:
    """A statement made definite by the operands it is run on: formats, dtypes, extents and the compiled stages."""

    def __init__(
        self,
        assign: Assign,
        operands: Mapping[str, Storage],
        format: Format | None,
        dtype: DType | None,
        sizes: Mapping[str, int],
        schedule: str = "",
        workspace: RowKind | None = None,
    ) -> None:
        self._schedule = schedule
        self._wide: Prepared | None = None  # the same with 64-bit positions, once a result has outgrown 32 bits
        self._has_data = bool(operands)
        self._work = Work.of(sparse_entries(operands.values()))
        self._stored: Mapping[str, Sequence[int]] = {}
        self._last = (0, 1)  # how many entries the last result had, and how many were read: the next one has room for as many
        self.sizes = extents(assign, operands, sizes)
        self.shape = tuple(self.sizes[v.name] for v in assign.lhs.indices)
        self._narrowest = width_for(max((*self.sizes.values(), 0)), settings.int32_limit)  # what holds every coordinate
        width = widest((self._narrowest, *(storage.index_dtype for storage in operands.values())))
        resolved = resolve(assign, format, dtype)
        # Such a result is made without blocks, and converted in the end.
        self._unblocks = self._why_without_blocks(resolved.lhs, sparse_entries(operands.values()))
        self._blocked = resolved.lhs.tensor.format if self._unblocks else None
        if self._blocked is not None:
            resolved = resolve(assign, csf(len(self.shape)), dtype)
        self._assign = with_index_dtype(resolved, width)
        self._initial = self._find_initial(assign.lhs.tensor) if merges_initial(self._assign) else None
        read = self._with_initial(operands, None if self._initial is None else self._initial.name)
        self._cheapest = tuple(sorted(read, key=lambda name: len(read[name].values)))
        # Roughly how many there are: the same for all calls for which a kernel remembers this.
        entries = 1 << sparse_entries(operands.values()).bit_length() >> 1
        long = frozenset(name for name, size in self.sizes.items() if is_long(size, entries))
        self._rows = replace(choose_row(self._row_extent, entries, workspace), long=long)
        self._scheduled_rows = scheduled_row(self._row_extent, workspace)
        reduced = (v for n in walk(self._assign) if isinstance(n, Reduce) for v in n.variables)
        self._share = all(self.sizes[v.name] > 0 for v in reduced)

    def _why_without_blocks(self, lhs: Access, entries: int) -> str:
        """Why the loops cannot put a result into blocks; empty if they can. With a schedule this does not depend on the data."""
        if cuts_blocks(lhs):
            return "a diagonal cuts blocks"
        if lhs.tensor.format.blocks and not self._schedule and is_long(max(self.shape, default=0), entries):
            return "modes are long and operands have few entries"
        return ""

    @classmethod
    def without_data(
        cls, assign: Assign, format: Format | None, dtype: DType | None, schedule: str = "", workspace: RowKind | None = None
    ) -> Prepared:
        """The statement as it would be compiled for operands of usual size."""
        usual = {n.name: 1000 for n in walk(assign) if isinstance(n, IndexVar)}
        return cls(assign, {}, format, dtype, usual, schedule, workspace)

    @property
    def _row_extent(self) -> int:
        """How many coordinates a row of the result can have."""
        lhs = self._assign.lhs
        return self.sizes[lhs.indices[lhs.tensor.format.modes[len(lhs.indices) - 1]].name] if lhs.indices else 1

    def _find_initial(self, given: TensorVar) -> TensorVar:
        """What a sparse result held before, as it is stored; without data, it is stored as the result."""
        usual = replace(self._assign.lhs.tensor, fill=given.fill)
        return name_initial(self._assign, given if self._has_data else usual)

    def _with_initial(self, operands: Mapping[str, Storage], name: str | None) -> dict[str, Storage]:
        """The operands of the kernel: what a sparse result held before is one of them, under a name of its own."""
        if name is None or not operands:
            return dict(operands)
        return {**operands, name: operands[self._assign.lhs.tensor.name]}

    @cached_property
    def stages(self) -> Stages:
        """Everything the compiler made of the statement."""
        if not self._schedule:
            return self._unscheduled(self._assign)
        try:
            stages = self._scheduled(self._assign)
        except ScheduleError as refusal:
            raise ScheduleError(f"{refusal}{self._held()}") from None
        check_ranges(stages.concrete.stmt, self.sizes)
        return stages

    def _held(self) -> str:
        """What a call adds to a refusal: the dtypes and fills of its operands, which the program was not told."""
        tensors = {n.name: n for n in walk(self._assign.rhs) if isinstance(n, TensorVar)}.values() if self._has_data else ()
        held = ", ".join(f"{t} is {t.dtype}" + (f" with {t.fill} where nothing is stored" if t.fill != 0 else "") for t in tensors)
        return f"\n  on these operands: {held}" if held else ""

    def _scheduled(self, assign: Assign, refill: bool = False) -> Stages:
        """Under a schedule the loops follow from the statement, its formats and its dtypes alone, so that they are what was checked."""
        return build(assign, (), True, settings.int32_limit, self._schedule, self._initial, Work.LITTLE, self._scheduled_rows, refill)

    def _unscheduled(self, assign: Assign, refill: bool = False) -> Stages:
        given = (self._cheapest, self._share, settings.int32_limit, "", self._initial, self._work, self._rows)
        return build(assign, *given, refill=refill)

    @property
    def _runs_as_asked(self) -> bool:
        """Whether the schedule is followed. A sum over nothing has no entries, and then an operand's structure cannot be the result's."""
        return bool(self._schedule) and (self._share or self.stages.concrete.shared is None)

    @property
    def _running(self) -> Stages:
        """What runs on these extents."""
        return self.stages if self._share or self.stages.concrete.shared is None else self._unscheduled(self._assign)

    def check_schedule(self, deterministic: bool) -> None:
        """Refuse a schedule now that would be refused when the kernel is called; and one without a fixed order, if that is asked."""
        loops = [n for n in walk(self.stages.concrete.stmt) if isinstance(n, Forall)]
        loose = next((n for n in loops if n.tag.races in (Races.Atomics, Races.ParallelReduction)), None)
        if deterministic and loose is not None and loose.tag.races is not None:
            raise ScheduleError(
                f"[S860] cannot use {loose.tag.races.name} on {loose.var}: it adds in no fixed order, and deterministic=True asks for one\n"
                "  help: use NoRaces or Temporary"
            )

    def unscheduled(self) -> Concrete:
        """The loops that a schedule starts from, whatever the data are."""
        return choose_loops(self._assign, (), True, self._initial, self._scheduled_rows)

    @property
    def fills_values(self) -> bool:
        """Whether an output can be filled in place: a dense one only needs values."""
        return self._assign.lhs.tensor.format.is_dense and self._blocked is None

    @property
    def converts(self) -> bool:
        """Whether operands are converted on every call."""
        return bool(self._running.concrete.conversions)

    def check_output(self, out: Storage) -> None:
        """Refuse an output that does not fit the result."""
        tensor = self._assign.lhs.tensor
        if out.shape != self.shape:
            raise ShapeError(f"out has shape {out.shape}, but {tensor.name} has shape {self.shape}")
        if out.dtype != tensor.dtype:
            raise DTypeError(f"out holds {out.dtype}, but {tensor.name} is {tensor.dtype}\n  help: pass dtype={str(out.dtype)!r}")
        wanted = self._blocked or tensor.format
        if out.format != wanted:
            raise FormatError(f"out is {name_of(out.format)}, but {tensor.name} is {name_of(wanted)}")
        if not out.values.flags.writeable:
            raise StorageError("out is read-only")

    def explain(self) -> str:
        """Who drives each loop, which races there are, what is converted, and where the result goes."""
        told = explain(self.stages, self.sizes if self._has_data else {}, self._stored)
        return told if self._blocked is None else f"{told}\n  then it is converted to {name_of(self._blocked)}: {self._unblocks}"

    @property
    def current(self) -> Prepared:
        """What runs now: this, or the same with wider positions."""
        return self._wide or self

    def widened(self) -> Prepared:
        """The same with the result's positions in 64 bits, which is what runs from now on."""
        wide = copy(self)
        wide.__dict__.pop("stages", None)
        wide._assign, wide._narrowest = with_index_dtype(self._assign, INT64), INT64
        self._wide = wide
        return wide

    def bind(
        self,
        operands: Mapping[str, Storage],
        target: str = "c",
        values: NDArray[Any] | None = None,
        structure: Storage | None = None,
    ) -> Call:
        """Lay the operands out for the kernel. ``values`` are those of an output to fill; left out, they are allocated.

        ``structure`` is a sparse result whose values alone are to be computed.
        """
        try:
            return self._bind(operands, target, values, structure)
        except IndexOverflow:  # an operand has too many entries when it is converted
            return self.widened()._bind(operands, target, values, structure)

    def _bind(self, operands: Mapping[str, Storage], target: str, values: NDArray[Any] | None, structure: Storage | None) -> Call:
        stages = self._running if structure is None else self._refilling(structure)
        lowered, tensor = stages.lowered, self._assign.lhs.tensor
        storages = self._with_initial(operands, stages.concrete.initial)
        if structure is not None:
            storages[tensor.name] = with_indices_as(structure, stages.assign.lhs.tensor.index_dtype)
        refreshes: list[Callable[[], None]] = []
        for conversion in stages.concrete.conversions:
            storages[conversion.target.name], refresh = converted(storages[conversion.source.name], conversion.target)
            refreshes.append(refresh)
        self._stored = {name: position_counts(storage) for name, storage in storages.items() if not storage.format.is_dense}
        initialised = self._assign.op is not None and self._initial is None
        if values is None:
            values = self._allocate(stages, storages)
        if initialised and values is not None and structure is None:
            values[:] = convert(storages[tensor.name], tensor.format).values
        entries = sum(stored_count(storages[name]) for name in stages.sparse_reads) if values is None else 0
        made, for_read = self._last
        guess = max(entries, min(made, made * entries // for_read + 1))
        own = {var.name: size for var, size in zip(lowered.result.indices, self.shape, strict=True)}
        arguments = gather(lowered, storages, {**own, **self.sizes}, values, guess)

        def read(found: Any) -> Storage:
            return read_result(lowered, self.shape, storages, found)

        entry = None if target == "interpret" else self._entry(stages)
        call = bind_entry(entry, lowered, arguments, read) if entry else bind_interpreter(lowered, arguments, read, initialised)
        call = replace(call, entries=entries)
        if self._schedule and any(isinstance(r, BoundRelation) for r in relations_of(stages.concrete.stmt)):
            call = _naming_bounds(call, stages.concrete.stmt, self.sizes)
        call = _refreshing(call, refreshes) if refreshes else call
        return call if self._blocked is None else _in_blocks(call, self._blocked)

    def compute(self, operands: Mapping[str, Storage], out: Storage, target: str = "c") -> None:
        """Compute the values of a result whose structure is known. One that is spread out in the end is made whole again."""
        if self._blocked is not None or self._refilling(out).lowered.hands_out:
            out.values[:] = self.run(operands, target).values
        else:
            self.bind(operands, target, out.values, out).start()

    def _refilling(self, structure: Storage) -> Stages:
        """The kernel for the values of a result that has this structure already."""
        width = widest((structure.index_dtype, self._narrowest))
        assign = self._assign if structure.format.is_dense else with_index_dtype(self._assign, width)
        return self._scheduled(assign, refill=True) if self._runs_as_asked else self._unscheduled(assign, refill=True)

    def _entry(self, stages: Stages) -> Entry | None:
        """The compiled kernel, or None where there is no compiler and the problem is small enough for the interpreter."""
        stages.require_c()
        try:
            return stages.entry
        except ToolchainError as missing:
            if not is_interpretable(stages.lowered.function, self._points()):
                raise
            notify(f"{missing}\nThis small problem is answered by the interpreter instead.")
            return None

    def run(self, operands: Mapping[str, Storage], target: str = "c") -> Storage:
        """Compute the result; one that outgrows int32 positions is computed again with int64, and so are those after it."""
        if self._wide is not None:
            return self._wide.run(operands, target)
        call = self.bind(operands, target)
        try:
            made = call.run()
        except IndexOverflow:
            return self.widened().run(operands, target)
        self._last = max((len(data.arrays["crd"]) for data in made.levels if "crd" in data.arrays), default=0), max(1, call.entries)
        return made

    def _allocate(self, stages: Stages, storages: Mapping[str, Storage]) -> NDArray[Any] | None:
        lowered, tensor = stages.lowered, self._assign.lhs.tensor
        if tensor.format.is_dense:
            return allocate(tensor, self.shape)
        if lowered.shared is not None:
            return aligned(len(storages[lowered.shared].values), tensor.dtype)
        require_room(tensor.format, self.shape, tensor.dtype.itemsize)
        return None

    def _points(self) -> int:
        return int(np.prod([max(size, 1) for size in self.sizes.values()], dtype=object))


def _naming_bounds(call: Call, stmt: Stmt, sizes: Mapping[str, int]) -> Call:
    """A call that says which bound of its schedule does not hold."""

    def named(start: Callable[[], Any]) -> Any:
        try:
            return start()
        except BoundViolated:
            raise ShapeError(str(BoundViolated(broken_promise(stmt, sizes)))) from None

    return call.within(named)


def _refreshing(call: Call, refreshes: Sequence[Callable[[], None]]) -> Call:
    """A call that first brings converted operands up to date."""

    def refreshed(start: Callable[[], Any]) -> Any:
        for refresh in refreshes:
            refresh()
        return start()

    return call.within(refreshed)


def _in_blocks(call: Call, format: Format) -> Call:
    """A call whose result is put into blocks."""
    return replace(call, run=lambda: convert(call.run(), format), bound=None)


def cuts_blocks(lhs: Access) -> bool:
    """Whether a result has blocks, and a variable twice."""
    return bool(lhs.tensor.format.blocks) and len(set(lhs.indices)) < len(lhs.indices)


def extents(assign: Assign, operands: Mapping[str, Storage], sizes: Mapping[str, int]) -> dict[str, int]:
    """The extent of every variable; operands that disagree are refused."""
    _check_sizes(assign, sizes)
    found = dict(sizes)
    origin = dict.fromkeys(sizes, "sizes")
    for access in (n for n in walk(assign) if isinstance(n, Access)):
        storage = operands.get(access.tensor.name)
        if storage is None:
            continue
        for mode, (var, size) in enumerate(zip(access.indices, storage.shape, strict=True)):
            here = f"mode {mode} of {access.tensor.name}"
            if found.setdefault(var.name, size) != size:
                raise ShapeError(
                    f"{var} runs to {found[var.name]} in {origin[var.name]}, but to {size} in {here}\n  in {printer.show(assign)}"
                )
            origin.setdefault(var.name, here)
    for var in (n for n in walk(assign) if isinstance(n, IndexVar)):
        if var.name not in found:
            raise ShapeError(f"nothing says how far {var} runs\n  in {printer.show(assign)}\n  help: give it with sizes={{'{var}': n}}")
    return found


def _check_sizes(assign: Assign, sizes: Mapping[str, int]) -> None:
    """Refuse extents of variables that the statement does not have, and those that are no numbers of places."""
    known = {n.name for n in walk(assign) if isinstance(n, IndexVar)}
    for name, size in sizes.items():
        if name not in known:
            raise ShapeError(f"sizes names {name!r}, but the variables are {', '.join(sorted(known))}\n  in {printer.show(assign)}")
        if not isinstance(size, int) or size < 0:
            raise ShapeError(f"sizes says that {name} runs to {size!r}; a size is a whole number, at least 0\n  in {printer.show(assign)}")
        if size >= 2**63:
            raise ShapeError(f"sizes says that {name} runs to 2**63 or further, and coordinates have 64 bits\n  in {printer.show(assign)}")


@dataclass(frozen=True, eq=False)
class _ConversionPlan:
    """Where the entries of one storage go in another format: ``made`` is its structure, ``sources`` are their numbers plus one."""

    indices: tuple[NDArray[Any], ...]  # what it was made from: copies, if a caller can change them
    made: Storage
    sources: NDArray[np.int64]

    def is_of(self, storage: Storage) -> bool:
        """Whether the entries still stand where they did."""
        pairs = zip(self.indices, storage.indices, strict=True)
        return all(mine is theirs or np.array_equal(mine, theirs) for mine, theirs in pairs)


_plans: WeakKeyDictionary[Storage, dict[tuple[Format, DType | None], _ConversionPlan]] = WeakKeyDictionary()


def converted(storage: Storage, target: TensorVar) -> tuple[Storage, Callable[[], None]]:
    """A storage in another format, and what brings its values up to date.

    The structure is worked out once per storage, by converting the numbers of its entries; values are then gathered, so that a change
    to them is never missed. Index arrays that a caller can change are compared with what they were.
    """
    if not storage.format.is_unique:
        made = with_indices_as(convert(storage, target.format), target.index_dtype)
        return made, lambda: np.copyto(made.values, convert(storage, target.format).values)
    plans, key = _plans.setdefault(storage, {}), (target.format, target.index_dtype)
    plan = plans.get(key)
    if plan is None or not plan.is_of(storage):
        own = storage if storage.is_sealed else with_own_indices(storage)
        numbered = replace(own, values=np.arange(1, len(storage.values) + 1), fill=0)
        placed = convert(numbered, target.format)
        plan = plans[key] = _ConversionPlan(own.indices, with_indices_as(placed, target.index_dtype), placed.values - 1)
    sources = plan.sources
    made = replace(plan.made, values=np.empty(len(sources), storage.dtype), fill=storage.fill)
    missing = sources < 0

    def refresh() -> None:
        # All at once: another thread may be computing with these values, and they are hardly ever different.
        values = storage.values.take(sources, mode="wrap") if len(storage.values) else made.values.copy()
        values[missing] = storage.fill
        made.values[:] = values

    return made, refresh


def with_indices_as(storage: Storage, dtype: DType | None) -> Storage:
    """The same storage with index arrays of a given dtype. What does not fit into it is an overflow."""
    if dtype is None or storage.index_dtype in (None, dtype):
        return storage
    if dtype == INT32 and max(*storage.shape, *position_counts(storage)) > np.iinfo(np.int32).max:
        raise IndexOverflow("an operand that is converted needs more than 32 bits for its indices")
    levels = tuple(replace(level, arrays={part: a.astype(dtype) for part, a in level.arrays.items()}) for level in storage.levels)
    return replace(storage, levels=levels)
