"""Loops over positions: they count the entries of one operand, at one level or through several.

forall p                           for p in A2_pos[0] .. A2_pos[n]
  y(i) += A(i,j) * x(j)              j = A2_crd[p]; i by search, or by a nest over rows that is cut to the block
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sparseloom.loops import nodes as ir
from sparseloom.lower.again import inside_blocks, recover_all
from sparseloom.lower.position_nest import PositionNest, needed_above
from sparseloom.lower.position_range import parent_of
from sparseloom.lower.recovery import around_all, recover
from sparseloom.lower.walking import settle
from sparseloom.relations.relation import Positions
from sparseloom.scope.context import Runs
from sparseloom.scope.ranges import subtract
from sparseloom.scope.scope import Asked, Scope


def over_positions(asked: Asked, relation: Positions, scope: Scope) -> ir.Stmt:
    """The loop that determines a position: one flat loop, or a nest over the levels that are fused in it."""
    before = scope.sink.initialise(scope)
    scope = replace(scope, uninitialised=None, depth=scope.depth + 1)
    names = ", ".join(str(v) for v in scope.provenance.walked(relation))
    scope.remark(f"{asked.stmt.var}: positions of {relation.access.tensor.name} ({names})", Runs(asked.digit, position=relation))
    uppers = needed_above(asked.stmt, relation, scope.provenance)
    if uppers and asked.style.in_order and scope.ranges.is_leading(relation.position, asked.digit):
        return ir.block(before, PositionNest(asked, relation).make(scope))
    return ir.block(before, FlatPositions(asked, relation, uppers).make(scope))


@dataclass(frozen=True)
class FlatPositions:
    """One loop over positions; coordinates above the last level are ``searched`` at each of them, where something needs them."""

    asked: Asked
    relation: Positions
    searched: bool

    def make(self, scope: Scope) -> ir.Stmt:
        """The loop over the position variable, or over its last digit."""
        ranges, relation, digit = scope.ranges, self.relation, self.asked.digit
        position, counter = ir.Var(relation.position.name), ir.Var(digit.name)
        low, high = ranges.interval(relation.position)
        recovered: list[ir.Stmt] = []
        guard: ir.Expr = ir.TRUE
        if digit == relation.position:
            header, inner = (counter, low, high), scope.knowing(relation.position, position)
        elif ranges.is_leading(relation.position, digit):
            begin, _ = ranges.range_of(digit)
            header = (counter, begin, ir.add(begin, subtract(high, low)))
            recovered.append(ir.Declare(position, ir.add(subtract(low, begin), counter), scope.origin(digit)))
            inner = scope.knowing(digit, counter).knowing(relation.position, position)
        else:
            header = (counter, *ranges.range_of(digit))
            recovered, guard, inner = recover(scope.knowing(digit, counter))
            if inner.coordinates[relation.position] != position:
                recovered.append(ir.Declare(position, inner.coordinates[relation.position], scope.origin(digit)))
        body = self._at_position(position, inner.knowing(digit, counter))
        return self.asked.style.loop(*header, ir.block(*recovered, ir.when(guard, body)))

    def _at_position(self, position: ir.Expr, scope: Scope) -> ir.Stmt:
        """What runs at one position when nothing above it is tracked."""
        relation = self.relation
        covered = scope.provenance.walked(relation)
        code, used, scope = self._coordinates(position, scope)
        recovered, guard, scope = recover_all(relation, scope)
        settled, scope = settle(scope)
        body = ir.block(settled, inside_blocks(relation, scope, lambda s: around_all(covered, self.asked.then(s), s)))
        return ir.block(*code, *recovered, ir.when(ir.both(guard, *used), body))

    def _coordinates(self, position: ir.Expr, scope: Scope) -> tuple[list[ir.Stmt], list[ir.Expr], Scope]:
        """The coordinates at a position from the last level upwards, whether it holds anything, and the operand at that place."""
        access, levels = self.relation.access, scope.provenance.position_levels(self.relation)
        form, views = access.tensor.format, scope.view(access).levels
        covered = scope.provenance.walked(self.relation)
        code: list[ir.Stmt] = []
        trail = [(levels[-1] + 1, position)]
        used: list[ir.Expr] = []
        slot: ir.Expr = position
        for k in reversed(levels):
            current, level = trail[-1][1], form.levels[k]
            computed = level.coordinate_array is None
            upper = self.searched or computed or any(not form.levels[m].compact for m in levels[1:] if m <= k)
            parent = parent_of(self.relation, k, current, scope, code) if upper and k > levels[0] else None
            if k == levels[0]:
                parent = scope.at(access).position
            if parent is not None or not computed:
                var = covered[k - levels[0]]
                coordinate = level.coordinate(views[k], ir.ZERO if parent is None else parent, current)
                code.append(ir.Declare(ir.Var(var.name), coordinate, f"coordinate of {access.tensor}"))
                scope = scope.knowing(var, ir.Var(var.name))
            if parent is not None and not level.compact and (k > levels[0] or level.has_holes):
                used.append(level.used(views[k], parent, current))
            if k == levels[-1] and parent is not None:
                slot = level.slot(views[k], parent, current)
            if parent is None or k == levels[0]:
                break
            trail.append((k, parent))
        place = scope.at(access)
        for depth, at in reversed(trail):
            place = place.below(depth, at, slot=slot if depth == levels[-1] + 1 else None)
        return code, used, scope.placing({access: place})
