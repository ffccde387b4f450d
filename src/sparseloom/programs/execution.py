"""Running a statement on real tensors: what is definite only then, converting operands, binding arrays, reading results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, TypeVar

from numpy.typing import NDArray

from sparseloom.compiler import Stages, build
from sparseloom.core.dtypes import INT64, DType, widest
from sparseloom.core.errors import (
    DeviceError,
    DTypeError,
    FormatError,
    ScheduleError,
    ShapeError,
    SparseloomError,
    StorageError,
    ToolchainError,
)
from sparseloom.core.notices import notify
from sparseloom.core.once import cached_property
from sparseloom.core.settings import settings
from sparseloom.core.trees import walk
from sparseloom.formats.format import Format
from sparseloom.formats.lending import lent_room
from sparseloom.formats.named import name_of
from sparseloom.formats.pack import passed_counts, position_counts, stored_count
from sparseloom.formats.room import require_room
from sparseloom.formats.storage import Storage
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.foralls import relations_of
from sparseloom.iteration.rows import RowKind
from sparseloom.lower.extents import check_ranges
from sparseloom.lower.kernel import Lender
from sparseloom.lower.promises import broken_promise
from sparseloom.notation.nodes import Assign, Forall, Races, Stmt, TensorVar, Unit
from sparseloom.plan.plan import Plan, choose_loops, plan, plan_as_asked, plan_with, problem_text
from sparseloom.plan.problem import Problem, pose, with_index_dtype
from sparseloom.plan.statistics import NOTHING_KNOWN, Statistics
from sparseloom.programs.binding import Call, aligned, bind_entry, bind_interpreter, gather, is_interpretable, read_result
from sparseloom.programs.calling import BoundViolated, IndexOverflow
from sparseloom.programs.conversion import convert, converted, with_indices_as
from sparseloom.programs.cuda.binding import bind_launches
from sparseloom.programs.cuda.storages import Place, is_writable, require_place, room_for
from sparseloom.programs.experience import Experience
from sparseloom.programs.explain import explain
from sparseloom.programs.renaming import Names, renamed
from sparseloom.targets.c import C
from sparseloom.targets.c_toolchain import C_TOOLCHAIN
from sparseloom.targets.registry import DEFAULT, find_target
from sparseloom.targets.target import Calling, Target
from sparseloom.toolchain.compilers import is_installed
from sparseloom.toolchain.loading import EntryPoint
from sparseloom.toolchain.teams import get_threads
from sparseloom.toolchain.tuned import known_schedule
from sparseloom.toolchain.worth import machine_here
from sparseloom.tracing import show_timings

Made = TypeVar("Made")
MOST_RENAMED = 1024


def specialize(
    assign: Assign,
    operands: Mapping[str, Storage],
    format: Format | None = None,
    dtype: DType | None = None,
    sizes: Mapping[str, int] | None = None,
    schedule: str | None = None,
    workspace: RowKind | None = None,
    target: Target = C,
) -> Specialization:
    """A statement, with explicit reductions, made definite by the operands it is run on.

    ``operands`` holds the right side's tensors by name, and the initial value under the result's name for ``+=``. ``format`` and
    ``dtype`` are the result's; left out, the compiler derives them. ``sizes`` gives extents that no operand fixes, by variable.
    """
    problem = pose(assign, operands, settings.int32_limit, format, dtype, sizes, schedule, workspace, target)
    return Specialization(problem, Statistics.of(operands, target.calling is Calling.LAUNCHED))


@dataclass(frozen=True, eq=False)
class Specialization:
    """A problem with what is known of its data: planned, compiled and bound to operands when that is asked for.

    Problems that differ in names alone run one ``executable``, which is planned and compiled once. This one is planned in the user's
    names where somebody looks into it, and is then what runs.
    """

    problem: Problem
    statistics: Statistics = NOTHING_KNOWN
    experience: Experience[Specialization] = field(default_factory=Experience)
    pinned: Plan | None = None  # what to follow instead of the planner
    is_renamed: bool = False

    @cached_property
    def _renamed(self) -> tuple[Specialization, Names] | None:
        """What runs in the place of this one, and what its operands are called there; None if this one does."""
        problem = self.problem
        if self.is_renamed or problem.schedule or not problem.is_stored or self.pinned is not None:
            return None
        if "stages" in self.__dict__ or self._measured is not None:
            return None
        posed, statistics, names = renamed(problem, self.statistics)
        return one_for_all(posed, statistics), names

    @cached_property
    def executable(self) -> Specialization:
        """What runs."""
        return self if self._renamed is None else self._renamed[0]

    def sources(self, operands: Iterable[str]) -> dict[str, str]:
        """What operands of the executable are called here, by their names there."""
        return {name: name for name in operands} if self._renamed is None else dict(self._renamed[1].sources)

    def _execute(self, do: Callable[[Specialization, Mapping[str, Storage]], Made], operands: Mapping[str, Storage]) -> Made:
        """Do something with the executable. What is wrong is said in the names of this problem."""
        if self._renamed is None:
            return do(self, operands)
        special, names = self._renamed
        try:
            return do(special, names.of(operands))
        except SparseloomError:
            return do(self, operands)

    @cached_property
    def _measured(self) -> Plan | None:
        """The plan that was measured to be the best, if one was."""
        if self.problem.schedule is not None or not self.problem.is_stored:
            return None  # loops that were asked for
        best = known_schedule(problem_text(self.problem, self.statistics))
        return None if best is None else plan_with(self.problem, self.statistics, best)

    @cached_property
    def plan(self) -> Plan:
        """How it runs: as the planner says, unless something else was measured to be better."""
        measured = None if self.problem.schedule else self._measured
        return self.pinned or measured or plan(self.problem, self.statistics, machine_here())

    @cached_property
    def stages(self) -> Stages:
        """Everything the compiler made of the statement."""
        try:
            stages = build(self.plan, settings.int32_limit)
        except ScheduleError as refusal:
            raise ScheduleError(f"{refusal}{self._held()}") from None
        if self.problem.schedule:
            check_ranges(stages.concrete.stmt, self.problem.sizes)
        return stages

    def _held(self) -> str:
        """What a call adds to a refusal: the dtypes and fills of its operands, which the program was not told."""
        tensors = {n.name: n for n in walk(self.plan.assign.rhs) if isinstance(n, TensorVar)}.values() if self.problem.is_stored else ()
        held = ", ".join(f"{t} is {t.stored_dtype}" + (f" with {t.fill} where nothing is stored" if t.fill != 0 else "") for t in tensors)
        return f"\n  on these operands: {held}" if held else ""

    def following(self, stages: Stages) -> Specialization:
        """The same problem with loops that somebody else made of it."""
        made = replace(self)
        made.__dict__["stages"] = stages
        return made

    @cached_property
    def _running(self) -> Plan:
        """The plan that is followed. A sum over nothing has no entries, so it cannot have an operand's structure, schedule or no; and what
        it makes is not what unstored terms make."""
        concrete = self.stages.concrete
        if self.problem.is_empty and (concrete.shared is not None or concrete.closes):
            return plan(self.problem.without_schedule(), self.statistics, machine_here())
        return self.plan

    @property
    def _running_stages(self) -> Stages:
        return self.stages if self._running is self.plan else build(self._running, settings.int32_limit)

    def check_schedule(self, deterministic: bool) -> None:
        """Refuse a schedule now that would be refused when the kernel is called; and one without a fixed order, if that is asked."""
        loops = [n for n in walk(self.stages.concrete.stmt) if isinstance(n, Forall) and n.tag.unit is not Unit.CPUVector]
        loose = next((n for n in loops if n.tag.races in (Races.Atomics, Races.ParallelReduction)), None)
        if deterministic and loose is not None and loose.tag.races is not None:
            raise ScheduleError(
                f"[S860] cannot use {loose.tag.races.name} on {loose.var}: it adds in no fixed order, and deterministic=True asks for one\n"
                "  help: use NoRaces or Temporary"
            )

    def unscheduled(self) -> Concrete:
        """The loops that a schedule starts from, whatever the data are."""
        return choose_loops(plan_as_asked(self.problem).plain)

    @property
    def fills_values(self) -> bool:
        """Whether an output can be filled in place: a dense one only needs values."""
        plan = self.executable.plan
        return plan.assign.lhs.tensor.format.is_dense and plan.blocked is None

    @property
    def shares(self) -> Lender | None:
        """The operand whose structure the result has, if only its values are computed."""
        special = self.executable
        if special.plan.blocked is not None or special.plan.assign.op is not None:
            return None
        lender = special._running_stages.lowered.shared
        name = None if lender is None else self.sources([lender.name]).get(lender.name)  # an operand made for this kernel alone has none
        return None if lender is None or name is None else replace(lender, name=name)

    def converts(self, name: str) -> bool:
        """Whether an operand is converted before the loops run."""
        conversions = self.executable.stages.concrete.conversions
        sources = self.sources(conversion.source.name for conversion in conversions)
        return any(sources.get(conversion.source.name) == name for conversion in conversions)

    def check_output(self, out: Storage) -> None:
        """Refuse an output that does not fit the result."""
        plan, shape = self.executable.plan, self.problem.shape
        tensor = replace(plan.assign.lhs.tensor, name=self.problem.assign.lhs.tensor.name)
        if out.shape != shape:
            raise ShapeError(f"out has shape {out.shape}, but {tensor.name} has shape {shape}")
        if out.dtype != tensor.stored_dtype:
            raise DTypeError(f"out holds {out.dtype}, but {tensor.name} is {tensor.stored_dtype}\n  help: pass dtype={str(out.dtype)!r}")
        wanted = plan.blocked or tensor.format
        if out.format != wanted:
            raise FormatError(f"out is {name_of(out.format)}, but {tensor.name} is {name_of(wanted)}")
        if (out.device != "cpu") != (self.problem.target.calling is Calling.LAUNCHED):
            where, help = ("in main memory", "to_device()") if out.device == "cpu" else (f"on {out.device}", "to_host()")
            raise DeviceError(f"out is {where}, where {self.problem.target.title} cannot write to it\n  help: pass out.{help}")
        if not is_writable(out.values):
            raise StorageError("out is read-only")

    @property
    def source(self) -> str:
        """The C of the kernel."""
        return self.stages.source

    def show(self, stage: str) -> str:
        """The kernel at one stage."""
        return self.stages.show(stage)

    def explain(self, timing: bool = False) -> str:
        """What the loops do, and how long each pass took."""
        sizes, blocked = self.problem.sizes if self.problem.is_stored else {}, self.plan.blocked
        told = explain(self.stages, sizes, self._stored)
        if self.plan.decisions:
            told += "\n\nplan\n" + "\n".join(f"  {decision}" for decision in self.plan.decisions)
        if blocked is not None:
            told += f"\n  then it is converted to {name_of(blocked)}: {self.plan.unblocks}"
        return f"{told}\n\n{show_timings(self.stages.timings)}" if timing else told

    @property
    def _stored(self) -> Mapping[str, Sequence[int]]:
        """How many positions the operands of the last call had on each level."""
        if self._renamed is None:
            return self.experience.stored
        stored = self.executable.experience.stored
        pairs = zip(self.executable.stages.concrete.conversions, self.stages.concrete.conversions, strict=False)
        turned = {theirs.target.name: own.target.name for theirs, own in pairs}
        return self._renamed[1].original({turned.get(name, name): counts for name, counts in stored.items()})

    @property
    def current(self) -> Specialization:
        """What runs now: this, or the same with wider positions."""
        return self.widened() if self.executable.experience.wide is not None else self.experience.wide or self

    def widened(self) -> Specialization:
        """The same with the result's positions in 64 bits, which is what runs from now on."""
        if self.experience.wide is None:
            problem = self.problem.widened(INT64)
            self.experience.wide = one_for_all(problem, self.statistics) if self.is_renamed else Specialization(problem, self.statistics)
        return self.experience.wide

    def bind(
        self,
        operands: Mapping[str, Storage],
        target: str | None = None,
        values: NDArray[Any] | None = None,
        structure: Storage | None = None,
    ) -> Call:
        """Lay the operands out for the kernel. ``values`` are those of an output to fill; left out, they are allocated.

        ``structure`` is a sparse result whose values alone are to be computed. ``target`` names one that stands in.
        """

        def bound(special: Specialization, own: Mapping[str, Storage]) -> Call:
            try:
                return special._bind(own, target, values, structure)
            except IndexOverflow:  # an operand has too many entries when it is converted
                return special.widened()._bind(own, target, values, structure)

        return self._execute(bound, operands)

    def _bind(self, operands: Mapping[str, Storage], target: str | None, values: NDArray[Any] | None, structure: Storage | None) -> Call:
        how = self.problem.target if target is None else find_target(target)
        require_place(how, operands)
        stages = self._running_stages if structure is None else build(self._refilling(structure), settings.int32_limit)
        lowered, sizes, shape = stages.lowered, self.problem.sizes, self.problem.shape
        storages, refreshes = self._laid_out(stages, operands, structure)
        place = Place.of(storages) if how.calling is Calling.LAUNCHED else None
        initialised = self.plan.assign.op is not None and self.plan.initial is None
        values = self._output(stages, storages, values, initialised and structure is None, place)
        entries = sum(stored_count(storages[name]) for name in stages.sparse_reads) if values is None else 0
        guess = self.experience.expect(entries)
        own = {var.name: size for var, size in zip(lowered.result.indices, shape, strict=True)}
        if place is not None:
            refreshes += place.move(storages, (slot.tensor for slot in lowered.slots))
        arguments = gather(lowered, storages, {**own, **sizes}, values, guess)

        def read(found: Any) -> Storage:
            return read_result(lowered, shape, storages, found)

        entry = self._entry(stages) if how.calling is Calling.COMPILED else None
        if place is not None:
            call = bind_launches(stages.launchable, arguments, read, place)
        elif entry is None:
            call = bind_interpreter(lowered, arguments, read, initialised)
        else:
            call = bind_entry(entry, lowered, arguments, read)
        call = replace(call, entries=entries)
        if self.problem.schedule and any(r.promises for r in relations_of(stages.concrete.stmt)):
            call = _naming_bounds(call, stages.concrete.stmt, sizes)
        call = _refreshing(call, refreshes) if refreshes else call
        blocked = self.plan.blocked
        return call if blocked is None else replace(call, run=lambda: convert(call.run(), blocked), bound=None)

    def _laid_out(
        self, stages: Stages, operands: Mapping[str, Storage], structure: Storage | None
    ) -> tuple[dict[str, Storage], list[Callable[[], None]]]:
        """The storages that loops read, by name, and what brings those up to date that were converted."""
        tensor, storages = self.plan.assign.lhs.tensor, dict(operands)
        if stages.concrete.initial is not None:
            storages[stages.concrete.initial] = operands[tensor.name]  # what a sparse result held before has a name of its own
        if structure is not None:
            storages[tensor.name] = with_indices_as(structure, stages.assign.lhs.tensor.index_dtype)
        refreshes: list[Callable[[], None]] = []
        for conversion in stages.concrete.conversions:
            storages[conversion.target.name], refresh = converted(storages[conversion.source.name], conversion.target)
            refreshes.append(refresh)
        self.experience.stored = {name: passed_counts(storage) for name, storage in storages.items() if not storage.format.is_dense}
        return storages, refreshes

    def _output(
        self, stages: Stages, storages: Mapping[str, Storage], values: NDArray[Any] | None, initialised: bool, place: Place | None
    ) -> NDArray[Any] | None:
        """The values of the result: those given, else new ones; None where the kernel makes them. They begin with what is added to."""
        tensor = self.plan.assign.lhs.tensor
        if values is None:
            values = self._allocate(stages, storages, place)
        if initialised and values is not None:
            values[:] = convert(storages[tensor.name], tensor.format).values
        return values

    def compute(self, operands: Mapping[str, Storage], out: Storage, target: str | None = None) -> None:
        """Compute the values of a result whose structure is known. One that cannot be filled in place is made whole again."""


        def computed(special: Specialization, own: Mapping[str, Storage]) -> None:
            if special.plan.blocked is not None or build(special._refilling(out), settings.int32_limit).lowered.hands_out:
                out.values[:] = special.run(own, target).values
            else:
                special.bind(own, target, out.values, out).start()

        self._execute(computed, operands)

    def _refilling(self, structure: Storage) -> Plan:
        """The plan for the values of a result that has this structure already."""
        width = widest((structure.index_dtype, self.problem.narrowest))
        assign = self.plan.assign if structure.format.is_dense else with_index_dtype(self.plan.assign, width)
        return self._running.refilling(assign)

    def _entry(self, stages: Stages) -> EntryPoint | None:
        """The compiled kernel. None for the default target where no compiler is installed and the problem is small: it is interpreted.

        A target that was asked for, and a compiler that fails, are never replaced.
        """
        stages.require_target()
        try:
            return stages.entry
        except ToolchainError as missing:
            is_replaced = stages.target.name == DEFAULT and not is_installed(C_TOOLCHAIN)
            if not is_replaced or not is_interpretable(stages.lowered.function, prod(max(size, 1) for size in self.problem.sizes.values())):
                raise
            notify(f"{missing}\nThis small problem is answered by the interpreter instead.")
            return None

    def run(self, operands: Mapping[str, Storage], target: str | None = None) -> Storage:
        """Compute the result; one that outgrows int32 positions is computed again with int64, and so are those after it."""
        return self._execute(lambda special, own: special._run(own, target), operands)

    def _run(self, operands: Mapping[str, Storage], target: str | None) -> Storage:
        if self.experience.wide is not None:
            return self.experience.wide.run(operands, target)
        try:
            call = self._bind(operands, target, None, None)
            made = call.run()
        except IndexOverflow:
            return self.widened().run(operands, target)
        counts = position_counts(made)
        found = (count for level, count in zip(made.format.levels, counts[1:], strict=True) if not level.full)
        self.experience.learn(max(found, default=0), call.entries)
        return made

    def _allocate(self, stages: Stages, storages: Mapping[str, Storage], place: Place | None) -> Any:
        lowered, tensor, shape = stages.lowered, self.plan.assign.lhs.tensor, self.problem.shape
        if tensor.format.is_dense:
            return room_for(tensor, shape, place)
        if lowered.shared is not None:
            lender = lowered.shared
            count = lent_room(storages[lender.name], lender.depth, tensor.format, shape)
            return aligned(count, tensor.stored_dtype) if place is None else place.room(count, tensor.stored_dtype)
        require_room(tensor.format, shape, tensor.stored_dtype.itemsize)
        return None


_one_for_all: dict[Any, Specialization] = {}


def one_for_all(problem: Problem, statistics: Statistics) -> Specialization:
    """What runs for all problems that are this one when they are renamed."""
    key = (problem, statistics, settings.int32_limit, machine_here(), get_threads())
    found = _one_for_all.get(key)
    if found is None:
        if len(_one_for_all) >= MOST_RENAMED:
            _one_for_all.clear()
        found = _one_for_all[key] = Specialization(problem, statistics, is_renamed=True)
    return found


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
