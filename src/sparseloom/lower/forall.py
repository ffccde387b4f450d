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

from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import walk
from sparseloom.iteration.formula import ALWAYS, NEVER, Flag, Formula, Stored, stored
from sparseloom.iteration.ordering import level_variables
from sparseloom.iteration.provenance import parents
from sparseloom.iteration.region import region
from sparseloom.loops import nodes as ir
from sparseloom.lower.coiterate import SERIAL, Loop, Style, iterate
from sparseloom.lower.context import Context
from sparseloom.lower.result import Result
from sparseloom.lower.scope import Place, Scope
from sparseloom.lower.space import Range, Space, ceil_divide, least, most, subtract
from sparseloom.lower.walking import between, cut, make_walker, next_variable, segment, settle
from sparseloom.notation.nodes import Access, Forall, IndexVar, Stmt, Tag, TensorVar, Unit
from sparseloom.notation.relations import (
    BoundRelation,
    BoundType,
    CoordRelation,
    DivideRelation,
    FuseRelation,
    PosRelation,
    RenameRelation,
    SplitRelation,
)

Then = Callable[[Scope], ir.Stmt]

KINDS = {
    Unit.CPUThread: ir.LoopKind.THREADS,
    Unit.CPUVector: ir.LoopKind.VECTOR,
    Unit.GPUBlock: ir.LoopKind.GPU_BLOCK,
    Unit.GPUWarp: ir.LoopKind.GPU_WARP,
    Unit.GPUThread: ir.LoopKind.GPU_THREAD,
}


PARTS = 64  # into how many blocks a merge is cut when it runs in parallel


def _is_counted(formula: Formula, walking: list[Access], scope: Scope) -> bool:
    """Whether a loop has iterations that do not depend on each other: it counts coordinates or positions."""
    match formula:
        case Stored(access):
            return access.tensor.format.levels[scope.at(access).depth].unique
    return not stored(formula)


def style_of(tag: Tag) -> Style:
    """How a loop with this tag runs."""
    if tag.unit is not None:
        return Style(KINDS[tag.unit], tag.unroll)
    return Style(ir.LoopKind.UNROLLED, tag.unroll) if tag.unroll else SERIAL


