"""A kernel of a GPU goes on after it reports a failure, so what follows a check becomes its other branch.

if pos[n] > 100                  if pos[n] > 100
  fail BOUND_VIOLATED     ==>      fail BOUND_VIOLATED
y[i] = 1.0                       else
                                   y[i] = 1.0

All lanes come to a shuffle, so it stays where it is.
"""

from __future__ import annotations

from sparseloom.loops import nodes as ir
from sparseloom.loops.segments import Segments
from sparseloom.loops.units import Units, over_launches


def skip_after_failures(function: ir.Function) -> ir.Function:
    """Leave out what stands behind a failure in a kernel of a GPU."""
    return over_launches(function, lambda launch: _skipping)


def _skipping(stmt: ir.Stmt, units: Units) -> ir.Stmt:
    for k, inner in enumerate(ir.stmts_of(stmt)):
        match inner:
            case ir.If(condition, ir.Fail() as fail, ir.Block(())) if rest := ir.stmts_of(stmt)[k + 1 :]:
                meeting = [one for one in rest if isinstance(one, ir.Shuffle | Segments)]
                others = _skipping(ir.block(*(one for one in rest if one not in meeting)), units)
                checked = ir.If(condition, fail, others, origin=inner.origin)
                return ir.block(*ir.stmts_of(stmt)[:k], checked, *meeting)
    return stmt
