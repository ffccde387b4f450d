"""Scalars that the warps of a block find at the same time, each a few of them."""

from __future__ import annotations

from sparseloom.core.trees import node
from sparseloom.loops.nodes import Declare, Stmt


@node
class FindTogether(Stmt):
    """Declare scalars that do not depend on each other. A warp of its own finds each of them, and then all threads of the block know it.

    All threads of the block reach it, and wait for each other there.
    """

    found: tuple[Declare, ...]
