"""The iteration space of the user's own tensor: a window of it, visited in the order in which the schedule visits it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from sparseloom.compiler import build_plainly
from sparseloom.core.settings import settings
from sparseloom.core.trees import walk
from sparseloom.explorer.arrays import arrays_of, value_entries
from sparseloom.explorer.state import RequestError
from sparseloom.explorer.subject import Subject
from sparseloom.explorer.trace import Note, TooLong, traced
from sparseloom.explorer.window import is_drawable, remark, shown_operand, smaller, windowed
from sparseloom.formats.pack import unpack
from sparseloom.formats.storage import Storage
from sparseloom.iteration.foralls import operands, paths, provenance
from sparseloom.loops.interpret import RaceFound
from sparseloom.lower.kernel import Lowered
from sparseloom.notation.nodes import Access, IndexVar, Stmt
from sparseloom.schedule.schedule import Schedule
from sparseloom.show.iteration_space import IterationSpace

MOST_VISITS = 20_000


def iteration_space(subject: Subject, wanted: Any) -> dict[str, Any]:
    """Entries, visits in the order of time, storage arrays, and a race if there is one."""
    access = shown_operand(subject, wanted)
    name = access.tensor.name
    subject = smaller(subject, access)
    cut = windowed(subject, access)
    notes = _visits(subject, access, cut)
    storage = cut[name]
    coordinates, values = unpack(storage)
    entries = [tuple(map(int, at)) for at in coordinates.T]
    owners = value_entries(storage)
    visits = list(_told(subject.schedule, access, notes, entries, owners))
    return {
        "operand": name,
        "variables": [var.name for var in access.indices],
        "shape": list(storage.shape),
        "of": list(subject.operands[name].shape),
        "remark": remark(access, subject),
        "entries": [{"at": list(at), "value": _value(value)} for at, value in zip(entries, values.tolist(), strict=True)],
        "visits": visits,
        "colours": _colours(visits),
        "levels": list(arrays_of(storage)),
        "values": [_value(value) for value in storage.values.tolist()],
        "value_entries": owners,
        "race": _race(subject, visits),
        "operands": [a.tensor.name for a in operands(subject.schedule.stmt) if is_drawable(a)],
    }


def _value(value: Any) -> Any:
    return value if isinstance(value, bool | int) else f"{value:.4g}" if not isinstance(value, complex) else str(value)


def _visits(subject: Subject, access: Access, cut: Mapping[str, Storage]) -> list[Note]:
    """What the interpreter notes when it runs the loops on the window, before any pass: every variable still has its loop."""
    special = subject.on(cut, subject.schedule.text)
    stages = build_plainly(special.plan, settings.int32_limit)
    array = _values_name(stages.lowered, access.tensor.name)
    if array is None:
        raise RequestError(f"{access.tensor.name} is converted first, and its own entries are not visited", "choose another format")
    watched = traced(stages.lowered.function, array, {var.name for var in _variables(stages.concrete.stmt)}, MOST_VISITS)
    with suppress(TooLong, RaceFound):
        special.following(replace(stages, lowered=replace(stages.lowered, function=watched.function))).run(cut, "interpret")
    return watched.notes


def _variables(stmt: Stmt) -> set[IndexVar]:
    """Every variable of a statement, and those that its relations made."""
    related = {var for relation in provenance(stmt).relations for var in (*relation.parents, *relation.children)}
    return related | {n for n in walk(stmt) if isinstance(n, IndexVar)}


def _values_name(lowered: Lowered, tensor: str) -> str | None:
    """The array of an operand's values."""
    params = zip(lowered.function.params, lowered.slots, strict=True)
    return next((param.target.name for param, slot in params if slot.tensor == tensor and slot.level is None), None)


def _told(
    schedule: Schedule, access: Access, notes: Sequence[Note], entries: Sequence[tuple[int, ...]], owners: Sequence[int | None]
) -> Iterator[dict[str, Any]]:
    """Visits of entries: which one, the values of all variables, and the numbers of its thread and its tile."""
    place = {at: number for number, at in enumerate(entries)}
    space, names = IterationSpace(schedule.stmt, access, (), np.empty((0, 0), np.int64)), [var.name for var in access.indices]
    cuts, parallel = _Numbers([var.name for var in space.cuts]), _Numbers(_parallel(space))
    for note in notes:
        at = tuple(note[name] for name in names) if all(name in note for name in names) else None
        entry = place.get(at) if at is not None else owners[note[""]]
        if entry is not None:
            unit = {name: value for name, value in note.items() if name}
            yield {"entry": entry, "unit": unit, "thread": parallel.of(note), "tile": cuts.of(note)}


def _parallel(space: IterationSpace) -> list[str]:
    return [loop.var.name for loop in space.path.loops if loop.tag.unit is not None]


class _Numbers:
    """Numbers the values of some variables in the order in which they come."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._known: dict[tuple[int | None, ...], int] = {}

    def of(self, note: Note) -> int:
        """The number of what a note says of the variables."""
        return self._known.setdefault(tuple(note.get(name) for name in self._names), len(self._known))


def _colours(visits: Sequence[Mapping[str, Any]]) -> list[str]:
    """By what visits may be coloured: what differs among them."""
    names = dict.fromkeys(name for visit in visits for name in visit["unit"])
    whole = [what for what in ("tile", "thread") if len({visit[what] for visit in visits}) > 1]
    own = [name for name in names if name not in ("tile", "thread")]
    return [*whole, *(name for name in own if len({visit["unit"].get(name) for visit in visits}) > 1)]


def _race(subject: Subject, visits: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Two visits that meet in one place of the result, of the step that was refused for it or of a loop whose races are resolved."""
    refused = next((row for row in subject.rows if row.status == "refused"), None)
    asked = re.match(r"\s*parallelize\s*\(\s*(\w+)", refused.text) if refused is not None else None
    conflicts = [c for c in subject.schedule.conflicts if c.resolved is None]
    var = IndexVar(asked[1]) if asked is not None else conflicts[0].var if conflicts else None
    text = str(refused.error).split("\n")[0] if refused is not None and asked is not None else str(conflicts[0]) if conflicts else ""
    found = None if var is None else _meeting(subject.schedule, var, visits)
    return None if found is None else {"text": text, "first": found[0], "second": found[1], "variable": str(var)}


def _meeting(schedule: Schedule, var: IndexVar, visits: Sequence[Mapping[str, Any]]) -> tuple[int, int] | None:
    """The first two visits in different iterations of a loop, alike in the loops outside, that write one place."""
    path = next((path for path in paths(schedule.stmt) if var in path.variables), None)
    if path is None:
        return None
    alike = [v.name for v in (*path.variables[: path.variables.index(var)], *path.assign.lhs.indices)]
    seen: dict[tuple[int | None, ...], tuple[int, int | None]] = {}
    for number, visit in enumerate(visits):
        unit = visit["unit"]
        first, value = seen.setdefault(tuple(unit.get(name) for name in alike), (number, unit.get(var.name)))
        if value != unit.get(var.name):
            return first, number
    return None
