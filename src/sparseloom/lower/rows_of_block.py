"""A parallel reduction into places that change on the way: the rows of a block of positions are shared out among groups of lanes.

    forall w (GPUWarp, ParallelReduction)        for w in 0 : 64  [gpu warp]
      forall t (GPUThread, ParallelReduction)      for turn in 0 : (rows of the block) / 64
        forall n                            ==>      row = first + turn * 64 + w; y_acc = 0
          y(i) += A(i,j) * x(j)                      for t in 0 : 4  [gpu thread]: every fourth entry of the row; shuffle
                                                     y[row] = y_acc, atomically where it is the first or the last

So few places are shared with other blocks, and none with other lanes. How entries are dealt out to ``w``, ``t`` and ``n`` is not kept: all
of them reduce, in whatever order.
"""

from __future__ import annotations

from dataclasses import replace

from sparseloom.assemble.result import DenseResult
from sparseloom.iteration.region import innermost, written
from sparseloom.loops import nodes as ir
from sparseloom.lower.forall import over_digit
from sparseloom.lower.position_nest import fixing_level, needed_above
from sparseloom.notation.nodes import Forall, IndexVar, Races, Stmt, Tag, Unit
from sparseloom.relations.relation import Positions
from sparseloom.scope.scope import Asked, Scope
from sparseloom.scope.style import SERIAL, Spread


def in_rows_of_block(stmt: Forall, scope: Scope) -> ir.Stmt | None:
    """The loops of groups and of their lanes over a block of positions as loops over its rows; None if they are anything else."""
    lane = stmt.body
    if not _reduces(stmt, Unit.GPUWarp) or not isinstance(lane, Forall) or not _reduces(lane, Unit.GPUThread):
        return None
    turns, body = _turns(lane.body)
    block = _block_of([stmt.var, lane.var, *turns], scope)
    groups, lanes = scope.provenance.extent(stmt.var), scope.provenance.extent(lane.var)
    if block is None or groups is None or lanes is None:
        return None
    whole = Forall(block, body, Tag())
    relation = scope.provenance.made_by(scope.provenance.root(block))
    if relation is None or relation.positions is None or not _has_rows(whole, relation.positions, scope):
        return None
    spread = Spread(ir.Var(stmt.var.name), groups, ir.Var(lane.var.name), lanes)
    scope.remark(f"{stmt.var}, {lane.var}: rows of the block are shared out, and lanes add them up by shuffles")

    def then(inner: Scope) -> ir.Stmt:
        return inner.ways.statement(body, replace(inner, units=(*inner.units, Unit.GPUWarp, Unit.GPUThread)))

    return over_digit(Asked(whole, block, replace(SERIAL, spread=spread), then), scope)


def _reduces(stmt: Forall, unit: Unit) -> bool:
    return stmt.tag.unit is unit and stmt.tag.races is Races.ParallelReduction


def _turns(stmt: Stmt) -> tuple[list[IndexVar], Stmt]:
    """The plain loops at the top of a statement, and what stands inside them."""
    found = []
    while isinstance(stmt, Forall) and stmt.tag.unit is None:
        found.append(stmt.var)
        stmt = stmt.body
    return found, stmt


def _block_of(variables: list[IndexVar], scope: Scope) -> IndexVar | None:
    """The variable of which these are all digits; None if there is none, or they are not all."""
    graph = scope.provenance
    above = next((above for above in graph.line(variables[0]) if all(above in graph.line(var) for var in variables)), None)
    if above is None or above not in graph.known({*scope.coordinates, *variables}):
        return None
    return above if scope.ranges.is_leading(graph.root(above), above) else None


def _has_rows(stmt: Forall, relation: Positions, scope: Scope) -> bool:
    """Whether a block of positions goes through rows, each of which has one place in a dense result, and above that only rows."""
    graph, target = scope.provenance, written(stmt)
    levels, kinds = graph.position_levels(relation), relation.access.tensor.format.levels
    fixing = fixing_level(stmt, relation, graph)
    branching = [k for k in levels if not kinds[k].branchless or k == levels[0]]
    known = {*scope.coordinates, *graph.walked(relation)[:-1]}
    is_fixed = fixing is not None and fixing < levels[-1] and len(branching) > 1 and known.issuperset(target.indices)
    is_mine = isinstance(scope.sink_of(target), DenseResult) and scope.copy is None and innermost(stmt).op is not None
    return is_fixed and is_mine and needed_above(stmt, relation, graph)
