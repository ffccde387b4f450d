"""Results that take over the last coordinates and the values of an operand, in the same order: only what stands above them is made.

csr -> coo      crd of the rows is written, columns and values are the operand's
coo -> csr      pos of the rows is written, columns and values are the operand's; where entries tell their rows, these are counted
"""

from __future__ import annotations

from sparseloom.assemble.append import AppendResult
from sparseloom.loops import nodes as ir
from sparseloom.notation.nodes import Assign
from sparseloom.scope.scope import Scope, Sharing, Value
from sparseloom.scope.views import Slot


class StructureResult(AppendResult):
    """Appends to every level, but stores neither the coordinates of the last one nor values."""

    sharing = Sharing.NOT

    def _is_made(self, array: ir.Array) -> bool:
        return array not in (self.view.levels[-1].arrays["crd"], self.view.values)

    def arrays(self) -> list[ir.Array]:
        """Those that are made."""
        return [array for array in self.view_arrays() if self._is_made(array)]

    def parameters(self) -> list[tuple[ir.Param, Slot]]:
        """What is made, and how many entries there are."""
        return [(param, slot) for param, slot in super().parameters() if isinstance(param.target, ir.Var) or self._is_made(param.target)]

    def append(self, head: int, scope: Scope, *beside: ir.Array) -> ir.Stmt:
        """Append the coordinates of upper levels."""
        cursor, levels = self.cursor[head], self.lhs.tensor.format.levels
        made = [k for k in self.chain(head) if self._is_made(self.view.levels[k].arrays["crd"])]
        if not made:
            return ir.block()
        stored = [levels[k].append(self.view.levels[k], cursor, scope.coordinates[self.variables[k]]) for k in made]
        return ir.block(self.grow(ir.add(cursor, ir.ONE), *(self.view.levels[k].arrays["crd"] for k in made)), *stored)

    def write(self, assign: Assign, value: Value, scope: Scope) -> ir.Stmt:
        """Count one entry."""
        appended = ir.block(self.append(self.last, scope), self.advance(self.last))
        return ir.when(value.present, appended)
