"""Split reductions: where the partial results of a parallel loop live, and how they are combined.

    what is reduced into     partial results                          combined
    a scalar                 a register of each lane, warp, thread    by shuffles, neighbours first
    a scalar                 a register of each thread of a CPU       as the target's language does it
    a scalar                 a slot of each iteration                 in order
    places of a result       a copy of them for each iteration        in order
    places of a result       the first and the last run of a block    in order; what is between them is nobody else's
    places of a result       a register of each lane                  by shuffles among neighbours that have one place
    places of a result       a register for each row of a block       by shuffles; rows are shared out among groups of lanes
    places of a result       the result itself                        by atomic updates, in any order

Lowering decides once for each loop, and ``explain`` prints it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sparseloom.loops import nodes as ir


@dataclass(frozen=True)
class Room:
    """An array with the partial results of all iterations, which are ``identity`` at first; without one, iterations begin them."""

    array: ir.Array
    size: ir.Expr
    identity: ir.Expr | None = None

    @property
    def made(self) -> ir.Stmt:
        """What makes it."""
        begun = None if self.identity is None else ir.Fill(self.array, ir.ZERO, self.size, self.identity)
        return ir.block(ir.Allocate(self.array, self.size), begun)


def with_room(rooms: Sequence[Room], loop: ir.Stmt, combined: ir.Stmt, wait: ir.Stmt | None = None) -> ir.Stmt:
    """A loop that leaves partial results in some arrays, and what combines them; ``wait`` is for those who share the arrays."""
    freed = [ir.Free(room.array) for room in rooms]
    return ir.block(*(room.made for room in rooms), wait, loop, wait, combined, wait, *freed)


def in_turn(slot: ir.Var, count: ir.Expr, *stmts: ir.Stmt) -> ir.For:
    """What combines the partial results of one iteration after another."""
    return ir.For(slot, ir.ZERO, count, ir.block(*stmts))
