"""Loops as CUDA C++: one kernel for every launch, in the user's names. The host's part is carried out by ``runtime/cuda``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sparseloom.core.lines import Line, lines_of, text_of
from sparseloom.core.trees import walk
from sparseloom.loops.bounds import hold_bounds
from sparseloom.loops.nodes import Allocate, Array, Declare, Fail, Fill, For, Function, Launch, MemorySpace, Store, Var
from sparseloom.loops.roles import index_names, nonnegative_names
from sparseloom.targets.c import in_lines
from sparseloom.targets.c_expr import Expressions, c_type
from sparseloom.targets.c_names import CNames, legal
from sparseloom.targets.c_prelude import STATUS_NAMES
from sparseloom.targets.cuda_prelude import atomic_way, helpers, prelude_for
from sparseloom.targets.cuda_stmt import KernelStatements
from sparseloom.targets.target import GPU_UNITS, Calling, Target

# What C++ and CUDA have beside C's own names.
_TAKEN = """
and and_eq atomicAdd atomicCAS atomicMax atomicMin bitand bitor blockDim blockIdx catch char8_t char16_t char32_t class co_await co_return
co_yield compl concept const_cast consteval constinit decltype delete dynamic_cast explicit export friend gridDim mutable namespace new
noexcept not not_eq operator or or_eq private protected public reinterpret_cast requires static_cast status template this threadIdx throw
try typeid typename using virtual warpSize wchar_t xor xor_eq
""".split()


@dataclass(frozen=True)
class CudaKernel:
    """One kernel of a function: what it is called, how it is launched, what it takes, and whether it may fail (see ``status`` there)."""

    name: str
    launch: Launch
    params: tuple[Array | Var, ...]
    fails: bool


def kernels_of(function: Function, entry: str) -> tuple[CudaKernel, ...]:
    """The kernels of a function, in the order of its launches."""
    launches = [n for n in walk(function.body) if isinstance(n, Launch)]
    return tuple(
        CudaKernel(f"{legal(entry)}_{k}", launch, _taken(launch), any(isinstance(n, Fail) for n in walk(launch)))
        for k, launch in enumerate(launches)
    )


def _taken(launch: Launch) -> tuple[Array | Var, ...]:
    """What a kernel takes from outside, in order of appearance: arrays, then scalars."""
    inside: set[Array | Var] = set()
    for n in walk(launch.body):
        match n:
            case Declare(var) | For(var):
                inside.add(var)
            case Allocate(array):
                inside.add(array)
    found = dict.fromkeys(n for n in walk(launch.body) if isinstance(n, Array | Var) and n not in inside)
    return tuple(sorted(found, key=lambda one: isinstance(one, Var)))


def translation_unit(functions: Sequence[tuple[Function, str]]) -> str:
    """One text with the kernels of many functions, each with the name that they begin with."""
    text = text_of(line for function, entry in functions for line in _kernels(function, entry))
    prelude = prelude_for(text, max((_lanes_of_warp(function) for function, _ in functions), default=1))
    return f"{prelude}\n{text}" if text else prelude


def translated(function: Function, entry: str) -> list[Line]:
    """The lines of the text of one function, with what they stem from."""
    lines = list(_kernels(function, entry))
    return [*lines_of(prelude_for(text_of(lines), _lanes_of_warp(function))), *lines]


def _lanes_of_warp(function: Function) -> int:
    """How many lanes the warps of a device have that runs the kernels of a function."""
    return max((n.warp for n in walk(function.body) if isinstance(n, Launch)), default=1)


def _kernels(function: Function, entry: str) -> Iterator[Line]:
    function = hold_bounds(function)
    indices, nonnegative = index_names(function), nonnegative_names(function)
    kernels = kernels_of(function, entry)
    for kernel in kernels:
        names = CNames([*_TAKEN, *helpers(kernel.launch.warp), *STATUS_NAMES, *(other.name for other in kernels)])
        params = [_declaration(one, kernel.launch, names) for one in kernel.params]
        statements = KernelStatements(Expressions(names, indices, nonnegative), kernel.launch)
        statements.emit(kernel.launch.body)
        statements.written.check(kernel.launch.body)
        head = f'extern "C" __global__ void __launch_bounds__({statements.threads}) {kernel.name}('
        yield from map(Line, in_lines(head, [*params, *(["int32_t *status"] if kernel.fails else [])]))
        yield from (*statements.lines, Line("}"), Line(""))


def _declaration(param: Array | Var, launch: Launch, names: CNames) -> str:
    """A parameter: the address of an array, which may be written only if the kernel does, or a number."""
    if isinstance(param, Var):
        return f"int64_t {names.scalar(param.name)}"
    written = any(isinstance(n, Store | Fill) and n.array == param for n in walk(launch))
    return f"{'' if written else 'const '}{c_type(param.dtype)} *__restrict__ {names.array(param)}"


CUDA = Target(
    name="cuda",
    title="CUDA",
    units=GPU_UNITS,
    spaces=frozenset({MemorySpace.GLOBAL, MemorySpace.SHARED, MemorySpace.LOCAL}),
    emit=translation_unit,
    lines=translated,
    atomic=atomic_way,
    calling=Calling.LAUNCHED,
    kernels=kernels_of,
    lanes=32,
    threads_per_block=1024,
)
