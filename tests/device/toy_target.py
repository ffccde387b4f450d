"""A target for kernels of a device, for tests alone: its text only names kernels, which a stand-in runs."""

from __future__ import annotations

from collections.abc import Sequence

from sparseloom.loops.nodes import Function, MemorySpace
from sparseloom.loops.printer import show
from sparseloom.targets.c import C
from sparseloom.targets.cuda import CUDA, kernels_of
from sparseloom.targets.target import GPU_UNITS, Calling, Target


def emit(functions: Sequence[tuple[Function, str]]) -> str:
    """The loops, as they are printed."""
    return "\n".join(f"{entry}: {show(function)}" for function, entry in functions)


TOY_CUDA = Target(
    name="cuda",
    title="CUDA",
    units=GPU_UNITS,
    spaces=frozenset(MemorySpace),
    emit=emit,
    atomic=C.atomic,
    calling=Calling.LAUNCHED,
    kernels=kernels_of,
    lanes=CUDA.lanes,
    threads_per_block=CUDA.threads_per_block,
)
