"""Pieces of equal weight: where one begins and ends is searched in the positions of the operand whose entries are shared out.

forall i0                        for i0 in 0 : 4
  forall i1                        i1_first = i0 == 0 ? 0 : first i before which A has i0/4 of its entries
    y(i) += A(i,j) * x(j)          i1_last = i0 == 3 ? |i| : first i before which A has (i0 + 1)/4 of them
                                   for i1 in i1_first : i1_last
"""

from __future__ import annotations

from collections.abc import Callable

from sparseloom.loops import nodes as ir
from sparseloom.lower.walking import segment
from sparseloom.notation.nodes import Access
from sparseloom.relations.relation import Pieces
from sparseloom.scope.ranges import Range, subtract
from sparseloom.scope.scope import Scope

Entries = Callable[[ir.Expr], ir.Expr]


def cut_piece(relation: Pieces, scope: Scope) -> tuple[ir.Stmt, Scope]:
    """Work out where the current piece begins and ends, and confine its variable to that."""
    access, stored = relation.access, scope.provenance.stored(relation.access)
    number, place = stored.index(relation.parent), scope.at(relation.access)
    level, view = access.tensor.format.levels[number], scope.view(access).levels[number]
    low, high = scope.ranges.range_of(relation.parent)
    begin, end = (ir.ZERO, ir.ZERO) if place.is_absent else segment(level, view, place)
    entries = _with_rows(_entries_below(access, number, scope), relation.rows)
    stem = relation.inner.name
    code: list[ir.Stmt] = []

    def declare(name: str, value: ir.Expr) -> ir.Var:
        var = ir.Var(scope.fresh(f"{stem}_{name}"))
        code.append(ir.Declare(var, value))
        return var

    positions = declare("begin", begin), declare("end", end)
    before = declare("before", entries(positions[0]))
    total = declare("entries", subtract(entries(positions[1]), before))
    block, limits = scope.coordinates[relation.outer], []
    for name, share, whole, limit in (
        ("first", block, ir.ZERO, low),
        ("last", ir.add(block, ir.ONE), ir.index(relation.count), high),
    ):
        wanted = ir.add(before, ir.Op("floor_divide", (ir.multiply(share, total), ir.index(relation.count))))
        found = declare(f"{name}_at", _search(entries, positions, declare(f"{name}_share", wanted), f"{stem}_{name}_from", code, scope))
        if not level.unique:
            # A row that begins before the cut belongs to the piece before, however many of its entries stand behind.
            before_it = level.coordinate(view, place.position, subtract(found, ir.ONE))
            behind = level.search(view, place.position, found, positions[1], ir.add(before_it, ir.ONE))
            found = declare(f"{name}_row", ir.Select(ir.compare("less", positions[0], found), behind, found))
        there = level.coordinate(view, place.position, found)
        if not (level.full and place.present == ir.TRUE):
            there = ir.Select(ir.compare("less", found, positions[1]), there, high)
        limits.append(declare(name, ir.Select(ir.compare("equal", share, whole), limit, there)))
    return ir.block(*code), scope.limiting(relation.inner, limits[0], limits[1])


def _entries_below(access: Access, number: int, scope: Scope) -> Entries:
    """How many entries of the last level stand before what is below a position of an upper one."""
    levels, views = access.tensor.format.levels, scope.view(access).levels

    def entries(position: ir.Expr) -> ir.Expr:
        for k in range(number + 1, len(levels)):
            position = levels[k].bounds(views[k], position)[0]
        return position

    return entries


def _with_rows(entries: Entries, rows: int) -> Entries:
    """The weight before a position: the entries, and what every position weighs itself. Where each is an entry, both say the same."""
    if not rows or isinstance(entries(ir.Var("position")), ir.Var):
        return entries
    return lambda position: ir.add(entries(position), ir.multiply(ir.index(rows), position))


def _search(entries: Entries, positions: Range, wanted: ir.Expr, stem: str, code: list[ir.Stmt], scope: Scope) -> ir.Expr:
    """The first position with at least that many entries before it, or the end."""
    probe = ir.Var(scope.fresh(f"{stem}_probe"))
    match entries(probe):
        case ir.Var():
            return wanted  # every position is an entry
        case ir.Cast(ir.Load(array, ir.Var() as at)) if at == probe:
            return ir.Search(array, *positions, wanted)
    low, high = ir.Var(scope.fresh(stem)), ir.Var(scope.fresh(f"{stem}_end"))
    middle = ir.Op("floor_divide", (ir.add(low, high), ir.index(2)))
    fewer = ir.compare("less", entries(probe), wanted)
    step = ir.If(fewer, ir.Assign(low, ir.add(probe, ir.ONE)), ir.Assign(high, probe))
    code += [
        ir.Declare(low, positions[0]),
        ir.Declare(high, positions[1]),
        ir.While(ir.compare("less", low, high), ir.block(ir.Declare(probe, middle), step)),
    ]
    return low
