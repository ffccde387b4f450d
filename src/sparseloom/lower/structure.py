"""Results that take over the last coordinates and the values of an operand, in the same order: only what stands above them is made.

    csr -> coo      crd of the rows is written, columns and values are the operand's
    coo -> csr      pos of the rows is written, columns and values are the operand's
"""

from __future__ import annotations

from sparseloom.loops import nodes as ir
from sparseloom.lower.append import AppendResult
from sparseloom.lower.expression import Value
from sparseloom.lower.scope import Scope
from sparseloom.lower.views import Slot
from sparseloom.notation.nodes import Assign


class StructureResult(AppendResult):
    """Appends to every level, but stores neither the coordinates of the last one nor values."""

    def _is_made(self, array: ir.Array) -> bool:
        return array not in (self.view.levels[-1].arrays["crd"], self.view.values)

    def _arrays(self) -> list[ir.Array]:
        return [array for array in super()._arrays() if self._is_made(array)]

    def parameters(self) -> list[tuple[ir.Param, Slot]]:
        """What is made, and how many entries there are."""
        return [(param, slot) for param, slot in super().parameters() if isinstance(param.target, ir.Var) or self._is_made(param.target)]

    def _append(self, head: int, scope: Scope) -> ir.Stmt:
        cursor, stmts = self.cursor[head], []
        for k in self._chain(head):
            view = self.view.levels[k]
            if self._is_made(view.arrays["crd"]):
                stmts.append(self._grow(view.arrays["crd"], ir.add(cursor, ir.ONE)))
                stmts.append(self.lhs.tensor.format.levels[k].append(view, cursor, scope.coordinates[self.variables[k]]))
        return ir.block(*stmts, ir.Assign(cursor, ir.add(cursor, ir.ONE)))

    def write(self, assign: Assign, value: Value, scope: Scope) -> ir.Stmt:
        """Count one entry."""
        appended = self._append(self.last, scope)
        return appended if value.present == ir.TRUE else ir.If(value.present, appended)
