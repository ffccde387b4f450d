"""Loops: what a ``forall`` over an original or derived variable becomes.

Every loop binds one variable. If other digits of what it stands for are still open, it simply counts. The loop that binds the last digit
*determines* a variable, and there its operands are walked, inside the interval that the outer digits leave:

    coordinates     count, or walk and merge the operands stored along the variable
    a fuse          a nest over both variables, cut in the first and the last row
    positions       count positions of one operand; upper coordinates by a nest cut to the block, or by search
    coord           walk coordinates again, the driven operand cut to the block of positions
"""


from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from sparseloom.core.dtypes import BOOL
from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import walk
from sparseloom.loops import nodes as ir
from sparseloom.lower.coiterate import Style
from sparseloom.lower.device import awaited
from sparseloom.lower.nest import Then, style_of
from sparseloom.lower.pieces import cut_piece
from sparseloom.lower.positions import PositionLoops
from sparseloom.lower.scope import Scope
from sparseloom.lower.space import Range, least, most
from sparseloom.lower.walking import cut, settle
from sparseloom.notation.nodes import Access, Forall, IndexVar, Unit
from sparseloom.relations.bound import BoundRelation
from sparseloom.relations.coord import CoordRelation
from sparseloom.relations.fuse import FuseRelation
from sparseloom.relations.pos import PosRelation
from sparseloom.relations.weighted import WeightedRelation
from sparseloom.targets.target import FACTS


