"""Running what is shown: how long it takes, what comes out, and whether the interpreter and SciPy get the same."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from statistics import median
from typing import Any

import numpy as np

from sparseloom.core.dtypes import computed, float_limits, is_half, kind_of
from sparseloom.core.errors import DeviceError, SparseloomError, ToolchainError
from sparseloom.explorer.look import code
from sparseloom.explorer.peer import peer_of
from sparseloom.explorer.predict import moved_bytes
from sparseloom.explorer.state import RequestError, State, Step
from sparseloom.explorer.subject import Subject
from sparseloom.explorer.timeline import timeline
from sparseloom.explorer.window import smaller, windowed
from sparseloom.formats.named import name_of
from sparseloom.formats.pack import to_dense
from sparseloom.formats.storage import Storage
from sparseloom.programs.binding import Call
from sparseloom.programs.cuda.binding import awaited
from sparseloom.programs.cuda.storages import to_device, to_host
from sparseloom.targets.target import Calling
from sparseloom.tensor.tensor import Tensor
from sparseloom.toolchain.teams import get_threads

LONGEST, MOST_RUNS = 0.4, 200  # seconds of measuring, and runs
_TOLERANCE = 1e-9  # relative to the largest value: sums may be added up in another order


def run(subject: Subject) -> dict[str, Any]:
    """Everything that a run tells."""
    call = _call(subject)
    made = to_host(call.run())
    times = measured(call.start)
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


def _call(subject: Subject, given: Mapping[str, Storage] | None = None) -> Call:
    """A run of what is shown, where the target is; on a GPU it is waited for."""
    here = operands = subject.operands if given is None else given
    if subject.target.calling is Calling.LAUNCHED:
        try:
            operands = {name: to_device(storage) for name, storage in operands.items()}
        except (DeviceError, ToolchainError) as fault:
            reason = str(fault).split("\n")[0]
            help = "choose C, or copy it as Python and run it where a GPU is"
            raise DeviceError(f"CUDA kernels are shown here, but not run: {reason}\n  help: {help}") from None
    call = subject.on(operands, subject.schedule.text).bind(operands)
    return awaited(call) if operands is not here else call


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
    try:
        ours, checked = to_host(_call(small, cut).run()), small.on(cut, small.schedule.text).run(cut, "interpret")
    except SparseloomError as fault:
        return {"same": None, "text": f"not compared: {fault}"}
    same = is_close(ours, checked)
    sizes = ", ".join(f"{name} {' by '.join(map(str, storage.shape))}" for name, storage in cut.items())
    return {"same": same, "text": f"on {sizes}"}


def is_close(ours: Storage, theirs: Storage) -> bool:
    """Whether two results are the same up to the order of sums."""
    left, right = to_dense(ours), to_dense(theirs)
    if kind_of(left.dtype) not in "fc":
        return bool(np.array_equal(left, right))
    tolerance = float_limits(left.dtype)[1] if is_half(left.dtype) else _TOLERANCE  # what was rounded may differ by one step
    left, right = (array.astype(computed(array.dtype), copy=False) for array in (left, right))
    scale = float(np.max(np.abs(right), initial=0, where=np.isfinite(right)))
    return bool(np.allclose(left, right, rtol=tolerance, atol=tolerance * scale, equal_nan=True))


def _beside(subject: Subject, made: Storage) -> dict[str, Any] | None:
    """The same in SciPy or NumPy, where one call does it."""
    peer = None if subject.ring is not None else peer_of(subject.wanted.script.last.assign, subject.operands)
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
    if not isinstance(step, str):
        raise RequestError("step is the text of a step")
    with_it = Subject(replace(subject.state, steps=(*_legal(subject), Step(step))), subject.given)
    refused = next((row.error for row in with_it.rows if row.error is not None), None)
    if refused is not None:
        raise refused
    seconds, before = (median(measured(_call(one).start)) for one in (with_it, subject))
    return {"seconds": seconds, "plain_seconds": before}


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
    try:
        calls = [_call(one) for one in (first, second)]
    except DeviceError as fault:
        return [None, None], str(fault).split("\n")[0]
    rounds = [[min(measured(call.start)) for call in calls] for _ in range(3)]
    times = [median(found) for found in zip(*rounds, strict=True)]
    ratio = times[0] / times[1]
    words = f"the {'second' if ratio > 1 else 'first'} is {max(ratio, 1 / ratio):.2f} times as fast"
    if first.wanted.text == second.wanted.text:
        words += f"; the results are {'equal' if is_close(*(to_host(call.run()) for call in calls)) else 'not equal'}"
    return list(times), words
