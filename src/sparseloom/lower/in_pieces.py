"""Sparse results that threads insert in pieces: every piece counts for itself, and so has places of its own in every row.

    forall p (CPUThread, Temporary)     parallel for p: count the entries of each row
      forall i                          add up the counts, row by row and in a row piece by piece (in ``places``)
        forall j                        parallel for p: put the entries at these places
          C(j,i) = A(i,j)

Both runs of the loops are cut into the same pieces. In every row the entries of a piece stand behind those of the pieces before it, so that
all stand as if one thread had put them there, however many pieces and threads there are.
"""

from __future__ import annotations

from dataclasses import replace

from sparseloom.assemble.inserted import InsertedResult
from sparseloom.assemble.places import Places
from sparseloom.loops import nodes as ir
from sparseloom.lower.forall import find_ranges, forall, over
from sparseloom.notation.nodes import Forall
from sparseloom.schedule.races import has_own_places
from sparseloom.scope.ranges import subtract
from sparseloom.scope.scope import Scope


def in_rows(stmt: Forall, scope: Scope) -> ir.Stmt:
    """Threads have rows of their own; or they insert in pieces, which have places of their own in every row."""
    result = scope.result
    if not isinstance(result, InsertedResult) or result.places is None or not has_own_places(stmt, scope.provenance, scope.context.lhs):
        return forall(stmt, scope)
    return _in_pieces(stmt, result, result.places, scope)


def _in_pieces(stmt: Forall, result: InsertedResult, places: Places, scope: Scope) -> ir.Stmt:
    ranges, scope = find_ranges(stmt.var, scope)
    scope.remark(f"{stmt.var}: each piece counts its entries in every row, and then has places of its own there")

    def then(inner: Scope) -> ir.Stmt:
        first = ir.Var(inner.fresh(f"{places.array.name}_first"))
        number = subtract(inner.coordinates[stmt.var], inner.ranges.range_of(stmt.var)[0])
        begun = ir.Declare(first, ir.multiply(number, places.stride))
        body = inner.ways.statement(stmt.body, replace(inner, copy=(result.lhs.tensor, places.array, first)))
        return ir.block(begun, places.begin_piece(first) if result.is_counting else None, body)

    return ir.block(ranges, over(stmt, scope, then))
