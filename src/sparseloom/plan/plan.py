"""From a problem and what is known of its data to how it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from sparseloom.core.errors import CompilerBug, ScheduleError
from sparseloom.formats.format import Format
from sparseloom.formats.named import csf
from sparseloom.iteration.accumulate import merge_initial, merges_initial, name_initial
from sparseloom.iteration.assembly import is_put_in_place
from sparseloom.iteration.concretize import Concrete, concretize, makes_blocks
from sparseloom.iteration.layout import compressed
from sparseloom.iteration.rows import RowChoice, choose_row, is_long, scheduled_row
from sparseloom.iteration.sharing import is_made_apart
from sparseloom.notation.nodes import Access, Assign, TensorVar
from sparseloom.notation.printer import show
from sparseloom.notation.terms import tensors_of
from sparseloom.plan.choose import choices, variants
from sparseloom.plan.compose import composed
from sparseloom.plan.decision import Choice, Decision, as_text
from sparseloom.plan.machine import CONSTANT, Machine, this_machine
from sparseloom.plan.problem import Problem, resolve, with_index_dtype
from sparseloom.plan.space import Space
from sparseloom.plan.statistics import NOTHING_KNOWN, Statistics
from sparseloom.plan.sums import sum_inside
from sparseloom.schedule.primitive import Primitive
from sparseloom.schedule.schedule import Schedule
from sparseloom.targets.c import C
from sparseloom.targets.target import Target


@dataclass(frozen=True)
class Plan:
    """Every choice that the compiler is to follow, so that equal plans are compiled once.

    ``assign`` is what is compiled: a result that cannot be put into ``blocked`` by the loops is made without blocks and converted in the
    end, for the reason ``unblocks``. ``cheapest`` are the operands in the order in which to convert them, if some must be. ``share`` lets
    the result take over the structure of an operand. ``initial`` is what a sparse result held before. ``refill`` asks for the values of a
    sparse result whose structure is known. ``asked`` is the schedule that the user wrote; else ``steps`` are those of the planner.
    """

    assign: Assign
    cheapest: tuple[str, ...]
    share: bool
    rows: RowChoice
    asked: str = ""
    steps: tuple[Primitive, ...] = ()
    initial: TensorVar | None = None
    blocked: Format | None = None
    unblocks: str = ""
    refill: bool = False
    target: Target = C
    decisions: tuple[Decision, ...] = field(default=(), compare=False)

    @property
    def schedule(self) -> str:
        """The schedule as text."""
        return self.asked or as_text(self.steps)

    @property
    def plain(self) -> Plan:
        """What decides the loops, before any schedule."""
        return replace(self, asked="", steps=(), refill=False, target=C, blocked=None, unblocks="")

    def refilling(self, assign: Assign) -> Plan:
        """The same for the values alone of a result with a known structure."""
        return replace(self, assign=assign, refill=True)


def plan(problem: Problem, statistics: Statistics = NOTHING_KNOWN, machine: Machine | None = None) -> Plan:
    """How a problem runs."""
    if problem.schedule:
        return plan_as_asked(problem)
    plain = plan_freely(problem, statistics)
    is_free = problem.schedule is None and problem.is_stored
    return plan_schedule(plain, problem.sizes, statistics, machine) if is_free else plain


def plan_schedule(plain: Plan, sizes: Mapping[str, int], statistics: Statistics, machine: Machine | None = None) -> Plan:
    """The plan with the best schedule that its loops allow."""
    loops = choose_loops(plain.plain)
    return next(_allowed(plain, loops, choices(loops, _space(loops, sizes, statistics, plain.target, machine), plain.target.ordered)))


def _space(loops: Concrete, sizes: Mapping[str, int], statistics: Statistics, target: Target, machine: Machine | None) -> Space:
    return Space(loops.stmt, sizes, statistics, (machine or this_machine()).running(target))


def plan_loops(loops: Concrete, sizes: Mapping[str, int], statistics: Statistics, machine: Machine) -> Concrete:
    """The loops under the best schedule that they allow."""
    found = (composed(loops, choice.steps) for choice in choices(loops, _space(loops, sizes, statistics, C, machine)))
    return next((made for made in found if made is not None), loops)


def share_inside(problem: Problem, statistics: Statistics) -> float:
    """What share of the work of plain loops is left in one nest: less than all of it, where the planner computes a sum inside."""
    plain = plan_freely(problem, statistics)
    loops = choose_loops(plain.plain)
    space = _space(loops, problem.sizes, statistics, plain.target, None)
    inside, chosen = sum_inside(loops, space), plan_schedule(plain, problem.sizes, statistics)
    return inside.space.runs / space.runs if inside is not None and inside.decision in chosen.decisions else 1.0


def plan_variants(problem: Problem, statistics: Statistics, machine: Machine) -> tuple[Plan, ...]:
    """Plans to choose from by measuring, the planner's own first."""
    plain = plan_freely(problem, statistics)
    loops = choose_loops(plain.plain)
    own = plan_schedule(plain, problem.sizes, statistics, machine)
    others = _allowed(plain, loops, variants(loops, _space(loops, problem.sizes, statistics, plain.target, machine)))
    return tuple({plan.steps: plan for plan in (own, *others)}.values())


