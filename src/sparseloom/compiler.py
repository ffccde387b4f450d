"""The pipeline on one page.

    index notation -> concrete notation -> scheduled notation -> loop IR -> C -> machine code

``build`` runs the stages up to the loop IR and keeps each of them; the last two are made when they are asked for.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from time import perf_counter

from sparseloom.core.errors import CompilerBug, DeviceError, NotationError, RaceWarning
from sparseloom.core.lines import Line, lines_of
from sparseloom.core.notices import notify
from sparseloom.core.once import cached_property
from sparseloom.core.settings import trace_folder, verifies
from sparseloom.core.trees import walk
from sparseloom.iteration.concretize import Concrete, refilled
from sparseloom.iteration.inside import put_inside
from sparseloom.loops import printer as loop_printer
from sparseloom.loops.bounds import hold_bounds
from sparseloom.loops.nodes import GPU_KINDS, Array, Function, LoopKind, Store
from sparseloom.loops.outcomes import Outcome, settled
from sparseloom.loops.rename import alpha_rename
from sparseloom.loops.simplify import simplify
from sparseloom.loops.verify import verify as verify_loops
from sparseloom.lower.count_first import count_first
from sparseloom.lower.cuts import cut_into_parts, cut_into_slots
from sparseloom.lower.kernel import Lowered, lower
from sparseloom.lower.made_names import origins_of
from sparseloom.lower.rounding import held_in_float32, rounded_last, rounds_early
from sparseloom.notation import printer
from sparseloom.notation.nodes import Access, Assign, Forall, Unit
from sparseloom.notation.verify import verify as verify_notation
from sparseloom.passes.barriers import place_barriers
from sparseloom.passes.cancel import add_polls
from sparseloom.passes.failures import skip_after_failures
from sparseloom.passes.fit_units import fit_units
from sparseloom.passes.launch import add_launches
from sparseloom.passes.localise import keep_in_registers
from sparseloom.passes.promised import use_promised
from sparseloom.passes.search_together import search_together
from sparseloom.passes.uniform import share_among_lanes
from sparseloom.passes.unread import drop_unread
from sparseloom.passes.unroll_and_jam import unroll_and_jam
from sparseloom.passes.vectorize import vectorize
from sparseloom.passes.wide import widen
from sparseloom.plan.plan import Plan, choose_loops, schedule_loops
from sparseloom.schedule.picture import lines_with_origins
from sparseloom.schedule.races import ignored
from sparseloom.schedule.units import GPU_UNITS
from sparseloom.targets.c import C
from sparseloom.targets.interpret import with_warps
from sparseloom.targets.target import Calling, Launchable, Target
from sparseloom.toolchain.libraries import load
from sparseloom.toolchain.loading import EntryPoint
from sparseloom.tracing import AnyPassed, Made, Pass, Passed, Timing, loop_kinds, show_passes, timed, write_trace

STAGES = ("notation", "concrete", "passes", "loops", C.name)


def concrete_passes(target: Target, refill: bool) -> tuple[Pass[Concrete], ...]:
    """The passes over scheduled notation for a target, in order: what is left to say before loops are made of it."""
    return (
        *((Pass("refilled", refilled),) if refill else ()),
        Pass("put_inside", put_inside),
        Pass("cut_into_slots", lambda concrete: cut_into_slots(concrete, target.slots)),
        Pass("cut_into_parts", lambda concrete: cut_into_parts(concrete, target.parts)),
        Pass("count_first", count_first),
    )


def loop_passes(target: Target, indices: Collection[Array] = ()) -> tuple[Pass[Lowered], ...]:
    """The passes over loops for a target, in order; ``indices`` are the arrays that say where entries are stored."""
    launches, warp = target.calling is Calling.LAUNCHED, with_warps(target).lanes
    return (
        _over("use_promised", use_promised),
        _over("drop_unread", drop_unread, LoopKind.VECTOR),
        _over("vectorize", lambda loops: vectorize(loops, target.vector_bytes), LoopKind.VECTOR),
        _over("simplify", simplify),
        _over("unroll_and_jam", unroll_and_jam, LoopKind.UNROLLED),
        _over("add_polls", add_polls),
        _over("simplify", simplify),
        _over("keep_in_registers", keep_in_registers, LoopKind.GPU_THREAD),
        _over("widen", widen, LoopKind.GPU_THREAD),
        _over("share_among_lanes", share_among_lanes, LoopKind.GPU_THREAD),
        _over("add_launches", lambda loops: add_launches(loops, warp, indices, launches), *(() if launches else GPU_KINDS)),
        *(
            _over(one.__name__, one, *(() if launches else GPU_KINDS))
            for one in (simplify, hold_bounds, fit_units, skip_after_failures, search_together, place_barriers)
        ),
    )


def _over(name: str, run: Callable[[Function], Function | tuple[Function, tuple[Outcome, ...]]], *kinds: LoopKind) -> Pass[Lowered]:
    """A pass over the loops of a kernel, which has something to do if there are loops of these kinds. It may say what became of loops."""

    def over(lowered: Lowered) -> Lowered:
        made = run(lowered.function)
        function, outcomes = made if isinstance(made, tuple) else (made, ())
        if function == lowered.function and not outcomes:
            return lowered
        return replace(lowered, function=function, outcomes=settled((*lowered.outcomes, *outcomes)))

    return Pass(name, over, kinds)


@dataclass(frozen=True, eq=False)
class Stages:
    """One statement at every stage of its compilation."""

    assign: Assign
    concrete: Concrete
    lowered: Lowered
    target: Target = C
    timings: tuple[Timing, ...] = ()
    again: Callable[[], Iterable[AnyPassed]] = tuple  # runs every pass once more

    @cached_property
    def gpu_unit(self) -> Unit | None:
        """A unit of a GPU that the schedule asks for."""
        return next((unit for unit in self._units if unit in GPU_UNITS), None)

    @property
    def _units(self) -> Iterator[Unit]:
        return (n.tag.unit for n in walk(self.concrete.stmt) if isinstance(n, Forall) and n.tag.unit is not None)

    @cached_property
    def sparse_reads(self) -> tuple[str, ...]:
        """The sparse operands, each as often as the statement reads it."""
        accesses = (n for n in walk(self.concrete.assign.rhs) if isinstance(n, Access))
        return tuple(access.tensor.name for access in accesses if not access.tensor.format.is_dense)

    def require_target(self) -> None:
        """Refuse a schedule that the target cannot run."""
        if self._lacks is not None:
            help = "target='interpret' runs it, slowly, with every access checked"
            raise DeviceError(f"{self._lacks}\n  help: {help}")

    @cached_property
    def _lacks(self) -> str | None:
        """What the target would need, in words; None if it has everything."""
        target = self.target
        if (unit := target.lacking(self._units)) is not None:
            return f"the schedule runs a loop on {unit.name}, and {target.title} has none"
        if target.calling is Calling.COMPILED and target.allocator is None and self.lowered.hands_out:
            return f"{target.title} hands out no arrays, so it cannot make a sparse result"
        for n in walk(self.lowered.function):
            match n:
                case Array(dtype=dtype) if not target.has_dtype(dtype):
                    return f"{target.title} has no arrays of {dtype}"
                case Store(array, op=str(op), atomic=True) if target.atomic(op, array.dtype) is None:
                    return f"{target.title} has no atomic {op} of {array.dtype}"
                case Array(space=space) if space not in target.spaces:
                    return f"{target.title} has no {space.value} memory"
        return None

    @cached_property
    def source(self) -> str:
        """The text that the target makes, in the user's names."""
        self.require_target()
        return self.target.emit([(self.lowered.function, "entry")])

    @property
    def entry(self) -> EntryPoint:
        """The compiled kernel. Its text is renamed first, so that kernels that differ in names alone are compiled once.

        Whoever runs it keeps it loaded; what is merely known may be unloaded, and is then loaded again.
        """
        if (known := self.loaded_entry) is not None:
            return known
        (made,) = load(self.target.emit([(alpha_rename(self.lowered.function), "entry")]), target=self.target)
        self.keep_in_mind(made)
        return made

    @cached_property
    def launchable(self) -> Launchable:
        """What a device runs, renamed as ``entry`` is."""
        self.require_target()
        function = alpha_rename(self.lowered.function)
        if self.target.kernels is None:
            raise CompilerBug(self.target.name, "a target whose kernels are launched should say which there are")
        return Launchable(function, self.target.emit([(function, "entry")]), self.target.kernels(function, "entry"))

    @property
    def loaded_entry(self) -> EntryPoint | None:
        """The compiled kernel, if it is loaded."""
        known: weakref.ref[EntryPoint] | None = self.__dict__.get("_entry")
        return None if known is None else known()

    def keep_in_mind(self, entry: EntryPoint) -> None:
        """Remember the compiled kernel for as long as somebody keeps it loaded."""
        self.__dict__["_entry"] = weakref.ref(entry)

    def show(self, stage: str) -> str:
        """The text of one stage."""
        match stage:
            case "notation":
                return printer.show(self.assign)
            case "concrete":
                return printer.show(self.concrete.stmt)
            case "passes":
                return show_passes(self.concrete, self.again())
            case "loops":
                return loop_printer.show(self.lowered.function)
            case self.target.name:
                return self.source
        raise NotationError(f"there is no stage {stage!r}; there are {', '.join([*STAGES[:-1], self.target.name])}")

    def lines(self, stage: str) -> tuple[Line, ...]:
        """The lines of one stage, each with the variable or the tensor that it stems from, if it does from one."""
        match stage:
            case "concrete":
                return tuple(lines_with_origins(self.concrete.stmt))
            case "loops":
                return tuple(loop_printer.lines(self.lowered.function))
            case self.target.name:
                self.require_target()
                made = self.target.lines_of(self.lowered.function, "entry")
                return tuple(made[:-1] if made[-1].text == "" else made)
        return tuple(lines_of(self.show(stage)))


