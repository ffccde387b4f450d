"""Lanes of a warp that reduce into places which change with the lane: neighbours that have one place combine first.

    forall t (GPUThread, ParallelReduction)         for t [gpu thread]
      y(i) += A(i,j) * x(j)                  ==>      place = i; value = A[p] * x[j]
                                                      y[place] += segments of value

Where lanes run through positions that follow each other, so do those of one row: a row that begins and ends among them is nobody else's,
and is written plainly. The first and the last row are updated atomically; so is every place where lanes come to places in no order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sparseloom.assemble.result import DenseResult
from sparseloom.core import algebra
from sparseloom.core.trees import Node, children, walk
from sparseloom.iteration.region import written
from sparseloom.loops import nodes as ir
from sparseloom.loops.segments import Segments
from sparseloom.lower.forall import over
from sparseloom.lower.position_nest import fixing_level
from sparseloom.notation.nodes import Assign, Forall, Races, Unit
from sparseloom.scope.scope import Brought, Scope


def in_segments(stmt: Forall, scope: Scope) -> ir.Stmt | None:
    """A loop over lanes that have one value each for a place of a dense result; None if it is none."""
    lhs, assign, sink = written(stmt), stmt.body, scope.result
    lanes = stmt.tag.unit is Unit.GPUThread and scope.units[-1:] == (Unit.GPUWarp,) and stmt.tag.races is Races.ParallelReduction
    if not lanes or not isinstance(assign, Assign) or assign.op is None or not isinstance(sink, DenseResult) or sink.lhs != lhs:
        return None
    if scope.copy is not None or scope.carry is not None or scope.context.target.atomic(assign.op, lhs.tensor.dtype) is None:
        return None
    values, op, in_order = scope.view(lhs).values, assign.op, _is_in_order(stmt, scope)
    place, value = ir.Var(scope.fresh(f"{lhs.tensor.name}_place")), ir.Var(scope.fresh(f"{lhs.tensor.name}_value"), values.dtype)
    ready, scope = sink.initialise(scope), replace(scope, uninitialised=None)
    first = [ir.Declare(place, ir.index(-1)), ir.Declare(value, ir.constant(algebra.identity(op, values.dtype), values.dtype))]

    def around(body: ir.Stmt) -> ir.Stmt:
        scattered = not in_order or not _is_interval(body, place)
        return ir.block(*first, body, Segments(values, place, value, op, True, scattered))

    scope.remark(f"{stmt.var}: lanes that meet in a place of {lhs.tensor} add up what they have for it by shuffles")
    inside = replace(scope, brought=Brought(lhs.tensor, place, value), edge=None)
    return ir.block(ready, over(stmt, inside, lambda inner: inner.ways.statement(assign, inner), around))


def _is_in_order(stmt: Forall, scope: Scope) -> bool:
    """Whether lanes run through positions that follow each other, in which each place of the result is one run."""
    graph, known = scope.provenance, {*scope.coordinates}
    relation = graph.position(stmt.var)
    if relation is None or relation.position not in graph.known({*known, stmt.var}):
        return False
    fixing = fixing_level(stmt, relation, graph)
    if fixing is None or not graph.is_leading(relation.position, stmt.var, known):
        return False
    levels = relation.access.tensor.format.levels
    return all(level.unique or level.ordered for level in levels[: fixing + 1]) and all(level.compact for level in levels)


def _is_interval(body: ir.Stmt, place: ir.Var) -> bool:
    """Whether lanes that have nothing to add are the first or the last ones: nothing but bounds of positions keeps them from it."""
    found = {n.var.name for n in walk(body) if isinstance(n, ir.Declare) and any(isinstance(m, ir.Load | ir.Search) for m in walk(n.value))}
    while more := {n.var.name for n in walk(body) if isinstance(n, ir.Declare) and _names(n.value) & found} - found:
        found |= more
    return all(_is_bound(condition) and not _names(condition) & found for condition in _conditions(body, place))


def _is_bound(condition: ir.Expr) -> bool:
    match condition:
        case ir.Op("logical_and", args):
            return all(map(_is_bound, args))
        case ir.Op("less", args):
            return all(isinstance(n, ir.Var | ir.Literal | ir.Op) for arg in args for n in walk(arg)) and not _repeats(args)
    return False


def _repeats(args: tuple[ir.Expr, ...]) -> bool:
    """Whether something in an expression comes again as it counts up."""
    return any(isinstance(n, ir.Op) and n.name == "remainder" for arg in args for n in walk(arg))


def _names(expr: Node) -> set[str]:
    return {n.name for n in walk(expr) if isinstance(n, ir.Var)}


def _conditions(stmt: Node, place: ir.Var) -> Iterator[ir.Expr]:
    """What must hold for a lane to say its place."""
    if isinstance(stmt, ir.If) and any(isinstance(n, ir.Assign) and n.var == place for n in walk(stmt)):
        yield stmt.condition
    for child in children(stmt):
        if isinstance(child, ir.Stmt):
            yield from _conditions(child, place)