class LoopLowering:
    """Makes loops. The statements inside them are lowered by a subclass."""

    context: Context
    hooks: Result  # the result as the loops being made see it
    operands: list[Access]
    atomic: frozenset[tuple[IndexVar, TensorVar]]  # parallel loops whose iterations meet in a place of this tensor, and write it atomically

    def enter(self, stmt: Stmt, scope: Scope, go: Then) -> ir.Stmt:
        """Go on with what is left of a statement; a subclass may put a scalar to reduce into around it."""
        raise CompilerBug(stmt, "a subclass says how statements are entered")

    def lower(self, stmt: Stmt, scope: Scope) -> ir.Stmt:
        """Lower a statement."""
        raise CompilerBug(stmt, "a subclass lowers statements")

    # Dispatch

    def forall(self, stmt: Forall, scope: Scope) -> ir.Stmt:
        """The loop over the variable of ``stmt``."""
        shared = {(tensor, self.context.provenance.root(var)) for var, tensor in self.atomic if var == stmt.var}
        if shared:
            scope = replace(scope, atomic=scope.atomic | shared, edge=None)
        return self._over(stmt, stmt.var, scope, style_of(stmt.tag), lambda inner: self.lower(stmt.body, inner))

    def over(self, stmt: Forall, scope: Scope, then: Then) -> ir.Stmt:
        """The loop over the variable of ``stmt``, with another body."""
        return self._over(stmt, stmt.var, scope, style_of(stmt.tag), then)

    def _over(self, stmt: Forall, digit: IndexVar, scope: Scope, style: Style, then: Then) -> ir.Stmt:
        """A loop over one variable, original or derived; ``stmt`` is what it belongs to."""
        provenance = self.context.provenance
        root = provenance.root(digit)
        relation = provenance.made_by(root)
        if self._is_gone(root, scope):
            return ir.block(self.hooks.initialise(scope), self.hooks.after(provenance.covered(root)[0], scope))
        before, scope = self._find_ranges(root, scope)
        before = ir.block(before, self._check_bound(digit, scope))
        first = self._is_first_digit(root, scope)
        determined = root in provenance.known({*scope.coordinates, digit})
        if not determined:
            made = self._coordinates(stmt, digit, digit, scope, style, then)
        else:
            match relation:
                case FuseRelation():
                    made = self._fused(stmt, relation, digit, scope, style, then)
                case PosRelation():
                    made = self._positions(stmt, relation, digit, scope, style, then)
                case CoordRelation():
                    made = self._again(stmt, relation, digit, scope, style, then)
                case _:
                    made = self._coordinates(stmt, root, digit, scope, style, then)
        ended = ([provenance.covered(root)[0]] if first else []) + [v for v in (digit,) if v != root]
        return ir.block(before, made, *(self.hooks.after(var, scope) for var in ended))

    def _is_gone(self, root: IndexVar, scope: Scope) -> bool:
        """Whether the operand whose positions are to be walked is known to have none here."""
        relation = self.context.provenance.made_by(root)
        match relation:
            case PosRelation(_, _, access):
                return scope.at(access).is_absent
            case CoordRelation(position, _):
                return self._is_gone(self.context.provenance.root(position), scope)
        return False

    def find_ranges(self, variables: Iterable[IndexVar], scope: Scope) -> tuple[ir.Stmt, Scope]:
        """Work out the ranges on which several variables rest."""
        code = []
        for var in variables:
            found, scope = self._find_ranges(self.context.provenance.root(var), scope)
            code.append(found)
        return ir.block(*code), scope

    def _find_ranges(self, var: IndexVar, scope: Scope) -> tuple[ir.Stmt, Scope]:
        """Work out the ranges of positions, and of coordinates found again, on which the range of a variable rests."""
        relation = self.context.provenance.made_by(var)
        if relation is None or var in scope.limits:
            return ir.block(), scope
        code: list[ir.Stmt] = []
        if not isinstance(relation, PosRelation):
            for parent in parents(relation):
                found, scope = self._find_ranges(parent, scope)
                code.append(found)
        match relation:
            case PosRelation():
                found, scope = self._position_range(relation, scope)
                code.append(found)
            case CoordRelation():
                scope = self._again_range(relation, scope)
        return ir.block(*code), scope

    def _is_first_digit(self, root: IndexVar, scope: Scope) -> bool:
        """Whether no digit of a variable is bound yet."""
        return not any(self.context.provenance.root(var) == root for var in scope.coordinates)

    def _check_bound(self, digit: IndexVar, scope: Scope) -> ir.Stmt:
        """Check what a bound promises, where its loop begins."""
        relation = self.context.provenance.made_by(digit)
        if not isinstance(relation, BoundRelation):
            return ir.block()
        low, high = self.context.space(scope).range_of(relation.parent)
        value = ir.index(relation.value)
        match relation.kind:
            case BoundType.MinExact:
                broken = ir.compare("not_equal", low, value)
            case BoundType.MaxExact:
                broken = ir.compare("not_equal", high, value)
            case BoundType.MinConstraint:
                broken = ir.compare("less", low, value)
            case BoundType.MaxConstraint:
                broken = ir.compare("greater", high, value)
        return ir.If(broken, ir.Fail(ir.Status.BOUND_VIOLATED))

    # Coordinates

    def _coordinates(
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
        if scope.window is not None:
            low, high = most(low, scope.window[0]), least(high, scope.window[1])
            scope = replace(scope, window=None)
        whole = (ir.ZERO, context.sizes.of(var)) if context.provenance.made_by(var) is None else space.range_of(var)
        narrowed = (low, high) != whole
        walkers, cuts = [], []
        for access in walking:
            walker = make_walker(context, access, scope)
            if narrowed and walker.level.ordered:
                code, walker = between(walker, low, high)
                cuts.append(code)
            walkers.append(walker)
        loop = self._loop(stmt, var, digit, tree, space, scope, style, (low, high))
        loop = replace(loop, walkers=tuple(walkers), body=lambda s: self._bind(var, digit, s, then))
        if narrowed and any(not w.level.ordered for w in walkers):
            inside_cut = ir.both(ir.compare("greater_equal", loop.coordinate, low), ir.compare("less", loop.coordinate, high))
            loop = replace(loop, filter=ir.both(loop.filter, inside_cut))
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
        inner = self._coordinates(stmt, var, digit, replace(scope, window=window), SERIAL, then, tree)
        declared = [ir.Declare(first, low), ir.Declare(size, ceil_divide(most(ir.ZERO, subtract(high, low)), ir.index(PARTS)))]
        return ir.block(*declared, style.loop(block, ir.ZERO, ir.index(PARTS), inner))

    def _walking(self, stmt: Forall, var: IndexVar, scope: Scope) -> list[Access]:
        """The operands whose next level is stored sparsely along ``var``."""
        inside = {n for n in walk(stmt) if isinstance(n, Access)}
        return [a for a in self.operands if a in inside and self._walks(a, var, scope)]

    def _formula(self, stmt: Forall, var: IndexVar, scope: Scope) -> Formula:
        """At which coordinates of ``var`` the statement has something to do."""
        if self.hooks.demands_all(var):
            return ALWAYS
        walking = self._walking(stmt, var, scope)
        return region(stmt, lambda access: self._known(access, walking, scope))

    def _loop(
        self, stmt: Forall, var: IndexVar, digit: IndexVar, tree: IndexVar, space: Space, scope: Scope, style: Style, part: Range
    ) -> Loop:
        """The counted form and the filters of a loop over a part of the variable's range."""
        context = self.context
        low, high = part
        coordinate = ir.Var(var.name)
        filters = ir.both(*space.filters(tree, coordinate))
        found = [(tree, coordinate)] if tree != var else []
        value = None if digit in (var, tree) else space.digit_of(tree, coordinate, digit)
        if value is not None:
            found.append((digit, value))
        base = Loop(context, var, coordinate, coordinate, low, high, (), scope, lambda s: ir.block(), style=style)
        base = replace(base, filter=filters, found=tuple(found))
        if digit in (var, tree):
            return base
        counter = ir.Var(digit.name)
        if space.is_leading(tree, digit):
            begin, _ = space.range_of(digit)
            recover = (ir.Declare(coordinate, ir.add(subtract(low, begin), counter)),)
            return replace(base, counter=counter, begin=begin, end=ir.add(begin, subtract(high, low)), recover=recover)
        begin, end = space.range_of(digit)
        known = scope.knowing(digit, counter)
        recovered, guard, after = self._recover(known)
        if tree not in after.coordinates:
            raise CompilerBug(stmt, f"{digit} should determine {tree}")
        if after.coordinates[tree] != coordinate:
            recovered.append(ir.Declare(coordinate, after.coordinates[tree]))
        return replace(base, counter=counter, begin=begin, end=end, recover=tuple(recovered), guard=guard, counted=after)

    def _cover(self, stmt: Forall, var: IndexVar, digit: IndexVar, formula: Formula, scope: Scope) -> tuple[ir.Stmt, Scope]:
        """Initialise the result here, or leave it to inner loops that will cover it."""
        depth = scope.uninitialised
        if depth is None:
            return ir.block(), scope
        root = self.context.provenance.root(digit)
        variables = self.hooks.variables
        mine = len(set(variables)) == len(variables) and depth < len(variables) and variables[depth] == root
        if mine and var != root and self._digits_follow(stmt, root, scope) and self._formula(stmt, root, scope) == ALWAYS:
            return ir.block(), scope
        if mine and var == root and formula == ALWAYS:
            return ir.block(), replace(scope, uninitialised=depth + 1)
        return self.hooks.initialise(scope), replace(scope, uninitialised=None)

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
        if place.is_absent or next_variable(access, place) != var:
            return False
        return not access.tensor.format.levels[place.depth].full

    def _known(self, access: Access, walking: list[Access], scope: Scope) -> Formula:
        """What this loop knows of an operand's presence."""
        held = scope.accumulators.get(access)
        if held is not None:
            return ALWAYS if held.seen is None else Flag(held.seen)
        place = scope.at(access)
        if place.is_absent:
            return NEVER
        if access in walking:
            return Stored(access)
        return ALWAYS if place.present == ir.TRUE else Flag(place.present)

    def _bind(self, var: IndexVar, digit: IndexVar, scope: Scope, then: Then) -> ir.Stmt:
        """What runs at one coordinate: recover, locate, then the statement inside."""
        recovered, guard, scope = self._recover(scope)
        settled, scope = settle(self.context, scope, self.operands)
        inner = then(scope)
        if digit != var:
            inner = self.hooks.around(digit, inner, scope)
        body = ir.block(settled, self.hooks.around(var, inner, scope))
        return ir.block(*recovered, body if guard == ir.TRUE else ir.If(guard, body))

    def _recover(self, scope: Scope) -> tuple[list[ir.Stmt], ir.Expr, Scope]:
        """Variables whose derived variables are now all known."""
        stmts: list[ir.Stmt] = []
        guards: list[ir.Expr] = []
        changed = True
        while changed:
            changed = False
            for relation in self.context.provenance.relations:
                space = self.context.space(scope)
                match relation:
                    case SplitRelation(parent, outer, inner, _) | DivideRelation(parent, outer, inner, _):
                        if parent in space.values or outer not in space.values or inner not in space.values:
                            continue
                        made, guard = space.joined(relation)
                        var = ir.Var(parent.name)
                        stmts.append(ir.Declare(var, made))
                        guards.append(ir.compare("less", var, space.range_of(parent)[1]))
                        scope, changed = scope.knowing(parent, var), True
                    case BoundRelation(parent, child, _, _) | RenameRelation(parent, child):
                        if child in space.values and parent not in space.values:
                            scope, changed = scope.knowing(parent, space.values[child]), True
        return stmts, ir.both(*guards), scope

    # Fused coordinates

    def _fused(
        self, stmt: Forall, relation: FuseRelation, digit: IndexVar, scope: Scope, style: Style, then: Then, tree: IndexVar | None = None
    ) -> ir.Stmt:
        """A fused loop: a nest over its two variables, cut in the first and the last row to the interval that is left."""
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
                recovered, guard, point = self._recover(point)
                settled, point = settle(self.context, point, self.operands)
                body = ir.block(settled, then(point))
                body = ir.block(*recovered, body if guard == ir.TRUE else ir.If(guard, body))
                return body if tests == ir.TRUE else ir.If(tests, body)

            return ir.block(limits, self.enter(stmt, columns, lambda s: self._over(stmt, relation.inner, s, SERIAL, at_point)))

        nest = self._over(stmt, relation.outer, rows, style, in_row)
        declared = ir.block(ir.Declare(row_first, first), ir.Declare(row_last, last))
        return ir.block(*code, ir.If(ir.compare("less", low, high), ir.block(declared, nest)))

    # Positions

    def _position_range(self, relation: PosRelation, scope: Scope) -> tuple[ir.Stmt, Scope]:
        """Where the positions of a position variable begin and end, below what is already bound of its operand."""
        context, access = self.context, relation.access
        levels = context.provenance.position_levels(relation)
        place = scope.at(access)
        if place.depth != levels[0]:
            raise CompilerBug(relation, f"level {levels[0]} of {access.tensor} must be next when its positions are walked")
        form, views = access.tensor.format, context.view(access).levels
        code: list[ir.Stmt] = []
        begin, end = segment(form.levels[levels[0]], views[levels[0]], place)
        begin, end = cut((begin, end), scope.cuts.get((access, levels[0])))
        low, high = self._first_interval(relation, scope)
        if low != ir.ZERO or high is not None:
            begin, end = self._cut_level(access, levels[0], place, (begin, end), low, high)
        scope = self._declare_range(relation, levels[0], begin, end, code, scope)
        for k in levels[1:]:
            above = scope.cuts[access, k - 1]
            begin = form.levels[k].bounds(views[k], above[0])[0]
            end = form.levels[k].bounds(views[k], above[1])[0] if not form.levels[k].branchless else above[1]
            scope = self._declare_range(relation, k, begin, end, code, scope)
        return ir.block(*code), scope.limiting(relation.position, *scope.cuts[access, levels[-1]])

    def _declare_range(self, relation: PosRelation, level: int, begin: ir.Expr, end: ir.Expr, code: list[ir.Stmt], scope: Scope) -> Scope:
        name = f"{relation.position.name}_{level + 1}"
        first, last = ir.Var(self.context.names.fresh(f"{name}_begin")), ir.Var(self.context.names.fresh(f"{name}_end"))
        code += [ir.Declare(first, begin), ir.Declare(last, end)]
        return scope.cutting(relation.access, level, first, last)

    def _first_interval(self, relation: PosRelation, scope: Scope) -> tuple[ir.Expr, ir.Expr | None]:
        """The coordinates to which outer digits confine the first level of a position variable; None where nothing does."""
        var = self.context.provenance.covered(relation.coordinate)[0]
        space = self.context.space(scope)
        low, high = space.interval(var)
        return low, None if (low, high) == space.range_of(var) and var not in scope.limits else high

    def _cut_level(
        self, access: Access, level: int, place: Place, positions: tuple[ir.Expr, ir.Expr], low: ir.Expr, high: ir.Expr | None
    ) -> tuple[ir.Expr, ir.Expr]:
        form, view = access.tensor.format, self.context.view(access).levels[level]
        if form.levels[level].can_locate:
            first = form.levels[level].locate(view, place.position, low)
            return first, positions[1] if high is None else form.levels[level].locate(view, place.position, most(low, high))
        crd = view.arrays["crd"]
        first = ir.Search(crd, *positions, low)
        return first, positions[1] if high is None else ir.Search(crd, *positions, high)

    def _positions(self, stmt: Forall, relation: PosRelation, digit: IndexVar, scope: Scope, style: Style, then: Then) -> ir.Stmt:
        """The loop that determines a position: one flat loop, or a nest over the levels that are fused in it."""
        context, access = self.context, relation.access
        before = self.hooks.initialise(scope) if scope.uninitialised is not None else ir.block()
        scope = replace(scope, uninitialised=None)
        levels = context.provenance.position_levels(relation)
        space = context.space(scope)
        names = ", ".join(str(v) for v in context.provenance.covered(relation.coordinate))
        context.depth += 1
        context.remark(f"{stmt.var}: positions of {access.tensor.name} ({names})")
        uppers = self._upper_levels(stmt, relation)
        leading = space.is_leading(relation.position, digit)
        if uppers and leading and style == SERIAL:
            made = self._position_nest(stmt, relation, digit, scope, then)
        else:
            made = self._flat_positions(stmt, relation, digit, scope, style, bool(uppers), then)
        context.depth -= 1
        return ir.block(before, made)

    def _upper_levels(self, stmt: Forall, relation: PosRelation) -> tuple[IndexVar, ...]:
        """The coordinates above the last level that something inside the loop needs."""
        uppers = self.context.provenance.covered(relation.coordinate)[:-1]
        used = {v for n in walk(stmt.body) if isinstance(n, Access) and n != relation.access for v in (*n.indices, *level_variables(n))}
        needed = {x for v in used for x in (v, *self.context.provenance.originals(v))}
        return uppers if needed & set(uppers) else ()

    def _flat_positions(
        self, stmt: Forall, relation: PosRelation, digit: IndexVar, scope: Scope, style: Style, searched: bool, then: Then
    ) -> ir.Stmt:
        """One loop over positions; upper coordinates, if anyone needs them, are searched at every position."""
        position = ir.Var(relation.position.name)
        space = self.context.space(scope)
        low, high = space.interval(relation.position)
        counter = ir.Var(digit.name)
        if digit == relation.position:
            header, recover, guard, inner = (counter, low, high), [ir.Declare(position, counter)], ir.TRUE, scope
            if counter == position:
                recover = []
            inner = inner.knowing(relation.position, position)
        elif space.is_leading(relation.position, digit):
            begin, _ = space.range_of(digit)
            header = (counter, begin, ir.add(begin, subtract(high, low)))
            recover, guard = [ir.Declare(position, ir.add(subtract(low, begin), counter))], ir.TRUE
            inner = scope.knowing(digit, counter).knowing(relation.position, position)
        else:
            header = (counter, *space.range_of(digit))
            recover, guard, inner = self._recover(scope.knowing(digit, counter))
            if inner.coordinates[relation.position] != position:
                recover.append(ir.Declare(position, inner.coordinates[relation.position]))
        inner = inner.knowing(digit, counter)
        body = self._at_position(stmt, relation, position, inner, searched, then)
        body = ir.block(*recover, body if guard == ir.TRUE else ir.If(guard, body))
        return style.loop(*header, body)

    def _at_position(self, stmt: Forall, relation: PosRelation, position: ir.Expr, scope: Scope, searched: bool, then: Then) -> ir.Stmt:
        """What runs at one position when nothing above it is tracked."""
        access = relation.access
        form, views = access.tensor.format, self.context.view(access).levels
        levels = self.context.provenance.position_levels(relation)
        covered = self.context.provenance.covered(relation.coordinate)
        code: list[ir.Stmt] = []
        current: ir.Expr = position
        for k in reversed(levels):
            parent = self._parent(relation, k, current, scope, code) if k > levels[0] and (searched or form.levels[k].full) else None
            if k == levels[0]:
                parent = scope.at(access).position
            var = covered[k - levels[0]]
            if parent is not None or not form.levels[k].full:
                value = form.levels[k].coordinate(views[k], ir.ZERO if parent is None else parent, current)
                code.append(ir.Declare(ir.Var(var.name), value))
                scope = scope.knowing(var, ir.Var(var.name))
            if parent is None or k == levels[0]:
                break
            current = parent
        scope = self._named(relation, scope.placing({access: Place(levels[-1] + 1, position)}))
        recovered, guard, scope = self._recover(scope)
        settled, scope = settle(self.context, scope, self.operands)
        body = ir.block(settled, self._around_all(covered, then(scope), scope))
        return ir.block(*code, *recovered, body if guard == ir.TRUE else ir.If(guard, body))

    def _named(self, relation: PosRelation, scope: Scope) -> Scope:
        """The variable that positions replaced, where the coordinates it stands for are all known."""
        covered = self.context.provenance.covered(relation.coordinate)
        if any(var not in scope.coordinates for var in covered):
            return scope
        return self._rebuilt(relation.coordinate, scope)

    def _rebuilt(self, var: IndexVar, scope: Scope) -> Scope:
        """The value of a derived coordinate variable from the originals it was made of."""
        if var in scope.coordinates:
            return scope
        provenance = self.context.provenance
        match provenance.made_by(var):
            case FuseRelation(outer, inner, _):
                scope = self._rebuilt(inner, self._rebuilt(outer, scope))
                space = self.context.space(scope)
                row = subtract(scope.coordinates[outer], space.range_of(outer)[0])
                column = subtract(scope.coordinates[inner], space.range_of(inner)[0])
                return scope.knowing(var, ir.add(ir.multiply(row, space.extent(inner)), column))
            case CoordRelation(position, _):
                pos = provenance.made_by(provenance.root(position))
                if isinstance(pos, PosRelation):
                    covered = provenance.covered(pos.coordinate)
                    source = covered[0] if len(covered) == 1 else pos.coordinate
                    scope = self._rebuilt(source, scope)
                    return scope.knowing(var, scope.coordinates[source])
            case None:
                raise CompilerBug(var, "an original variable should be known")
        root = provenance.root(var)
        scope = self._rebuilt(root, scope)
        value = self.context.space(scope).digit_of(root, scope.coordinates[root], var)
        if value is None:
            raise CompilerBug(var, f"should be a digit of {root}")
        return scope.knowing(var, value)

    def _around_all(self, covered: tuple[IndexVar, ...], body: ir.Stmt, scope: Scope) -> ir.Stmt:
        for var in reversed(covered):
            body = self.hooks.around(var, body, scope)
        return body

    def _parent(self, relation: PosRelation, level: int, position: ir.Expr, scope: Scope, code: list[ir.Stmt]) -> ir.Expr:
        """The position one level up: by division, the same, or by search."""
        form, view = relation.access.tensor.format, self.context.view(relation.access).levels[level]
        if form.levels[level].full:
            return ir.Op("floor_divide", (position, view.size))
        if form.levels[level].branchless:
            return position
        begin, end = scope.cuts[relation.access, level - 1]
        parent = ir.Var(self.context.names.fresh(f"p{relation.access.tensor.name}{level}"))
        code.append(ir.Declare(parent, containing(view.arrays["pos"], begin, end, position)))
        return parent

    def _position_nest(self, stmt: Forall, relation: PosRelation, digit: IndexVar, scope: Scope, then: Then) -> ir.Stmt:
        """A block of positions as a nest over the levels above: each level is cut to the block in its first and last run.

        The first and last position of every upper level are searched once per block; in between, rows simply follow each other.
        """
        access, names = relation.access, self.context.names
        form = access.tensor.format
        levels = self.context.provenance.position_levels(relation)
        space = self.context.space(scope)
        low, high = ir.Var(names.fresh(f"{relation.position.name}_low")), ir.Var(names.fresh(f"{relation.position.name}_high"))
        begin, end = space.interval(relation.position)
        code: list[ir.Stmt] = []
        cuts = {levels[-1]: (low, high)}
        first, last = low, subtract(high, ir.ONE)
        for k in reversed(levels[1:]):
            first, last = self._parent(relation, k, first, scope, code), self._parent(relation, k, last, scope, code)
            cuts[k - 1] = (first, ir.add(last, ir.ONE))
        for k, (a, b) in cuts.items():
            scope = scope.cutting(access, k, a, b)
        base = low if digit != relation.position else None
        chain = [k for k in levels if not form.levels[k].branchless or k == levels[0]]
        nest = self._nest_level(stmt, relation, digit, chain, 0, base, scope, then)
        declared = ir.block(ir.Declare(low, begin), ir.Declare(high, end))
        return ir.block(declared, ir.If(ir.compare("less", low, high), ir.block(*code, nest)))

    def _nest_level(
        self, stmt: Forall, relation: PosRelation, digit: IndexVar, chain: list[int], at: int, base: ir.Expr | None, scope: Scope, then: Then
    ) -> ir.Stmt:
        """One loop of the nest: a level and the singletons that share its positions."""
        access, provenance = relation.access, self.context.provenance
        form, views = access.tensor.format, self.context.view(access).levels
        levels = provenance.position_levels(relation)
        covered = provenance.covered(relation.coordinate)
        k = chain[at]
        end_of_chain = chain[at + 1] if at + 1 < len(chain) else levels[-1] + 1
        place = scope.at(access)
        is_last = end_of_chain == levels[-1] + 1
        position = ir.Var(relation.position.name if is_last else self.context.names.fresh(f"p{access.tensor.name}{k + 1}"))
        begin, end = cut(segment(form.levels[k], views[k], place), scope.cuts[access, k])
        code: list[ir.Stmt] = []
        inner = scope
        if {root for _, root in scope.atomic} == {relation.position}:
            low, high = scope.cuts[access, k]
            edge = ir.either(ir.compare("equal", position, low), ir.compare("equal", position, subtract(high, ir.ONE)))
            inner = replace(inner, edge=edge)
        for m in range(k, end_of_chain):
            var = covered[m - levels[0]]
            value = form.levels[m].coordinate(views[m], place.position if m == k else position, position)
            code.append(ir.Declare(ir.Var(var.name), value))
            inner = inner.knowing(var, ir.Var(var.name))
        inner = inner.placing({access: Place(end_of_chain, position)})
        if is_last:
            inner = inner.knowing(relation.position, position)
            if base is not None:
                inner = inner.knowing(digit, ir.add(subtract(position, base), self.context.space(scope).range_of(digit)[0]))
            inner = self._named(relation, inner)
        recovered, guard, inner = self._recover(inner)
        settled, inner = settle(self.context, inner, self.operands)
        if is_last:
            rest = then(inner)
        else:
            rest = self.enter(stmt, inner, lambda s: self._nest_level(stmt, relation, digit, chain, at + 1, base, s, then))
        body = ir.block(settled, self._around_all(covered[k - levels[0] : end_of_chain - levels[0]], rest, inner))
        body = body if guard == ir.TRUE else ir.If(guard, body)
        loop = ir.For(position, begin, end, ir.block(*code, *recovered, body))
        return loop if at == 0 else ir.block(loop, self.hooks.after(covered[k - levels[0]], scope))

    # Coordinates found again

    def _again_range(self, relation: CoordRelation, scope: Scope) -> Scope:
        """The coordinates that a coord variable runs through: all of those its positions may have."""
        provenance = self.context.provenance
        pos = provenance.made_by(provenance.root(relation.position))
        if not isinstance(pos, PosRelation):
            raise CompilerBug(relation, "coord is applied to positions")
        covered = provenance.covered(pos.coordinate)
        space = self.context.space(scope)
        low, high = space.interval(covered[0]) if len(covered) == 1 else space.range_of(pos.coordinate)
        return scope.limiting(relation.coordinate, low, high)

    def _again(self, stmt: Forall, relation: CoordRelation, digit: IndexVar, scope: Scope, style: Style, then: Then) -> ir.Stmt:
        """Coordinates of a block of positions: the operand stays inside the block, others are merged with it."""
        provenance = self.context.provenance
        root = provenance.root(relation.position)
        pos = provenance.made_by(root)
        if not isinstance(pos, PosRelation):
            raise CompilerBug(relation, "coord is applied to positions")
        access, levels = pos.access, provenance.position_levels(pos)
        scope = scope.cutting(access, levels[-1], *self.context.space(scope).interval(root))
        covered = provenance.covered(pos.coordinate)
        self.context.remark(f"{stmt.var}: coordinates of {access.tensor.name} again")

        def at_position(point: Scope) -> ir.Stmt:
            position = point.at(access).position
            digit_value = self.context.space(point).digit_of(root, position, relation.position)
            point = point.knowing(root, position)
            point = point if digit_value is None else point.knowing(relation.position, digit_value)
            settled, point = settle(self.context, point, self.operands)
            return ir.block(settled, then(point))

        if len(covered) == 1:
            return self._coordinates(stmt, covered[0], digit, scope, style, at_position, tree=relation.coordinate)
        fuse = provenance.made_by(pos.coordinate)
        if not isinstance(fuse, FuseRelation):
            raise CompilerBug(relation, "several levels are walked by a fuse")
        low, high = self.context.space(scope).interval(relation.coordinate)
        return self._fused(stmt, fuse, digit, scope.limiting(fuse.fused, low, high), style, at_position, tree=relation.coordinate)


def containing(array: ir.Array, begin: ir.Expr, end: ir.Expr, position: ir.Expr) -> ir.Expr:
    """Which parent in ``[begin, end)`` has this position below it: the last one that begins at or before it."""
    after = ir.Search(array, ir.add(begin, ir.ONE), ir.add(end, ir.ONE), ir.add(position, ir.ONE))
    return subtract(after, ir.ONE)