@lru_cache(maxsize=4096)
def build(plan: Plan, int32_limit: int = 2**31 - 1) -> Stages:
    """Run every stage up to the loop IR."""
    return lower_concrete(plan.assign, _scheduled(plan), int32_limit, plan.refill, plan.target)


def build_plainly(plan: Plan, int32_limit: int = 2**31 - 1) -> Stages:
    """The stages before any pass over loops, also where the target lacks what a pass would ask of it."""
    concrete = _scheduled(plan)
    return Stages(plan.assign, concrete, lower_plainly(concrete, int32_limit, plan.refill, plan.target), plan.target)


def _scheduled(plan: Plan) -> Concrete:
    verified(choose_loops(plan.plain))
    return verified(schedule_loops(plan))


def verified(made: Made) -> Made:
    """What a pass made, as it is; where that is asked for, what must hold of it is checked first."""
    if verifies():
        match made:
            case Concrete(stmt):
                verify_notation(stmt)
            case Lowered(function):
                verify_loops(function)
    return made


def lower_concrete(assign: Assign, concrete: Concrete, int32_limit: int, refill: bool = False, target: Target = C) -> Stages:
    """The stages of a statement whose loops are settled. Races that nothing covers were allowed by the user, and are reported."""
    for conflict in ignored(concrete.stmt):
        notify(f"{conflict}, and nothing covers it: the result may be wrong", RaceWarning)
    again = partial(run_passes, concrete, int32_limit, refill, target)
    timings: list[Timing] = []
    kept: list[AnyPassed] = []
    traces = trace_folder() is not None
    for passed in again():
        timings.append(Timing.of(passed))
        kept = [*kept, passed] if traces else [passed]
    if traces:
        write_trace(concrete, kept)
    lowered = kept[-1].made
    if not isinstance(lowered, Lowered):
        raise CompilerBug(concrete.stmt, "the last pass should leave loops")
    return Stages(assign, concrete, lowered, target, tuple(timings), again)


