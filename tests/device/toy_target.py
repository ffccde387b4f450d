"""A target for kernels of a device, for tests alone: its text only names kernels, which a stand-in runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sparseloom.core.trees import walk
from sparseloom.loops.nodes import Allocate, Array, Declare, Fail, For, Function, Launch, MemorySpace, Var
from sparseloom.loops.printer import show
from sparseloom.targets.c import C
from sparseloom.targets.target import GPU_UNITS, Calling, Target


@dataclass(frozen=True)
class KernelOf:
    """One kernel of a function."""

    name: str
    launch: Launch
    params: tuple[Array | Var, ...]
    fails: bool


def kernels_of(function: Function, entry: str) -> tuple[KernelOf, ...]:
    """The kernels of a function, in the order of its launches."""
    launches = [n for n in walk(function.body) if isinstance(n, Launch)]
    return tuple(
        KernelOf(f"{entry}_{k}", launch, _taken(launch), any(isinstance(n, Fail) for n in walk(launch)))
        for k, launch in enumerate(launches)
    )


def _taken(launch: Launch) -> tuple[Array | Var, ...]:
    inside = {n.var for n in walk(launch) if isinstance(n, Declare | For)} | {n.array for n in walk(launch) if isinstance(n, Allocate)}
    found = dict.fromkeys(n for n in walk(launch.body) if isinstance(n, Array | Var) and n not in inside)
    return tuple(sorted(found, key=lambda one: isinstance(one, Var)))


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
)
