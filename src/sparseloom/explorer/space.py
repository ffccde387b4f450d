"""The iteration space of the user's own tensor: a window of it, visited in the order in which the schedule visits it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.compiler import lower_plainly
from sparseloom.core.trees import walk
from sparseloom.explorer.state import RequestError
from sparseloom.explorer.subject import Subject
from sparseloom.explorer.trace import Note, TooLong, traced
from sparseloom.formats.pack import pack, passed_counts, unpack
from sparseloom.formats.storage import Storage
from sparseloom.loops.interpret import RaceFound
from sparseloom.lower.kernel import Lowered
from sparseloom.notation.nodes import Access, IndexVar, Stmt
from sparseloom.runtime.settings import settings
from sparseloom.schedule.loops import operands, paths, provenance
from sparseloom.schedule.schedule import Schedule
from sparseloom.schedule.spaces import IterationSpace

WIDEST, NARROW = 32, 6  # coordinates of a window: of the operand that is shown, and of variables that it does not have
_SAMPLE, _FULL = 16, 0.25  # of random operands: how many coordinates are drawn, and how full they are at least
MOST_VISITS = 20_000


def iteration_space(subject: Subject, wanted: Any) -> dict[str, Any]:
    """Entries, visits in the order of time, storage arrays, and a race if there is one."""
    access = _shown(subject, wanted)
    name = access.tensor.name
    subject = smaller(subject, access)
    window = _window(subject, access)
    cut = windowed(subject, access)
    notes = _visits(subject, access, cut)
    storage = cut[name]
    coordinates, values = unpack(storage)
    entries = [tuple(map(int, at)) for at in coordinates.T]
    visits = list(_told(subject.schedule, access, notes, entries))
    return {
        "operand": name,
        "variables": [var.name for var in access.indices],
        "shape": list(storage.shape),
        "of": list(subject.operands[name].shape),
        "remark": _remark(access, subject, window),
        "entries": [{"at": list(at), "value": _value(value)} for at, value in zip(entries, values.tolist(), strict=True)],
        "visits": visits,
        "colours": _colours(visits),
        "levels": list(_levels(storage)),
        "values": [_value(value) for value in storage.values.tolist()],
        "race": _race(subject, visits),
        "operands": [a.tensor.name for a in operands(subject.schedule.stmt) if _is_drawable(a)],
    }


def _value(value: Any) -> Any:
    return value if isinstance(value, bool | int) else f"{value:.4g}" if not isinstance(value, complex) else str(value)


def _is_drawable(access: Access) -> bool:
    return len(access.indices) in (1, 2, 3) and len(set(access.indices)) == len(access.indices)


def _shown(subject: Subject, wanted: Any) -> Access:
    """The operand to show: the one that is named, else the first that is sparse, else the first with two modes."""
    found = [access for access in operands(subject.schedule.stmt) if access.tensor.name in subject.operands and _is_drawable(access)]
    if isinstance(wanted, str) and wanted:
        named = next((access for access in found if access.tensor.name == wanted), None)
        if named is None:
            there = ", ".join(access.tensor.name for access in found)
            raise RequestError(f"there is no operand {wanted[:40]!r} to draw", f"there are {there}")
        return named
    found.sort(key=lambda access: (access.tensor.format.is_dense, len(access.indices) < 2))
    if not found:
        raise RequestError("the statement reads nothing that can be drawn", "pictures show an operand with one to three variables")
    return found[0]


def smaller(subject: Subject, shown: Access | None = None) -> Subject:
    """The same on operands that can be seen: random ones are made anew, small and full. Others stay, and a window of them is shown."""
    if subject.given:
        return subject
    access = shown or _shown(subject, None)
    mine = {var.name for var in access.indices}
    wide = _SAMPLE if len(mine) < 3 else _SAMPLE // 2
    most = {var: wide if any(other in mine for other in group) else NARROW for group in _tied(subject) for var in group}
    sizes = {var: min(size, most[var]) for var, size in subject.sizes.items()}
    return Subject(replace(subject.state, sizes=sizes, density=max(subject.state.density, _FULL)), {})


def windowed(subject: Subject, shown: Access | None = None) -> dict[str, Storage]:
    """The operands inside a window around entries of the one that is shown."""
    window = _window(subject, shown or _shown(subject, None))
    return {name: _cut(storage, subject, name, window) for name, storage in subject.operands.items()}


def _tied(subject: Subject) -> list[set[str]]:
    """The variables, those together that run through one mode of a tensor which is read twice."""
    groups = [{var} for var in subject.sizes]
    for name in dict(subject.wanted.accesses):
        for together in zip(*(indices for other, indices in subject.wanted.accesses if other == name), strict=True):
            touched = [group for group in groups if group.intersection(together)]
            groups = [group for group in groups if group not in touched] + [set().union(*touched)]
    return groups


def _window(subject: Subject, access: Access) -> dict[str, tuple[int, int]]:
    """Which coordinates of every variable are shown: of the operand those of the tile with the most entries, of others the first ones."""
    storage = subject.operands[access.tensor.name]
    width = WIDEST if len(access.indices) < 3 else WIDEST // 4
    coordinates, _ = unpack(storage)
    first = [0] * len(access.indices)
    if coordinates.shape[1] and max(storage.shape) > width:
        tiles, counts = np.unique(coordinates // width, axis=1, return_counts=True)
        first = [int(tile) * width for tile in tiles[:, int(np.argmax(counts))]]
    mine = dict(zip((var.name for var in access.indices), first, strict=True))
    found = {}
    for group in _tied(subject):
        begin, most = next(((mine[name], width) for name in mine if name in group), (0, NARROW))
        for name in group:
            size = subject.sizes[name]
            start = min(begin, max(0, size - most))
            found[name] = start, min(size, start + most)
    return found


def _cut(storage: Storage, subject: Subject, name: str, window: Mapping[str, tuple[int, int]]) -> Storage:
    """An operand inside the window."""
    indices = dict(subject.wanted.accesses)[name]
    coordinates, values = unpack(storage)
    kept = np.ones(len(values), bool)
    for mode, var in enumerate(indices):
        begin, end = window[var]
        kept &= (coordinates[mode] >= begin) & (coordinates[mode] < end)
    moved = coordinates[:, kept] - np.array([[window[var][0]] for var in indices], np.int64).reshape(len(indices), 1)
    shape = tuple(window[var][1] - window[var][0] for var in indices)
    return pack(storage.format, shape, moved, values[kept], storage.fill, storage.index_dtype)


def _visits(subject: Subject, access: Access, cut: Mapping[str, Storage]) -> list[Note]:
    """What the interpreter notes when it runs the loops on the window, before any pass: every variable still has its loop."""
    special = subject.on(cut, subject.schedule.text)
    stages = special.stages
    lowered = lower_plainly(stages.concrete, settings.int32_limit, target=stages.target)
    array = _values_name(lowered, access.tensor.name)
    if array is None:
        raise RequestError(f"{access.tensor.name} is converted first, and its own entries are not visited", "choose another format")
    watched = traced(lowered.function, array, {var.name for var in _variables(stages.concrete.stmt)}, MOST_VISITS)
    with suppress(TooLong, RaceFound):
        special.following(replace(stages, lowered=replace(lowered, function=watched.function))).run(cut, "interpret")
    return watched.notes


def _variables(stmt: Stmt) -> set[IndexVar]:
    """Every variable of a statement, and those that its relations made."""
    related = {var for relation in provenance(stmt).relations for var in (*relation.parents, *relation.children)}
    return related | {n for n in walk(stmt) if isinstance(n, IndexVar)}


def _values_name(lowered: Lowered, tensor: str) -> str | None:
    """The array of an operand's values."""
    params = zip(lowered.function.params, lowered.slots, strict=True)
    return next((param.target.name for param, slot in params if slot.tensor == tensor and slot.level is None), None)


