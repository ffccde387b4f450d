"""What the host does for a kernel of a device: it works out sizes, and says what is launched with which arguments.

Everything is known when the arrays are: sizes are fixed, and positions do not change while a call is bound. So the host code of a function
is gone through once per binding, and what remains of it is a list of launches.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

from sparseloom.core.dtypes import BOOL
from sparseloom.core.errors import CompilerBug, DeviceError
from sparseloom.core.trees import walk
from sparseloom.loops import nodes as ir

MOST_BLOCKS = 2**31 - 1
MOST_THREADS = 1024


class KernelOf(Protocol):
    """One kernel of a device, as the target describes it."""

    @property
    def name(self) -> str:
        """What the kernel is called in the text."""

    @property
    def launch(self) -> ir.Launch:
        """The statement that it is made of."""

    @property
    def params(self) -> tuple[ir.Array | ir.Var, ...]:
        """What it takes, in order: the addresses of arrays, and numbers of 64 bits."""

    @property
    def fails(self) -> bool:
        """Whether the address of a status follows."""


@dataclass(frozen=True)
class Number:
    """A number that a kernel takes."""

    value: int


@dataclass(frozen=True)
class Argument:
    """The address of an array that is a parameter of the function: the one at this place."""

    place: int


@dataclass(frozen=True)
class Temporary:
    """The address of an array that lives during the call: the one at this place."""

    place: int


@dataclass(frozen=True)
class StatusWord:
    """The address of the status."""


Word = Number | Argument | Temporary | StatusWord


@dataclass(frozen=True)
class Step:
    """One kernel to launch, with what it takes."""

    kernel: str
    blocks: int
    threads: int
    words: tuple[Word, ...]


@dataclass(frozen=True)
class HostPlan:
    """What a call does: the launches in order, and the bytes of each temporary. ``failed`` is a status that was known before any."""

    steps: tuple[Step, ...] = ()
    temporaries: tuple[int, ...] = ()
    failed: ir.Status | None = None

    @property
    def may_fail(self) -> bool:
        """Whether some kernel reports a status."""
        return any(isinstance(word, StatusWord) for step in self.steps for word in step.words)


class _Failed(Exception):
    """The host code ended with a status."""

    def __init__(self, status: ir.Status) -> None:
        super().__init__(status.name)
        self.status = status


def run_host_code(function: ir.Function, kernels: Sequence[KernelOf], arguments: Sequence[Any]) -> HostPlan:
    """Go through the host code of a function, with arguments that align with its parameters."""
    launches = [n for n in walk(function.body) if isinstance(n, ir.Launch)]
    if len(launches) != len(kernels):
        raise CompilerBug(function.name, f"there is one kernel for each of {len(launches)} launches, not {len(kernels)}")
    host = _Host({id(launch): kernel for launch, kernel in zip(launches, kernels, strict=True)}, arguments)
    for place, param in enumerate(function.params):
        host.enter(place, param)
    try:
        host.run(function.body)
    except _Failed as ended:
        return HostPlan(failed=ended.status)
    return HostPlan(tuple(host.steps), tuple(host.temporaries))


class _Host:
    """Runs host code; ``known`` has numbers and arrays by name."""

    def __init__(self, kernels: Mapping[int, KernelOf], arguments: Sequence[Any]) -> None:
        self.kernels = kernels
        self.arguments = arguments
        self.known: dict[str, Word] = {}
        self.steps: list[Step] = []
        self.temporaries: list[int] = []

    def enter(self, place: int, param: ir.Param) -> None:
        """Know a parameter of the function."""
        is_size = isinstance(param.target, ir.Var)
        self.known[param.target.name] = Number(int(self.arguments[place] or 0)) if is_size else Argument(place)

    def run(self, stmt: ir.Stmt) -> None:
        """Run one statement."""
        match stmt:
            case ir.Block(stmts):
                for inner in stmts:
                    self.run(inner)
            case ir.Declare(var, value) | ir.Assign(var, value):
                self.known[var.name] = Number(self.value(value))
            case ir.If(condition, then, other):
                self.run(then if self.value(condition) else other)
            case ir.Allocate(array, size):
                self.known[array.name] = Temporary(len(self.temporaries))
                self.temporaries.append(max(0, self.value(size)) * array.dtype.itemsize)
            case ir.Fail(status):
                raise _Failed(status)
            case ir.Launch(blocks, threads):
                self.launch(self.kernels[id(stmt)], self.value(blocks), self.value(threads))
            case ir.Free() | ir.Poll():
                pass  # temporaries live as long as the call is bound
            case _:
                raise CompilerBug(stmt, "host code declares, decides, allocates and launches; everything else is done by kernels")

    def launch(self, kernel: KernelOf, blocks: int, threads: int) -> None:
        """Write a launch down; one of no blocks does nothing."""
        if blocks <= 0:
            return
        if blocks > MOST_BLOCKS or not 0 < threads <= MOST_THREADS:
            raise DeviceError(
                f"a kernel cannot be launched as {blocks} blocks of {threads} threads: there are at most {MOST_BLOCKS} and {MOST_THREADS}\n"
                "  help: give each block or thread more to do, as by split(...) with a larger size"
            )
        words = [self.known[param.name] for param in kernel.params]
        self.steps.append(Step(kernel.name, blocks, threads, (*words, StatusWord()) if kernel.fails else tuple(words)))

    def value(self, expr: ir.Expr) -> int:
        """The value of an expression."""
        match expr:
            case ir.Literal(value):
                return int(value.real)
            case ir.Var(name):
                return self.number(name)
            case ir.Load(array, place):
                return int(self.loaded(array.name)[self.value(place)])
            case ir.Cast(operand, dtype):
                return int(self.value(operand) != 0) if dtype == BOOL else self.value(operand)
            case ir.Select(condition, then, other) | ir.Op("where", (condition, then, other)):
                return self.value(then if self.value(condition) else other)
            case ir.Op("logical_and", args):
                return int(all(self.value(arg) for arg in args))
            case ir.Op("logical_or", args):
                return int(any(self.value(arg) for arg in args))
            case ir.Op(name, args) if name in _OPERATORS:
                return int(reduce(_OPERATORS[name], map(self.value, args)))
            case ir.Op("logical_not", (arg,)):
                return int(not self.value(arg))
            case ir.Op("negative", (arg,)):
                return -self.value(arg)
        raise CompilerBug(expr, "the host works out sizes and positions only")

    def number(self, name: str) -> int:
        """The number that a name stands for."""
        match self.known.get(name):
            case Number(value):
                return value
        raise CompilerBug(name, "host code declares its numbers before it uses them")

    def loaded(self, name: str) -> Any:
        """The array that a name stands for, which the host reads."""
        match self.known.get(name):
            case Argument(place):
                return self.arguments[place]
        raise CompilerBug(name, "the host reads operands only")


_OPERATORS: dict[str, Callable[[int, int], Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "minimum": min, "maximum": max,
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge, "logical_xor": lambda a, b: bool(a) != bool(b),
}  # fmt: skip
