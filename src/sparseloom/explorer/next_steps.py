"""Which steps may come next: every primitive with a few sensible parameters, each with what can be told of it before it runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product
from random import Random
from typing import Any

from sparseloom.core.errors import DeviceError, ScheduleError
from sparseloom.explorer.predict import predicted
from sparseloom.explorer.subject import Subject
from sparseloom.notation.nodes import Races, Unit
from sparseloom.relations.bound import BoundType
from sparseloom.schedule.loops import loops
from sparseloom.schedule.primitive import Primitive
from sparseloom.schedule.primitives import Bound, Divide, Parallelize, Reorder, Split, Unroll
from sparseloom.schedule.schedule import Schedule, candidates

_DRAWS = 4  # how often random parameters are drawn
_MOST = {"prefetch": 2, "precompute": 3, "parallelize": 8}  # steps of one word, where it is not five
_RACES = (Races.NoRaces, Races.Temporary, Races.ParallelReduction, Races.Atomics)


def next_steps(subject: Subject) -> dict[str, Any]:
    """The legal steps, by word, with their predictions; and those of the schedule as it is."""
    found = [told for step, after in _legal(subject) if (told := _told(subject, step, after)) is not None]
    return {"steps": found, "now": predicted(subject, subject.schedule)}


def _told(subject: Subject, step: Primitive, after: Schedule) -> dict[str, Any] | None:
    """A step with its predictions; None if the target cannot run what it makes."""
    about = (type(step).__doc__ or "").strip().partition("\n")[0].replace("``", "")
    try:
        return {"text": str(step), "word": step.word(), "what": about, **predicted(subject, after)}
    except (ScheduleError, DeviceError):
        return None


def _legal(subject: Subject) -> Iterator[tuple[Primitive, Schedule]]:
    """Steps that the schedule allows, a few of each word."""
    words: dict[str, dict[str, Primitive]] = {}
    for step in _possible(subject):
        words.setdefault(step.word(), {}).setdefault(str(step), step)
    for word in sorted(words):
        yield from islice(_allowed(subject.schedule, words[word].values()), _MOST.get(word, 5))


def _allowed(schedule: Schedule, steps: Any) -> Iterator[tuple[Primitive, Schedule]]:
    for step in steps:
        try:
            yield step, schedule.then(step)
        except ScheduleError:
            continue


def _possible(subject: Subject) -> Iterator[Primitive]:
    stmt = subject.schedule.stmt
    for seed in range(_DRAWS):
        for step in candidates(stmt, Random(seed)):
            yield from _sensible(step, subject)
    units = [one.unit for one in subject.target.units]
    for var, unit in product(loops(stmt), units):
        yield from _strategies(subject.schedule, Parallelize(var, unit, Races.NoRaces))


def _strategies(schedule: Schedule, step: Parallelize) -> Iterator[Primitive]:
    """The first ways to resolve races that a schedule allows: one, or two if the first adds in memory."""
    ways = _allowed(schedule, [replace(step, races=races) for races in _RACES])
    yield from (found for found, _ in islice(ways, 1 if step.unit is Unit.CPUVector else 2))


def _sensible(step: Primitive, subject: Subject) -> Iterator[Primitive]:
    """A step with numbers that a person would try, instead of random ones."""
    match step:
        case Split():
            yield from (replace(step, size=size) for size in (16, 64, 256))
        case Divide():
            yield from (replace(step, count=count) for count in (16, 64))
        case Unroll():
            yield replace(step, factor=4)
        case Bound(i):
            if i.name in subject.sizes:
                yield replace(step, value=subject.sizes[i.name], type=BoundType.MaxExact)
        case Reorder(order) if order == tuple(var for var in loops(subject.schedule.stmt) if var in order):
            pass
        case Parallelize():
            pass
        case _:
            yield step
