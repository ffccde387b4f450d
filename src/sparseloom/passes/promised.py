"""Sizes that were checked are known from there on.

if k_size != 32                        if k_size != 32
  fail BOUND_VIOLATED          ==>       fail BOUND_VIOLATED
C[i * k_size + k] += ...               C[i * 32 + k] += ...
"""

from __future__ import annotations

from collections.abc import Sequence

from sparseloom.core.trees import Node, rewrite
from sparseloom.loops import nodes as ir


def use_promised(function: ir.Function) -> ir.Function:
    """Replace sizes by what a check before said of them."""
    sizes = {p.target for p in function.params if p.role is ir.Role.SIZE}

    def rule(n: Node) -> Node | None:
        return _known_below(n.stmts, sizes) if isinstance(n, ir.Block) else None

    return rewrite(function, rule, ir.Stmt)


def _with_value(stmt: ir.Stmt, var: ir.Var, value: ir.Expr) -> ir.Stmt:
    """A statement with a value in place of a variable."""
    return rewrite(stmt, lambda n: value if n == var else None)


def _known_below(stmts: Sequence[ir.Stmt], sizes: set[ir.Array | ir.Var]) -> ir.Stmt | None:
    for k, stmt in enumerate(stmts):
        match stmt:
            case ir.If(ir.Op("not_equal", (ir.Var() as size, ir.Literal() as value)), ir.Fail(), ir.Block(())) if size in sizes:
                rest = _with_value(ir.Block(tuple(stmts[k + 1 :])), size, value)
                return ir.Block((*stmts[: k + 1], *ir.stmts_of(_known_below(ir.stmts_of(rest), sizes) or rest)))
    return None
