"""Where the pieces of a parallel loop put their entries: for every piece and row how many there are, and then where the next one goes.

    rows                    0    1    2                                        0    1    2
    counted by piece 0      2    0    1      added up row by row     places    0    3    3
    counted by piece 1      1    0    2              ==>             places    2    3    4        pos   0  3  3  6

Threads add up blocks of rows: first only how many entries each block has, then, from where it begins, the places in it.
"""

from __future__ import annotations

from dataclasses import dataclass

from sparseloom.core.dtypes import INT64
from sparseloom.core.names import Names
from sparseloom.loops import nodes as ir
from sparseloom.scope.expression import cast
from sparseloom.scope.ranges import ceil_divide, least

BLOCKS = 64  # of rows
APART = 16  # elements between the rows of two pieces: else all pieces of a row may compete for one set of the cache


@dataclass(frozen=True)
class Places:
    """``array`` has the places of one piece behind those of another, ``rows`` of each."""

    array: ir.Array
    pieces: ir.Expr
    rows: ir.Expr

    @property
    def stride(self) -> ir.Expr:
        """How far the places of two pieces are apart."""
        return ir.add(self.rows, ir.index(APART))

    def begin(self) -> ir.Stmt:
        """Make room."""
        return ir.Allocate(self.array, ir.multiply(self.pieces, self.stride))

    def begin_piece(self, first: ir.Var) -> ir.Stmt:
        """Nothing is counted yet by the piece whose places begin at ``first``."""
        return ir.Fill(self.array, first, self.rows, ir.Literal(0, self.array.dtype))

    def count(self, total: ir.Var, begins: ir.Array, names: Names) -> ir.Stmt:
        """Add up how many entries each block of rows has, then where each begins, and how many there are in all."""
        block, piece, row, here = (ir.Var(names.fresh(name)) for name in ("block", "piece", "row", "entries"))
        added = ir.Assign(here, ir.add(here, ir.Cast(ir.Load(self.array, self._at(piece, row)), INT64)))
        each = ir.For(piece, ir.ZERO, self.pieces, ir.For(row, *self._within(block), added))
        counted = ir.block(ir.Declare(here, ir.ZERO), each, ir.Store(begins, ir.add(block, ir.ONE), here))
        first = ir.Var(names.fresh("block"))
        summed = ir.Store(begins, ir.add(first, ir.ONE), ir.Load(begins, first), "add")
        return ir.block(
            ir.Allocate(begins, ir.index(BLOCKS + 1)),
            ir.Store(begins, ir.ZERO, ir.ZERO),
            ir.For(block, ir.ZERO, ir.index(BLOCKS), counted, ir.LoopKind.THREADS, 1),
            ir.For(first, ir.ZERO, ir.index(BLOCKS), summed),
            ir.Assign(total, ir.Load(begins, ir.index(BLOCKS))),
        )

    def place(self, pos: ir.Array, begins: ir.Array, names: Names) -> ir.Stmt:
        """Turn counts into places, and note where rows end."""
        block, piece, row, here, more = (ir.Var(names.fresh(name)) for name in ("block", "piece", "row", "place", "entries"))
        at = self._at(piece, row)
        moved = ir.block(
            ir.Declare(more, ir.Cast(ir.Load(self.array, at), INT64)),
            ir.Store(self.array, at, cast(here, self.array.dtype)),
            ir.Assign(here, ir.add(here, more)),
        )
        ended = ir.Store(pos, ir.add(row, ir.ONE), cast(here, pos.dtype))
        each = ir.For(row, *self._within(block), ir.block(ir.For(piece, ir.ZERO, self.pieces, moved), ended))
        placed = ir.block(ir.Declare(here, ir.Load(begins, block)), each)
        return ir.block(
            ir.Store(pos, ir.ZERO, ir.Literal(0, pos.dtype)),
            ir.For(block, ir.ZERO, ir.index(BLOCKS), placed, ir.LoopKind.THREADS, 1),
            ir.Free(begins),
        )

    def _at(self, piece: ir.Expr, row: ir.Expr) -> ir.Expr:
        return ir.add(ir.multiply(piece, self.stride), row)

    def _within(self, block: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
        """The rows of a block; the last ones may have none."""
        size = ceil_divide(self.rows, ir.index(BLOCKS))
        begin = ir.multiply(block, size)
        return least(begin, self.rows), least(ir.add(begin, size), self.rows)
