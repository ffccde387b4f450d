"""Coordinates that are found again for a block of positions (``coord``), and positions that are counted for such coordinates.

pos(j, p, A) split(p, p0, p1, 64) coord(p1, jc)        for jc: the coordinates of A's positions in the block,
                                                       merged with other operands; A stays inside the block
"""

from __future__ import annotations

from dataclasses import replace

from sparseloom.core.errors import CompilerBug
from sparseloom.iteration.provenance import Provenance
from sparseloom.loops import nodes as ir
from sparseloom.lower.recovery import go_on, recover
from sparseloom.lower.walking import cut
from sparseloom.notation.nodes import Access, IndexVar
from sparseloom.relations.relation import FoundAgain, Positions
from sparseloom.scope.ranges import Range, least, subtract
from sparseloom.scope.scope import Scope, Then

Block = tuple[FoundAgain, Positions]  # coordinates found again, and the positions that they were found for


def blocks_again(relation: Positions, graph: Provenance) -> list[Block]:
    """The coordinates found again that a position variable counts, with the positions that they were found for."""
    made = (graph.made_by(var) for var in sorted(graph.ancestors(relation.coordinate), key=str))
    found = (one.found_again for one in made if one is not None)
    return [(again, graph.counted_again(again)) for again in found if again is not None]


def blocks_of(relation: FoundAgain, graph: Provenance) -> list[Block]:
    """The block of positions that coordinates are found again for; those that it was itself counted in follow."""
    positions = graph.counted_again(relation)
    return [(relation, positions), *blocks_again(positions, graph)]


def recover_all(relation: Positions, scope: Scope) -> tuple[list[ir.Stmt], ir.Expr, Scope]:
    """Every variable that follows from a position: from its coordinates, and from the variable that they replaced."""
    first, guard, scope = recover(scope)
    second, also, scope = recover(named(relation, scope))
    return [*first, *second], ir.both(guard, also), scope


def named(relation: Positions, scope: Scope) -> Scope:
    """The variable that positions replaced, where the coordinates it stands for are all known."""
    if any(var not in scope.coordinates for var in scope.provenance.walked(relation)):
        return scope
    return _rebuilt(relation.coordinate, scope)


def _rebuilt(var: IndexVar, scope: Scope) -> Scope:
    """The value of a derived coordinate variable from those it was made of."""
    if var in scope.coordinates:
        return scope
    graph = scope.provenance
    relation = graph.made_by(var)
    if relation is None or relation.positions is not None:
        raise CompilerBug(var, "an original variable should be known")
    again, halves = relation.found_again, graph.halves(relation)
    if again is not None:
        source = graph.found_again(again)
        positions = graph.position(again.position)
        if positions is not None:
            # Whatever stood for the coordinates before they were found again is known as well: a workspace may have it as index.
            scope = _at_place(positions, again.position, _rebuilt(positions.coordinate, scope))
        scope = _rebuilt(source, scope)
        return scope.knowing(var, scope.coordinates[source])
    for source in relation.parents if halves is None else halves.parents:
        scope = _rebuilt(source, scope)
    if halves is not None:
        (parent,) = halves.parents
        return scope.knowing(var, subtract(scope.coordinates[parent], scope.ranges.range_of(parent)[0]))
    values = relation.derive(scope.coordinates, scope.ranges)
    return scope.knowing(var, values[relation.children.index(var)])


def _at_place(relation: Positions, position: IndexVar, scope: Scope) -> Scope:
    """The position variable of an operand that stands at that level already, under both of its names.

    Where its digits cut it into blocks it stays unknown: the block is tested against them.
    """
    place, graph = scope.at(relation.access), scope.provenance
    if graph.is_in_digits(relation.position) or place.is_absent or place.depth != graph.position_levels(relation)[-1] + 1:
        return scope
    return scope.knowing(relation.position, place.position).knowing(position, place.position)


def inside_blocks(relation: Positions, scope: Scope, then: Then) -> ir.Stmt:
    """Positions of coordinates found again: go on where these stand in the block of positions that they were found for.

    What the digits of that block make up is then known too: a workspace may have it as index.
    """
    graph, tests = scope.provenance, []
    for again, block in blocks_again(relation, graph):
        passed = scope.at(block.access).passed(graph.position_levels(block)[-1] + 1)
        if passed is None and block.access == relation.access:
            continue  # nobody asks for these positions
        if passed is None:
            raise CompilerBug(relation, f"{block.access.tensor} should have been found at {relation.coordinate}")
        position, present = passed
        if block.access != relation.access:
            tests += [present, *_between(position, scope.ranges.interval(block.position))]
        scope = _standing(again, block, position, scope.knowing(block.position, position))
    return ir.when(ir.both(*tests), go_on(scope, then))


def _between(position: ir.Expr, block: Range) -> list[ir.Expr]:
    return [ir.compare("greater_equal", position, block[0]), ir.compare("less", position, block[1])]


def _standing(again: FoundAgain, block: Positions, position: ir.Expr, scope: Scope) -> Scope:
    """This scope with the digit of a position that coordinates were found again for."""
    value = scope.ranges.digit_of(block.position, position, again.position)
    return scope if value is None else scope.knowing(again.position, value)


def confined(blocks: list[Block], scope: Scope) -> Scope:
    """The scope in which operands drive the loops, each inside a block of its positions."""
    ranges, inside = scope.ranges, replace(scope, drivers=scope.drivers | {block.access for _, block in blocks})
    limits: dict[tuple[Access, int], Range] = {}
    for _, block in blocks:
        begin, end = ranges.interval(block.position)
        where = block.access, scope.provenance.position_levels(block)[-1]
        limits[where] = cut((least(begin, end), end), limits.get(where))
    for where, positions in limits.items():
        inside = inside.cutting(*where, *positions)
    return inside


def at_found_again(blocks: list[Block], outside: Scope, then: Then) -> Then:
    """What runs at a coordinate that was found again: the positions of its blocks are known, and so is what these replaced."""

    def at_coordinate(scope: Scope) -> ir.Stmt:
        scope, inside = replace(scope, drivers=outside.drivers), list[ir.Expr]()
        for again, block in blocks:
            position = scope.at(block.access).position_at(scope.provenance.position_levels(block)[-1] + 1)
            inside += _inside_block(block, position, outside)
            scope = _standing(again, block, position, scope).knowing(block.position, position)
        return go_on(named(blocks[0][1], scope), then, ir.both(*inside))

    return at_coordinate


def _inside_block(block: Positions, position: ir.Expr, scope: Scope) -> list[ir.Expr]:
    """What keeps a position inside its block where no walk does: those of a full level are located, not walked."""
    level = block.access.tensor.format.levels[scope.provenance.position_levels(block)[-1]]
    return _between(position, scope.ranges.interval(block.position)) if level.full else []
