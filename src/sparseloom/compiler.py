"""The pipeline on one page.

    index notation -> concrete notation -> scheduled notation -> loop IR -> C -> machine code

``build`` runs the stages up to the loop IR and keeps each of them; the last two are made when they are asked for.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache

import numpy as np

from sparseloom.core.dtypes import DType
from sparseloom.core.errors import DeviceError, DTypeError, NotationError, RaceWarning, ScheduleError
from sparseloom.core.notices import notify
from sparseloom.core.once import cached_property
from sparseloom.core.trees import Node, rewrite, walk
from sparseloom.formats.format import Format
from sparseloom.iteration.accumulate import merge_initial
from sparseloom.iteration.concretize import Concrete, concretize
from sparseloom.iteration.defaults import default_format
from sparseloom.iteration.rows import SHORT_ROWS, RowChoice
from sparseloom.loops import printer as loop_printer
from sparseloom.loops.rename import alpha_rename
from sparseloom.lower.kernel import Lowered, lower
from sparseloom.notation import printer
from sparseloom.notation.dtyping import dtype_of, reduced_dtype, result_fill
from sparseloom.notation.nodes import Access, Apply, Assign, Expr, Forall, Races, Reduce, TensorVar, Unit, Where
from sparseloom.runtime.library import Entry, load
from sparseloom.schedule.laws import appended_result
from sparseloom.schedule.loops import loops as loops_of
from sparseloom.schedule.races import ignored
from sparseloom.schedule.schedule import Schedule
from sparseloom.schedule.units import GPU_UNITS
from sparseloom.targets import c

MOST_SPARSE = 500
STAGES = ("notation", "concrete", "loops", "c")


@dataclass(frozen=True, eq=False)
class Stages:
    """One statement at every stage of its compilation."""

    assign: Assign
    concrete: Concrete
    lowered: Lowered

    @cached_property
    def gpu_unit(self) -> Unit | None:
        """A unit of a GPU that the schedule asks for."""
        units = (n.tag.unit for n in walk(self.concrete.stmt) if isinstance(n, Forall))
        return next((unit for unit in units if unit in GPU_UNITS), None)

    @cached_property
    def sparse_reads(self) -> tuple[str, ...]:
        """The sparse operands, each as often as the statement reads it."""
        accesses = (n for n in walk(self.concrete.assign.rhs) if isinstance(n, Access))
        return tuple(access.tensor.name for access in accesses if not access.tensor.format.is_dense)

    def require_c(self) -> None:
        """Refuse a schedule that C cannot run."""
        if self.gpu_unit is not None:
            help = "target='interpret' runs it, slowly, with every access checked"
            raise DeviceError(f"the schedule runs a loop on {self.gpu_unit.name}, and C has none\n  help: {help}")

    @cached_property
    def source(self) -> str:
        """The C text, in the user's names."""
        self.require_c()
        return c.translation_unit([(self.lowered.function, "entry")])

    @property
    def entry(self) -> Entry:
        """The compiled kernel. Its text is renamed first, so that kernels that differ in names alone are compiled once.

        Whoever runs it keeps it loaded; what is merely known may be unloaded, and is then loaded again.
        """
        if (known := self.loaded_entry) is not None:
            return known
        (made,) = load(c.translation_unit([(alpha_rename(self.lowered.function), "entry")]))
        self.keep_in_mind(made)
        return made

    @property
    def loaded_entry(self) -> Entry | None:
        """The compiled kernel, if it is loaded."""
        known: weakref.ref[Entry] | None = self.__dict__.get("_entry")
        return None if known is None else known()

    def keep_in_mind(self, entry: Entry) -> None:
        """Remember the compiled kernel for as long as somebody keeps it loaded."""
        self.__dict__["_entry"] = weakref.ref(entry)

    def show(self, stage: str) -> str:
        """The text of one stage."""
        match stage:
            case "notation":
                return printer.show(self.assign)
            case "concrete":
                return printer.show(self.concrete.stmt)
            case "loops":
                return loop_printer.show(self.lowered.function)
            case "c":
                return self.source
        raise NotationError(f"there is no stage {stage!r}; there are {', '.join(STAGES)}")


class Work(IntEnum):
    """How much there is to do: the least number of entries of sparse operands, together."""

    LITTLE = 0
    LARGE = 1 << 16  # rows that are built in a workspace take half a millisecond or more
    VERY_LARGE = 1 << 19  # entries that are merely merged do

    @staticmethod
    def of(entries: int) -> Work:
        """What so many entries mean."""
        return Work.LITTLE if entries < Work.LARGE else Work.LARGE if entries < Work.VERY_LARGE else Work.VERY_LARGE


@lru_cache(maxsize=4096)
def build(
    assign: Assign,
    cheapest: tuple[str, ...] = (),
    share: bool = True,
    int32_limit: int = 2**31 - 1,
    schedule: str = "",
    initial: TensorVar | None = None,
    work: Work = Work.LITTLE,
    rows: RowChoice = SHORT_ROWS,
    refill: bool = False,
) -> Stages:
    """Run every stage up to the loop IR. ``cheapest`` lists operands from the one with fewest entries on.

    ``work`` says whether there is enough for several threads; a schedule of the user's own decides on that itself. ``rows`` is the
    workspace for rows whose entries come in no order. ``refill`` asks for the values of a sparse result whose structure is known.
    """
    loops = choose_loops(assign, cheapest, share, initial, rows)
    scheduled = Schedule.from_text(loops, schedule).concrete if schedule else in_parallel(loops, work)
    return lower_concrete(assign, scheduled, int32_limit, refill)


