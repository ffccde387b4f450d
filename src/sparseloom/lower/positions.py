"""Loops over positions: they count the entries of one operand, at one level or through several.

    forall p                           for p in A2_pos[0] .. A2_pos[n]
      y(i) += A(i,j) * x(j)              j = A2_crd[p]; i by search, or by a nest over rows that is cut to the block
"""

from __future__ import annotations

from dataclasses import replace

from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import walk
from sparseloom.iteration.region import written
from sparseloom.loops import nodes as ir
from sparseloom.lower.coiterate import SERIAL, Style
from sparseloom.lower.context import Runs
from sparseloom.lower.lexicographic import first_position
from sparseloom.lower.nest import Then
from sparseloom.lower.runs import RunLoops
from sparseloom.lower.scope import Place, Scope
from sparseloom.lower.space import Range, least, most, subtract
from sparseloom.lower.walking import cut, if_present, segment, settle
from sparseloom.notation.nodes import Access, Forall, IndexVar
from sparseloom.relations.coord import CoordRelation
from sparseloom.relations.fuse import FuseRelation
from sparseloom.relations.pos import PosRelation
from sparseloom.relations.relation import Line


class PositionLoops(RunLoops):
    """Loops over the positions of one operand."""

    def position_range(self, relation: PosRelation, scope: Scope) -> tuple[ir.Stmt, Scope]:
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
        begin, end = self._cut_to_blocks(relation, levels[0], (begin, end), scope)
        scope = self._declare_range(relation, levels[0], begin, end, code, scope)
        for k in levels[1:]:
            above = scope.cuts[access, k - 1]
            begin, end = (form.levels[k].begin(views[k], limit) for limit in above)
            begin, end = self._cut_to_blocks(relation, k, (begin, end), scope)
            scope = self._declare_range(relation, k, begin, end, code, scope)
        if context.provenance.cuts_rows(relation.coordinate, context.provenance.stored(access)):
            scope = self._cut_rows(relation, code, scope)
        return ir.block(*code), scope.limiting(relation.position, *scope.cuts[access, levels[-1]])

    def _cut_to_blocks(self, relation: PosRelation, level: int, positions: Range, scope: Scope) -> Range:
        """Positions of coordinates that were found again for a block of positions of the same operand: no others than the block's."""
        provenance, space = self.context.provenance, self.context.space(scope)
        for _, block in self.blocks_again(relation):
            if block.access == relation.access and provenance.position_levels(block)[-1] == level:
                first, last = space.interval(block.position)
                begin, end = cut(positions, (least(first, last), last))
                positions = begin, most(begin, end)
        return positions

    def _cut_rows(self, relation: PosRelation, code: list[ir.Stmt], scope: Scope) -> Scope:
        """Confine the positions of several levels to a block that may begin and end within a row."""
        access, levels = relation.access, self.context.provenance.position_levels(relation)
        space, place, ends = self.context.space(scope), scope.at(access), []
        positions = scope.cuts[access, levels[0]]
        for value in space.range_of(relation.coordinate):
            members = space.members_at(relation.coordinate, value, self.context.provenance.stored(access))
            found, position = first_position(self.context, access, levels, positions, place.position, members)
            code += found
            ends.append(position)
        begin, end = cut((ends[0], ends[1]), scope.cuts[access, levels[-1]] if self.blocks_again(relation) else None)
        return self._declare_range(relation, levels[-1], begin, most(begin, end), code, scope)

    def _declare_range(self, relation: PosRelation, level: int, begin: ir.Expr, end: ir.Expr, code: list[ir.Stmt], scope: Scope) -> Scope:
        name = f"{relation.position.name}_{level + 1}"
        first, last = ir.Var(self.context.names.fresh(f"{name}_begin")), ir.Var(self.context.names.fresh(f"{name}_end"))
        code += [ir.Declare(first, begin), ir.Declare(last, end)]
        return scope.cutting(relation.access, level, first, last)

    def _first_interval(self, relation: PosRelation, scope: Scope) -> tuple[ir.Expr, ir.Expr | None]:
        """The coordinates to which outer digits confine the first level of a position variable; None where nothing does."""
        provenance, space = self.context.provenance, self.context.space(scope)
        var = provenance.walked(relation)[0]
        if self.blocks_again(relation) and provenance.is_cut(relation.coordinate):
            levels = provenance.stored(relation.access)
            first, last = (space.members_at(relation.coordinate, value, levels) for value in space.range_of(relation.coordinate))
            return first[0], last[0] if len(first) == 1 else least(ir.add(last[0], ir.ONE), space.range_of(var)[1])
        low, high = space.interval(var)
        return low, None if (low, high) == space.range_of(var) and var not in scope.limits else high

    def _cut_level(
        self, access: Access, level: int, place: Place, positions: tuple[ir.Expr, ir.Expr], low: ir.Expr, high: ir.Expr | None
    ) -> tuple[ir.Expr, ir.Expr]:
        """The positions of coordinates in ``[low, high)``; a block that begins behind the last coordinate has none."""
        form, view = access.tensor.format, self.context.view(access).levels[level]
        low = low if high is None else least(low, high)
        kind, parent = form.levels[level], place.position
        if kind.full:
            first = kind.locate(view, parent, low)[0]
            last = positions[1] if high is None else kind.locate(view, parent, high)[0]
            return if_present(place, first), if_present(place, last)
        first = kind.search(view, parent, *positions, low)
        return first, positions[1] if high is None else kind.search(view, parent, *positions, high)

    def positions(self, stmt: Forall, relation: PosRelation, digit: IndexVar, scope: Scope, style: Style, then: Then) -> ir.Stmt:
        """The loop that determines a position: one flat loop, or a nest over the levels that are fused in it."""
        context, access = self.context, relation.access
        before = self.hooks.initialise(scope) if scope.uninitialised is not None else ir.block()
        scope = replace(scope, uninitialised=None)
        space = context.space(scope)
        names = ", ".join(str(v) for v in context.provenance.walked(relation))
        context.depth += 1
        context.remark(f"{stmt.var}: positions of {access.tensor.name} ({names})", Runs(digit, position=relation))
        uppers = self._upper_levels(stmt, relation)
        leading = space.is_leading(relation.position, digit)
        if uppers and leading and style.in_order:
            made = self._position_nest(stmt, relation, digit, scope, style, then)
        else:
            made = self._flat_positions(stmt, relation, digit, scope, style, bool(uppers), then)
        context.depth -= 1
        return ir.block(before, made)

    def _upper_levels(self, stmt: Forall, relation: PosRelation) -> tuple[IndexVar, ...]:
        """The coordinates above the last level that something inside the loop needs."""
        uppers = self.context.provenance.walked(relation)[:-1]
        provenance = self.context.provenance
        others = (n for n in walk(stmt.body) if isinstance(n, Access) and n != relation.access)
        used = {v for n in others for v in (*n.indices, *provenance.stored(n))}
        needed = {x for v in used for x in (v, *provenance.originals(v))}
        tested = any(block.access != relation.access for _, block in self.blocks_again(relation))
        return uppers if tested or any(needed & provenance.ancestors(var) for var in uppers) else ()

    def blocks_again(self, relation: PosRelation) -> list[tuple[CoordRelation, PosRelation]]:
        """The coordinates found again that a position variable counts, with the positions that they were found for."""
        provenance, found = self.context.provenance, []
        for var in sorted(provenance.ancestors(relation.coordinate), key=str):
            again = provenance.made_by(var)
            if isinstance(again, CoordRelation):
                found.append((again, provenance.counted_again(again)))
        return found

    def _flat_positions(
        self, stmt: Forall, relation: PosRelation, digit: IndexVar, scope: Scope, style: Style, searched: bool, then: Then
    ) -> ir.Stmt:
        """One loop over positions; upper coordinates, if anyone needs them, are searched at every position."""
        position = ir.Var(relation.position.name)
        space = self.context.space(scope)
        low, high = space.interval(relation.position)
        counter = ir.Var(digit.name)
        recover: list[ir.Stmt] = []
        guard: ir.Expr = ir.TRUE
        if digit == relation.position:
            header, inner = (counter, low, high), scope.knowing(relation.position, position)
        elif space.is_leading(relation.position, digit):
            begin, _ = space.range_of(digit)
            header = (counter, begin, ir.add(begin, subtract(high, low)))
            recover.append(ir.Declare(position, ir.add(subtract(low, begin), counter), self.origin(digit)))
            inner = scope.knowing(digit, counter).knowing(relation.position, position)
        else:
            header = (counter, *space.range_of(digit))
            recover, guard, inner = self.recover(scope.knowing(digit, counter))
            if inner.coordinates[relation.position] != position:
                recover.append(ir.Declare(position, inner.coordinates[relation.position], self.origin(digit)))
        inner = inner.knowing(digit, counter)
        body = self._at_position(stmt, relation, position, inner, searched, then)
        body = ir.block(*recover, body if guard == ir.TRUE else ir.If(guard, body))
        return style.loop(*header, body)

    def _at_position(self, stmt: Forall, relation: PosRelation, position: ir.Expr, scope: Scope, searched: bool, then: Then) -> ir.Stmt:
        """What runs at one position when nothing above it is tracked."""
        access = relation.access
        form, views = access.tensor.format, self.context.view(access).levels
        levels = self.context.provenance.position_levels(relation)
        covered = self.context.provenance.walked(relation)
        code: list[ir.Stmt] = []
        trail = [(levels[-1] + 1, position)]
        used: list[ir.Expr] = []
        slot: ir.Expr = position
        for k in reversed(levels):
            current, level = trail[-1][1], form.levels[k]
            computed = level.coordinate_array is None
            upper = searched or computed or any(not form.levels[m].compact for m in levels[1:] if m <= k)
            parent = self._parent(relation, k, current, scope, code) if upper and k > levels[0] else None
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
        scope = scope.placing({access: place})
        recovered, guard, scope = self._recover_all(relation, scope)
        settled, scope = settle(self.context, scope, self.operands)
        body = ir.block(settled, self._inside_blocks(relation, scope, lambda s: self._around_all(covered, then(s), s)))
        guard = ir.both(guard, *used)
        return ir.block(*code, *recovered, body if guard == ir.TRUE else ir.If(guard, body))

    def _recover_all(self, relation: PosRelation, scope: Scope) -> tuple[list[ir.Stmt], ir.Expr, Scope]:
        """Every variable that follows from a position: from its coordinates, and from the variable that they replaced."""
        first, guard, scope = self.recover(scope)
        second, also, scope = self.recover(self.named(relation, scope))
        return [*first, *second], ir.both(guard, also), scope

    def named(self, relation: PosRelation, scope: Scope) -> Scope:
        """The variable that positions replaced, where the coordinates it stands for are all known."""
        covered = self.context.provenance.walked(relation)
        if any(var not in scope.coordinates for var in covered):
            return scope
        return self._rebuilt(relation.coordinate, scope)

    def _rebuilt(self, var: IndexVar, scope: Scope) -> Scope:
        """The value of a derived coordinate variable from those it was made of."""
        if var in scope.coordinates:
            return scope
        provenance = self.context.provenance
        match provenance.made_by(var):
            case FuseRelation() as fuse if (halves := provenance.halves(fuse)) is not None:
                scope = self._rebuilt(halves.parent, scope)
                return scope.knowing(var, subtract(scope.coordinates[halves.parent], self.context.space(scope).range_of(halves.parent)[0]))
            case CoordRelation() as again:
                source = provenance.found_again(again)
                positions = provenance.position(again.position)
                if positions is not None:
                    # Whatever stood for the coordinates before they were found again is known as well: a workspace may have it as index.
                    scope = self._at_place(positions, again.position, self._rebuilt(positions.coordinate, scope))
                scope = self._rebuilt(source, scope)
                return scope.knowing(var, scope.coordinates[source])
            case FuseRelation() | Line() as relation:
                for source in relation.parents:
                    scope = self._rebuilt(source, scope)
                values = relation.derive(scope.coordinates, self.context.space(scope))
                return scope.knowing(var, values[relation.children.index(var)])
        raise CompilerBug(var, "an original variable should be known")

    def _at_place(self, relation: PosRelation, position: IndexVar, scope: Scope) -> Scope:
        """The position variable of an operand that stands at that level already, under both of its names.

        Where its digits cut it into blocks it stays unknown: the block is tested against them.
        """
        place, provenance = scope.at(relation.access), self.context.provenance
        if provenance.is_in_digits(relation.position) or place.is_absent or place.depth != provenance.position_levels(relation)[-1] + 1:
            return scope
        return scope.knowing(relation.position, place.position).knowing(position, place.position)

    def _inside_blocks(self, relation: PosRelation, scope: Scope, then: Then) -> ir.Stmt:
        """Positions of coordinates found again: go on where these stand in the block of positions that they were found for.

        What the digits of that block make up is then known too: a workspace may have it as index.
        """
        provenance, tests = self.context.provenance, []
        for again, block in self.blocks_again(relation):
            root = block.position
            passed = scope.at(block.access).passed(provenance.position_levels(block)[-1] + 1)
            if passed is None and block.access == relation.access:
                continue  # nobody asks for these positions
            if passed is None:
                raise CompilerBug(relation, f"{block.access.tensor} should have been found at {relation.coordinate}")
            position, present = passed
            if block.access != relation.access:
                low, high = self.context.space(scope).interval(root)
                tests += [present, ir.compare("greater_equal", position, low), ir.compare("less", position, high)]
            scope = scope.knowing(root, position)
            value = self.context.space(scope).digit_of(root, position, again.position)
            scope = scope if value is None else scope.knowing(again.position, value)
        recovered, guard, scope = self.recover(scope)
        settled, scope = settle(self.context, scope, self.operands)
        body = ir.block(settled, then(scope))
        body = ir.block(*recovered, body if guard == ir.TRUE else ir.If(guard, body))
        inside = ir.both(*tests)
        return body if inside == ir.TRUE else ir.If(inside, body)

    def _around_all(self, covered: tuple[IndexVar, ...], body: ir.Stmt, scope: Scope) -> ir.Stmt:
        """A coordinate of several levels at once: each is appended around those below it, and the rows below end here."""
        for var in reversed(covered):
            body = self.hooks.around(var, body, scope)
            if var != covered[0]:
                body = ir.block(body, self.hooks.after(var, scope))
        return body

    def _parent(
        self, relation: PosRelation, level: int, position: ir.Expr, scope: Scope, code: list[ir.Stmt], which: str = ""
    ) -> ir.Expr:
        """The position one level up: computed, or by search. ``which`` of a block's positions it is belongs to its name."""
        form, view = relation.access.tensor.format, self.context.view(relation.access).levels[level]
        found = form.levels[level].parent(view, position, *scope.cuts[relation.access, level - 1])
        if not any(isinstance(n, ir.Search) for n in walk(found)):
            return found
        parent = ir.Var(self.context.names.fresh(f"p{relation.access.tensor.name}{level}{which}"))
        below = f"the {which[1:]} entry" if which else position.name if isinstance(position, ir.Var) else "an entry"
        code.append(ir.Declare(parent, found, f"{relation.access.tensor}: above {below}"))
        return parent

    def _fixing_level(self, stmt: Forall, relation: PosRelation) -> int | None:
        """The deepest level at which the written place changes: equal coordinates there are one run, whatever lies below.

        A place that no level decides on is the same in the whole block. None if a level above is summed over: the place comes again
        in the middle of other blocks.
        """
        graph, levels = self.context.provenance, self.context.provenance.position_levels(relation)
        indices = {original for var in written(stmt).indices for original in graph.originals(var)}
        deciding = [k for k, var in zip(levels, graph.walked(relation), strict=True) if indices.intersection(graph.originals(var))]
        if deciding != [k for k in levels if k <= max(deciding, default=-1)]:
            return None
        return max(deciding, default=levels[-1])

    def _position_nest(
        self, stmt: Forall, relation: PosRelation, digit: IndexVar, scope: Scope, style: Style, then: Then
    ) -> ir.Stmt:
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
        cuts: dict[int, Range] = {levels[-1]: (low, high)}
        first: ir.Expr = low
        last = subtract(high, ir.ONE)
        for k in reversed(levels[1:]):
            first = self._parent(relation, k, first, scope, code, "_first")
            last = self._parent(relation, k, last, scope, code, "_last")
            cuts[k - 1] = (first, ir.add(last, ir.ONE))
        for k, (a, b) in cuts.items():
            scope = scope.cutting(access, k, a, b)
        base = low if digit != relation.position else None
        chain = [k for k in levels if not form.levels[k].branchless or k == levels[0]]
        nest = self._nest_level(stmt, relation, digit, chain, 0, base, scope, style, then)
        declared = ir.block(ir.Declare(low, begin), ir.Declare(high, end))
        return ir.block(declared, ir.If(ir.compare("less", low, high), ir.block(*code, nest)))

    def _placed(self, relation: PosRelation, chain: range, position: ir.Expr, scope: Scope) -> tuple[list[ir.Stmt], Scope]:
        """The coordinates at a position of some levels that share it, and the operand at that place."""
        access, place = relation.access, scope.at(relation.access)
        form, views = access.tensor.format, self.context.view(access).levels
        variables, first = self.context.provenance.walked(relation), self.context.provenance.position_levels(relation)[0]
        code: list[ir.Stmt] = []
        for k in chain:
            var = variables[k - first]
            value = form.levels[k].coordinate(views[k], place.position if k == chain[0] else position, position)
            code.append(ir.Declare(ir.Var(var.name), value, f"coordinate of {access.tensor}"))
            scope = scope.knowing(var, ir.Var(var.name))
        slot = form.levels[chain[0]].slot(views[chain[0]], place.position, position)
        return code, scope.placing({access: place.below(chain[-1] + 1, position, slot=slot)})

    def _nest_level(
        self,
        stmt: Forall,
        relation: PosRelation,
        digit: IndexVar,
        chain: list[int],
        at: int,
        base: ir.Expr | None,
        scope: Scope,
        style: Style,
        then: Then,
    ) -> ir.Stmt:
        """One loop of the nest: a level and the singletons that share its positions."""
        access, provenance = relation.access, self.context.provenance
        form, views = access.tensor.format, self.context.view(access).levels
        levels = provenance.position_levels(relation)
        covered = provenance.walked(relation)
        k = chain[at]
        end_of_chain = chain[at + 1] if at + 1 < len(chain) else levels[-1] + 1
        place = scope.at(access)
        is_last = end_of_chain == levels[-1] + 1
        position = ir.Var(relation.position.name if is_last else self.context.names.fresh(f"p{access.tensor.name}{k + 1}"))
        begin, end = cut(segment(form.levels[k], views[k], place), scope.cuts[access, k])
        inner = scope
        fixing = self._fixing_level(stmt, relation)
        if fixing is not None and k <= fixing and {root for _, root in scope.atomic} == {relation.position}:
            inner = replace(inner, edge=self.edge_of(access, k, position, scope))
        code, inner = self._placed(relation, range(k, end_of_chain), position, inner)
        if is_last:
            inner = inner.knowing(relation.position, position)
            if base is not None:
                inner = inner.knowing(digit, ir.add(subtract(position, base), self.context.space(scope).range_of(digit)[0]))
            recovered, guard, inner = self._recover_all(relation, inner)
        else:
            recovered, guard, inner = self.recover(inner)
        settled, inner = settle(self.context, inner, self.operands)
        if is_last:
            rest = self._inside_blocks(relation, inner, then)
        else:
            run = self.in_run if fixing is not None and end_of_chain > fixing else self.enter
            rest = run(stmt, inner, lambda s: self._nest_level(stmt, relation, digit, chain, at + 1, base, s, style, then))
        body = ir.block(settled, self._around_all(covered[k - levels[0] : end_of_chain - levels[0]], rest, inner))
        body = ir.block(*code, *recovered, body if guard == ir.TRUE else ir.If(guard, body))
        if form.levels[k].has_holes:
            body = ir.If(form.levels[k].used(views[k], place.position, position), body)
        loop = (style if is_last else SERIAL).loop(position, begin, end, body)
        return loop if at == 0 else ir.block(loop, self.hooks.after(covered[k - levels[0]], scope))

