"""The machine as its C compiler lets the planner use it: without threads, where the compiler makes none."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from sparseloom.plan.machine import Machine, this_machine
from sparseloom.toolchain.openmp import kernels_have_threads


@cache
def machine_here() -> Machine:
    """This machine, with threads if kernels have them."""
    return replace(this_machine(), has_threads=kernels_have_threads)
