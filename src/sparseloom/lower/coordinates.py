"""Loops over coordinates: counted, or walking and merging the operands that are stored along the variable.

forall i1                          for i1 in 0..16           i = i0 * 16 + i1, guarded at the end of the range
  y(i) += A(i,j) * x(j)            or, where A is sparse along i: from the first position of the block to its last
"""

from __future__ import annotations

from dataclasses import replace

from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import walk
from sparseloom.iteration.formula import ALWAYS, NEVER, All, Flag, Formula, Stored, all_of, stored, substitute
from sparseloom.iteration.region import region
from sparseloom.loops import nodes as ir
from sparseloom.lower.coiterate import Loop, iterate
from sparseloom.lower.recovery import recover
from sparseloom.lower.walking import between, make_walker, next_variable, settle
from sparseloom.notation.nodes import Access, Forall, IndexVar, Stmt
from sparseloom.scope.ranges import Range, ceil_divide, least, most, subtract
from sparseloom.scope.scope import Asked, Scope, Then
from sparseloom.scope.style import SERIAL


def over_coordinates(asked: Asked, var: IndexVar, scope: Scope, tree: IndexVar | None = None) -> ir.Stmt:
    """A loop over coordinates of ``var``, of which the digit that is asked for is the last part to be bound.

    ``tree`` is the variable whose digits are meant, where that is not ``var`` itself but stands for it (``coord``).
    """
    tree = var if tree is None else tree
    walking = _walking(asked.stmt, var, scope)
    formula = _formula(asked.stmt, var, walking, scope)
    walking, formula = _without_located(walking, formula, scope)
    if formula == NEVER and not (scope.sink.needs_presence and var in scope.sink.variables):
        return scope.sink.initialise(scope)
    before, scope = _cover(asked, var, formula, scope)
    if asked.style.is_parallel and not _is_counted(formula, scope):
        return ir.block(before, _in_blocks(asked, var, scope, tree))
    ranges = scope.ranges
    low, high = ranges.interval(tree)
    window = scope.window
    if window is not None:
        low, high = most(low, window[0]), least(high, window[1])
    scope = replace(scope, window=None, depth=scope.depth + 1)
    narrowed = (low, high) != ranges.whole_range(var)
    walkers, cuts = [], []
    for access in walking:
        walker = make_walker(access, scope)
        if narrowed and walker.level.ordered:
            code, walker = between(scope, walker, low, high)
            cuts.append(code)
        walkers.append(walker)
    loop = _loop(asked, var, tree, scope, (low, high), bool(walkers))
    loop = replace(loop, walkers=tuple(walkers), body=lambda s: _bind(var, asked.digit, s, asked.then))
    if scope.mark is not None and scope.mark[0] == asked.digit:
        loop = replace(loop, first=ir.Assign(scope.mark[1], ir.TRUE))
    inside = ir.both(ir.compare("greater_equal", loop.coordinate, low), ir.compare("less", loop.coordinate, high))
    if narrowed and any(not w.level.ordered for w in walkers):
        loop = replace(loop, filter=ir.both(loop.filter, inside))
    if window is not None and loop.counted is not None:
        loop = replace(loop, guard=ir.both(loop.guard, inside))  # its digit goes from block to block, through all parts
    return ir.block(before, *cuts, iterate(loop, formula))


def _in_blocks(asked: Asked, var: IndexVar, scope: Scope, tree: IndexVar) -> ir.Stmt:
    """A merge in parallel: the range is cut into blocks, and each of them is merged from its own beginning."""
    low, high = scope.ranges.interval(tree)
    name = asked.digit.name
    block = ir.Var(scope.fresh(f"{name}_part"))
    size, first = ir.Var(scope.fresh(f"{name}_part_size")), ir.Var(scope.fresh(f"{name}_first"))
    begin = ir.add(first, ir.multiply(block, size))
    window = (begin, ir.add(begin, size))
    inner = over_coordinates(replace(asked, style=SERIAL), var, replace(scope, window=window), tree)
    parts = ir.index(scope.context.target.parts)
    declared = [ir.Declare(first, low), ir.Declare(size, ceil_divide(most(ir.ZERO, subtract(high, low)), parts))]
    return ir.block(*declared, asked.style.loop(block, ir.ZERO, parts, inner))


def _walking(stmt: Forall, var: IndexVar, scope: Scope) -> list[Access]:
    """The operands whose next level is stored sparsely along ``var``."""
    inside = {n for n in walk(stmt) if isinstance(n, Access)} | scope.drivers
    return [a for a in scope.operands if a in inside and _walks(a, var, scope)]


def _walks(access: Access, var: IndexVar, scope: Scope) -> bool:
    place = scope.at(access)
    if place.is_absent or next_variable(scope, access, place) != var:
        return False
    return not access.tensor.format.levels[place.depth].full


def _formula(stmt: Forall, var: IndexVar, walking: list[Access], scope: Scope) -> Formula:
    """At which coordinates of ``var`` the statement has something to do.

    What demands every coordinate of a variable demands every digit of it.
    """
    if any(scope.sink.demands_all(whole) for whole in scope.provenance.ancestors(var)):
        return ALWAYS
    driven = [_known(access, walking, scope) for access in scope.operands if access in scope.drivers]
    return all_of([region(stmt, lambda access: _known(access, walking, scope)), *driven])


def _without_located(walking: list[Access], formula: Formula, scope: Scope) -> tuple[list[Access], Formula]:
    """Who walks, and where there is something to do, as they tell: an operand that is found at once wherever others are is not walked."""
    if not isinstance(formula, All):
        return walking, formula
    found = [Stored(a) for a in walking if a not in scope.drivers and a.tensor.format.levels[scope.at(a).depth].can_locate]
    located = [part for part in found if part in formula.parts]
    rest = substitute(formula, lambda leaf: ALWAYS if leaf in located else None)
    if not located or not stored(rest):
        return walking, formula
    return [a for a in walking if Stored(a) not in located], rest


