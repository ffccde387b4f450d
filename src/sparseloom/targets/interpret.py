"""The interpreter as a target: it has every unit, and can run the loops of any other target in Python."""

from __future__ import annotations

from dataclasses import replace

from sparseloom.loops.nodes import MemorySpace
from sparseloom.targets.c import C
from sparseloom.targets.cuda import CUDA
from sparseloom.targets.target import CPU_UNITS, GPU_UNITS, Calling, Target


def stand_in(target: Target, name: str) -> Target:
    """The interpreter for the loops of a target. It shows the text of that target."""
    sizes = with_warps(target)
    return replace(
        target,
        name=name,
        title="the interpreter",
        units=(*CPU_UNITS, *GPU_UNITS),
        spaces=frozenset(MemorySpace),
        calling=Calling.INTERPRETED,
        stands_for=target,
        lanes=sizes.lanes,
        threads_per_block=sizes.threads_per_block,
    )


def with_warps(target: Target) -> Target:
    """The target whose sizes of warps and blocks hold: CUDA if this one has no units of a GPU, for the interpreter runs them."""
    return target if target.lacking(one.unit for one in GPU_UNITS) is None else CUDA


INTERPRET = stand_in(C, "interpret")
