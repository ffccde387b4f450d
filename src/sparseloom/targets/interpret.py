"""The interpreter as a target: it has every unit, and stands in for any other target by running that one's loops in Python."""

from __future__ import annotations

from dataclasses import replace

from sparseloom.loops.nodes import MemorySpace
from sparseloom.targets.c import C
from sparseloom.targets.target import CPU_UNITS, GPU_UNITS, Calling, Target


def stand_in(target: Target, name: str) -> Target:
    """The interpreter in place of a target: what it shows is that one's text, what it runs are that one's loops."""
    spaces = frozenset(MemorySpace)
    units = (*CPU_UNITS, *GPU_UNITS)
    return replace(target, name=name, title="the interpreter", units=units, spaces=spaces, calling=Calling.INTERPRETED, stands_for=target)


INTERPRET = stand_in(C, "interpret")
