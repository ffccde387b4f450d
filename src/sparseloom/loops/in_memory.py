"""A scalar that lives in memory: it is loaded where it was read, and stored where it was assigned."""

from __future__ import annotations

from typing import TypeVar

from sparseloom.core.algebra import OPERATORS
from sparseloom.core.trees import Node, rewrite
from sparseloom.loops.nodes import Assign, Declare, Expr, Load, Op, Stmt, Store, Var

N = TypeVar("N", bound=Node)


def in_memory(root: N, var: Var, here: Load) -> N:
    """The same with a scalar in this place."""

    def rule(n: Node) -> Node | None:
        match n:
            case Var() if n == var:
                return here
            case Declare() | Assign():
                written: Node = n.var  # by now the place, if it was the scalar
                return stored(n.value, here, n.origin) if written == here else None
        return None

    return rewrite(root, rule)


def stored(value: Expr, here: Load, origin: str) -> Stmt:
    """A store to this location, combining if the value reads the location."""
    match value:
        case Op(name, (first, other)) if first == here and OPERATORS[name].associative:
            return Store(here.array, here.index, other, name, origin=origin)
    return Store(here.array, here.index, value, origin=origin)