def lower_plainly(concrete: Concrete, int32_limit: int, refill: bool = False, target: Target = C) -> Lowered:
    """The loops of a statement as they are made, before any pass: every variable of the schedule still has its loop."""
    for passed in run_passes(concrete, int32_limit, refill, target):
        if isinstance(passed.made, Lowered):
            return passed.made
    raise CompilerBug(concrete.stmt, "a statement should be lowered to loops")


def run_passes(concrete: Concrete, int32_limit: int, refill: bool, target: Target) -> Iterator[AnyPassed]:
    """Every pass that has something to do, over scheduled notation and then over loops, with what it made."""
    settled = concrete
    for settle in concrete_passes(target, refill):
        settling = timed(settle, settled)
        yield settling
        settled = verified(settling.made) if settling.changed else settled
    began = perf_counter()
    lowered = _lower(settled, origins_of(concrete, settled), int32_limit, target)
    yield Passed("lower", lowered, perf_counter() - began)
    kinds = loop_kinds(verified(lowered).function)
    for improve in loop_passes(target, lowered.indices):
        if not improve.applies(kinds):
            continue
        improving = timed(improve, lowered)
        yield improving
        if improving.changed:
            lowered = verified(improving.made)
            kinds = loop_kinds(lowered.function)


def _lower(settled: Concrete, origins: Mapping[str, str], int32_limit: int, target: Target) -> Lowered:
    lowered = lower(settled, target, "kernel", int32_limit, origins)
    if settled.assign.lhs.tensor.stored is not None and rounds_early(lowered.function):
        return rounded_last(lower(held_in_float32(settled), target, "kernel", int32_limit, origins), settled)
    return lowered


def load_together(many: Sequence[Stages]) -> None:
    """Compile the kernels of many statements, all for one target, as one file, which costs much less than one file each."""
    waiting = list({id(stages): stages for stages in many if stages.loaded_entry is None}.values())
    if not waiting:
        return
    names = [f"entry_{k}" for k in range(len(waiting))]
    functions = [alpha_rename(stages.lowered.function) for stages in waiting]
    target = waiting[0].target
    loaded = load(target.emit(list(zip(functions, names, strict=True))), names, target)
    for stages, entry in zip(waiting, loaded, strict=True):
        stages.keep_in_mind(entry)