def plan_with(problem: Problem, statistics: Statistics, schedule: str) -> Plan | None:
    """The plan with a schedule that was found to be best; None if the loops do not allow it."""
    plain = plan_freely(problem, statistics)
    try:
        steps = Schedule.from_text(choose_loops(plain.plain), schedule, plain.target).trace
    except ScheduleError:
        return None
    decision = Decision(steps, "as measured", "this was the quickest schedule when the kernel was tuned")
    return replace(plain, steps=steps, decisions=(decision,))


def problem_text(problem: Problem, statistics: Statistics) -> str:
    """What decides which schedule is best: the statement, how tensors are stored, small extents, and rounded numbers."""
    extents = tuple((name, size if size <= CONSTANT else _rounded(size)) for name, size in problem.extents)
    return repr((show(problem.assign), tensors_of(problem.assign), extents, statistics, problem.workspace, problem.target.name))


def _rounded(size: int) -> int:
    return 1 << size.bit_length()


def _allowed(plain: Plan, loops: Concrete, found: Iterable[Choice]) -> Iterator[Plan]:
    """Plans with those schedules that the loops allow."""
    for choice in found:
        if composed(loops, choice.steps, plain.target) is not None:
            yield replace(plain, steps=choice.steps, decisions=choice.decisions)


@lru_cache(maxsize=512)
def choose_loops(plan: Plan) -> Concrete:
    """Concrete notation, before any schedule."""
    costs = {operand: float(place) for place, operand in enumerate(plan.cheapest)}
    if plan.initial is None:
        return concretize(plan.assign, costs, plan.share, plan.rows)
    chosen = concretize(merge_initial(plan.assign, plan.initial), costs, plan.share, plan.rows)
    return replace(chosen, initial=plan.initial.name, made=chosen.made | {plan.initial.name})


def schedule_loops(plan: Plan) -> Concrete:
    """The loops of a plan under its schedule."""
    loops = choose_loops(plan.plain)
    made = _scheduled(loops, plan.asked, plan.target) if plan.asked else composed(loops, plan.steps, plan.target)
    if made is None:
        raise CompilerBug(plan.schedule, "the planner chooses schedules that the loops allow")
    return made


@lru_cache(maxsize=512)
def _scheduled(loops: Concrete, text: str, target: Target) -> Concrete:
    return Schedule.from_text(loops, text, target).concrete


def plan_as_asked(problem: Problem) -> Plan:
    """What a schedule of the user's own starts from. It does not depend on the data, so that what was checked is what runs."""
    assign, blocked, why = _apart(problem, _why_apart(problem, in_any_order=False))
    rows = scheduled_row(_row_extent(assign, problem.sizes), problem.workspace)
    return Plan(assign, (), True, rows, problem.schedule or "", (), _initial(problem, assign), blocked, why, target=problem.target.model)


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
    return Plan(assign, cheapest, not problem.is_empty, rows, "", (), initial, blocked, why, target=problem.target.model)


def _why_apart(problem: Problem, in_any_order: bool) -> str:
    """Why the loops cannot make a result as it is stored, whatever the data; empty if they can.

    Some results can be filled ``in_any_order``; a schedule starts from loops that append.
    """
    lhs = problem.assign.lhs
    if lhs.tensor.format.blocks and len(set(lhs.indices)) < len(lhs.indices):
        return "a diagonal cuts blocks"
    if lhs.tensor.format.blocks and not makes_blocks(problem.assign):
        return "its blocks are not made as they are stored"
    is_apart = is_made_apart(problem.assign) and not (in_any_order and is_put_in_place(problem.assign))
    return "entries cannot be appended to it" if is_apart else ""


def _apart(problem: Problem, why: str) -> tuple[Assign, Format | None, str]:
    """The statement with a result to which entries can be appended, and the format it gets in the end, if there is a reason for that."""
    if not why:
        return problem.assign, None, ""
    tensor = problem.assign.lhs.tensor
    plain = resolve(problem.statement, compressed(tensor.format), problem.dtype)
    if tensor.format.blocks and not makes_blocks(plain):
        plain = resolve(problem.statement, csf(len(problem.shape)), problem.dtype)
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
