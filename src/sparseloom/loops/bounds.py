"""Bounds that something in their loop could change are held in a scalar, for targets that look at a bound before every iteration.

for p in pos[i] : pos[i + 1]           p_end = pos[i + 1]
  pos[k] += 1                   ==>    for p in pos[i] : p_end
                                         pos[k] += 1
"""

from __future__ import annotations

from dataclasses import replace

from sparseloom.core.names import Names
from sparseloom.core.trees import Node, rewrite, walk
from sparseloom.loops.nodes import Array, Block, Declare, Expr, Fill, For, Function, Load, LoopKind, Role, Search, Stmt, Team, Var
from sparseloom.loops.routines import assigned_by


def hold_bounds(function: Function) -> Function:
    """Hold every bound that does not provably stay as it is. What it reads of the kernel's inputs does."""
    inputs = {p.target for p in function.params if p.role is Role.INPUT}
    names = Names(n.name for n in walk(function) if isinstance(n, Var | Array))

    def rule(n: Node) -> Node | None:
        match n:
            case For(end=end, kind=kind) if kind is not LoopKind.LANES and _may_change(end, n.body, inputs):
                held = Var(names.fresh(f"{n.var.name}_end"))
                return Block((Declare(held, end), replace(n, end=held)))
            case Fill(count=count) if _may_change(count, n, inputs):
                held = Var(names.fresh(f"{n.array.name}_count"))
                return Block((Declare(held, count), replace(n, count=held)))
            case Team(loop=Block((Declare() as declared, For() as loop))):
                return Block((declared, replace(n, loop=loop)))
        return None

    return rewrite(function, rule)


def _may_change(bound: Expr, body: Stmt, inputs: set[Array | Var]) -> bool:
    """Whether a bound reads what the body of its loop may change, or is worth a search each time."""
    assigned = {var.name for n in walk(body) if (var := assigned_by(n)) is not None}
    for n in walk(bound):
        match n:
            case Var(name) if name in assigned:
                return True
            case Load(array) if array not in inputs:
                return True
            case Search():
                return True
    return False
