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


class BlockRow(RowList):
    """Takes entries in any order and keeps the blocks that they fall into. ``first`` is what an entry holds before it is written."""

    needs_presence = True

    def __init__(self, scope: Scope, written: Access, first: Scalar) -> None:
        tensor = written.tensor
        self._first = first
        self._access = written
        sizes = [scope.context.sizes.of(var) for var in scope.provenance.stored(written)]
        self._inside = list(zip(scope.provenance.stored(written), sizes, strict=True))[tensor.order :]
        self._block: ir.Expr = ir.ONE
        for _, size in self._inside:
            self._block = ir.multiply(self._block, size)
        count = sizes[tensor.order - 1]
        self._values = ir.Array(scope.fresh(f"{tensor.name}_vals"), tensor.dtype)
        scope.home.first.append(ir.Allocate(self._values, ir.multiply(count, self._block)))
        scope.home.last.append(ir.Free(self._values))
        super().__init__(scope, tensor.name, count)
        levels = tuple(self.listed if k == tensor.order - 1 else LevelView(size, {}, {}) for k, size in enumerate(sizes))
        self.view = TensorView(tensor, levels, self._values)

    def write(self, assign: Assign, value: Value, scope: Scope) -> ir.Stmt:
        """Put an entry into its block, which is listed if it is new."""
        block, place = self._place(scope)
        first = ir.constant(self._first, self._values.dtype)
        begin = ir.block(self.enlist(block), ir.Fill(self._values, ir.multiply(block, self._block), self._block, first))
        stored = ir.block(
            ir.If(ir.Op("logical_not", (self.has(block),), BOOL), begin),
            ir.Store(self._values, place, cast(value.computed, self._values.dtype), assign.op),
        )
        return ir.when(value.present, stored)

    def _place(self, scope: Scope) -> tuple[ir.Expr, ir.Expr]:
        """The number of an entry's block in the row, and where in the values the entry stands."""
        tensor, indices = self._access.tensor, self._access.indices
        form = tensor.format
        row = form.modes[tensor.order - 1]
        block: ir.Expr = ir.Op("floor_divide", (scope.coordinates[indices[row]], ir.index(form.blocks[row])))
        place = block
        for mode, (within, size) in zip(form.modes[tensor.order :], self._inside, strict=True):
            rest = ir.Op("remainder", (scope.coordinates[indices[mode]], ir.index(form.blocks[mode])))
            place = ir.add(ir.multiply(place, size), scope.coordinates.get(within, rest))
        return block, place
