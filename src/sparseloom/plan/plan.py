"""From a problem and what is known of its data to how it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from sparseloom.core.errors import ScheduleError
from sparseloom.formats.format import Format
from sparseloom.formats.named import csf
from sparseloom.iteration.accumulate import merge_initial, merges_initial, name_initial
from sparseloom.iteration.assembly import can_fill
from sparseloom.iteration.concretize import Concrete, concretize, makes_blocks
from sparseloom.iteration.layout import appendable
from sparseloom.iteration.rows import RowChoice, choose_row, is_long, scheduled_row
from sparseloom.iteration.sharing import is_made_apart
from sparseloom.notation.nodes import Access, Assign, TensorVar
from sparseloom.notation.printer import show
from sparseloom.notation.terms import tensors_of
from sparseloom.plan.choose import WORTH, Choice, Worth, choices, choices_on_gpu, variants
from sparseloom.plan.compose import composed
from sparseloom.plan.decision import Decision
from sparseloom.plan.problem import Problem, resolve, with_index_dtype
from sparseloom.plan.space import Space
from sparseloom.plan.statistics import NOTHING_KNOWN, Statistics
from sparseloom.plan.sums import sum_inside
from sparseloom.plan.vectors import CONSTANT
from sparseloom.schedule.schedule import Schedule
from sparseloom.targets.c import C
from sparseloom.targets.target import Calling, Target


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
    schedule: str = ""
    initial: TensorVar | None = None
    blocked: Format | None = None
    unblocks: str = ""
    refill: bool = False
    target: Target = C
    decisions: tuple[Decision, ...] = field(default=(), compare=False)

    @property
    def plain(self) -> Plan:
        """What decides the loops, before any schedule."""
        return replace(self, schedule="", refill=False, target=C, blocked=None, unblocks="")

    def refilling(self, assign: Assign) -> Plan:
        """The same for the values alone of a result with a known structure."""
        return replace(self, assign=assign, refill=True)


_Under = Callable[[Concrete, str], Concrete]


def plan(problem: Problem, statistics: Statistics = NOTHING_KNOWN, worth: Worth = WORTH) -> Plan:
    """How a problem runs."""
    if problem.schedule:
        return plan_as_asked(problem)
    plain = plan_freely(problem, statistics)
    is_free = problem.schedule is None and problem.is_stored
    return plan_schedule(plain, problem.sizes, statistics, worth) if is_free else plain


def plan_schedule(plain: Plan, sizes: Mapping[str, int], statistics: Statistics, worth: Worth = WORTH) -> Plan:
    """The plan with the best schedule that its loops allow."""
    loops = choose_loops(plain.plain)
    space = Space(loops.stmt, sizes, statistics)
    on_gpu = choices_on_gpu(loops, space, plain.target.ordered) if _is_for_gpu(plain) else None
    return next(_allowed(plain, loops, on_gpu or choices(loops, space, worth)))


def _is_for_gpu(plan: Plan) -> bool:
    return plan.target.calling is Calling.LAUNCHED


def plan_loops(loops: Concrete, sizes: Mapping[str, int], statistics: Statistics, worth: Worth = WORTH) -> Concrete:
    """The loops under the best schedule that they allow."""
    return composed(loops, next(_fitting(loops, choices(loops, Space(loops.stmt, sizes, statistics), worth), composed)).schedule)


def share_inside(problem: Problem, statistics: Statistics) -> float:
    """What share of the work of plain loops is left in one nest: less than all of it, where the planner computes a sum inside."""
    plain = plan_freely(problem, statistics)
    loops = choose_loops(plain.plain)
    space = Space(loops.stmt, problem.sizes, statistics)
    inside, chosen = sum_inside(loops, space), plan_schedule(plain, problem.sizes, statistics)
    return inside.space.runs / space.runs if inside is not None and inside.decision in chosen.decisions else 1.0


def plan_variants(problem: Problem, statistics: Statistics, worth: Worth = WORTH) -> tuple[Plan, ...]:
    """Plans to choose from by measuring, the planner's own first."""
    plain = plan_freely(problem, statistics)
    loops = choose_loops(plain.plain)
    own = plan_schedule(plain, problem.sizes, statistics, worth)
    find = choices_on_gpu if _is_for_gpu(plain) else variants
    others = _allowed(plain, loops, find(loops, Space(loops.stmt, problem.sizes, statistics)))
    return tuple({plan.schedule: plan for plan in (own, *others)}.values())


