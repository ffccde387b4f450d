"""Which kernels are run under sanitizers: those that the fuzzers draw, with their operands; each follows from a seed and a number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from unittest import mock

from fuzz.drawing import draw
from fuzz.runner import Job, Tally, int32_limit, prepare_unscheduled, prepare_whole
from fuzz.scheduled_runner import lowered
from fuzz.schedules import Drawn, Scheduled, draw_steps, finite
from sanitize.standalone import Kernel
from sanitize.wide import draw_wide

from sparseloom.core.errors import SparseloomError
from sparseloom.core.trees import walk
from sparseloom.formats.pack import position_counts
from sparseloom.formats.storage import Storage
from sparseloom.loops.nodes import For, LoopKind
from sparseloom.lower.kernel import Lowered
from sparseloom.plan.machine import this_machine
from sparseloom.plan.plan import plan_schedule
from sparseloom.programs import execution
from sparseloom.programs.binding import Call
from sparseloom.programs.execution import Specialization

Draw = Callable[[int, int], Kernel | None]


def laid_out(prepared: Specialization, storages: Mapping[str, Storage]) -> tuple[Lowered, list[Any]]:
    """The kernel and its arguments, as they would be handed to compiled code."""
    found: list[tuple[Lowered, list[Any]]] = []

    def record(entry: object, lowered: Lowered, arguments: list[Any], read: object) -> Call:
        found.append((lowered, arguments))
        return Call(lambda: None, lambda: next(iter(storages.values())))

    not_compiled = mock.patch.object(Specialization, "_entry", lambda self, stages: print)
    with mock.patch.object(execution, "bind_entry", record), not_compiled:
        prepared.bind(storages)
    return found[0]


def kernel_of(label: str, prepared: Specialization, storages: Mapping[str, Storage]) -> Kernel | None:
    """The kernel of a statement on these operands; None if it runs on a GPU."""
    if prepared.stages.gpu_unit is not None:
        return None
    lowered, arguments = laid_out(prepared, storages)
    initialised = prepared.plan.assign.op is not None and prepared.plan.initial is None
    return Kernel(label, lowered.function, arguments, initialised, _lengths(prepared, storages, lowered))


def _lengths(prepared: Specialization, storages: Mapping[str, Storage], lowered: Lowered) -> dict[int, int]:
    """How much of its arrays a kernel writes, where that is not all: as the interpreter finds, where the kernel makes them."""
    if not lowered.hands_out:
        # A result that has an operand's structure also has the room behind its last entry, which nobody writes.
        if lowered.shared is None or lowered.shared.depth < len(storages[lowered.shared.name].levels):
            return {}
        return {lowered.parts[None, "values"]: position_counts(storages[lowered.shared.name])[-1]}
    call = prepared.bind(storages, "interpret")
    try:
        result = call.run()
    except SparseloomError:
        return {}
    if result.format != lowered.result.tensor.format:
        return {}  # converted in the end
    arrays = {(k, part): array for k, level in enumerate(result.levels) for part, array in level.arrays.items()}
    places = {**arrays, (None, "values"): result.values}
    return {k: len(places[place]) for place, k in lowered.parts.items() if k in lowered.grown and place in places}


def _prepared(seed: int, number: int, large: bool = False) -> Job | None:
    return prepare_whole(finite(draw(seed, number, large)), Tally())


def statement(seed: int, number: int) -> Kernel | None:
    """A random statement on random operands."""
    job = _prepared(seed, number)
    return None if job is None else kernel_of(str(job.case), job.prepared, job.storages)


def narrow(seed: int, number: int) -> Kernel | None:
    """Larger operands, where int32 positions end at 127; half of them with the positions in 64 bits that are then taken."""
    with int32_limit(draw(seed, number, True).int32_limit):
        job = _prepared(seed, number, True)
        if job is None:
            return None
        prepared = job.prepared.widened() if number % 2 else job.prepared
        return kernel_of(str(job.case), prepared, job.storages)


def scheduled(seed: int, number: int) -> Kernel | None:
    """A random statement under a random schedule."""
    job = prepare_unscheduled(finite(draw(seed, number)), Tally())
    steps = () if job is None else draw_steps(job.case, job.prepared.unscheduled(), Drawn())
    if job is None or not steps:
        return None
    made = lowered(Scheduled(job.case, steps), job)
    return kernel_of(str(made.scheduled), job.prepared, job.storages)


def parallel(seed: int, number: int) -> Kernel | None:
    """A statement under a schedule that starts threads, or one whose result the compiler itself makes in threads."""
    if number % 4:
        made = scheduled(seed, number)
    else:
        job = _prepared(seed, number)
        if job is None:
            return None
        planned = plan_schedule(job.prepared.plan, job.prepared.problem.sizes, job.prepared.statistics, this_machine().eager)
        job.prepared.__dict__["plan"] = planned  # where cached_property keeps it
        made = kernel_of(f"{job.case}\n  in threads", job.prepared, job.storages)
    return made if made is not None and _has_threads(made) else None


def _has_threads(kernel: Kernel) -> bool:
    return any(isinstance(n, For) and n.kind is LoopKind.THREADS for n in walk(kernel.function.body))


def wide(seed: int, number: int) -> Kernel | None:
    """Modes of 2^31 to 2^62 coordinates, of which few are stored."""
    label, prepared, storages = draw_wide(seed, number)
    try:
        return kernel_of(label, prepared(), storages)
    except SparseloomError:
        return None


KINDS: dict[str, Draw] = {"statement": statement, "narrow": narrow, "scheduled": scheduled, "parallel": parallel, "wide": wide}


def drawn(kind: str, seed: int, number: int) -> Kernel | None:
    """One kernel by its numbers; None where nothing valid was drawn."""
    made = KINDS[kind](seed, number)
    return None if made is None else replace(made, label=f"{kind} {seed} {number}\n{made.label}")
