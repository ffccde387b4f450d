"""Fused loops over coordinates: a nest over both variables, cut in the first and the last row to the interval that is left.

    forall f in [low, high)            for i in low / |j| ..= (high - 1) / |j|
      y(i) += A(i,j) * x(j)              for j from (first row: low % |j|, else 0) to (last row: its end, else |j|)
"""

from __future__ import annotations

from dataclasses import replace

from sparseloom.loops import nodes as ir
from sparseloom.lower.coiterate import SERIAL, Style
from sparseloom.lower.coordinates import CoordinateLoops
from sparseloom.lower.nest import Then
from sparseloom.lower.scope import Scope
from sparseloom.lower.space import least, most, subtract
from sparseloom.lower.walking import settle
from sparseloom.notation.nodes import Forall, IndexVar
from sparseloom.relations.fuse import FuseRelation


class FusedLoops(CoordinateLoops):
    """Loops over two variables at once."""

    def fused(
        self, stmt: Forall, relation: FuseRelation, digit: IndexVar, scope: Scope, style: Style, then: Then, tree: IndexVar | None = None
    ) -> ir.Stmt:
        """A fused loop: a nest over its two variables, cut in the first and the last row to the interval that is left."""
        before = self.hooks.initialise(scope)
        scope = replace(scope, uninitialised=None)
        space = self.context.space(scope)
        names = self.context.names
        fused = relation.fused
        tree = fused if tree is None else tree
        low, high = ir.Var(names.fresh(f"{fused.name}_low")), ir.Var(names.fresh(f"{fused.name}_high"))
        begin, end = space.interval(tree)
        width = ir.Var(names.fresh(f"{relation.inner.name}_extent"))
        inner_low, _ = space.range_of(relation.inner)
        outer_low, _ = space.range_of(relation.outer)
        code = [ir.Declare(width, space.extent(relation.inner)), ir.Declare(low, begin), ir.Declare(high, end)]
        first = ir.add(outer_low, ir.Op("floor_divide", (low, width)))
        last = ir.add(outer_low, ir.Op("floor_divide", (subtract(high, ir.ONE), width)))
        row_first, row_last = ir.Var(names.fresh(f"{relation.outer.name}_first")), ir.Var(names.fresh(f"{relation.outer.name}_last"))
        # The parts are confined; the range of the whole stays what it is.
        rows = scope.limiting(fused, *space.range_of(fused)).limiting(relation.outer, row_first, ir.add(row_last, ir.ONE))

        def in_row(at_row: Scope) -> ir.Stmt:
            row = at_row.coordinates[relation.outer]
            before = ir.multiply(subtract(row, outer_low), width)
            column_low = ir.Var(names.fresh(f"{relation.inner.name}_low"))
            column_high = ir.Var(names.fresh(f"{relation.inner.name}_high"))
            cut_low = ir.add(inner_low, most(ir.ZERO, subtract(low, before)))
            cut_high = ir.add(inner_low, least(width, subtract(high, before)))
            columns = at_row.limiting(relation.inner, column_low, column_high)
            limits = ir.block(ir.Declare(column_low, cut_low), ir.Declare(column_high, cut_high))

            def at_point(point: Scope) -> ir.Stmt:
                column = point.coordinates[relation.inner]
                value = ir.add(before, subtract(column, inner_low))
                tests = ir.both(*space.filters(tree, value))
                point = point.knowing(fused, value).knowing(tree, value)
                inner_value = space.digit_of(tree, value, digit)
                if inner_value is not None:
                    point = point.knowing(digit, inner_value)
                recovered, guard, point = self.recover(point)
                settled, point = settle(self.context, point, self.operands)
                body = ir.block(settled, then(point))
                body = ir.block(*recovered, body if guard == ir.TRUE else ir.If(guard, body))
                return body if tests == ir.TRUE else ir.If(tests, body)

            return ir.block(limits, self.enter(stmt, columns, lambda s: self.over_digit(stmt, relation.inner, s, SERIAL, at_point)))

        nest = self.over_digit(stmt, relation.outer, rows, style, in_row)
        declared = ir.block(ir.Declare(row_first, first), ir.Declare(row_last, last))
        return ir.block(before, *code, ir.If(ir.compare("less", low, high), ir.block(declared, nest)))