def plan_with(problem: Problem, statistics: Statistics, schedule: str) -> Plan | None:
    """The plan with a schedule that was found to be best; None if the loops do not allow it."""
    plain = plan_freely(problem, statistics)
    decision = Decision(tuple(schedule.split("\n")), "as measured", "this was the quickest schedule when the kernel was tuned")
    return next(_allowed(plain, choose_loops(plain.plain), [Choice(schedule, (decision,))], scheduled), None)


def problem_text(problem: Problem, statistics: Statistics) -> str:
    """What decides which schedule is best: the statement, how tensors are stored, small extents, and rounded numbers."""
    extents = tuple((name, size if size <= CONSTANT else _rounded(size)) for name, size in problem.extents)
    return repr((show(problem.assign), tensors_of(problem.assign), extents, statistics, problem.workspace, problem.target.name))


def _rounded(size: int) -> int:
    return 1 << size.bit_length()


def _allowed(plain: Plan, loops: Concrete, found: Iterable[Choice], under: _Under | None = None) -> Iterator[Plan]:
    """Plans with those schedules that the loops allow."""
    for choice in _fitting(loops, found, under or composed):
        yield replace(plain, schedule=choice.schedule, decisions=choice.decisions)


def _fitting(loops: Concrete, found: Iterable[Choice], under: _Under) -> Iterator[Choice]:
    """The schedules that the loops allow."""
    for choice in found:
        try:
            under(loops, choice.schedule)
        except ScheduleError:
            continue
        yield choice


@lru_cache(maxsize=512)
def choose_loops(plan: Plan) -> Concrete:
    """Concrete notation, before any schedule."""
    costs = {operand: float(place) for place, operand in enumerate(plan.cheapest)}
    if plan.initial is None:
        return concretize(plan.assign, costs, plan.share, plan.rows)
    chosen = concretize(merge_initial(plan.assign, plan.initial), costs, plan.share, plan.rows)
    return replace(chosen, initial=plan.initial.name, made=chosen.made | {plan.initial.name})


@lru_cache(maxsize=512)
def scheduled(loops: Concrete, schedule: str) -> Concrete:
    """The loops under a schedule."""
    return Schedule.from_text(loops, schedule).concrete if schedule else loops


def plan_as_asked(problem: Problem) -> Plan:
    """What a schedule of the user's own starts from. It does not depend on the data, so that what was checked is what runs."""
    assign, blocked, why = _apart(problem, _why_apart(problem, in_any_order=False))
    rows = scheduled_row(_row_extent(assign, problem.sizes), problem.workspace)
    return Plan(assign, (), True, rows, problem.schedule or "", _initial(problem, assign), blocked, why, target=problem.target.model)


def plan_freely(problem: Problem, statistics: Statistics) -> Plan:
    """What the compiler chooses by itself."""
    entries, sizes, why = statistics.entries, problem.sizes, _why_apart(problem, in_any_order=True)
    if not why and problem.assign.lhs.tensor.format.blocks and is_long(max(problem.shape, default=0), entries):
        why = "modes are long and operands have few entries"
    assign, blocked, why = _apart(problem, why)
    initial = _initial(problem, assign)
    long = frozenset(name for name, size in sizes.items() if is_long(size, entries))
    scattered = not statistics.operands or any(known.scattered for _, known in statistics.operands)
    rows = replace(choose_row(_row_extent(assign, sizes), entries, problem.workspace, scattered), long=long)
    cheapest = _with_initial(statistics.cheapest, assign, initial)
    return Plan(assign, cheapest, not problem.is_empty, rows, "", initial, blocked, why, target=problem.target.model)


def _why_apart(problem: Problem, in_any_order: bool) -> str:
    """Why the loops cannot make a result as it is stored, whatever the data; empty if they can.

    Some results can be filled ``in_any_order``; a schedule starts from loops that append.
    """
    lhs = problem.assign.lhs
    if lhs.tensor.format.blocks and len(set(lhs.indices)) < len(lhs.indices):
        return "a diagonal cuts blocks"
    if lhs.tensor.format.blocks and not makes_blocks(problem.assign):
        return "its blocks are not made as they are stored"
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
