"""Results with a place for every coordinate, and a note of those that are stored: filled in whatever order entries come.

for i                       present  . . . . . .      nothing is stored at first
  for j with an entry       values   0 0 0 0 0 0
    present[i*n + j] = true
    values[i*n + j] = value
"""

from __future__ import annotations

from sparseloom.assemble.result import Result
from sparseloom.loops import nodes as ir
from sparseloom.notation.nodes import Access, Assign
from sparseloom.scope.expression import cast
from sparseloom.scope.scope import Scope, Sharing, Value
from sparseloom.scope.views import Slot


class FilledResult(Result):
    """Every level is full or takes insertions, and each entry comes once. The loops see no result to append to."""

    needs_presence = True
    sharing = Sharing.PLACES

    def __init__(self, scope: Scope, lhs: Access) -> None:
        super().__init__(scope, lhs)
        self._stored, self.variables = self.variables, ()

    def parameters(self) -> list[tuple[ir.Param, Slot]]:
        """All arrays are allocated here and handed out; their lengths follow from the extents."""
        name = self.lhs.tensor.name
        levels = enumerate(self.view.levels)
        arrays = [(ir.Param(array, ir.Role.GROWN), Slot(name, part, k)) for k, level in levels for part, array in level.arrays.items()]
        return [*arrays, (ir.Param(self.view.values, ir.Role.GROWN), Slot(name, "values"))]

    def begin(self) -> ir.Stmt:
        """Nothing is stored yet."""
        stmts: list[ir.Stmt] = []
        count: ir.Expr = ir.ONE
        for level in self.view.levels:
            count = ir.multiply(count, level.size)
            for array in level.arrays.values():
                stmts += [ir.Allocate(array, count), ir.Fill(array, ir.ZERO, count, ir.FALSE)]
        values = self.view.values
        first = ir.Fill(values, ir.ZERO, count, ir.constant(self.lhs.tensor.fill, values.dtype))
        return ir.block(*stmts, ir.Allocate(values, count), first)

    def write(self, assign: Assign, value: Value, scope: Scope) -> ir.Stmt:
        """Put one entry where it belongs."""
        position: ir.Expr = ir.ZERO
        stmts: list[ir.Stmt] = []
        for level, view, var in zip(self.lhs.tensor.format.levels, self.view.levels, self._stored, strict=True):
            position, _ = level.locate(view, position, scope.coordinates[var])
            if level.can_insert:
                stmts.append(level.insert(view, position))
        values = self.view.values
        written = ir.block(*stmts, ir.Store(values, position, cast(value.computed, values.dtype)))
        return ir.when(value.present, written)
