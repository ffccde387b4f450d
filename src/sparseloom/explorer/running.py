"""Running what is shown: how long it takes, what comes out, and whether the interpreter and SciPy get the same."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from statistics import median
from typing import Any

import numpy as np

from sparseloom.core.errors import DeviceError, SparseloomError
from sparseloom.explorer.look import code
from sparseloom.explorer.peer import peer_of
from sparseloom.explorer.predict import moved_bytes
from sparseloom.explorer.space import smaller, windowed
from sparseloom.explorer.state import RequestError, State, Step
from sparseloom.explorer.subject import Subject
from sparseloom.explorer.timeline import timeline
from sparseloom.formats.named import name_of
from sparseloom.formats.pack import to_dense
from sparseloom.formats.storage import Storage
from sparseloom.runtime.teams import get_threads
from sparseloom.tensor.tensor import Tensor

LONGEST, MOST_RUNS = 0.4, 200  # seconds of measuring, and runs
_TOLERANCE = 1e-9  # relative to the largest value: sums may be added up in another order


def run(subject: Subject) -> dict[str, Any]:
    """Everything that a run tells."""
    _require_cpu(subject)
    special = subject.on(subject.operands, subject.schedule.text)
    made = special.run(subject.operands)
    times = measured(special.bind(subject.operands).start)
    name = subject.wanted.result
    return {
        "seconds": median(times),
        "runs": len(times),
        "result": {"name": name, "format": name_of(made.format), "shape": list(made.shape), "preview": str(Tensor(made, name))[:4000]},
        "interpreter": _interpreted(subject),
        "scipy": _beside(subject, made),
        "roofline": _roofline(subject, median(times)),
        "timeline": timeline(subject),
        "threads": get_threads(),
    }


def _require_cpu(subject: Subject) -> None:
    if subject.state.target != "c":
        raise DeviceError("CUDA kernels are shown here, but not run\n  help: choose C, or copy it as Python and run it where a GPU is")


def measured(start: Callable[[], Any]) -> list[float]:
    """How long calls take, one after another for a while."""
    start()
    times: list[float] = []
    began = time.perf_counter()
    while not times or (len(times) < MOST_RUNS and time.perf_counter() - began < LONGEST):
        before = time.perf_counter()
        start()
        times.append(time.perf_counter() - before)
    return times


def _interpreted(subject: Subject) -> dict[str, Any]:
    """Whether the interpreter, which checks every access, gets what the compiled kernel gets on a small part of the operands."""
    small = smaller(subject)
    cut = windowed(small)
    schedule = subject.schedule.text
    try:
        ours, checked = (small.on(cut, schedule).run(cut, target) for target in (None, "interpret"))
    except SparseloomError as fault:
        return {"same": None, "text": f"not compared: {fault}"}
    same = is_close(ours, checked)
    sizes = ", ".join(f"{name} {' by '.join(map(str, storage.shape))}" for name, storage in cut.items())
    return {"same": same, "text": f"{'equal' if same else 'DIFFERENT'} on {sizes}"}


def is_close(ours: Storage, theirs: Storage) -> bool:
    """Whether two results are the same up to the order of sums."""
    left, right = to_dense(ours), to_dense(theirs)
    if left.dtype.kind not in "fc":
        return bool(np.array_equal(left, right))
    scale = float(np.max(np.abs(right), initial=0, where=np.isfinite(right)))
    return bool(np.allclose(left, right, rtol=_TOLERANCE, atol=_TOLERANCE * scale, equal_nan=True))


def _beside(subject: Subject, made: Storage) -> dict[str, Any] | None:
    """The same in SciPy or NumPy, where one call does it."""
    peer = peer_of(subject.wanted.script.last.assign, subject.operands)
    if peer is None:
        return None
    times = measured(peer.start)
    return {"seconds": median(times), "same": peer.agrees(made), "what": peer.what}


@cache
def _bandwidth() -> float:
    """Bytes that one copy of a large array moves in a second."""
    source, target = np.ones(1 << 22), np.ones(1 << 22)
    return 2 * source.nbytes / min(measured(lambda: np.copyto(target, source)))


def _roofline(subject: Subject, seconds: float) -> dict[str, Any]:
    """How near a run is to the time in which memory could move what it must move."""
    moved = moved_bytes(subject.stages.lowered, subject)
    floor = moved / _bandwidth()
    fits = "which fits into caches, so that it may be quicker than memory" if moved < 1 << 23 else "from memory"
    text = f"{moved / 1e6:,.2f} MB at {_bandwidth() / 1e9:.1f} GB/s of one copying thread, {fits}"
    return {"bytes": moved, "floor_seconds": floor, "fraction": floor / seconds if seconds else None, "text": text}


def time_step(subject: Subject, step: Any) -> dict[str, Any]:
    """How long the schedule takes as it is, and with one more step."""
    _require_cpu(subject)
    if not isinstance(step, str):
        raise RequestError("step is the text of a step")
    with_it = Subject(replace(subject.state, steps=(*_legal(subject), Step(step))), subject.given)
    refused = next((row.error for row in with_it.rows if row.error is not None), None)
    if refused is not None:
        raise refused
    found = [one.on(one.operands, one.schedule.text).bind(one.operands).start for one in (with_it, subject)]
    return {"seconds": median(measured(found[0])), "plain_seconds": median(measured(found[1]))}


def _legal(subject: Subject) -> tuple[Step, ...]:
    return tuple(Step(row.text) for row in subject.rows if row.status == "legal")


def compare(subject: Subject, other: State) -> dict[str, Any]:
    """Two schedules side by side: the difference of their code, and their times, taken in turn."""
    second = Subject(other, subject.given)
    first_lines, second_lines = ([line["text"] for line in _code_of(one)] for one in (subject, second))
    marks = ({"mark": line[0], "text": line[2:]} for line in difflib.ndiff(first_lines, second_lines))
    seconds, text = _both(subject, second)
    return {"code": [line for line in marks if line["mark"] in " +-"], "seconds": seconds, "text": text}


def _code_of(subject: Subject) -> list[dict[str, Any]]:
    found = code(subject, ())
    return found if isinstance(found, list) else [{"text": found["error"]["text"]}]


def _both(first: Subject, second: Subject) -> tuple[list[float | None], str]:
    if "cuda" in (first.state.target, second.state.target):
        return [None, None], "CUDA kernels are shown here, but not run"
    specials = [one.on(one.operands, one.schedule.text) for one in (first, second)]
    calls = [special.bind(one.operands).start for special, one in zip(specials, (first, second), strict=True)]
    rounds = [[min(measured(call)) for call in calls] for _ in range(3)]
    times = [median(found) for found in zip(*rounds, strict=True)]
    ratio = times[0] / times[1]
    words = f"the {'second' if ratio > 1 else 'first'} is {max(ratio, 1 / ratio):.2f} times as fast"
    if first.wanted.text == second.wanted.text:
        results = [special.run(one.operands) for special, one in zip(specials, (first, second), strict=True)]
        words += f"; the results are {'equal' if is_close(*results) else 'not equal'}"
    return list(times), words
