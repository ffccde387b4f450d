"""How kernels run in the campaign: interpreted where they have little to do, since a C compiler for each of thousands takes hours."""

from __future__ import annotations

import os
from math import prod

from sparseloom.compiler import Stages
from sparseloom.programs.execution import Specialization
from sparseloom.toolchain.loading import EntryPoint

TARGET = "SPARSELOOM_CONFORMANCE_TARGET"  # "c" compiles all of them
LITTLE = 100_000  # points of the iteration space, which the interpreter visits in less time than the compiler takes


def target() -> str:
    """What the environment asks for."""
    return os.environ.get(TARGET) or "interpret"


def interpret_small_kernels() -> None:
    """Let the loops of small problems be interpreted, as where there is no compiler."""
    if target() != "interpret":
        return
    compiled = Specialization._entry

    def entry(special: Specialization, stages: Stages) -> EntryPoint | None:
        is_little = prod(max(size, 1) for size in special.problem.sizes.values()) <= LITTLE
        return None if is_little and stages.loaded_entry is None else compiled(special, stages)

    Specialization._entry = entry  # type: ignore[method-assign]