def _known(access: Access, walking: list[Access], scope: Scope) -> Formula:
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


def _is_counted(formula: Formula, scope: Scope) -> bool:
    """Whether a loop has iterations that do not depend on each other: it counts coordinates or positions."""
    match formula:
        case Stored(access):
            return access.tensor.format.levels[scope.at(access).depth].unique
    return not stored(formula)


def _loop(asked: Asked, var: IndexVar, tree: IndexVar, scope: Scope, part: Range, merges: bool) -> Loop:
    """The counted form and the filters of a loop over a part of the variable's range.

    Operands that it ``merges`` are walked in order, so it counts coordinates where the digit would not come in that order.
    """
    ranges, digit = scope.ranges, asked.digit
    coordinate = ir.Var(var.name)
    filters = ir.both(*ranges.filters(tree, coordinate))
    found: list[tuple[IndexVar, ir.Expr]] = [(tree, coordinate)] if tree != var else []
    value = None if digit in (var, tree) else ranges.digit_of(tree, coordinate, digit)
    if value is not None:
        found.append((digit, value))
    base = Loop(var, coordinate, coordinate, *part, (), scope, lambda s: ir.block(), style=asked.style)
    base = replace(base, filter=filters, found=tuple(found))
    if digit in (var, tree):
        return base
    if merges and not scope.provenance.keeps_order(digit):
        return replace(base, guard=filters)
    counter = ir.Var(digit.name)
    if ranges.is_leading(tree, digit):
        # The digit counts from where its block begins, also where this loop runs through a part of the block.
        start, (first, _) = ranges.interval(tree)[0], ranges.range_of(digit)
        recovered = (ir.Declare(coordinate, ir.add(subtract(start, first), counter), scope.origin(digit)),)
        begin, end = (limit if start == first else ir.add(first, subtract(limit, start)) for limit in part)
        return replace(base, counter=counter, begin=begin, end=end, recover=recovered)
    return _counting(replace(base, counter=counter), asked, tree)


def _counting(loop: Loop, asked: Asked, tree: IndexVar) -> Loop:
    """A loop over a digit that leaves no interval: the coordinate is recovered from it and those outside."""
    digit, scope, coordinate = asked.digit, loop.scope, loop.coordinate
    begin, end = scope.ranges.range_of(digit)
    recovered, guard, after = recover(scope.knowing(digit, loop.counter))
    if tree not in after.coordinates:
        raise CompilerBug(asked.stmt, f"{digit} should determine {tree}")
    if after.coordinates[tree] != coordinate:
        recovered.append(ir.Declare(coordinate, after.coordinates[tree], scope.origin(digit)))
    return replace(loop, begin=begin, end=end, recover=tuple(recovered), guard=guard, counted=after)


def _bind(var: IndexVar, digit: IndexVar, scope: Scope, then: Then) -> ir.Stmt:
    """What runs at one coordinate: recover, locate, then the statement inside."""
    before, sink = set(scope.coordinates), scope.sink
    recovered, guard, scope = recover(scope)
    settled, scope = settle(scope)
    inner = then(scope)
    for level in reversed(sink.variables):
        if level not in (var, digit) and level in scope.coordinates and level not in before:
            inner = sink.around(level, inner, scope)
    if digit != var:
        inner = sink.around(digit, inner, scope)
    return ir.block(*recovered, ir.when(guard, ir.block(settled, sink.around(var, inner, scope))))


def _cover(asked: Asked, var: IndexVar, formula: Formula, scope: Scope) -> tuple[ir.Stmt, Scope]:
    """Initialise the result here, or leave it to inner loops that will cover it."""
    depth = scope.uninitialised
    if depth is None:
        return ir.block(), scope
    root = scope.provenance.root(asked.digit)
    variables = scope.sink.variables
    mine = len(set(variables)) == len(variables) and depth < len(variables) and variables[depth] == root
    if mine and var != root and _digits_follow(asked.stmt, root, scope) and _visits_all(asked.stmt, root, scope):
        return ir.block(), scope
    if mine and var == root and formula == ALWAYS:
        return ir.block(), replace(scope, uninitialised=depth + 1)
    return scope.sink.initialise(scope), replace(scope, uninitialised=None)


def _visits_all(stmt: Forall, var: IndexVar, scope: Scope) -> bool:
    """Whether the loops inside will visit every coordinate of ``var``, whatever turns out to be absent on the way."""
    lost = [a for a in scope.operands if scope.view(a).mask is not None or _may_be_lost(a, var, scope)]
    known = region(stmt, lambda access: NEVER if access in lost else _known(access, [], scope))
    return known == ALWAYS and not scope.drivers


def _may_be_lost(access: Access, var: IndexVar, scope: Scope) -> bool:
    """Whether an operand may turn out to be absent where digits of ``var`` are bound: its blocks may be stored sparsely."""
    place, graph = scope.at(access), scope.provenance
    for k, part in enumerate(graph.stored(access)[place.depth :], place.depth):
        if part not in scope.coordinates and graph.root(part) != var:
            return False
        if part == var or not access.tensor.format.levels[k].full:
            return not access.tensor.format.levels[k].full
    return False


def _digits_follow(stmt: Stmt, root: IndexVar, scope: Scope) -> bool:
    """Whether the loops directly inside bind the remaining digits of a variable."""
    known = set(scope.coordinates)
    while isinstance(stmt, Forall) and scope.provenance.root(stmt.var) == root:
        known.add(stmt.var)
        if root in scope.provenance.known(known):
            return True
        stmt = stmt.body
    return False
