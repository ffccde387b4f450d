"""Loops from their text: the inverse of ``printer.show``.

    read("def scaled(input x_vals: float64[], size n, output y_vals: float64[])\n"
         "  for i in 0 : n\n"
         "    y_vals[i] = 2.0 * x_vals[i]\n")

What a kernel stems from (``origin``) is no part of the text. Statements are read in order, so that names have the dtypes they were declared
with.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from sparseloom.core.dtypes import BOOL, value_dtype
from sparseloom.core.errors import NotationError
from sparseloom.loops import nodes as ir
from sparseloom.loops.expressions import NAME, KnownNames, Tokens, unquoted
from sparseloom.loops.printer import SYMBOLS
from sparseloom.loops.routines import ROUTINES, Call, Routine
from sparseloom.loops.segments import Segments
from sparseloom.loops.together import FindTogether

E = TypeVar("E", bound=Enum)
_OPERATORS = {symbol: name for name, symbol in SYMBOLS.items()}
_HEAD = re.compile(rf"def ({NAME})\((.*)\)$")
_PARAM = re.compile(rf"(\w+) ({NAME})(?:: (\w+)\[\])?$")
_LOOP = re.compile(r"for (.*?)(?:  \[(.*)\])?$")
_WHILE = re.compile(r"while (.*?)(?:  \[unrolled (\d+)\])?$")
_LAUNCH = re.compile(r"launch (.*) blocks of (.*) threads, in(?: groups of (\d+) and)? warps of (\d+)(, settled)?$")
_KIND = re.compile(r"([a-z ]+?)(?: (\d+))?$")
_REDUCED = re.compile(rf"(\S+) ({NAME})$")
_DECLARED = re.compile(rf"({NAME}): (\w+) = (.*?)(?:  # (.*))?$")
_ARRAY = re.compile(rf"({NAME}): (\w+)\[(.*)\](?: (\w+))?$")
_UPDATE = re.compile(r"(\]|\w|`) (\S*)= ")


def read(text: str, routines: Mapping[str, Routine] = ROUTINES) -> ir.Function:
    """The kernel of a text.

    Args:
        text: a kernel as ``printer.show`` writes it.
        routines: the functions that it may call, by name.

    Raises:
        NotationError: the text is not that of a kernel; the message names the line.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    found = _HEAD.match(lines[0]) if lines else None
    if found is None:
        raise NotationError(f"a kernel begins with 'def name(parameters)', not with {lines[0] if lines else 'nothing'!r}")
    names = KnownNames()
    params = tuple(_param(written, names) for written in found[2].split(", ") if written)
    return ir.Function(unquoted(found[1]), params, _Reader(lines[1:], routines).body(1, names))


def _param(written: str, names: KnownNames) -> ir.Param:
    found = _PARAM.match(written)
    if found is None:
        raise NotationError(f"{written!r} is not a parameter such as 'input x_vals: float64[]' or 'size n'")
    role, name, dtype = found.groups()
    target = ir.Array(unquoted(name), value_dtype(dtype)) if dtype else ir.Var(unquoted(name))
    names.declare(target)
    return ir.Param(target, _member(ir.Role, role, "role"))


def _member(kind: type[E], value: object, what: str) -> E:
    """The member of an enumeration that has this value."""
    try:
        return kind(value)
    except ValueError:
        raise NotationError(f"there is no {what} {value!r}; there are {', '.join(str(one.value) for one in kind)}") from None