def in_parallel(concrete: Concrete, work: Work) -> Concrete:
    """The loops of a sparse result with its rows spread over threads; as they are, where that is not allowed or does not pay."""
    enough = Work.LARGE if any(isinstance(n, Where) for n in walk(concrete.stmt)) else Work.VERY_LARGE
    if work < enough or appended_result(concrete) is None:
        return concrete
    try:
        return Schedule(concrete).parallelize(loops_of(concrete.stmt)[0], Unit.CPUThread, Races.NoRaces).concrete
    except ScheduleError:
        return concrete


def choose_loops(
    assign: Assign, cheapest: tuple[str, ...], share: bool, initial: TensorVar | None = None, rows: RowChoice = SHORT_ROWS
) -> Concrete:
    """Concrete notation, before any schedule. ``initial`` is what a sparse result held before the statement adds to it."""
    costs = {operand: float(place) for place, operand in enumerate(cheapest)}
    if initial is None:
        return concretize(assign, costs, share, rows)
    chosen = concretize(merge_initial(assign, initial), costs, share, rows)
    return replace(chosen, initial=initial.name, made=chosen.made | {initial.name})


def lower_concrete(assign: Assign, concrete: Concrete, int32_limit: int, refill: bool = False) -> Stages:
    """The stages of a statement whose loops are settled. Races that nothing covers were allowed by the user, and are said."""
    for conflict in ignored(concrete.stmt):
        notify(f"{conflict}, and nothing covers it: the result may be wrong", RaceWarning)
    return Stages(assign, concrete, lower(concrete, "kernel", int32_limit, refill))


def load_together(many: Sequence[Stages]) -> None:
    """Compile the kernels of many statements as one C file, which costs much less than one file each."""
    waiting = list({id(stages): stages for stages in many if stages.loaded_entry is None}.values())
    if not waiting:
        return
    names = [f"entry_{k}" for k in range(len(waiting))]
    functions = [alpha_rename(stages.lowered.function) for stages in waiting]
    loaded = load(c.translation_unit(list(zip(functions, names, strict=True))), names)
    for stages, entry in zip(waiting, loaded, strict=True):
        stages.keep_in_mind(entry)


def check_length(assign: Assign) -> None:
    """Refuse so many sparse operands that compiling the loop which merges them would take minutes."""
    sparse = sum(isinstance(n, Access) and not n.tensor.format.is_dense for n in walk(assign.rhs))
    if sparse > MOST_SPARSE:
        raise NotationError(
            f"the statement reads sparse operands {sparse} times, and {MOST_SPARSE} is the limit\n"
            "  help: compute it in several statements, and add to the result with +="
        )


def resolve(assign: Assign, format: Format | None, dtype: DType | None) -> Assign:
    """Settle the result's format, dtype and fill."""
    check_length(assign)
    if dtype is not None and any(dtype_of(part) != dtype for part in _partial_results(assign.rhs)):
        assign = Assign(assign.lhs, _with_room(assign.rhs, dtype), assign.op)
    form = default_format(assign) if format is None else format
    own = dtype_of(assign.rhs) if assign.op is None else reduced_dtype(assign.op, assign.rhs)
    if dtype is not None and assign.op is not None and own.kind == "b" != dtype.kind and assign.op.startswith("logical"):
        raise DTypeError(f"{assign.op} accumulates truth values, so the result cannot be {dtype}\n  help: leave dtype= away")
    tensor = TensorVar(assign.lhs.tensor.name, len(assign.lhs.indices), form, dtype or own, fill=result_fill(assign, dtype or own))
    return Assign(Access(tensor, assign.lhs.indices), assign.rhs, assign.op)


def _partial_results(rhs: Expr) -> Iterator[Expr]:
    """The right side, and what is computed on the way to it."""
    yield rhs
    yield from (found for found in walk(rhs) if isinstance(found, Apply | Reduce))


def _with_room(rhs: Expr, dtype: DType) -> Expr:
    """The right side with its operands converted first, where that loses nothing: sums then have the room that was asked for.

    Where an operator is not defined on that dtype (max, on complex numbers), only the result is converted.
    """

    def rule(found: Node) -> Node | None:
        if isinstance(found, Access) and found.tensor.dtype != dtype and np.can_cast(found.tensor.dtype, dtype):
            return Apply(f"as_{dtype.name}", (found,))
        return None

    converted: Expr = rewrite(rhs, rule)
    try:
        dtype_of(converted)
    except DTypeError:
        return rhs
    return converted


def with_index_dtype(assign: Assign, dtype: DType) -> Assign:
    """The statement with the result's index arrays in this width."""
    tensor = replace(assign.lhs.tensor, index_dtype=dtype)
    return Assign(Access(tensor, assign.lhs.indices), assign.rhs, assign.op)
