"""Which steps may come next: every primitive with a few sensible parameters, each with what can be told of it before it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice, product
from random import Random
from typing import Any

from sparseloom.core.errors import DeviceError, ScheduleError
from sparseloom.explorer.planning import planned_steps
from sparseloom.explorer.predict import cost, predicted
from sparseloom.explorer.subject import Subject
from sparseloom.explorer.wording import worded
from sparseloom.iteration.foralls import loops
from sparseloom.notation.nodes import Races, Unit
from sparseloom.relations.bound import BoundType
from sparseloom.schedule.primitive import Primitive
from sparseloom.schedule.primitives import Bound, Divide, Parallelize, Reorder, Split, Unroll
from sparseloom.schedule.schedule import Schedule, candidates

_DRAWS = 4  # how often random parameters are drawn
_MOST = {"prefetch": 2, "precompute": 3, "parallelize": 8}  # steps of one word, where it is not five
_RACES = (Races.NoRaces, Races.Temporary, Races.ParallelReduction, Races.Atomics)
_FIRST = ("parallelize", "split", "divide", "reorder", "fuse", "pos", "precompute", "unroll", "prefetch")  # then the rest, by name


def next_steps(subject: Subject) -> dict[str, Any]:
    """The legal steps, the most useful first, with their predictions; and those of the schedule as it is."""
    now, planned = predicted(subject, subject.schedule), _planned(subject)
    first = [planned] if planned is not None else []
    legal = [*first, *(found for found in _legal(subject) if planned is None or found[0] != planned[0])]
    found = [told for step, after in legal if (told := _told(subject, step, after, now)) is not None]
    if planned is not None and found:
        found[0]["planned"] = True
    return {"steps": sorted(found, key=_usefulness), "now": now}


def _usefulness(told: Mapping[str, Any]) -> tuple[object, ...]:
    """What the planner would do comes first, then what gains most, then what people begin with."""
    word = told["word"]
    return not told["planned"], -told["gain"], _FIRST.index(word) if word in _FIRST else len(_FIRST), word


def _told(subject: Subject, step: Primitive, after: Schedule, now: Mapping[str, Any]) -> dict[str, Any] | None:
    """A step with its predictions; None if the target cannot run what it makes."""
    try:
        then = predicted(subject, after)
    except (ScheduleError, DeviceError):
        return None
    gain = float(f"{cost(now, subject.schedule.stmt) / cost(then, after.stmt):.2g}")
    return {"text": str(step), "word": step.word(), "what": worded(step), "planned": False, "gain": gain, **then}


def _planned(subject: Subject) -> tuple[Primitive, Schedule] | None:
    """The planner's next step, where the schedule is as far as the planner's goes."""
    steps, count = [step["text"] for step in planned_steps(subject)], len(subject.schedule.trace)
    try:
        begun = Schedule(subject.loops).then_text(" ".join(steps[:count]))
        after = begun.then_text(steps[count]) if count < len(steps) else begun
    except ScheduleError:
        return None
    return (after.trace[-1], after) if after is not begun and begun.trace == subject.schedule.trace else None


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
    """The first ways to resolve races that a schedule allows: one where there are none, else two."""
    ways = [found for found, _ in islice(_allowed(schedule, [replace(step, races=races) for races in _RACES]), 2)]
    yield from ways[:1] if step.unit is Unit.CPUVector or step in ways else ways


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
