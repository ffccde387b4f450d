"""The nodes of a statement that are not inside loops of some kinds."""

from __future__ import annotations

from collections.abc import Collection

from sparseloom.core.trees import Node, children
from sparseloom.loops.nodes import For, LoopKind, Stmt, Team


def walk_outside(stmt: Stmt, kinds: Collection[LoopKind]) -> list[Node]:
    """A statement and the statements in it, but for those inside loops of these kinds, and inside teams that run such loops."""
    stack: list[Node] = [stmt]
    found: list[Node] = []
    while stack:
        current = stack.pop()
        found.append(current)
        loop = current.loop if isinstance(current, Team) else current
        if not (isinstance(loop, For) and loop.kind in kinds):
            stack += [below for below in reversed(children(current)) if isinstance(below, Stmt)]
    return found
