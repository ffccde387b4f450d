"""Loops under the schedules that the planner composes: step after step, and what several of them begin with is done once.

The laws are checked at the end alone. A user's schedule is checked after each step, to say which of them broke a law.
"""

from __future__ import annotations

from functools import lru_cache

from sparseloom.iteration.concretize import Concrete
from sparseloom.schedule.schedule import Schedule


@lru_cache(maxsize=512)
def composed(loops: Concrete, schedule: str) -> Concrete:
    """The loops under a schedule that has one step a line. What it refuses is a ``ScheduleError``."""
    return done(loops, tuple(schedule.split("\n"))).lawful().concrete if schedule else loops


@lru_cache(maxsize=2048)
def done(loops: Concrete, steps: tuple[str, ...]) -> Schedule:
    """The schedule after some steps, before the laws are checked."""
    return done(loops, steps[:-1]).composing(steps[-1]) if steps else Schedule(loops)
