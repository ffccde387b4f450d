"""Bounds that something in their loop could change are held in a scalar, for targets that look at a bound before every iteration.

Where a loop of threads begins is held too: each thread looks there as it comes, and another may have run some iterations by then.

    for p in pos[i] : pos[i + 1]           p_end = pos[i + 1]
      pos[k] += 1                   ==>    for p in pos[i] : p_end
                                             pos[k] += 1
"""

from __future__ import annotations

from dataclasses import replace

from sparseloom.core.trees import Node, rewrite, walk
from sparseloom.loops.nodes import Array, Block, Declare, Expr, Fill, For, Function, Load, LoopKind, Role, Search, Stmt, Store, Team, Var
from sparseloom.loops.rename import unused_names
from sparseloom.loops.routines import assigned_in


def hold_bounds(function: Function) -> Function:
    """Hold every bound that does not provably stay as it is. What it reads of the kernel's inputs does."""
    inputs = {p.target for p in function.params if p.role is Role.INPUT}
    names = unused_names(function)

    def rule(n: Node) -> Node | None:
        match n:
            case For(kind=kind) if kind is not LoopKind.LANES:
                return held_around(n)
            case Fill(count=count) if _may_change(count, n, inputs):
                held = Var(names.fresh(f"{n.array.name}_count"))
                return Block((Declare(held, count), replace(n, count=held)))
            case Team(loop=Block((*declared, For() as loop))):
                return Block((*declared, replace(n, loop=loop)))
        return None

    def held_around(loop: For) -> Node | None:
        declared, made = list[Declare](), loop
        if loop.kind is LoopKind.THREADS and _is_changed(loop.begin, loop.body):
            begin = Var(names.fresh(f"{loop.var.name}_begin"))
            declared, made = [Declare(begin, loop.begin)], replace(made, begin=begin)
        if _may_change(loop.end, loop.body, inputs):
            end = Var(names.fresh(f"{loop.var.name}_end"))
            declared, made = [*declared, Declare(end, loop.end)], replace(made, end=end)
        return Block((*declared, made)) if declared else None

    return rewrite(function, rule, Stmt)


def _is_changed(bound: Expr, body: Stmt) -> bool:
    """Whether a bound reads what the body of its loop itself assigns or stores."""
    read = [n.array if isinstance(n, Load | Search) else n for n in walk(bound) if isinstance(n, Var | Load | Search)]
    if not read:
        return False
    changed: set[object] = set(assigned_in(body))
    changed |= {n.array for n in walk(body, Stmt) if isinstance(n, Store | Fill)}
    return not changed.isdisjoint(read)


def _may_change(bound: Expr, body: Stmt, inputs: set[Array | Var]) -> bool:
    """Whether a bound reads what the body of its loop may change, or is worth a search each time."""
    read = walk(bound)
    if any(isinstance(n, Search) or (isinstance(n, Load) and n.array not in inputs) for n in read):
        return True
    names = {n.name for n in read if isinstance(n, Var)}
    return bool(names) and any(var.name in names for var in assigned_in(body))
