"""Loops as C: one readable function per kernel, and one entry that takes a pack of pointers.

    args[0]      struct caller_state *: asked now and then whether to stop, may be NULL
    args[1 + k]  parameter k: an array's address, an int64 by value, or a slot for what the kernel hands out

A kernel returns a ``Status``. Unless it is OK, everything it allocated is freed and no slot is written.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparseloom.core.lines import Line, lines_of, text_of
from sparseloom.core.trees import walk
from sparseloom.loops.bounds import hold_bounds
from sparseloom.loops.nodes import Array, Function, MemorySpace, Param, Poll, Role
from sparseloom.loops.roles import index_names, nonnegative_names
from sparseloom.targets.c_expr import Expressions, c_type
from sparseloom.targets.c_names import CNames, legal
from sparseloom.targets.c_prelude import DECLARED, HUGE_PAGE, PLACES, STATUS_NAMES, atomic_way, helpers, prelude_for
from sparseloom.targets.c_stmt import Statements, heap_arrays, may_fail, pieces_of
from sparseloom.targets.c_toolchain import C_TOOLCHAIN
from sparseloom.targets.c_vectors import VECTOR_BYTES
from sparseloom.targets.target import CPU_UNITS, Target
from sparseloom.targets.toolchain import Allocator, ShelfSize

_OURS = frozenset(["args", "caller", "status", "poll", "countdown", "larger", *DECLARED, *STATUS_NAMES])
_WIDTH = 110
_MOST_EFFORT = 20_000  # takes a C compiler some two seconds


def translation_unit(kernels: Sequence[tuple[Function, str]]) -> str:
    """One C file with many kernels, each with the name of its entry."""
    text = text_of(_kernels(kernels))
    return f"{prelude_for(text)}\n{text}"


def translated(function: Function, entry: str) -> list[Line]:
    """The lines of the file of one kernel, with what they stem from."""
    lines = _kernels([(function, entry)])
    return [*lines_of(prelude_for(text_of(lines))), *lines]


def _kernels(kernels: Sequence[tuple[Function, str]]) -> list[Line]:
    """The kernels one after another, an empty line behind each."""
    entries = {entry for _, entry in kernels}
    if len(entries) < len(kernels):
        raise ValueError("every kernel of a file needs an entry of its own")
    names = _fresh_names(entries)
    return [line for function, entry in kernels for line in _kernel(function, names.fresh(function.name), entry, entries, True)]


def emit(function: Function, entry: str = "entry", static: bool = False) -> str:
    """The text of one kernel and its entry, without the prelude; a static kernel can be reached through its entry only."""
    return text_of(_kernel(function, _fresh_names([entry]).fresh(function.name), entry, [entry], static))


def prelude(functions: Sequence[Function]) -> str:
    """The includes and helpers that these kernels need."""
    return prelude_for("\n".join(emit(function) for function in functions))


def _fresh_names(entries: Sequence[str] | set[str]) -> CNames:
    return CNames([*_OURS, *helpers(), *entries])


def _kernel(function: Function, name: str, entry: str, entries: Sequence[str] | set[str], static: bool) -> list[Line]:
    """The typed function and its entry, and an empty line."""
    names = _fresh_names([*entries, name])
    params = [_Parameter(param, names) for param in function.params]
    head = in_lines(f"{'static ' if static else ''}int32_t {name}(", [*(p.declaration for p in params), "void *caller"])
    function = hold_bounds(function)
    statements = Statements(Expressions(names, index_names(function), nonnegative_names(function)))
    handed = [p.target for p in function.params if p.role is Role.GROWN and isinstance(p.target, Array)]
    heap = {names.array(array): c_type(array.dtype) for array in (*handed, *heap_arrays(function.body))}
    pieces = [names.array(one) for one in pieces_of(function.body)]
    fails = may_fail(function.body)
    statements.line(*(f"{kind} *{array} = NULL;" for array, kind in heap.items()), *(f"void **{made} = NULL;" for made in pieces))
    statements.line(*(f"int64_t {p.name} = 0;" for p in params if p.role is Role.COUNT))
    if fails:
        statements.line("int32_t status = OK;")
    if any(isinstance(n, Poll) for n in walk(function.body)):
        statements.line("struct poll_state poll = {1, 0, 0};", "int64_t countdown = 1;")
    statements.emit(function.body)
    statements.written.check(function.body)
    released = [f"release_pieces({made});" for made in pieces]
    statements.line(*released, *(f"*{p.slot} = {p.name};" for p in params if p.slot), "return OK;")
    if fails:
        statements.lines += [Line(""), Line("fail:")]
        statements.line(*(f"release({array});" for array in heap), *released, "return status;")
    threads = any("#pragma omp parallel" in line.text for line in statements.lines)
    if _effort(statements.lines) > _MOST_EFFORT:
        head = [f"PLAINLY {head[0]}", *head[1:]]
    return [*map(Line, head), *statements.lines, *map(Line, ["}", "", *_entry(name, entry, params, threads), ""])]


def _effort(lines: Sequence[Line]) -> int:
    """What the time of a C compiler grows with: lines times the depth of the loops."""
    return len(lines) * max((len(text) - len(text.lstrip()) for text, _ in lines), default=0) // 2


class _Parameter:
    """One parameter: how it is declared, and what the entry hands over for it."""

    def __init__(self, param: Param, names: CNames) -> None:
        target, self.role = param.target, param.role
        self.name = names.array(target) if isinstance(target, Array) else names.scalar(target.name)
        self.slot = names.fresh(f"{self.name}_out") if param.role in (Role.GROWN, Role.COUNT) else ""
        kind = c_type(target.dtype)
        match param.role:
            case Role.INPUT:
                self.declaration, self.argument = f"const {kind} *restrict {self.name}", "args[{}]"
            case Role.OUTPUT:
                self.declaration, self.argument = f"{kind} *restrict {self.name}", "args[{}]"
            case Role.SIZE:
                self.declaration, self.argument = f"int64_t {self.name}", "(int64_t)args[{}]"
            case Role.GROWN:
                self.declaration, self.argument = f"{kind} **{self.slot}", f"({kind} **)&args[{{}}]"
            case Role.COUNT:
                self.declaration, self.argument = f"int64_t *{self.slot}", "(int64_t *)&args[{}]"


def _entry(name: str, entry: str, params: Sequence[_Parameter], threads: bool) -> list[str]:
    arguments = [p.argument.format(k) for k, p in enumerate(params, 1)]
    head, tail = (f"  return dismiss_team({name}(", "));") if threads else (f"  return {name}(", ");")
    call = in_lines(head, [*arguments, "args[0]"], tail)
    return [f"int32_t {legal(entry)}(void **args) {{", *(["  prepare_team();"] if threads else []), *call, "}"]


def in_lines(head: str, parts: Sequence[str], tail: str = ") {") -> list[str]:
    """A list of parameters or arguments, broken into lines where it is long."""
    lines, current = [], head
    for k, part in enumerate(parts):
        piece = part + (tail if k == len(parts) - 1 else ",")
        if len(current) > len(head) and len(current) + len(piece) > _WIDTH:
            lines.append(current.rstrip())
            current = " " * len(head)
        current += piece + " "
    return [*lines, current.rstrip()]


C = Target(
    name="c",
    title="C",
    units=CPU_UNITS,
    spaces=frozenset({MemorySpace.GLOBAL, MemorySpace.LOCAL, MemorySpace.PIECES}),
    emit=translation_unit,
    lines=translated,
    atomic=atomic_way,
    vector_bytes=VECTOR_BYTES,
    toolchain=C_TOOLCHAIN,
    allocator=Allocator("give_back", ShelfSize(HUGE_PAGE, PLACES)),
)