@dataclass
class _Reader:
    """The lines of a kernel, and which is next."""

    lines: list[str]
    routines: Mapping[str, Routine]
    next: int = 0

    def _line(self, depth: int) -> str | None:
        """The next line if it is in a body of this depth."""
        line = self.lines[self.next] if self.next < len(self.lines) else ""
        indent = len(line) - len(line.lstrip(" "))
        if indent > 2 * depth:
            raise NotationError(f"the line {line.strip()!r} is indented too far")
        return line[indent:] if line and indent == 2 * depth else None

    def body(self, depth: int, names: KnownNames) -> ir.Stmt:
        """The statements of one depth; what they declare is added to the names."""
        stmts: list[ir.Stmt] = []
        while (line := self._line(depth)) is not None:
            if line.split(" ")[0] in ("elif", "else") or line == "each thread last":
                break
            self.next += 1
            if line != "pass":
                stmts.append(self._stmt(line, depth, names))
        return ir.block(*stmts)

    def _stmt(self, line: str, depth: int, names: KnownNames) -> ir.Stmt:
        match line.split(" ")[0]:
            case "for":
                return self._loop(line, depth, names)
            case "while" if found := _WHILE.match(line):
                condition = Tokens(found[1], names).expr(BOOL)
                return ir.While(condition, self.body(depth + 1, names.inner()), int(found[2] or 0))
            case "if":
                return self._branch(line.removeprefix("if "), depth, names)
            case "launch" if found := _LAUNCH.match(line):
                blocks, threads = (Tokens(found[k], names).index() for k in (1, 2))
                body = self.body(depth + 1, names.inner())
                if not isinstance(body, ir.For):
                    raise NotationError(f"a launch runs one loop, in the line {line!r}")
                return ir.Launch(blocks, threads, body, int(found[3] or found[4]), int(found[4]), bool(found[5]))
            case "find" if line == "find together":
                found_together = ir.stmts_of(self.body(depth + 1, names))
                return FindTogether(tuple(one for one in found_together if isinstance(one, ir.Declare)))
            case "each" if line == "each thread first":
                return self._team(depth, names)
        return self._simple(line, names)

    def _team(self, depth: int, names: KnownNames) -> ir.Stmt:
        inside = names.inner()
        first, loop = self.body(depth + 1, inside), self.body(depth, inside)
        if not isinstance(loop, ir.For) or self._line(depth) != "each thread last":
            raise NotationError("a team has one loop between 'each thread first' and 'each thread last'")
        self.next += 1
        return ir.Team(first, loop, self.body(depth + 1, inside))

    def _branch(self, condition: str, depth: int, names: KnownNames) -> ir.Stmt:
        decided = Tokens(condition, names).expr(BOOL)
        then = self.body(depth + 1, names.inner())
        line = self._line(depth) or ""
        if line.startswith("elif "):
            self.next += 1
            return ir.If(decided, then, self._branch(line.removeprefix("elif "), depth, names))
        if line != "else":
            return ir.If(decided, then)
        self.next += 1
        return ir.If(decided, then, self.body(depth + 1, names.inner()))

    def _loop(self, line: str, depth: int, names: KnownNames) -> ir.Stmt:
        found = _LOOP.match(line)
        if found is None:
            raise NotationError(f"cannot read the loop {line!r}")
        head = Tokens(found[1], names)
        var = ir.Var(head.name())
        head.take("in")
        begin = head.index()
        head.take(":")
        end = head.index()
        manner, _, room = (found[2] or "serial").partition(", room ")
        kind, *reduced = manner.split(", ")
        reduces = tuple(_reduction(one, names) for one in reduced)
        said = _KIND.match(kind)
        if said is None:
            raise NotationError(f"there is no kind of loop {kind!r}, in the line {line!r}")
        inside = names.inner()
        inside.declare(var)
        how = _member(ir.LoopKind, said[1], "kind of loop"), int(said[2] or 0), reduces, Tokens(room, names).index() if room else None
        return ir.For(var, begin, end, self.body(depth + 1, inside), *how)

    def _simple(self, line: str, names: KnownNames) -> ir.Stmt:
        """A statement that holds no other statements."""
        word, _, rest = line.partition(" ")
        match word:
            case "barrier" | "poll" if not rest:
                return ir.Barrier() if word == "barrier" else ir.Poll()
            case "fail":
                return ir.Fail(_member(ir.Status, ir.Status.__members__.get(rest, rest), "status"))
            case "free":
                return ir.Free(names.array(rest))
            case "allocate":
                array, size = _array(rest, names)
                return ir.Allocate(array, Tokens(size, names).index())
        if found := _DECLARED.match(line):
            name, dtype, value, why = found.groups()
            var = ir.Var(unquoted(name), value_dtype(dtype))
            made = ir.Declare(var, Tokens(value, names).expr(var.dtype), why or "")
            names.declare(var)
            return made
        if (found := re.match(r"(\w+)\((.*)\)$", line)) and found[1] in self.routines:
            return self._call(self.routines[found[1]], found[2], names)
        return _written(line, names)

    def _call(self, routine: Routine, written: str, names: KnownNames) -> ir.Stmt:
        """A call: first its arrays, those that it allocates with their dtypes, then its arguments."""
        arrays: list[ir.Array] = []
        rest = written
        while rest:
            first, _, after = rest.partition(", ")
            if _ARRAY.match(first):
                arrays.append(_array(first, names)[0])
            elif unquoted(first) in names.arrays:
                arrays.append(names.array(first))
            else:
                break
            rest = after
        args: list[ir.Expr] = []
        if rest:
            tokens = Tokens(rest, names)
            args.append(tokens.index())
            while tokens.takes(","):
                args.append(tokens.index())
        return Call(routine, tuple(arrays), tuple(args))


def _reduction(written: str, names: KnownNames) -> ir.Reduction:
    found = _REDUCED.match(written)
    if found is None:
        raise NotationError(f"{written!r} is not a reduction such as '+ total'")
    return ir.Reduction(names.scalar(found[2]), _OPERATORS.get(found[1], found[1]))


def _array(written: str, names: KnownNames) -> tuple[ir.Array, str]:
    """An array that is allocated, which is known from here on, and its size as text."""
    found = _ARRAY.match(written)
    if found is None:
        raise NotationError(f"{written!r} is not an array such as 'w_vals: float64[n]'")
    name, dtype, size, space = found.groups()
    array = ir.Array(unquoted(name), value_dtype(dtype), _member(ir.MemorySpace, space or "global", "memory"))
    names.declare(array)
    return array, size


def _written(line: str, names: KnownNames) -> ir.Stmt:
    """What gives a scalar or elements of an array new values."""
    updates = ((one, line[: one.end(1)]) for one in _UPDATE.finditer(line))
    found = next((one for one, left in updates if left.count("[") == left.count("]")), _UPDATE.search(line))  # an index may compare
    if found is None:
        raise NotationError(f"cannot read the line {line!r}")
    op = _OPERATORS.get(found[2], found[2]) or None
    left, value = line[: found.end(1)], line[found.end() :]
    atomic, left = left.startswith("atomic "), left.removeprefix("atomic ")
    if not left.endswith("]"):
        var = names.scalar(left)
        if op is None:
            return ir.Assign(var, Tokens(value, names).expr(var.dtype))
        return ir.Shuffle(var, op, Tokens(value.removeprefix("shuffle "), names).expr(var.dtype))
    place = Tokens(left, names)
    array = names.array(place.name())
    place.take("[")
    index = place.index()
    if place.takes(":", "+"):
        return ir.Fill(array, index, place.index(), Tokens(value, names).expr(array.dtype))
    scattered, value = value.startswith("scattered segments of "), value.removeprefix("scattered ")
    if value.startswith("segments of "):
        return Segments(array, index, Tokens(value.removeprefix("segments of "), names).expr(array.dtype), op, atomic, scattered)
    return ir.Store(array, index, Tokens(value, names).expr(array.dtype), op, atomic)
