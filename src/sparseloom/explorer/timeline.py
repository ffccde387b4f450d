"""When each thread of a real run worked: the loop that threads share writes down who ran an iteration, from when to when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from sparseloom.core.dtypes import INT64
from sparseloom.core.trees import rewrite, walk
from sparseloom.explorer.subject import Subject
from sparseloom.formats.level import LevelData
from sparseloom.formats.named import dense
from sparseloom.formats.storage import NO_INDICES, Owner, Storage
from sparseloom.loops import nodes as ir
from sparseloom.loops.routines import clock
from sparseloom.programs.execution import Specialization
from sparseloom.scope.views import Slot

_NAME, _ROOM = "timeline__", 4096  # iterations that are written down
_TIMES = ir.Array(_NAME, INT64)


def timeline(subject: Subject) -> list[dict[str, Any]]:
    """Who worked from when to when, in seconds from the start; iterations of a thread without a pause are one. Empty without threads."""
    special = subject.on(subject.operands, subject.schedule.text)
    stages = special.stages
    loop = next((n for n in walk(stages.lowered.function) if isinstance(n, ir.For) and n.kind is ir.LoopKind.THREADS), None)
    if loop is None or subject.state.target != "c":
        return []
    function = _watched(stages.lowered.function, loop)
    lowered = replace(stages.lowered, function=function, slots=(*stages.lowered.slots, Slot(_NAME, "values")))
    return _stretches(_run(special.following(replace(stages, lowered=lowered)), subject.operands))


def _watched(function: ir.Function, loop: ir.For) -> ir.Function:
    """The kernel with a loop whose iterations write down their thread, and when they begin and end."""
    inside = ir.compare("less", loop.var, ir.index(_ROOM))
    place = ir.multiply(loop.var, ir.index(3))
    first = ir.block(ir.Store(_TIMES, place, ir.Thread()), clock(_TIMES, ir.add(place, ir.ONE)))
    last = clock(_TIMES, ir.add(place, ir.index(2)))
    body = ir.block(ir.when(inside, first), loop.body, ir.when(inside, last))
    watched = replace(loop, body=body)
    made: ir.Function = rewrite(function, lambda n: watched if n is loop else None)
    return replace(made, params=(*made.params, ir.Param(_TIMES, ir.Role.OUTPUT)))


def _run(special: Specialization, operands: Mapping[str, Storage]) -> list[tuple[int, int, int]]:
    """Thread, begin and end of every iteration, of the second run: the first one meets cold caches."""
    times = np.zeros(3 * _ROOM, np.int64)
    held = Storage(dense(1), times.shape, (LevelData(),), times, 0, NO_INDICES, Owner())
    call = special.bind({**operands, _NAME: held})
    call.run()
    times[:] = 0
    call.run()
    return [(thread, begin, end) for thread, begin, end in times.reshape(-1, 3).tolist() if end]


def _stretches(rows: list[tuple[int, int, int]]) -> list[dict[str, Any]]:
    if not rows:
        return []
    start, stop = min(begin for _, begin, _ in rows), max(end for *_, end in rows)
    pause = (stop - start) // 200  # what could not be seen anyway
    found: list[dict[str, Any]] = []
    for thread, begin, end in sorted(rows):
        last = found[-1] if found else None
        if last is not None and last["thread"] == thread and begin - last["end"] <= pause:
            last["end"], last["count"] = end, last["count"] + 1
        else:
            found.append({"thread": thread, "begin": begin, "end": end, "count": 1})
    return [{**one, "begin": (one["begin"] - start) * 1e-9, "end": (one["end"] - start) * 1e-9} for one in found]
