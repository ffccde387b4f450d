"""What a vector loop declares and nothing reads: the coordinates of an entry, for which every lane would search.

for p  [vector]
  row = the row of p, by search             for p  [vector]
  j = crd[p]                        ==>       C[p] = 2 * A[p]
  C[p] = 2 * A[p]
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from sparseloom.core.trees import Node, rewrite, walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.simplify import simplify


def drop_unread(function: ir.Function) -> ir.Function:
    """Remove declarations from vector loops whose variables are not read, where some lane would search or add up."""
    loops = [n for n in walk(function.body, ir.Stmt) if isinstance(n, ir.For) and n.kind is ir.LoopKind.VECTOR]
    found = [loop.body for loop in loops if loop.reduces or [n for n in walk(loop.body) if isinstance(n, ir.Search)]]
    bodies = {body: _without_unread(body) for body in found}
    if list(bodies.values()) == list(bodies):
        return function

    def rule(n: Node) -> Node | None:
        match n:
            case ir.For(kind=ir.LoopKind.VECTOR, body=body) if body in bodies:
                return replace(n, body=bodies[body])
        return None

    return rewrite(function, rule, ir.Stmt)


def _without_unread(body: ir.Stmt) -> ir.Stmt:
    """The body without declarations of its own that nobody reads, nor those that were read by these alone."""
    while True:
        declared = [stmt.var for stmt in walk(body, ir.Stmt) if isinstance(stmt, ir.Declare)]
        read = [n for n in walk(body) if isinstance(n, ir.Var)]
        unread = frozenset(var for var in declared if read.count(var) == 1)
        if not unread:
            return body
        body = simplify(rewrite(body, partial(_dropped, unread), ir.Stmt))


def _dropped(unread: frozenset[ir.Var], n: Node) -> Node | None:
    """Nothing in place of a declaration that is not read."""
    return ir.Block(()) if isinstance(n, ir.Declare) and n.var in unread else None
