"""Loops over coordinates: counted, or walking and merging the operands that are stored along the variable.

    forall i1                          for i1 in 0..16           i = i0 * 16 + i1, guarded at the end of the range
      y(i) += A(i,j) * x(j)            or, where A is sparse along i: from the first position of the block to its last
"""

from __future__ import annotations

from dataclasses import replace

from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import walk
from sparseloom.iteration.formula import ALWAYS, NEVER, Flag, Formula, Stored, all_of, stored
from sparseloom.iteration.region import region
from sparseloom.loops import nodes as ir
from sparseloom.lower.coiterate import SERIAL, Loop, Style, iterate
from sparseloom.lower.nest import Nest, Then
from sparseloom.lower.scope import Scope
from sparseloom.lower.space import Range, Space, ceil_divide, least, most, subtract
from sparseloom.lower.walking import between, make_walker, next_variable, settle
from sparseloom.notation.nodes import Access, Forall, IndexVar, Stmt


class CoordinateLoops(Nest):
    """Loops over one coordinate variable, of which some digits may be bound already."""

    def coordinates(
        self, stmt: Forall, var: IndexVar, digit: IndexVar, scope: Scope, style: Style, then: Then, tree: IndexVar | None = None
    ) -> ir.Stmt:
        """A loop over coordinates of ``var``, of which ``digit`` is the last part to be bound.

        ``tree`` is the variable whose digits are meant, where that is not ``var`` itself but stands for it (``coord``).
        """
        context = self.context
        tree = var if tree is None else tree
        walking = self._walking(stmt, var, scope)
        formula = self._formula(stmt, var, scope)
        if formula == NEVER and not self._closes(var):
            return self.hooks.initialise(scope)
        before, scope = self._cover(stmt, var, digit, formula, scope)
        if style.is_parallel and not _is_counted(formula, walking, scope):
            return ir.block(before, self._blocks(stmt, var, digit, scope, style, then, tree))
        context.depth += 1
        space = context.space(scope)
        low, high = space.interval(tree)
        window = scope.window
        if window is not None:
            low, high = most(low, window[0]), least(high, window[1])
            scope = replace(scope, window=None)
        narrowed = (low, high) != space.whole_range(var)
        walkers, cuts = [], []
        for access in walking:
            walker = make_walker(context, access, scope)
            if narrowed and walker.level.ordered:
                code, walker = between(context.names, walker, low, high)
                cuts.append(code)
            walkers.append(walker)
        loop = self._loop(stmt, var, digit, tree, space, scope, style, (low, high), bool(walkers))
        loop = replace(loop, walkers=tuple(walkers), body=lambda s: self._bind(var, digit, s, then))
        inside = ir.both(ir.compare("greater_equal", loop.coordinate, low), ir.compare("less", loop.coordinate, high))
        if narrowed and any(not w.level.ordered for w in walkers):
            loop = replace(loop, filter=ir.both(loop.filter, inside))
        if window is not None and loop.counted is not None:
            loop = replace(loop, guard=ir.both(loop.guard, inside))  # its digit goes from block to block, through all parts
        made = iterate(loop, formula)
        context.depth -= 1
        return ir.block(before, *cuts, made)

    def _blocks(
        self, stmt: Forall, var: IndexVar, digit: IndexVar, scope: Scope, style: Style, then: Then, tree: IndexVar
    ) -> ir.Stmt:
        """A merge in parallel: the range is cut into blocks, and each of them is merged from its own beginning."""
        low, high = self.context.space(scope).interval(tree)
        names = self.context.names
        block = ir.Var(names.fresh(f"{digit.name}_part"))
        size, first = ir.Var(names.fresh(f"{digit.name}_part_size")), ir.Var(names.fresh(f"{digit.name}_first"))
        begin = ir.add(first, ir.multiply(block, size))
        window = (begin, ir.add(begin, size))
        inner = self.coordinates(stmt, var, digit, replace(scope, window=window), SERIAL, then, tree)
        parts = ir.index(self.context.target.parts)
        declared = [ir.Declare(first, low), ir.Declare(size, ceil_divide(most(ir.ZERO, subtract(high, low)), parts))]
        return ir.block(*declared, style.loop(block, ir.ZERO, parts, inner))

    def _walking(self, stmt: Forall, var: IndexVar, scope: Scope) -> list[Access]:
        """The operands whose next level is stored sparsely along ``var``."""
        inside = {n for n in walk(stmt) if isinstance(n, Access)} | scope.drivers
        return [a for a in self.operands if a in inside and self._walks(a, var, scope)]

    def _formula(self, stmt: Forall, var: IndexVar, scope: Scope) -> Formula:
        """At which coordinates of ``var`` the statement has something to do.

        What demands every coordinate of a variable demands every digit of it.
        """
        if any(self.hooks.demands_all(whole) for whole in self.context.provenance.ancestors(var)):
            return ALWAYS
        walking = self._walking(stmt, var, scope)
        driven = [self._known(access, walking, scope) for access in self.operands if access in scope.drivers]
        return all_of([region(stmt, lambda access: self._known(access, walking, scope)), *driven])

    def _loop(
        self,
        stmt: Forall,
        var: IndexVar,
        digit: IndexVar,
        tree: IndexVar,
        space: Space,
        scope: Scope,
        style: Style,
        part: Range,
        merges: bool,
    ) -> Loop:
        """The counted form and the filters of a loop over a part of the variable's range.

        Operands that it ``merges`` are walked in order, so it counts coordinates where the digit would not come in that order.
        """
        context = self.context
        low, high = part
        coordinate = ir.Var(var.name)
        filters = ir.both(*space.filters(tree, coordinate))
        found: list[tuple[IndexVar, ir.Expr]] = [(tree, coordinate)] if tree != var else []
        value = None if digit in (var, tree) else space.digit_of(tree, coordinate, digit)
        if value is not None:
            found.append((digit, value))
        base = Loop(context, var, coordinate, coordinate, low, high, (), scope, lambda s: ir.block(), style=style)
        base = replace(base, filter=filters, found=tuple(found))
        if digit in (var, tree):
            return base
        if merges and not context.provenance.keeps_order(digit):
            return replace(base, guard=filters)
        counter = ir.Var(digit.name)
        if space.is_leading(tree, digit):
            # The digit counts from where its block begins, also where this loop runs through a part of the block.
            start, (first, _) = space.interval(tree)[0], space.range_of(digit)
            recover = (ir.Declare(coordinate, ir.add(subtract(start, first), counter), self.origin(digit)),)
            begin, end = (limit if start == first else ir.add(first, subtract(limit, start)) for limit in part)
            return replace(base, counter=counter, begin=begin, end=end, recover=recover)
        begin, end = space.range_of(digit)
        known = scope.knowing(digit, counter)
        recovered, guard, after = self.recover(known)
        if tree not in after.coordinates:
            raise CompilerBug(stmt, f"{digit} should determine {tree}")
        if after.coordinates[tree] != coordinate:
            recovered.append(ir.Declare(coordinate, after.coordinates[tree], self.origin(digit)))
        return replace(base, counter=counter, begin=begin, end=end, recover=tuple(recovered), guard=guard, counted=after)

    def _cover(self, stmt: Forall, var: IndexVar, digit: IndexVar, formula: Formula, scope: Scope) -> tuple[ir.Stmt, Scope]:
        """Initialise the result here, or leave it to inner loops that will cover it."""
        depth = scope.uninitialised
        if depth is None:
            return ir.block(), scope
        root = self.context.provenance.root(digit)
        variables = self.hooks.variables
        mine = len(set(variables)) == len(variables) and depth < len(variables) and variables[depth] == root
        if mine and var != root and self._digits_follow(stmt, root, scope) and self._visits_all(stmt, root, scope):
            return ir.block(), scope
        if mine and var == root and formula == ALWAYS:
            return ir.block(), replace(scope, uninitialised=depth + 1)
        return self.hooks.initialise(scope), replace(scope, uninitialised=None)

    def _visits_all(self, stmt: Forall, var: IndexVar, scope: Scope) -> bool:
        """Whether the loops inside will visit every coordinate of ``var``, whatever turns out to be absent on the way."""
        masks = self.context.masks
        lost = [a for a in self.operands if a.tensor in masks or self._may_be_lost(a, var, scope)]
        known = region(stmt, lambda access: NEVER if access in lost else self._known(access, [], scope))
        return known == ALWAYS and not scope.drivers

    def _may_be_lost(self, access: Access, var: IndexVar, scope: Scope) -> bool:
        """Whether an operand may turn out to be absent where digits of ``var`` are bound: its blocks may be stored sparsely."""
        place, graph = scope.at(access), self.context.provenance
        for k, part in enumerate(graph.stored(access)[place.depth :], place.depth):
            if part not in scope.coordinates and graph.root(part) != var:
                return False
            if part == var or not access.tensor.format.levels[k].full:
                return not access.tensor.format.levels[k].full
        return False

    def _digits_follow(self, stmt: Stmt, root: IndexVar, scope: Scope) -> bool:
        """Whether the loops directly inside bind the remaining digits of a variable."""
        known = set(scope.coordinates)
        while isinstance(stmt, Forall) and self.context.provenance.root(stmt.var) == root:
            known.add(stmt.var)
            if root in self.context.provenance.known(known):
                return True
            stmt = stmt.body
        return False

    def _closes(self, var: IndexVar) -> bool:
        return self.hooks.needs_presence and var in self.hooks.variables

    def _walks(self, access: Access, var: IndexVar, scope: Scope) -> bool:
        place = scope.at(access)
        if place.is_absent or next_variable(self.context, access, place) != var:
            return False
        return not access.tensor.format.levels[place.depth].full

    def _known(self, access: Access, walking: list[Access], scope: Scope) -> Formula:
        """What this loop knows of an operand's presence."""
        held = scope.accumulators.get(access)
        if held is not None:
            return ALWAYS if held.seen is None else Flag(held.present)
        place = scope.at(access)
        if place.is_absent:
            return NEVER
        if access in walking:
            return Stored(access)
        return ALWAYS if place.present == ir.TRUE else Flag(place.present)

    def _bind(self, var: IndexVar, digit: IndexVar, scope: Scope, then: Then) -> ir.Stmt:
        """What runs at one coordinate: recover, locate, then the statement inside."""
        before = set(scope.coordinates)
        recovered, guard, scope = self.recover(scope)
        settled, scope = settle(self.context, scope, self.operands)
        inner = then(scope)
        for level in reversed(self.hooks.variables):
            if level not in (var, digit) and level in scope.coordinates and level not in before:
                inner = self.hooks.around(level, inner, scope)
        if digit != var:
            inner = self.hooks.around(digit, inner, scope)
        body = ir.block(settled, self.hooks.around(var, inner, scope))
        return ir.block(*recovered, body if guard == ir.TRUE else ir.If(guard, body))


def _is_counted(formula: Formula, walking: list[Access], scope: Scope) -> bool:
    """Whether a loop has iterations that do not depend on each other: it counts coordinates or positions."""
    match formula:
        case Stored(access):
            return access.tensor.format.levels[scope.at(access).depth].unique
    return not stored(formula)
