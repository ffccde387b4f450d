"""From a problem and what is known of its data to how it runs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sparseloom.core.errors import ScheduleError
from sparseloom.core.trees import walk
from sparseloom.formats.format import Format
from sparseloom.formats.named import csf
from sparseloom.iteration.accumulate import merges_initial, name_initial
from sparseloom.iteration.assembly import can_fill
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.layout import appendable, is_filled
from sparseloom.iteration.rows import RowChoice, choose_row, is_long, scheduled_row
from sparseloom.iteration.sharing import is_made_apart
from sparseloom.notation.nodes import Access, Assign, Races, TensorVar, Unit, Where
from sparseloom.plan.problem import Problem, resolve, with_index_dtype
from sparseloom.plan.statistics import NOTHING_KNOWN, Statistics, Work
from sparseloom.schedule.laws import appended_result
from sparseloom.schedule.loops import loops as loops_of
from sparseloom.schedule.schedule import Schedule
from sparseloom.targets.c import C
from sparseloom.targets.target import Target


@dataclass(frozen=True)
class Plan:
    """Every choice that the compiler is to follow, so that equal plans are compiled once.

    ``assign`` is what is compiled: a result that cannot be put into ``blocked`` by the loops is made without blocks and converted in the
    end, for the reason ``unblocks``. ``cheapest`` are the operands in the order in which to convert them, if some must be. ``share`` lets
    the result take over the structure of an operand. ``initial`` is what a sparse result held before. ``refill`` asks for the values of a
    sparse result whose structure is known.
    """

    assign: Assign
    cheapest: tuple[str, ...]
    share: bool
    rows: RowChoice
    work: Work
    schedule: str = ""
    initial: TensorVar | None = None
    blocked: Format | None = None
    unblocks: str = ""
    refill: bool = False
    target: Target = C

    def refilling(self, assign: Assign) -> Plan:
        """The same for the values alone of a result with a known structure."""
        return replace(self, assign=assign, refill=True)


def plan(problem: Problem, statistics: Statistics = NOTHING_KNOWN) -> Plan:
    """How a problem runs."""
    return plan_as_asked(problem) if problem.schedule else plan_freely(problem, statistics)


def plan_as_asked(problem: Problem) -> Plan:
    """What a schedule of the user's own starts from. It does not depend on the data, so that what was checked is what runs."""
    assign, blocked, why = _apart(problem, _why_apart(problem, in_any_order=False))
    rows = scheduled_row(_row_extent(assign, problem.sizes), problem.workspace)
    return Plan(assign, (), True, rows, Work.LITTLE, problem.schedule or "", _initial(problem, assign), blocked, why, target=problem.target.model)


def plan_freely(problem: Problem, statistics: Statistics) -> Plan:
    """What the compiler chooses by itself."""
    entries, sizes, why = statistics.entries, problem.sizes, _why_apart(problem, in_any_order=True)
    if not why and problem.assign.lhs.tensor.format.blocks and is_long(max(problem.shape, default=0), entries):
        why = "modes are long and operands have few entries"
    assign, blocked, why = _apart(problem, why)
    initial = _initial(problem, assign)
    long = frozenset(name for name, size in sizes.items() if is_long(size, entries))
    rows = replace(choose_row(_row_extent(assign, sizes), entries, problem.workspace), long=long)
    cheapest = _with_initial(statistics.cheapest, assign, initial)
    work = Work.LITTLE if problem.schedule is not None else statistics.work
    return Plan(assign, cheapest, not problem.is_empty, rows, work, "", initial, blocked, why, target=problem.target.model)


def _why_apart(problem: Problem, in_any_order: bool) -> str:
    """Why the loops cannot make a result as it is stored, whatever the data; empty if they can.

    Some results can be filled ``in_any_order``; a schedule starts from loops that append.
    """
    lhs = problem.assign.lhs
    if lhs.tensor.format.blocks and len(set(lhs.indices)) < len(lhs.indices):
        return "a diagonal cuts blocks"
    fills = in_any_order and can_fill(problem.assign)
    return "entries cannot be appended to it" if is_made_apart(problem.assign) and not fills else ""


def _apart(problem: Problem, why: str) -> tuple[Assign, Format | None, str]:
    """The statement with a result to which entries can be appended, and the format it gets in the end, if there is a reason for that."""
    if not why:
        return problem.assign, None, ""
    tensor = problem.assign.lhs.tensor
    form = csf(len(problem.shape)) if tensor.format.blocks else appendable(tensor.format)
    plain = resolve(problem.statement, form, problem.dtype)
    return (plain if tensor.index_dtype is None else with_index_dtype(plain, tensor.index_dtype)), tensor.format, why


def _initial(problem: Problem, assign: Assign) -> TensorVar | None:
    """What a sparse result held before, as it is stored; without data, it is stored as the result."""
    if not merges_initial(assign):
        return None
    given = problem.statement.lhs.tensor
    return name_initial(assign, given if problem.is_stored else replace(assign.lhs.tensor, fill=given.fill))


def _with_initial(cheapest: tuple[str, ...], assign: Assign, initial: TensorVar | None) -> tuple[str, ...]:
    """The operands with what the result held before among them, where the result's own name stands."""
    result = assign.lhs.tensor.name
    if initial is None or result not in cheapest:
        return cheapest
    at = cheapest.index(result) + 1
    return (*cheapest[:at], initial.name, *cheapest[at:])


def _row_extent(assign: Assign, sizes: dict[str, int]) -> int:
    """How many coordinates a row of the result can have."""
    lhs: Access = assign.lhs
    return sizes[lhs.indices[lhs.tensor.format.modes[len(lhs.indices) - 1]].name] if lhs.indices else 1


def in_parallel(concrete: Concrete, work: Work) -> Concrete:
    """The loops of a sparse result with its rows spread over threads; as they are, where that is not allowed or does not pay."""
    enough = Work.LARGE if any(isinstance(n, Where) for n in walk(concrete.stmt)) else Work.VERY_LARGE
    if work < enough or appended_result(concrete) is None or is_filled(concrete.assign.lhs.tensor.format):
        return concrete
    try:
        return Schedule(concrete).parallelize(loops_of(concrete.stmt)[0], Unit.CPUThread, Races.NoRaces).concrete
    except ScheduleError:
        return concrete
