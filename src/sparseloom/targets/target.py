"""What a target has: parallel units, memory, widths, atomics, and how its kernels are written and called.

Lowering and the passes ask the target; none of them knows it by name. A member is one file: its facts are an instance of ``Target``, which
is added to ``targets/registry.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from sparseloom.core.dtypes import DType
from sparseloom.core.errors import CompilerBug
from sparseloom.core.lines import Line, lines_of
from sparseloom.core.once import cached_property
from sparseloom.loops.nodes import Function, LoopKind, MemorySpace
from sparseloom.notation.nodes import Unit
from sparseloom.targets.toolchain import Allocator, Toolchain


@dataclass(frozen=True)
class ParallelUnit:
    """One kind of parallel hardware, and the loops it runs."""

    unit: Unit
    kind: LoopKind
    has_lanes: bool = False  # its iterations run in lock step, so they cannot depend on each other
    needs_constant: bool = False  # how many iterations there are is known at compile time


# From the outside in: a unit may contain those behind it.
CPU_UNITS = (ParallelUnit(Unit.CPUThread, LoopKind.THREADS), ParallelUnit(Unit.CPUVector, LoopKind.VECTOR, has_lanes=True))
GPU_UNITS = (
    ParallelUnit(Unit.GPUBlock, LoopKind.GPU_BLOCK),
    ParallelUnit(Unit.GPUWarp, LoopKind.GPU_WARP, needs_constant=True),
    ParallelUnit(Unit.GPUThread, LoopKind.GPU_THREAD, has_lanes=True, needs_constant=True),
)
FACTS = {one.unit: one for one in (*CPU_UNITS, *GPU_UNITS)}


def lanes_of_warp(wanted: int, most: int) -> int:
    """How many lanes a group has whose loops need so many: a power of two, so that several groups share a warp."""
    return min(most, 1 << max(wanted - 1, 0).bit_length())


class Atomic(Enum):
    """How one location is updated that several iterations write."""

    UPDATE = "update"  # in one instruction
    SWAP = "swap"  # compared and swapped until nobody came between
    LOCK = "lock"  # one after another


class Calling(Enum):
    """How a kernel is run."""

    COMPILED = "compiled"  # its text is compiled to a library, and its entry is called
    LAUNCHED = "launched"  # its text is compiled to kernels of a GPU, which the host launches
    INTERPRETED = "interpreted"  # its loops are run in Python


@dataclass(frozen=True, eq=False)
class Launchable:
    """A function for a device: its host code, the text of its kernels, and what the text has for each launch."""

    function: Function
    source: str
    kernels: Sequence[Any]


@dataclass(frozen=True, eq=False)
class Target:
    """What runs kernels. It is known by itself, not by its parts, so that looking up what was built for it takes no time."""

    name: str
    title: str  # as a sentence says it
    units: tuple[ParallelUnit, ...]
    spaces: frozenset[MemorySpace]
    emit: Callable[[Sequence[tuple[Function, str]]], str]  # many kernels, each with the name of its entry, as one text
    atomic: Callable[[str, DType], Atomic | None]  # by operator and dtype
    has_dtype: Callable[[DType], bool] = lambda dtype: True  # whether arrays may have a dtype; indices in scalars are int64
    lines: Callable[[Function, str], list[Line]] | None = None  # those of the text of one kernel; None: their origins are not known
    calling: Calling = Calling.COMPILED
    toolchain: Toolchain | None = None  # of one that is compiled
    allocator: Allocator | None = None  # of one whose kernels hand out arrays
    kernels: Callable[[Function, str], Sequence[Any]] | None = None  # of one that is launched: what its text has for each launch
    vector_bytes: int = 64
    lanes: int = 1  # of a warp
    threads_per_block: int = 1
    parts: int = 64  # into how many parts a range is cut when what threads make is put together afterwards
    slots: int = 16  # how many private copies a loop over threads makes: results then do not depend on how many threads there are
    largest_shared: int = 4096  # elements of an array that the threads of a block share
    largest_local: int = 1024  # elements of an array that one thread has for itself; more than that is allocated
    stands_for: Target | None = None  # the target whose loops it runs in its place
    ordered: bool = False  # whether what is planned for it must add in a fixed order

    def __post_init__(self) -> None:
        if self.calling is Calling.COMPILED and self.toolchain is None:
            raise CompilerBug(self.name, "a target whose kernels are compiled should say how")

    @cached_property
    def in_order(self) -> Target:
        """The same target with a fixed order of additions, so that results have the same bits every time."""
        return self if self.ordered else replace(self, ordered=True)

    @property
    def model(self) -> Target:
        """The target that loops are made for."""
        return self.stands_for or self

    def lines_of(self, function: Function, entry: str) -> list[Line]:
        """The lines of the text of one kernel, with what they stem from."""
        return lines_of(self.emit([(function, entry)])) if self.lines is None else self.lines(function, entry)

    def lacking(self, units: Iterable[Unit]) -> Unit | None:
        """The first of these units that it does not have."""
        mine = {one.unit for one in self.units}
        return next((unit for unit in units if unit not in mine), None)
