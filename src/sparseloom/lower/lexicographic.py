"""Searching an operand's levels for a tuple of coordinates: where a block of a fused variable begins and ends.

(i, j) = (2, 5)        p1 = first entry of level 1 with i >= 2
                       p2 = first entry of level 2 below p1 with j >= 5, if p1 has i = 2; else the first below p1
"""

from __future__ import annotations

from collections.abc import Sequence

from sparseloom.core.dtypes import BOOL
from sparseloom.loops import nodes as ir
from sparseloom.notation.nodes import Access
from sparseloom.scope.ranges import Range, least
from sparseloom.scope.scope import Scope


def first_position(
    access: Access, levels: range, segment: Range, parent: ir.Expr, coordinates: Sequence[ir.Expr], scope: Scope
) -> tuple[list[ir.Stmt], ir.Expr]:
    """The first position at the last of some levels whose coordinates are not before the given ones.

    ``segment`` has the positions of the first level, below ``parent``.
    """
    form, views = access.tensor.format, scope.view(access).levels
    code: list[ir.Stmt] = []
    begin, end = segment
    exact: ir.Expr = ir.TRUE
    position: ir.Expr = begin
    for k, coordinate in zip(levels, coordinates, strict=True):
        level, view = form.levels[k], views[k]
        found = ir.Var(scope.fresh(f"p{access.tensor.name}{k + 1}_from"))
        same = ir.Var(scope.fresh(f"{found.name}_same"), BOOL)
        if level.full:
            here = least(coordinate, view.size)
            code.append(ir.Declare(found, level.locate(view, parent, here if exact == ir.TRUE else ir.Select(exact, here, ir.ZERO))[0]))
            code.append(ir.Declare(same, ir.both(exact, ir.compare("less", coordinate, view.size))))
        else:
            searched = level.search(view, parent, begin, end, coordinate)
            if exact != ir.TRUE and level.coordinate_array is None:
                searched = ir.Select(exact, searched, begin)  # what is computed from the parent asks for one that is there
            code.append(ir.Declare(found, searched))
            there = ir.compare("equal", level.coordinate(view, parent, found), coordinate)
            code.append(ir.Declare(same, ir.both(exact, ir.compare("less", found, end), there)))
        above, parent, exact, position = parent, found, same, found
        if k == levels[-1]:
            break
        if form.levels[k + 1].branchless:
            behind = level.search(view, above, found, end, ir.add(coordinate, ir.ONE))
            begin, end = found, ir.Select(same, behind, found)
        elif not form.levels[k + 1].full:
            first = form.levels[k + 1].begin(views[k + 1], found)
            begin, end = first, ir.Select(same, form.levels[k + 1].bounds(views[k + 1], found)[1], first)
    return code, position
