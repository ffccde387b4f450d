"""Searches that all lanes of a warp or all threads of a block would do alike: lanes search together, and each warp does a part.

for b in 0 : n  [gpu block]              for b in 0 : n  [gpu block]
  first = search(pos, 0, n, b)             find together
  last = search(pos, 0, n, b + 1)   ==>      first = search(pos, 0, n, b, 32)         by one warp
  for t in 0 : 256  [gpu thread]             last = search(pos, 0, n, b + 1, 32)      by another
    ...                                    for t in 0 : 256  [gpu thread]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sparseloom.core.trees import Node, field_names, rewrite, walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.together import FindTogether
from sparseloom.loops.units import UnitLevel, Units, over_launches


def search_together(function: ir.Function) -> ir.Function:
    """Let threads that search alike do it together."""
    return over_launches(function, lambda launch: _together)


def _together(stmt: ir.Stmt, units: Units) -> ir.Stmt:
    lanes = _lanes(units)
    if isinstance(stmt, ir.Block):
        found = _found(stmt.stmts, units) if units.level is UnitLevel.BLOCK and lanes > 1 else []
        return ir.Block((FindTogether(tuple(found)), *stmt.stmts[len(found) :])) if found else stmt
    if lanes == 1:
        return stmt

    def rule(n: Node) -> Node | None:
        return replace(n, lanes=lanes) if isinstance(n, ir.Search) else None

    own = {name: value for name in field_names(type(stmt)) if isinstance(value := getattr(stmt, name), ir.Expr)}
    changed: dict[str, Any] = {name: new for name, value in own.items() if (new := rewrite(value, rule)) is not value}
    return replace(stmt, **changed) if changed else stmt


def _lanes(units: Units) -> int:
    """How many lanes search together: those of a warp that all of its lanes run."""
    whole = units.threads % units.warp == 0
    match units.level:
        case UnitLevel.BLOCK if whole:
            return units.warp
        case UnitLevel.WARP if whole or units.lanes == units.warp:
            return units.lanes
    return 1


def _found(stmts: Sequence[ir.Stmt], units: Units) -> list[ir.Declare]:
    """The first statements of a block that search, no more than it has warps, if there are several."""
    found: list[ir.Declare] = []
    warps = units.threads // units.warp
    for stmt in stmts if warps > 1 else ():
        if not isinstance(stmt, ir.Declare) or not any(isinstance(n, ir.Search) for n in walk(stmt.value)):
            break
        if len(found) == warps or any(n == one.var for one in found for n in walk(stmt.value)):
            break
        found.append(stmt)
    return found
