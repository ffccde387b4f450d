"""Schedules as the planner chooses them, for statements that are far too small to be worth it, under statistics that are made up."""

from __future__ import annotations

from random import Random

from fuzz.runner import Disagreement, Job
from fuzz.schedules import Drawn

from sparseloom.core.errors import ScheduleError
from sparseloom.iteration.concretize import Concrete
from sparseloom.plan.choose import choices
from sparseloom.plan.compose import composed
from sparseloom.plan.decision import Choice
from sparseloom.plan.machine import this_machine
from sparseloom.plan.space import Space
from sparseloom.plan.statistics import Evenness, OperandFacts, Statistics
from sparseloom.schedule.primitive import Primitive
from sparseloom.schedule.schedule import Schedule
from sparseloom.targets.interpret import INTERPRET
from sparseloom.targets.target import Target


def planned_steps(job: Job, drawn: Drawn) -> tuple[Primitive, ...]:
    """The steps of the first schedule that the loops allow; those that are refused are counted."""
    loops = job.prepared.unscheduled()
    space = Space(loops.stmt, job.prepared.problem.sizes, made_up(job), this_machine().eager)
    for choice in choices(loops, space):
        made = step_by_step(loops, choice)
        if isinstance(made, Schedule):
            return made.trace
        drawn.refused[str(made)[:6]] += 1
    return ()


def step_by_step(loops: Concrete, choice: Choice, target: Target = INTERPRET) -> Schedule | ScheduleError:
    """A schedule as a user would write it, with the laws checked after each step; the planner's values, whose laws are checked once, must
    be the same steps and make the same loops."""
    made: Schedule | ScheduleError
    try:
        made = Schedule.from_text(loops, choice.schedule, target)
    except ScheduleError as refusal:
        made = refusal
    if composed(loops, choice.steps, target) != (made.concrete if isinstance(made, Schedule) else None):
        raise Disagreement(f"the planner and a user do not get the same loops from\n{choice.schedule}")
    if isinstance(made, Schedule) and made.trace != choice.steps:
        raise Disagreement(f"the text does not say the planner's steps:\n{choice.schedule}")
    return made


def made_up(job: Job) -> Statistics:
    """What could be known of operands like these, if they were large."""
    random = Random(f"statistics {job.case.seed}")
    sparse = [(name, storage) for name, storage in job.storages.items() if not storage.format.is_dense]
    known = tuple((name, _known(storage.format.levels, random)) for name, storage in sparse)
    stored = tuple((name, 1 << 16) for name, _ in sparse)
    return Statistics(1 << 20, tuple(job.storages), stored, known)


def _known(levels: tuple[object, ...], random: Random) -> OperandFacts:
    return OperandFacts(_fans(levels, random), random.choice(list(Evenness)), 2.0, 0.25, longest=random.choice((0.0, 4096.0)))


def _fans(levels: tuple[object, ...], random: Random) -> tuple[float, ...]:
    return tuple(random.choice((0.0, 1.0, 8.0, 128.0, 4096.0)) for _ in levels)
