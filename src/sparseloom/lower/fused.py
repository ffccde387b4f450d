"""Fused loops over coordinates: a nest over both variables, cut in the first and the last row to the interval that is left.

forall f in [low, high)            for i in low / |j| ..= (high - 1) / |j|
  y(i) += A(i,j) * x(j)              for j from (first row: low % |j|, else 0) to (last row: its end, else |j|)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sparseloom.loops import nodes as ir
from sparseloom.lower.recovery import go_on
from sparseloom.notation.nodes import IndexVar
from sparseloom.relations.fuse import FuseRelation
from sparseloom.scope.ranges import Ranges, least, most, subtract
from sparseloom.scope.scope import Asked, Scope
from sparseloom.scope.style import SERIAL


@dataclass(frozen=True)
class FusedInterval:
    """A fused loop that runs from ``low`` to ``high``. ``tree`` is the variable whose digits are meant, the fused one or another name."""

    asked: Asked
    relation: FuseRelation
    tree: IndexVar
    ranges: Ranges  # outside of the loop
    low: ir.Var
    high: ir.Var
    width: ir.Var

    def make(self, scope: Scope) -> ir.Stmt:
        """The loop over rows, with the columns inside."""
        ranges, relation = self.ranges, self.relation
        outer_low, _ = ranges.range_of(relation.outer)
        first = ir.add(outer_low, ir.Op("floor_divide", (self.low, self.width)))
        last = ir.add(outer_low, ir.Op("floor_divide", (subtract(self.high, ir.ONE), self.width)))
        row_first, row_last = (ir.Var(scope.fresh(f"{relation.outer.name}_{which}")) for which in ("first", "last"))
        # The parts are confined; the range of the whole stays what it is.
        rows = scope.limiting(relation.fused, *ranges.range_of(relation.fused))
        rows = rows.limiting(relation.outer, row_first, ir.add(row_last, ir.ONE))
        nest = scope.ways.loop(replace(self.asked, digit=relation.outer, then=self._in_row), rows)
        declared = ir.block(ir.Declare(row_first, first), ir.Declare(row_last, last))
        return ir.If(ir.compare("less", self.low, self.high), ir.block(declared, nest))

    def _in_row(self, scope: Scope) -> ir.Stmt:
        """The columns of one row."""
        inner = self.relation.inner
        inner_low, _ = self.ranges.range_of(inner)
        before = self._before(scope)
        low, high = (ir.Var(scope.fresh(f"{inner.name}_{which}")) for which in ("low", "high"))
        cut_low = ir.add(inner_low, most(ir.ZERO, subtract(self.low, before)))
        cut_high = ir.add(inner_low, least(self.width, subtract(self.high, before)))
        columns = replace(self.asked, digit=inner, style=SERIAL, then=self._at_point)
        limits = ir.block(ir.Declare(low, cut_low), ir.Declare(high, cut_high))
        confined = scope.limiting(inner, low, high)
        return ir.block(limits, scope.ways.reduced(self.asked.stmt, confined, lambda s: s.ways.loop(columns, s)))

    def _before(self, scope: Scope) -> ir.Expr:
        """How many values of the fused variable stand before a row."""
        outer = self.relation.outer
        return ir.multiply(subtract(scope.coordinates[outer], self.ranges.range_of(outer)[0]), self.width)

    def _at_point(self, scope: Scope) -> ir.Stmt:
        """The body, at a row and a column."""
        ranges, relation = self.ranges, self.relation
        column = scope.coordinates[relation.inner]
        value = ir.add(self._before(scope), subtract(column, ranges.range_of(relation.inner)[0]))
        tests = ir.both(*ranges.filters(self.tree, value))
        scope = scope.knowing(relation.fused, value).knowing(self.tree, value)
        digit = ranges.digit_of(self.tree, value, self.asked.digit)
        if digit is not None:
            scope = scope.knowing(self.asked.digit, digit)
        return ir.when(tests, go_on(scope, self.asked.then))


def over_fused(asked: Asked, relation: FuseRelation, scope: Scope, tree: IndexVar | None = None) -> ir.Stmt:
    """A fused loop: a nest over its two variables, cut in the first and the last row to the interval that is left."""
    before = scope.sink.initialise(scope)
    scope = replace(scope, uninitialised=None)
    tree = relation.fused if tree is None else tree
    low, high = (ir.Var(scope.fresh(f"{relation.fused.name}_{which}")) for which in ("low", "high"))
    begin, end = scope.ranges.interval(tree)
    width = ir.Var(scope.fresh(f"{relation.inner.name}_extent"))
    code = [ir.Declare(width, scope.ranges.extent(relation.inner)), ir.Declare(low, begin), ir.Declare(high, end)]
    return ir.block(before, *code, FusedInterval(asked, relation, tree, scope.ranges, low, high, width).make(scope))
