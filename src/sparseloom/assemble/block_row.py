"""A row of blocks under construction.

blocks of 2 x 2 met in this row: 3, then 0

list    3 0
values  ab.. .... .... cd.d     four to a block, by the number of the block; the first entry of a block fills the others
"""

from __future__ import annotations

from sparseloom.assemble.row_list import RowList
from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import BOOL
from sparseloom.formats.level import LevelView
from sparseloom.loops import nodes as ir
from sparseloom.notation.nodes import Access, Assign
from sparseloom.scope.expression import cast
from sparseloom.scope.scope import Scope, Value
from sparseloom.scope.views import TensorView


def block_row(scope: Scope, written: Access, first: Scalar) -> RowList:
    """A row that takes entries in any order and keeps the blocks that they fall into. ``first`` is what an entry holds at first."""
    tensor, order = written.tensor, written.tensor.order
    stored = scope.provenance.stored(written)
    sizes = [scope.context.sizes.of(var) for var in stored]
    inside = list(zip(stored, sizes, strict=True))[order:]
    block: ir.Expr = ir.ONE
    for _, size in inside:
        block = ir.multiply(block, size)

    def place(inner: Scope) -> tuple[ir.Expr, ir.Expr]:
        """The number of an entry's block in the row, and where in the values the entry stands."""
        form, indices = tensor.format, written.indices
        mode = form.modes[order - 1]
        number: ir.Expr = ir.Op("floor_divide", (inner.coordinates[indices[mode]], ir.index(form.blocks[mode])))
        at = number
        for mode, (within, size) in zip(form.modes[order:], inside, strict=True):
            rest = ir.Op("remainder", (inner.coordinates[indices[mode]], ir.index(form.blocks[mode])))
            at = ir.add(ir.multiply(at, size), inner.coordinates.get(within, rest))
        return number, at

    def put(row: RowList, assign: Assign, value: Value, inner: Scope) -> ir.Stmt:
        """Put an entry into its block, which is listed if it is new."""
        number, at = place(inner)
        filled = ir.Fill(row.values, ir.multiply(number, block), block, ir.constant(first, row.values.dtype))
        stored = ir.block(
            ir.If(ir.Op("logical_not", (row.has(number),), BOOL), ir.block(row.enlist(number), filled)),
            ir.Store(row.values, at, cast(value.computed, row.values.dtype), assign.op),
        )
        return ir.when(value.present, stored)

    count = sizes[order - 1]
    row = RowList(scope, written, put, count, ir.multiply(count, block))
    levels = tuple(row.listed if k == order - 1 else LevelView(size, {}, {}) for k, size in enumerate(sizes))
    row.view = TensorView(tensor, levels, row.values)
    return row