class LoopLowering(PositionLoops):
    """Makes loops of every kind. The statements inside them are lowered by a subclass."""

    def forall(self, stmt: Forall, scope: Scope) -> ir.Stmt:
        """The loop over the variable of ``stmt``."""
        shared = {(tensor, self.context.provenance.root(var)) for var, tensor in self.atomic if var == stmt.var}
        if shared:
            scope = replace(scope, atomic=scope.atomic | shared, edge=None)
        return self.over(stmt, scope, lambda inner: self.lower(stmt.body, inner))

    def over(self, stmt: Forall, scope: Scope, then: Then, around: Callable[[ir.Stmt], ir.Stmt] | None = None) -> ir.Stmt:
        """The loop over the variable of ``stmt``, with this body. Lanes cannot end the kernel, so they note what breaks a bound."""
        held = scope.reductions() if stmt.tag.unit in (Unit.CPUThread, Unit.CPUVector) else ()
        style = replace(style_of(stmt.tag), around=around, held=held)
        if stmt.tag.unit is not None and FACTS[stmt.tag.unit].needs_constant:
            style = replace(style, factor=self.context.provenance.extent(stmt.var) or 0)
        then = _run_by(stmt.tag.unit, then)
        if stmt.tag.unit is not Unit.CPUVector or scope.broken is not None:
            return awaited(stmt, self.over_digit(stmt, stmt.var, scope, style, then), scope)
        broken = ir.Var(self.context.names.fresh("broken"), BOOL)
        style = replace(style, held=(*held, ir.Reduction(broken, "logical_or")))
        made = self.over_digit(stmt, stmt.var, replace(scope, broken=broken), style, then)
        if broken not in walk(made):
            return made
        return ir.block(ir.Declare(broken, ir.FALSE), made, ir.If(broken, ir.Fail(ir.Status.BOUND_VIOLATED)))

    def over_digit(self, stmt: Forall, digit: IndexVar, scope: Scope, style: Style, then: Then) -> ir.Stmt:
        """A loop over one variable, original or derived; ``stmt`` is what it belongs to."""
        provenance = self.context.provenance
        root = provenance.root(digit)
        relation = provenance.made_by(root)
        if self.is_gone(root, scope):
            return ir.block(self.hooks.initialise(scope), self.hooks.after(provenance.covered(root)[0], scope))
        before, scope = self.find_ranges(digit, scope)
        wrong = self._breaks_bound(digit, scope)
        first = self._is_first_digit(root, scope)
        determined = root in provenance.known({*scope.coordinates, digit})
        if not determined:
            made = self.coordinates(stmt, digit, digit, scope, style, then)
        else:
            match relation:
                case FuseRelation():
                    made = self.fused(stmt, relation, digit, scope, style, then)
                case PosRelation():
                    made = self.positions(stmt, relation, digit, scope, style, then)
                case CoordRelation():
                    made = self._again(stmt, relation, digit, scope, style, then)
                case _:
                    made = self.coordinates(stmt, root, digit, scope, style, then)
        ended = ([provenance.covered(root)[0]] if first else []) + [v for v in (digit,) if v != root]
        ended += [v for v in self.hooks.variables if v not in ended and self._begins_block(v, digit, scope)]
        made = ir.block(made, *(self.hooks.after(var, scope) for var in ended))
        if wrong is None:
            return ir.block(before, made)
        if scope.broken is not None:
            return ir.block(before, ir.If(wrong, ir.Assign(scope.broken, ir.TRUE), made))
        return ir.block(before, ir.If(wrong, ir.Fail(ir.Status.BOUND_VIOLATED)), made)

    def is_gone(self, root: IndexVar, scope: Scope) -> bool:
        """Whether the operand whose positions are to be walked is known to have none here."""
        relation = self.context.provenance.made_by(root)
        match relation:
            case PosRelation(coordinate, _, access):
                return scope.at(access).is_absent or self.is_gone(self.context.provenance.root(coordinate), scope)
            case CoordRelation(position, _):
                return self.is_gone(self.context.provenance.root(position), scope)
            case FuseRelation(outer, inner, _):
                return any(self.is_gone(self.context.provenance.root(var), scope) for var in (outer, inner))
        return False

    def find_extents(self, variables: Iterable[IndexVar], scope: Scope) -> tuple[ir.Stmt, Scope]:
        """Work out the ranges on which the extents of several variables rest, those that are no constants."""
        code = []
        for var in variables:
            if self.context.provenance.extent(var) is None:
                found, scope = self.find_ranges(var, scope, extents_only=True)
                code.append(found)
        return ir.block(*code), scope

    def find_ranges(self, var: IndexVar, scope: Scope, extents_only: bool = False) -> tuple[ir.Stmt, Scope]:
        """Work out the ranges of positions, and of coordinates found again, on which the range of a variable rests.

        How far coordinates run that are found again does not depend on their positions, but the loop over them does.
        """
        relation = self.context.provenance.made_by(var)
        found: ir.Stmt
        code: list[ir.Stmt] = []
        match relation:
            case None:
                return ir.block(), scope
            case PosRelation() if var in scope.limits:
                return ir.block(), scope
            case PosRelation() if self.is_gone(var, scope):
                return ir.block(), scope.limiting(var, ir.ZERO, ir.ZERO)
            case PosRelation():
                found, scope = self.find_ranges(relation.coordinate, scope)
                code.append(found)
                found, scope = self.position_range(relation, scope)
                return ir.block(*code, found), scope
            case CoordRelation() if extents_only:
                sources: tuple[IndexVar, ...] = (self.context.provenance.found_again(relation),)
            case _:
                sources = relation.parents
        for source in sources:
            found, scope = self.find_ranges(source, scope, extents_only)
            code.append(found)
        if isinstance(relation, CoordRelation) and var not in scope.limits:
            scope = self._again_range(relation, scope)
        if isinstance(relation, WeightedRelation) and var == relation.inner and not self._is_begun(var, scope):
            found, scope = cut_piece(self.context, relation, scope)
            code.append(found)
        return ir.block(*code), scope

    def _is_begun(self, var: IndexVar, scope: Scope) -> bool:
        """Whether the piece that a variable runs through cannot be cut here: a digit of it is bound already, or the piece is not known."""
        relation, graph = self.context.provenance.made_by(var), self.context.provenance
        unknown = isinstance(relation, WeightedRelation) and relation.outer not in scope.coordinates
        return unknown or any(var in graph.line(known) for known in scope.coordinates)

    def _begins_block(self, level: IndexVar, digit: IndexVar, scope: Scope) -> bool:
        """Whether a loop is the outermost of those into which a variable of a blocked result was cut."""
        graph = self.context.provenance
        if graph.made_by(level) is None or level not in graph.ancestors(digit):
            return False
        return not any(level in graph.line(var) for var in scope.coordinates)

    def _is_first_digit(self, root: IndexVar, scope: Scope) -> bool:
        """Whether no digit of a variable is bound yet."""
        return not any(self.context.provenance.root(var) == root for var in scope.coordinates)

    def _breaks_bound(self, digit: IndexVar, scope: Scope) -> ir.Expr | None:
        """When a promise about a variable is wrong; None if there is none. It is checked where the first loop over the variable begins."""
        graph = self.context.provenance
        begun = {above for var in scope.coordinates for above in graph.ancestors(var)}
        made = [graph.made_by(var) for var in sorted(graph.ancestors(digit) - begun, key=str)]
        space = self.context.space(scope)
        broken = [ir.compare(*relation.broken(space)) for relation in made if isinstance(relation, BoundRelation)]
        return ir.either(*broken) if broken else None

    def _again_range(self, relation: CoordRelation, scope: Scope) -> Scope:
        """The coordinates that a coord variable runs through: all of those its positions may have."""
        low, high = self.context.space(scope).interval(self.context.provenance.found_again(relation))
        return scope.limiting(relation.coordinate, low, most(low, high))

    def _inside_block(self, relation: PosRelation, position: ir.Expr, block: Range) -> list[ir.Expr]:
        """What keeps a position inside its block where no walk does: those of a full level are located, not walked."""
        level = relation.access.tensor.format.levels[self.context.provenance.position_levels(relation)[-1]]
        if not level.full:
            return []
        return [ir.compare("greater_equal", position, block[0]), ir.compare("less", position, block[1])]

    def _again(self, stmt: Forall, relation: CoordRelation, digit: IndexVar, scope: Scope, style: Style, then: Then) -> ir.Stmt:
        """Coordinates of a block of positions: the operand stays inside the block, others are merged with it.

        Where these positions were themselves counted for coordinates found again, the operands of those blocks stay inside theirs too.
        """
        provenance = self.context.provenance
        pos = provenance.counted_again(relation)
        blocks = [(relation, pos), *self.blocks_again(pos)]
        driven = self._confined([block for _, block in blocks], scope)
        self.context.remark(f"{stmt.var}: coordinates of {pos.access.tensor.name} again")

        def at_position(point: Scope) -> ir.Stmt:
            point, inside = replace(point, drivers=scope.drivers), []
            for again, block in blocks:
                position = point.at(block.access).position_at(provenance.position_levels(block)[-1] + 1)
                inside += self._inside_block(block, position, self.context.space(scope).interval(block.position))
                digit_value = self.context.space(point).digit_of(block.position, position, again.position)
                point = point.knowing(block.position, position)
                point = point if digit_value is None else point.knowing(again.position, digit_value)
            recovered, guard, point = self.recover(self.named(pos, point))
            settled, point = settle(self.context, point, self.operands)
            body = ir.block(settled, then(point))
            guard = ir.both(guard, *inside)
            return ir.block(*recovered, body if guard == ir.TRUE else ir.If(guard, body))

        covered = provenance.walked(pos)
        if len(covered) == 1:
            return self.coordinates(stmt, covered[0], digit, driven, style, at_position, tree=relation.coordinate)
        fuse = provenance.made_by(provenance.found_again(relation))
        while isinstance(fuse, CoordRelation):
            fuse = provenance.made_by(provenance.found_again(fuse))
        if not isinstance(fuse, FuseRelation):
            raise CompilerBug(relation, "several levels are walked by a fuse")
        return self.fused(stmt, fuse, digit, driven, style, at_position, tree=relation.coordinate)

    def _confined(self, blocks: list[PosRelation], scope: Scope) -> Scope:
        """The scope in which operands drive the loops, each inside a block of its positions."""
        space, inside = self.context.space(scope), replace(scope, drivers=scope.drivers | {block.access for block in blocks})
        limits: dict[tuple[Access, int], Range] = {}
        for block in blocks:
            begin, end = space.interval(block.position)
            where = block.access, self.context.provenance.position_levels(block)[-1]
            limits[where] = cut((least(begin, end), end), limits.get(where))
        for where, positions in limits.items():
            inside = inside.cutting(*where, *positions)
        return inside


def _run_by(unit: Unit | None, then: Then) -> Then:
    """The body of a loop, which knows the unit that runs it."""
    return then if unit is None else lambda inner: then(replace(inner, units=(*inner.units, unit)))
