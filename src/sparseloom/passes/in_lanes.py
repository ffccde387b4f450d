"""The body of a loop over lanes: what a loop's variable becomes there, without names for what follows from it."""

from __future__ import annotations

from typing import TypeVar

from sparseloom.core.dtypes import INT64
from sparseloom.core.trees import Node, rewrite, walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.routines import PREFETCH_READ, Call, assigned_by

N = TypeVar("N", bound=Node)


def in_lane(root: N, var: ir.Var, coordinate: ir.Expr, lane: ir.Var) -> N:
    """A body in which the lane's own coordinate takes the place of the loop's variable."""

    def rule(found: object) -> ir.Expr | None:
        return coordinate if found == var else lane_last(found, lane)

    return rewrite(root, rule)


def lane_last(found: object, lane: ir.Var) -> ir.Expr | None:
    """A sum of indices with the lane as its last term, so that neighbouring addresses can be seen; None if the lane is no term of it."""
    match found:
        case ir.Op("add", _, dtype) if dtype == INT64 and lane in (terms := _terms(found)):
            rest: ir.Expr = ir.ZERO
            for term in terms:
                rest = rest if term == lane else ir.add(rest, term)
            return ir.add(rest, lane)
    return None


def _terms(expr: ir.Expr) -> list[ir.Expr]:
    """The terms of a sum of indices."""
    match expr:
        case ir.Op("add", args, dtype) if dtype == INT64:
            return [term for arg in args for term in _terms(arg)]
    return [expr]


def without_declarations(body: ir.Stmt) -> ir.Stmt:
    """A body that writes no array, with the values of what it declares in the place of their names."""
    match ir.stmts_of(body):
        case (ir.Declare(var, value), *rest) if not any(assigned_by(n) == var or isinstance(n, ir.Store) for n in walk(body)):
            return without_declarations(rewrite(ir.block(*rest), lambda found: value if found == var else None))
    return body


def asking_of(body: ir.Stmt) -> ir.Stmt:
    """What a body asks for ahead, with the names that takes."""
    stmts = ir.stmts_of(body)
    asking = [stmt for stmt in stmts if _asks(stmt)]
    return _needed([stmt for stmt in stmts if isinstance(stmt, ir.Declare)], asking)


def without_asking(body: ir.Stmt) -> ir.Stmt:
    """A body that asks for nothing ahead, without names that only served to ask."""
    stmts = ir.stmts_of(body)
    rest = [stmt for stmt in stmts if not _asks(stmt)]
    if len(rest) == len(stmts):
        return body
    return _needed([stmt for stmt in rest if isinstance(stmt, ir.Declare)], [stmt for stmt in rest if not isinstance(stmt, ir.Declare)])


def _asks(stmt: ir.Stmt) -> bool:
    match stmt:
        case ir.If(_, then, other):
            return all(_asks(part) for branch in (then, other) for part in ir.stmts_of(branch))
    return isinstance(stmt, Call) and stmt.routine is PREFETCH_READ


def _needed(declared: list[ir.Declare], stmts: list[ir.Stmt]) -> ir.Stmt:
    """Statements, and before them the declarations of what they read."""
    read = {n for stmt in stmts for n in walk(stmt) if isinstance(n, ir.Var)}
    kept: list[ir.Stmt] = []
    for one in reversed(declared):
        if one.var in read:
            kept.append(one)
            read |= {n for n in walk(one.value) if isinstance(n, ir.Var)}
    return ir.block(*reversed(kept), *stmts)


def without_aliases(body: ir.Stmt) -> ir.Stmt:
    """A body in which indices that follow from others by arithmetic, and never change, have no names of their own."""
    match ir.stmts_of(body):
        case (ir.Declare(var, value), *rest) if _is_arithmetic(value) and not _changes(body, var, value):
            return without_aliases(rewrite(ir.block(*rest), lambda found: value if found == var else None))
    return body


def _is_arithmetic(expr: ir.Expr) -> bool:
    return expr.dtype == INT64 and all(isinstance(n, ir.Var | ir.Literal | ir.Op) for n in walk(expr))


def _changes(body: ir.Stmt, *exprs: ir.Expr) -> bool:
    """Whether a body assigns something that occurs in some expressions."""
    read = {n for expr in exprs for n in walk(expr) if isinstance(n, ir.Var)}
    return any(assigned_by(n) in read for n in walk(body))
