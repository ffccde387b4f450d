"""Asking ahead: while a loop runs, the part of an operand that a later iteration will read is prefetched.

    for p in A2_pos[i] : A2_pos[i + 1]         for p in A2_pos[i] : A2_pos[i + 1]
      j = A2_crd[p]                              p_ahead = p + 4
      for k                              ==>     if p_ahead < A2_pos[i_size]                   it may stand in the next row
        C[i, k] += A[p] * B[j, k]                  prefetch B[A2_crd[p_ahead], 0 : k_size]     one element of each cache line
                                                 ...

A loop that follows stored entries looks at the entry ahead, any other counts on. What would leave the arrays is not asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sparseloom.loops import nodes as ir
from sparseloom.loops.routines import prefetch_read
from sparseloom.lower.walking import lists_all, position_count
from sparseloom.notation.nodes import Access, Forall, IndexVar, Prefetched
from sparseloom.relations.relation import Positions, Relation
from sparseloom.scope.ranges import ceil_divide, least, subtract
from sparseloom.scope.scope import Scope, Then

LINE = 64  # bytes that come together
MOST_LINES = 8  # a longer row is met by the processor's own prefetching


def asking_ahead(stmt: Forall, outer: Scope, then: Then) -> Then:
    """The body of a loop, which first asks for what its tag says."""
    asked = stmt.tag.prefetches
    if not asked:
        return then
    return lambda inner: ir.block(*(_ask(one, stmt.var, outer, inner) for one in asked), then(inner))


def _ask(asked: Prefetched, var: IndexVar, outer: Scope, inner: Scope) -> ir.Stmt:
    """The code that asks for one operand."""
    if asked.access not in inner.operands or inner.at(asked.access).is_absent:
        return ir.block()
    inner.remark(f"{asked.access.tensor.name} is prefetched {asked.distance} ahead")
    entry = _entry_ahead(asked, var, outer, inner)
    if entry is None:
        return _ask_counted(asked, var, outer, inner)
    position = ir.Var(inner.fresh(f"{_stem(entry.access, entry.level)}_ahead"))
    found = replace(entry, position=position)
    inside = found.exists(inner)
    if inside is None:
        return ir.block()
    if entry.access == asked.access:
        there: ir.Stmt = _entry(found, inner)
    else:
        told = inner.provenance.stored(entry.access)[entry.level]
        coordinate = ir.Var(inner.fresh(f"{told.name}_ahead"))
        there = _located(asked.access, outer, _knowing(told, coordinate, outer, inner), told)
        there = ir.block(ir.Declare(coordinate, found.coordinate(inner)), there)
    return ir.block(ir.Declare(position, entry.position), ir.when(inside, there))


def _ask_counted(asked: Prefetched, var: IndexVar, outer: Scope, inner: Scope) -> ir.Stmt:
    """A loop that counts: the coordinate ahead follows from its own variable."""
    root = inner.provenance.root(var)
    if root in inner.coordinates and root in inner.provenance.stored(asked.access) and outer.ranges.is_leading(root, var):
        var = root
    if var not in inner.coordinates:
        return ir.block()
    value = ir.add(inner.coordinates[var], ir.index(asked.distance))
    return _located(asked.access, outer, _knowing(var, value, outer, inner), None)


@dataclass(frozen=True)
class _Entry:
    """A position at one level of an operand; ``parent`` is the position above it, where that is known."""

    access: Access
    level: int
    position: ir.Expr
    parent: ir.Expr | None
    present: ir.Expr = ir.TRUE

    def exists(self, scope: Scope) -> ir.Expr | None:
        """When there is such a position; None if that cannot be told. Where coordinates are stored, any parent will do."""
        level, view = self.access.tensor.format.levels[self.level], scope.view(self.access).levels[self.level]
        if lists_all(level):
            return ir.compare("less", self.position, position_count(self.access, self.level, scope))
        if self.parent is None:
            return None
        end = level.bounds(view, self.parent)[1]
        return ir.both(self.present, ir.compare("less", self.position, end), level.used(view, self.parent, self.position))

    def coordinate(self, scope: Scope) -> ir.Expr:
        """Its coordinate."""
        level, view = self.access.tensor.format.levels[self.level], scope.view(self.access).levels[self.level]
        return level.coordinate(view, ir.ZERO if self.parent is None else self.parent, self.position)


def _entry_ahead(asked: Prefetched, var: IndexVar, outer: Scope, inner: Scope) -> _Entry | None:
    """The entry ahead of the operand whose entries the loop follows: the one that is asked for, or one that tells its coordinate."""
    graph, distance = inner.provenance, ir.index(asked.distance)
    root = graph.root(var)
    relation = graph.made_by(root)
    if relation is not None and relation.positions is not None:
        return _position_ahead(relation.positions, asked, var, outer, inner)
    wanted = next(v for v in graph.stored(asked.access) if v not in graph.known(outer.coordinates))
    for access in (asked.access, *inner.operands):
        level = _followed(access, outer, inner)
        if level is None:
            continue
        position, present = inner.at(access).passed(level + 1) or (ir.ZERO, ir.FALSE)
        tells = wanted in graph.ancestors(graph.stored(access)[level]) and present == ir.TRUE
        if access == asked.access or tells:
            return _Entry(access, level, ir.add(position, distance), *_above(access, level, inner))
    return None


def _position_ahead(relation: Positions, asked: Prefetched, var: IndexVar, outer: Scope, inner: Scope) -> _Entry | None:
    """A loop over positions, or over blocks of them: the position ahead, or the first of the block."""
    position, distance = relation.position, ir.index(asked.distance)
    level = inner.provenance.position_levels(relation)[-1]
    if position in inner.coordinates and outer.ranges.is_leading(position, var):
        return _Entry(relation.access, level, ir.add(inner.coordinates[position], distance), *_above(relation.access, level, inner))
    if var not in inner.coordinates:
        return None
    ahead = _knowing(var, ir.add(inner.coordinates[var], distance), outer, inner)
    return _Entry(relation.access, level, ahead.ranges.interval(position)[0], None)


def _followed(access: Access, outer: Scope, inner: Scope) -> int | None:
    """The last sparse level of an operand at which this loop found its position; None if it found none."""
    levels = access.tensor.format.levels
    found = [k for k in range(outer.at(access).depth, inner.at(access).depth) if not levels[k].full and inner.at(access).passed(k + 1)]
    return max(found, default=None)


def _above(access: Access, level: int, scope: Scope) -> tuple[ir.Expr | None, ir.Expr]:
    """The position above a level, and whether the operand is there."""
    return (ir.ZERO, ir.TRUE) if level == 0 else scope.at(access).passed(level) or (None, ir.TRUE)


def _knowing(var: IndexVar, value: ir.Expr, outer: Scope, inner: Scope) -> Scope:
    """What is known of the iteration ahead: what the loops outside know, the value of one variable, and what follows from it."""
    graph = inner.provenance
    made = ((limited, graph.made_by(limited)) for limited in graph.ancestors(var))
    mine = {limited for limited, one in made if one is None or (one.positions is None and one.found_again is None)}
    limits = {limited: limit for limited, limit in inner.limits.items() if limited in outer.limits or limited not in mine}
    known = {one: inner.coordinates[one] for one in outer.coordinates}
    scope, before = replace(inner, coordinates={**known, var: value}, limits=limits), None
    while scope is not before:
        before = scope
        for relation in graph.relations:
            for parent, found in _recovered(relation, scope):
                scope = scope.knowing(parent, found)
    return scope


def _recovered(relation: Relation, scope: Scope) -> Iterator[tuple[IndexVar, ir.Expr]]:
    """The parents that follow from the children of a relation."""
    known, ranges, graph = scope.coordinates, scope.ranges, scope.provenance
    data = relation.positions is not None or relation.found_again is not None or any(map(graph.position, relation.nest))
    if data or any(child not in known for child in relation.children):
        return
    halves = graph.halves(relation)
    if halves is None and any(parent not in known for parent in relation.parents):
        yield from zip(relation.parents, relation.recover(known, ranges), strict=True)
    elif halves is not None and halves.parents[0] not in known:
        yield halves.parents[0], ir.add(ranges.range_of(halves.parents[0])[0], known[relation.children[0]])


def _located(access: Access, outer: Scope, ahead: Scope, told: IndexVar | None) -> ir.Stmt:
    """Ask for what an operand has at the coordinates ahead. Those that are ``told`` by an entry are in range, others are compared."""
    place, levels, views = outer.at(access), access.tensor.format.levels, outer.view(access).levels
    if place.end is not None:
        return ir.block()
    position, guards = place.position, [place.present]
    for k in range(place.depth, len(levels)):
        var = ahead.provenance.stored(access)[k]
        if var not in ahead.coordinates:
            return _guarded(guards, _open(access, k, position, ahead))
        if not levels[k].can_locate:
            return ir.block()
        coordinate = ahead.coordinates[var]
        if var != told and var not in outer.coordinates:
            guards.append(ir.compare("less", coordinate, views[k].size))
            if _falls(var, ahead):
                guards.append(ir.compare("less_equal", ir.ZERO, coordinate))
        position, found = levels[k].locate(views[k], position, coordinate)
        guards.append(found)
    return _guarded(guards, prefetch_read(outer.view(access).values, position))


def _falls(var: IndexVar, scope: Scope) -> bool:
    """Whether a loop runs through a variable in another order than its own, so that what is ahead may lie before the first value."""
    graph = scope.provenance
    return any(graph.root(one) == graph.root(var) and not graph.keeps_order(one) for one in scope.coordinates)


def _guarded(guards: list[ir.Expr], body: ir.Stmt) -> ir.Stmt:
    return ir.when(ir.both(*guards), body) if body != ir.block() else body


def _open(access: Access, level: int, position: ir.Expr, ahead: Scope) -> ir.Stmt:
    """Ask for what lies below a position: a dense row, or where a sparse one begins."""
    levels, view = access.tensor.format.levels, ahead.view(access)
    if not (levels[level].full and levels[level].can_locate):
        return _begin(access, level, position, ahead)
    low, high = ahead.ranges.interval(ahead.provenance.stored(access)[level])
    size = view.levels[level].size
    # A promise of the user may turn out to be wrong, and a block ahead may lie behind the end.
    guard = ir.compare("less_equal", high, size) if isinstance(high, ir.Literal) else ir.compare("less", low, size)
    first, count = levels[level].locate(view.levels[level], position, low)[0], subtract(high, low)
    for k in range(level + 1, len(levels)):
        if not (levels[k].full and levels[k].can_locate):
            return _guarded([guard], _begin(access, k, first, ahead))
        first, count = ir.multiply(first, view.levels[k].size), ir.multiply(count, view.levels[k].size)
    return _guarded([guard] if low != ir.ZERO or isinstance(high, ir.Literal) else [], _lines(view.values, first, count, ahead))


def _begin(access: Access, level: int, position: ir.Expr, scope: Scope) -> ir.Stmt:
    """Ask for the first entry below a position."""
    kind, view = access.tensor.format.levels[level], scope.view(access).levels[level]
    stem = _stem(access, level)
    begin, end = (ir.Var(scope.fresh(f"{stem}_ahead{which}")) for which in ("", "_end"))
    declared = [ir.Declare(var, limit) for var, limit in zip((begin, end), kind.bounds(view, position), strict=True)]
    there = _entry(_Entry(access, level, begin, position), scope, below=False)
    return ir.block(*declared, ir.when(ir.compare("less", begin, end), there))


def _entry(entry: _Entry, scope: Scope, below: bool = True) -> ir.Stmt:
    """Ask for one entry of an operand: its coordinate, and its value or what begins below it."""
    levels, view = entry.access.tensor.format.levels, scope.view(entry.access)
    kind, parts = levels[entry.level], list[ir.Stmt]()
    if kind.coordinate_array is not None:
        parts.append(prefetch_read(view.levels[entry.level].arrays[kind.coordinate_array], entry.position))
    if entry.level + 1 == len(levels):
        above = ir.ZERO if entry.parent is None else entry.parent
        parts.append(prefetch_read(view.values, kind.slot(view.levels[entry.level], above, entry.position)))
    elif below:
        parts.append(_open(entry.access, entry.level + 1, entry.position, replace(scope, coordinates={})))
    return ir.block(*parts)


def _lines(values: ir.Array, first: ir.Expr, count: ir.Expr, scope: Scope) -> ir.Stmt:
    """Ask for the cache lines of elements that lie together: all of them, or the first few."""
    step = max(1, LINE // values.dtype.itemsize)
    lines = least(ceil_divide(count, ir.index(step)), ir.index(MOST_LINES))
    if isinstance(count, ir.Literal):
        lines = ir.index(min(-(-int(count.value.real) // step), MOST_LINES))
        return ir.block(*(prefetch_read(values, ir.add(first, ir.index(step * k))) for k in range(int(lines.value.real))))
    line = ir.Var(scope.fresh("line"))
    return ir.For(line, ir.ZERO, lines, prefetch_read(values, ir.add(first, ir.multiply(line, ir.index(step)))))


def _stem(access: Access, level: int) -> str:
    return f"p{access.tensor.name}{level + 1}"
