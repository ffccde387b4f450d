"""Kernels that are interpreted for a while, since a C compiler for each of thousands takes hours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sparseloom.compiler import Stages
from sparseloom.programs.execution import Specialization
from sparseloom.toolchain.loading import EntryPoint


@contextmanager
def interpreted() -> Iterator[None]:
    """Within it, what was not compiled before is run by the interpreter of loops, as where there is no compiler."""
    compiled = Specialization._entry

    def entry(special: Specialization, stages: Stages) -> EntryPoint | None:
        return None if stages.loaded_entry is None else compiled(special, stages)

    Specialization._entry = entry  # type: ignore[method-assign]
    try:
        yield
    finally:
        Specialization._entry = compiled  # type: ignore[method-assign]
