"""Where statements come from: the variable of concrete notation whose loop they stem from, or the tensor that they help to make.

    forall i                             for i                      from i
      forall j                             y_acc = 0.0              from y
        y(i) += A(i,j) * x(j)      ==>     for pA in ...            from j
                                             j = A2_crd[pA]         from j
                                             y_acc += ...           from y
                                           y_vals[i] = y_acc        from y

Lowering says it once for every statement, and passes keep it: a loop made of a loop has its origin. What a pass adds may have none, and
then belongs to what it stands in.
"""

from __future__ import annotations

from sparseloom.core.trees import field_names
from sparseloom.loops.nodes import Block, For, If, Launch, Stmt, Team, While

_AROUND = (For, While, If, Team, Launch)  # statements that hold others


def stamped(stmt: Stmt, origin: str) -> Stmt:
    """The same statement, where all that has no origin yet has this one.

    A statement with an origin is not searched: the statements inside it have got theirs at the same time.
    """
    if stmt.origin:
        return stmt
    if isinstance(stmt, Block):
        return Block(tuple([stamped(inner, origin) for inner in stmt.stmts]))
    cls = type(stmt)
    parts = [getattr(stmt, name) for name in field_names(cls)]
    if isinstance(stmt, _AROUND):
        parts = [stamped(part, origin) if isinstance(part, Stmt) else part for part in parts]
    return cls(*parts, origin=origin)
