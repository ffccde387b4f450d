"""Where the positions of a position variable begin and end, and what stands above one of them.

pos(f, p, A(i,j))       p_1_begin, p_1_end     the rows that the loops outside leave
                        p_2_begin, p_2_end     the entries of these, cut where a block begins or ends within a row
"""

from __future__ import annotations

from dataclasses import replace

from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import walk
from sparseloom.loops import nodes as ir
from sparseloom.lower.again import blocks_again
from sparseloom.lower.lexicographic import first_position
from sparseloom.lower.walking import cut, if_present, segment
from sparseloom.notation.nodes import Access
from sparseloom.relations.relation import Positions
from sparseloom.scope.ranges import Range, least, most, subtract
from sparseloom.scope.scope import Place, Scope, Then


def position_range(relation: Positions, scope: Scope) -> tuple[ir.Stmt, Scope]:
    """Where the positions of a position variable begin and end, below what is already bound of its operand."""
    access, graph = relation.access, scope.provenance
    levels = graph.position_levels(relation)
    place = scope.at(access)
    if place.depth != levels[0]:
        raise CompilerBug(relation, f"level {levels[0]} of {access.tensor} must be next when its positions are walked")
    form, views = access.tensor.format, scope.view(access).levels
    code: list[ir.Stmt] = []
    positions = cut(segment(form.levels[levels[0]], views[levels[0]], place), scope.cuts.get((access, levels[0])))
    low, high = _first_interval(relation, scope)
    if low != ir.ZERO or high is not None:
        positions = _cut_level(access, levels[0], place, positions, low, high, scope)
    scope = _declare_range(relation, levels[0], _cut_to_blocks(relation, levels[0], positions, scope), code, scope)
    for k in levels[1:]:
        begin, end = (form.levels[k].begin(views[k], limit) for limit in scope.cuts[access, k - 1])
        scope = _declare_range(relation, k, _cut_to_blocks(relation, k, (begin, end), scope), code, scope)
    if graph.cuts_rows(relation.coordinate, graph.stored(access)):
        scope = _cut_rows(relation, code, scope)
    return ir.block(*code), scope.limiting(relation.position, *scope.cuts[access, levels[-1]])


def among_rows(relation: Positions, then: Then) -> Then:
    """What a block of a GPU runs: its threads look for what stands above their positions only among what stands above the block's."""

    def narrowed(scope: Scope) -> ir.Stmt:
        levels, access = scope.provenance.position_levels(relation), relation.access
        begin, end = scope.ranges.interval(relation.position)
        low, high = (ir.Var(scope.fresh(f"{relation.position.name}_block_{which}")) for which in ("low", "high"))
        code: list[ir.Stmt] = []
        first: ir.Expr = low
        last: ir.Expr = subtract(high, ir.ONE)
        for k in reversed(levels[1:]):
            first, last = (parent_of(relation, k, at, scope, code, which) for at, which in ((first, "_first"), (last, "_last")))
            scope = scope.cutting(access, k - 1, first, ir.add(last, ir.ONE))
        body = then(replace(scope, found={**scope.found, relation.position: (begin, end)}))
        declared = {low, high} | {stmt.var for stmt in code if isinstance(stmt, ir.Declare)}
        if not any(n in declared for n in walk(body)):
            return body  # nobody looks
        return ir.block(ir.Declare(low, begin), ir.Declare(high, end), ir.If(ir.compare("less", low, high), ir.block(*code, body)))

    return narrowed


def parent_of(relation: Positions, level: int, position: ir.Expr, scope: Scope, code: list[ir.Stmt], which: str = "") -> ir.Expr:
    """The position one level up: computed, or by search. ``which`` of a block's positions it is belongs to its name."""
    access = relation.access
    found = access.tensor.format.levels[level].parent(scope.view(access).levels[level], position, *scope.cuts[access, level - 1])
    if not any(isinstance(n, ir.Search) for n in walk(found)):
        return found
    parent = ir.Var(scope.fresh(f"p{access.tensor.name}{level}{which}"))
    below = f"the {which[1:]} entry" if which else position.name if isinstance(position, ir.Var) else "an entry"
    code.append(ir.Declare(parent, found, f"{access.tensor}: above {below}"))
    return parent


def _cut_to_blocks(relation: Positions, level: int, positions: Range, scope: Scope) -> Range:
    """Positions of coordinates that were found again for a block of positions of the same operand: no others than the block's."""
    graph, ranges = scope.provenance, scope.ranges
    for _, block in blocks_again(relation, graph):
        if block.access == relation.access and graph.position_levels(block)[-1] == level:
            first, last = ranges.interval(block.position)
            begin, end = cut(positions, (least(first, last), last))
            positions = begin, most(begin, end)
    return positions


def _cut_rows(relation: Positions, code: list[ir.Stmt], scope: Scope) -> Scope:
    """Confine the positions of several levels to a block that may begin and end within a row."""
    access, graph, ranges = relation.access, scope.provenance, scope.ranges
    levels, place, ends = graph.position_levels(relation), scope.at(access), []
    for value in ranges.range_of(relation.coordinate):
        members = ranges.members_at(relation.coordinate, value, graph.stored(access))
        found, position = first_position(access, levels, scope.cuts[access, levels[0]], place.position, members, scope)
        code += found
        ends.append(position)
    begin, end = cut((ends[0], ends[1]), scope.cuts[access, levels[-1]] if blocks_again(relation, graph) else None)
    return _declare_range(relation, levels[-1], (begin, most(begin, end)), code, scope)


def _declare_range(relation: Positions, level: int, positions: Range, code: list[ir.Stmt], scope: Scope) -> Scope:
    name = f"{relation.position.name}_{level + 1}"
    first, last = ir.Var(scope.fresh(f"{name}_begin")), ir.Var(scope.fresh(f"{name}_end"))
    code += [ir.Declare(first, positions[0]), ir.Declare(last, positions[1])]
    return scope.cutting(relation.access, level, first, last)


def _first_interval(relation: Positions, scope: Scope) -> tuple[ir.Expr, ir.Expr | None]:
    """The coordinates to which outer digits confine the first level of a position variable; None where nothing does."""
    graph, ranges = scope.provenance, scope.ranges
    var = graph.walked(relation)[0]
    if blocks_again(relation, graph) and graph.is_cut(relation.coordinate):
        levels = graph.stored(relation.access)
        first, last = (ranges.members_at(relation.coordinate, value, levels) for value in ranges.range_of(relation.coordinate))
        return first[0], last[0] if len(first) == 1 else least(ir.add(last[0], ir.ONE), ranges.range_of(var)[1])
    low, high = ranges.interval(var)
    return low, None if (low, high) == ranges.range_of(var) and var not in scope.limits else high


def _cut_level(access: Access, level: int, place: Place, positions: Range, low: ir.Expr, high: ir.Expr | None, scope: Scope) -> Range:
    """The positions of coordinates in ``[low, high)``; a block that begins behind the last coordinate has none."""
    kind, view, parent = access.tensor.format.levels[level], scope.view(access).levels[level], place.position
    low = low if high is None else least(low, high)
    if kind.full:
        first = kind.locate(view, parent, low)[0]
        last = positions[1] if high is None else kind.locate(view, parent, high)[0]
        return if_present(place, first), if_present(place, last)
    first = kind.search(view, parent, *positions, low)
    return first, positions[1] if high is None else kind.search(view, parent, *positions, high)
