"""What loops do, one visit after another: the interpreter's own run of them, with a note whenever they read an operand."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sparseloom.core.trees import walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.routines import Call, Routine

Note = dict[str, int]


@dataclass(frozen=True)
class Traced:
    """A kernel that notes the values of variables at every read of an array; ``notes`` has them when it has run."""

    function: ir.Function
    notes: list[Note]


def traced(function: ir.Function, array: str, names: Collection[str], most: int) -> Traced:
    """A kernel that notes, at every read of an array, those of the named variables that are known there, and the place that is read."""
    notes: list[Note] = []
    return Traced(ir.Function(function.name, function.params, _Tracing(array, names, notes, most).in_scope(function.body, ())), notes)


class TooLong(Exception):
    """There are more visits than anybody wants to see."""


class _Tracing:
    """Puts notes before the statements that read an array."""

    def __init__(self, array: str, names: Collection[str], notes: list[Note], most: int) -> None:
        self._array, self._names, self._notes, self._most = array, names, notes, most

    def in_scope(self, stmt: ir.Stmt, known: Sequence[ir.Var]) -> ir.Stmt:
        """A statement with notes; ``known`` are the variables declared outside."""
        match stmt:
            case ir.Block(stmts):
                return self._in_order(stmts, known)
            case ir.For(var, begin, end, body, kind, factor, reduces, room):
                inside = self.in_scope(body, self._with(known, var))
                return ir.For(var, begin, end, inside, kind, factor, reduces, room)
            case ir.While(condition, body, factor):
                return ir.While(condition, self.in_scope(body, known), factor)
            case ir.If(condition, then, other):
                noted = ir.If(condition, self.in_scope(then, known), self.in_scope(other, known))
                return ir.block(*self._notes_of(condition, known), noted)
            case ir.Team(first, loop, last):
                made = self.in_scope(loop, known)
                return stmt if not isinstance(made, ir.For) else ir.Team(first, made, self.in_scope(last, known))
            case ir.Launch():
                return stmt
        return ir.block(*self._notes_of(stmt, known), stmt)

    def _in_order(self, stmts: Sequence[ir.Stmt], known: Sequence[ir.Var]) -> ir.Stmt:
        done: list[ir.Stmt] = []
        for inner in stmts:
            done.append(self.in_scope(inner, known))
            if isinstance(inner, ir.Declare):
                known = self._with(known, inner.var)
        return ir.block(*done)

    def _with(self, known: Sequence[ir.Var], var: ir.Var) -> Sequence[ir.Var]:
        return (*known, var) if var.name in self._names else known

    def _notes_of(self, root: ir.Stmt | ir.Expr, known: Sequence[ir.Var]) -> list[ir.Stmt]:
        places = dict.fromkeys(n.index for n in walk(root) if isinstance(n, ir.Load) and n.array.name == self._array)
        return [Call(self._noting(tuple(var.name for var in known)), (), (place, *known)) for place in places]

    def _noting(self, names: tuple[str, ...]) -> Routine:
        notes, most = self._notes, self._most

        def note(arrays: Any, args: list[int]) -> None:
            if len(notes) >= most:
                raise TooLong
            notes.append({"": args[0], **dict(zip(names, args[1:], strict=True))})

        return Routine("note", (), note)
