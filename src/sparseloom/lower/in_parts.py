"""Sparse results that threads make in parts, which are joined, or counted before they are filled.

forall i (CPUThread)       parallel for part        each thread has workspaces and arrays of its own
  C(i,j) = ...       ==>     for i in part          joined, or filled in where the part belongs
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from sparseloom.assemble.appended import AppendedResult, Stage
from sparseloom.assemble.parts import JoinedParts, arranged, begin_counted, end_counted
from sparseloom.assemble.result import owned
from sparseloom.core.errors import CompilerBug
from sparseloom.loops import nodes as ir
from sparseloom.lower.forall import find_ranges, over_here, with_team, with_threads
from sparseloom.notation.nodes import Forall
from sparseloom.relations.relation import Relation
from sparseloom.scope.context import Home
from sparseloom.scope.ranges import ceil_divide
from sparseloom.scope.scope import Scope

Noted = Callable[[ir.Expr], ir.Stmt]


def in_parts(stmt: Forall, scope: Scope) -> ir.Stmt:
    """Threads append parts of the rows, which are joined, or count and then fill them. Workspaces are a thread's own."""
    whole = scope.result
    if not isinstance(whole, AppendedResult) or whole.parts is None:
        raise CompilerBug(stmt, "only what is appended or counted in order has parts")
    ranges, scope = find_ranges(stmt.var, scope)
    what = "counted by one thread, then filled in by one" if whole.stage is Stage.COUNT else "appended by one thread, then joined"
    scope.remark(f"{_cut(stmt, scope).parents[0]}: in {scope.context.target.parts} parts, each {what}")
    return ir.block(ranges, _counted(stmt, whole, scope) if whole.stage is Stage.COUNT else _joined(stmt, whole, whole.parts, scope))


def _joined(stmt: Forall, whole: AppendedResult, count: ir.Expr, scope: Scope) -> ir.Stmt:
    parts = JoinedParts(whole, count)
    made, home = _part_by_part(stmt, parts.thread, parts.begin_part, parts.end_part, scope)
    first, last = owned(whole.lhs, parts.thread.begin()), owned(whole.lhs, parts.keep())
    team = with_team(made, Home([first, *home.first], [*home.last, last]), _at_a_time(home))
    return ir.block(owned(whole.lhs, parts.open()), team, owned(whole.lhs, parts.join()))


def _counted(stmt: Forall, whole: AppendedResult, scope: Scope) -> ir.Stmt:
    runs = []
    for result in (whole, whole.at(Stage.FILL)):
        made, home = _part_by_part(stmt, result, partial(begin_counted, result), partial(end_counted, result), scope)
        runs.append(with_team(made, home, _at_a_time(home)))
    return ir.block(runs[0], owned(whole.lhs, arranged(whole)), runs[1])


def _part_by_part(stmt: Forall, result: AppendedResult, begin: Noted, end: Noted, scope: Scope) -> tuple[ir.Stmt, Home]:
    """A loop cut into parts, and what a thread does before its first part and after its last."""
    cut, scope = _cut(stmt, scope), replace(scope, home=Home(), result=result, sink=result)
    used = ceil_divide(scope.ranges.extent(cut.parents[0]), scope.ranges.extent(cut.children[-1]))

    def then(inner: Scope) -> ir.Stmt:
        number = inner.coordinates[stmt.var]
        begun = owned(result.lhs, begin(number))
        return ir.block(begun, inner.ways.statement(stmt.body, inner), owned(result.lhs, end(number)))

    made = over_here(stmt, scope, then)
    # Parts behind the last row are nobody's, so that threads that take as many each have as much to do.
    return with_threads(made, lambda loop: replace(loop, end=used)), scope.home


def _cut(stmt: Forall, scope: Scope) -> Relation:
    """What cut a loop into the parts that it counts."""
    cut = scope.provenance.made_by(stmt.var)
    if cut is None or not cut.counts_up:
        raise CompilerBug(stmt, "threads that make parts have a loop that counts them")
    return cut


def _at_a_time(home: Home) -> int:
    """Parts that take unlike time, as with workspaces, are handed out one by one; else a thread takes many that follow each other."""
    return 1 if home.first else 0
