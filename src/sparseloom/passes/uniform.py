"""What all lanes of a warp, or all threads of a block, would find out alike is found out once, outside the loop over them.

for t in 0 : 32  [gpu thread]              first = search(A2_pos, ...)
  first = search(A2_pos, ...)       ==>    if low < high
  if low < high                              for t in 0 : 32  [gpu thread]
    y[first] += x[t]                           y[first] += x[t]
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from sparseloom.core.trees import Node, rewrite
from sparseloom.loops import nodes as ir
from sparseloom.loops.facts import depends, uses


def share_among_lanes(function: ir.Function) -> ir.Function:
    """Take out of loops over threads what does not depend on the thread; only what operands hold is read early."""
    inputs = {p.target for p in function.params if p.role is ir.Role.INPUT and isinstance(p.target, ir.Array)}

    def rule(n: Node) -> Node | None:
        return _shared(n, inputs) if isinstance(n, ir.For) and n.kind is ir.LoopKind.GPU_THREAD else None

    return rewrite(function, rule)


def _shared(loop: ir.For, inputs: Set[ir.Array | ir.Var]) -> ir.Stmt:
    stmts = list(ir.stmts_of(loop.body))
    assigned = {loop.var.name} | uses(loop.body).assigned
    first, mine, rest = _parted(stmts, assigned, inputs)
    own = assigned | uses(*mine, *rest).declared if mine or rest else assigned
    body: ir.Stmt = replace(loop, body=ir.block(*mine, *rest))
    match rest:
        case [ir.If(condition, then, ir.Block(()))] if _is_common(condition, own, inputs):
            body = ir.If(condition, _shared(replace(loop, body=ir.block(*mine, then)), inputs), origin=rest[0].origin)
    if not first:
        return body
    runs = isinstance(loop.begin, ir.Literal) and isinstance(loop.end, ir.Literal)
    made = ir.block(*first, body)
    return made if runs else ir.If(ir.compare("less", loop.begin, loop.end), made, origin=loop.origin)


def _parted(
    stmts: Sequence[ir.Stmt], own: Set[str], inputs: Set[ir.Array | ir.Var]
) -> tuple[list[ir.Stmt], list[ir.Stmt], Sequence[ir.Stmt]]:
    """The scalars at the beginning that are common to all threads, those that each has for itself, and what stands behind them."""
    common: list[ir.Stmt] = []
    mine: list[ir.Stmt] = []
    own = set(own)
    for k, stmt in enumerate(stmts):
        if not isinstance(stmt, ir.Declare):
            return common, mine, stmts[k:]
        is_common = stmt.var.name not in own and _is_common(stmt.value, own, inputs)
        (common if is_common else mine).append(stmt)
        own |= set() if is_common else {stmt.var.name}
    return common, mine, []


def _is_common(expr: ir.Expr, own: Set[str], inputs: Set[ir.Array | ir.Var]) -> bool:
    """Whether an expression is worth the same for every thread, now and later."""
    return not depends(own, expr) and uses(expr).loaded <= inputs
