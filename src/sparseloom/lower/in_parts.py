"""Sparse results that threads make in parts, which are joined, or counted before they are filled.

forall i (CPUThread)       parallel for part        each thread has workspaces and arrays of its own
  C(i,j) = ...       ==>     for i in part          joined, or filled in where the part belongs
"""

from __future__ import annotations

from dataclasses import replace

from sparseloom.assemble.append import AppendResult
from sparseloom.assemble.counted import CountedResult
from sparseloom.assemble.parts import PartedResult, ThreadResult
from sparseloom.core.errors import CompilerBug
from sparseloom.loops import nodes as ir
from sparseloom.lower.forall import find_ranges, over_here, with_team, with_threads
from sparseloom.notation.nodes import Forall
from sparseloom.relations.relation import Relation
from sparseloom.scope.context import Home
from sparseloom.scope.ranges import ceil_divide
from sparseloom.scope.scope import Scope


def in_parts(stmt: Forall, scope: Scope) -> ir.Stmt:
    """Threads append rows of their own, in parts that are joined afterwards. Workspaces are a thread's own, too."""
    whole, count = scope.result, scope.context.target.parts
    if not isinstance(whole, AppendResult):
        raise CompilerBug(stmt, "only what is appended has parts")
    ranges, scope = find_ranges(stmt.var, scope)
    parts = PartedResult(whole, ir.index(count), scope)
    scope.remark(f"{_cut(stmt, scope).parents[0]}: in {count} parts, each appended by one thread, then joined")
    made, home = _part_by_part(stmt, replace(scope, result=parts.thread, sink=parts.thread), parts.thread)
    at_a_time = _at_a_time(home)
    first, last = whole.own(parts.thread.begin()), whole.own(parts.thread.keep())
    team = with_team(made, Home([first, *home.first], [*home.last, last]), at_a_time)
    return ir.block(ranges, whole.own(parts.open()), team, whole.own(parts.join()))


def in_counted_parts(stmt: Forall, scope: Scope) -> ir.Stmt:
    """Threads count the entries of parts of the rows, and then fill them in where they belong. Workspaces are a thread's own, too."""
    result, count = scope.result, scope.context.target.parts
    if not isinstance(result, CountedResult):
        raise CompilerBug(stmt, "only what is counted first has counted parts")
    ranges, scope = find_ranges(stmt.var, scope)
    result.parts, result.in_parts = ir.index(count), True
    scope.remark(f"{_cut(stmt, scope).parents[0]}: in {count} parts, each counted by one thread, then filled in by one")
    runs: list[ir.Stmt] = []
    while len(runs) < 2:
        made, home = _part_by_part(stmt, scope, result)
        runs.append(ir.block(with_team(made, home, _at_a_time(home)), result.own(result.fill_next()) if result.is_counting else None))
    return ir.block(ranges, *runs)


def _part_by_part(stmt: Forall, scope: Scope, result: ThreadResult | CountedResult) -> tuple[ir.Stmt, Home]:
    """A loop cut into parts, and what a thread does before its first part and after its last."""
    cut, scope = _cut(stmt, scope), replace(scope, home=Home())
    used = ceil_divide(scope.ranges.extent(cut.parents[0]), scope.ranges.extent(cut.children[-1]))

    def then(inner: Scope) -> ir.Stmt:
        number = inner.coordinates[stmt.var]
        begin = result.own(result.begin_part(number))
        return ir.block(begin, inner.ways.statement(stmt.body, inner), result.own(result.end_part(number)))

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