def _told(schedule: Schedule, access: Access, notes: Sequence[Note], entries: Sequence[tuple[int, ...]]) -> Iterator[dict[str, Any]]:
    """Visits of entries: which one, the values of all variables, and the numbers of its thread and its tile."""
    place = {at: number for number, at in enumerate(entries)}
    space, names = IterationSpace(schedule.stmt, access, (), np.empty((0, 0), np.int64)), [var.name for var in access.indices]
    cuts, parallel = _Numbers([var.name for var in space.cuts]), _Numbers(_parallel(space))
    for note in notes:
        at = tuple(note[name] for name in names) if all(name in note for name in names) else None
        entry = place.get(at) if at is not None else note[""] if note[""] < len(entries) else None
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


def _levels(storage: Storage) -> Iterator[dict[str, Any]]:
    """The arrays of every level; each element with the range of values that stands below it, where that is simple to say."""
    sizes = storage.format.level_sizes(storage.shape)
    below = _leaves(storage)
    for k, (level, data) in enumerate(zip(storage.format.levels, storage.levels, strict=True)):
        arrays = [
            {"name": name, "values": values.tolist(), "entries": _spans(values, below[k : k + 2])} for name, values in data.arrays.items()
        ]
        yield {"title": f"{k + 1}: {type(level).__name__.lower()}", "size": int(sizes[k]), "arrays": arrays}


def _spans(values: NDArray[Any], below: Sequence[Sequence[tuple[int, int]]]) -> list[list[int]]:
    """From which to which value the elements of an array of a level reach: one for each of its positions, or of those above it."""
    parents, own = below
    found = own if len(values) == len(own) else parents if len(values) - len(parents) in (0, 1) else []
    return [list(span) for span in found]


def _leaves(storage: Storage) -> list[list[tuple[int, int]]]:
    """For the positions of the root and of every level, from which to which value they reach; empty where a level does not tell."""
    counts, sizes = passed_counts(storage), storage.format.level_sizes(storage.shape)
    spans: list[list[tuple[int, int]]] = [[(k, k + 1) for k in range(counts[-1])]]
    for k in reversed(range(len(sizes))):
        level, data, inner = storage.format.levels[k], storage.levels[k], spans[0]
        if "pos" in data.arrays:
            edges = data.arrays["pos"].tolist()
        elif level.branchless:
            edges = list(range(len(inner) + 1))
        elif level.full:
            edges = list(range(0, len(inner) + 1, max(1, int(sizes[k]))))
        else:
            edges = []
        ends = [span[1] for span in inner]
        found = (
            [(ends[a - 1] if a else 0, ends[b - 1] if b else 0) for a, b in pairwise(edges)]
            if inner and max(edges, default=0) <= len(inner)
            else []
        )
        spans.insert(0, found)
    return spans


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


def _remark(access: Access, subject: Subject, window: Mapping[str, tuple[int, int]]) -> str:
    """Which part of the operands is shown."""
    cut = [f"{var} from {begin} to {end - 1}" for var, (begin, end) in window.items() if end - begin < subject.sizes[var]]
    if not subject.given:
        return f"a small random {access.tensor.name} of {' by '.join(map(str, subject.operands[access.tensor.name].shape))}"
    return f"a window of {access.tensor.name}: {', '.join(cut)}" if cut else f"all of {access.tensor.name}"
