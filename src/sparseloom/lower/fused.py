"""Fused loops over coordinates: a nest over all the variables, cut in the first and the last row to the interval that is left.

forall f in [low, high)            for i in low / |j| ..= (high - 1) / |j|
  y(i) += A(i,j) * x(j)              for j from (first row: low % |j|, else 0) to (last row: its end, else |j|)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sparseloom.loops import nodes as ir
from sparseloom.lower.recovery import go_on
from sparseloom.notation.nodes import IndexVar
from sparseloom.relations.relation import Relation
from sparseloom.scope.ranges import Range, Ranges, least, most, subtract
from sparseloom.scope.scope import Asked, Scope
from sparseloom.scope.style import SERIAL


@dataclass(frozen=True)
class FusedInterval:
    """A fused loop. ``tree`` is the variable whose digits are meant, the fused one or another name.

    ``widths`` has for every variable of the nest how many values of the fused one it takes to come to its next value.
    """

    asked: Asked
    relation: Relation
    tree: IndexVar
    ranges: Ranges  # outside of the loop
    widths: tuple[ir.Expr, ...]

    def make(self, low: ir.Expr, high: ir.Expr, scope: Scope) -> ir.Stmt:
        """The loops for the fused variable from ``low`` to ``high``."""
        (fused,) = self.relation.children
        # The parts are confined; the range of the whole stays what it is.
        rows = scope.limiting(fused, *self.ranges.range_of(fused))
        return ir.If(ir.compare("less", low, high), self._rows(0, low, high, rows, replace(self.asked, digit=self.relation.nest[0])))

    def _rows(self, depth: int, low: ir.Expr, high: ir.Expr, scope: Scope, asked: Asked) -> ir.Stmt:
        """The loop over a variable of the nest that has others inside; limits are counted from where the loops outside are."""
        var, width = self.relation.nest[depth], self.widths[depth]
        begin, _ = self.ranges.range_of(var)
        first = ir.add(begin, ir.Op("floor_divide", (low, width)))
        last = ir.add(begin, ir.Op("floor_divide", (subtract(high, ir.ONE), width)))
        row_first, row_last = (ir.Var(scope.fresh(f"{var.name}_{which}")) for which in ("first", "last"))
        declared = ir.block(ir.Declare(row_first, first), ir.Declare(row_last, last))
        rows = scope.limiting(var, row_first, ir.add(row_last, ir.ONE))
        below = replace(asked, then=lambda inner: self._in_row(depth, low, high, inner))
        return ir.block(declared, scope.ways.loop(below, rows))

    def _in_row(self, depth: int, low: ir.Expr, high: ir.Expr, scope: Scope) -> ir.Stmt:
        """What runs for one value of a variable of the nest: the loops over the others, cut to what is left here."""
        before, asked = self._before(depth, scope), self.asked
        left = most(ir.ZERO, subtract(low, before)), least(self.widths[depth], subtract(high, before))
        inner = self.relation.nest[depth + 1]
        inside = replace(asked, digit=inner, style=SERIAL, then=self._at_point)
        low, high = (ir.Var(scope.fresh(f"{inner.name}_{which}")) for which in ("low", "high"))
        if depth + 2 == len(self.relation.nest):
            begin, _ = self.ranges.range_of(inner)
            limits = self._declared((low, high), (ir.add(begin, left[0]), ir.add(begin, left[1])))
            return ir.block(limits, scope.ways.reduced(asked.stmt, scope.limiting(inner, low, high), lambda s: s.ways.loop(inside, s)))
        deeper = scope.ways.reduced(asked.stmt, scope, lambda s: self._rows(depth + 1, low, high, s, inside))
        return ir.block(self._declared((low, high), left), deeper)

    def _declared(self, names: tuple[ir.Var, ir.Var], limits: Range) -> ir.Stmt:
        return ir.block(*(ir.Declare(name, limit) for name, limit in zip(names, limits, strict=True)))

    def _before(self, depth: int, scope: Scope) -> ir.Expr:
        """How many values stand before a value of one variable, below the same values of those outside."""
        var = self.relation.nest[depth]
        return ir.multiply(subtract(scope.coordinates[var], self.ranges.range_of(var)[0]), self.widths[depth])

    def _at_point(self, scope: Scope) -> ir.Stmt:
        """The body, where all variables of the nest are known."""
        ranges, relation = self.ranges, self.relation
        value, *parts = (self._before(depth, scope) for depth in range(len(relation.nest)))
        for part in parts:
            value = ir.add(value, part)
        tests = ir.both(*ranges.filters(self.tree, value))
        scope = scope.knowing(relation.children[0], value).knowing(self.tree, value)
        digit = ranges.digit_of(self.tree, value, self.asked.digit)
        if digit is not None:
            scope = scope.knowing(self.asked.digit, digit)
        return ir.when(tests, go_on(scope, self.asked.then))


def over_fused(asked: Asked, relation: Relation, scope: Scope, tree: IndexVar | None = None) -> ir.Stmt:
    """A fused loop: a nest over its variables, cut in the first and the last row to the interval that is left."""
    before = scope.sink.initialise(scope)
    scope = replace(scope, uninitialised=None)
    (fused,) = relation.children
    tree = fused if tree is None else tree
    low, high = (ir.Var(scope.fresh(f"{fused.name}_{which}")) for which in ("low", "high"))
    begin, end = scope.ranges.interval(tree)
    code: list[ir.Stmt] = []
    widths: list[ir.Expr] = [ir.ONE]
    for k, var in reversed([*enumerate(relation.nest)][1:]):
        width = ir.Var(scope.fresh(f"{''.join(inner.name for inner in relation.nest[k:])}_extent"))
        code.append(ir.Declare(width, ir.multiply(scope.ranges.extent(var), widths[0])))
        widths.insert(0, width)
    code += [ir.Declare(low, begin), ir.Declare(high, end)]
    return ir.block(before, *code, FusedInterval(asked, relation, tree, scope.ranges, tuple(widths)).make(low, high, scope))
