"""Padded results: how wide the rows are is known only when all are made, so they are appended first and spread out at the end.

appended      pos 0 2 2 5    crd 1 4 0 2 3
spread out    width 3        len 2 0 3        crd 1 4 .  . . .  0 2 3
"""

from __future__ import annotations

from dataclasses import replace

from sparseloom.assemble.append import AppendResult
from sparseloom.core.algebra import Scalar
from sparseloom.formats.format import Format
from sparseloom.formats.level import load_index, store_index
from sparseloom.formats.levels.compressed import Compressed
from sparseloom.formats.levels.padded import Padded
from sparseloom.loops import nodes as ir
from sparseloom.notation.nodes import Access
from sparseloom.scope.ranges import subtract
from sparseloom.scope.scope import Scope
from sparseloom.scope.views import Slot, view_tensor


class PaddedResult(AppendResult):
    """Appends to a compressed level in place of the padded one, and spreads its rows out in the end."""

    def __init__(self, scope: Scope, lhs: Access, first: Scalar, gaps: bool, certain: bool) -> None:
        form = lhs.tensor.format
        levels = tuple(Compressed() if isinstance(level, Padded) else level for level in form.levels)
        tensor = replace(lhs.tensor, name=scope.fresh(f"{lhs.tensor.name}_rows"), format=Format(levels, form.modes, form.blocks))
        rows = Access(tensor, lhs.indices)
        appended = view_tensor(rows, scope.provenance.stored(rows), scope.context.sizes, scope.context.names)
        super().__init__(scope, rows, first, gaps, certain, view=appended)
        self._given = scope.view(lhs)
        self._fill = lhs.tensor.fill
        self._level = next(k for k, level in enumerate(form.levels) if isinstance(level, Padded))

    def parameters(self) -> list[tuple[ir.Param, Slot]]:
        """The arrays above the padded level as they are appended; its own, and the values, as they are in the end."""
        name = self._given.tensor.name
        found = []
        for k, level in enumerate(self.view.levels):
            arrays = self._given.levels[k].arrays if k == self._level else level.arrays
            found += [(ir.Param(a, ir.Role.GROWN), Slot(name, part, k)) for part, a in arrays.items()]
        found.append((ir.Param(self._given.values, ir.Role.GROWN), Slot(name, "values")))
        found += [(ir.Param(count, ir.Role.COUNT), Slot(name, "count", k)) for k, count in self.counts.items() if k != self._level]
        found.append((ir.Param(self._width, ir.Role.COUNT), Slot(name, "width", self._level)))
        return [*found, (ir.Param(self.guess, ir.Role.SIZE), Slot(name, "guess"))]

    @property
    def _width(self) -> ir.Var:
        return self._given.levels[self._level].scalars["width"]

    def begin(self) -> ir.Stmt:
        """How many entries there are is told by the width instead, and counted here."""
        return ir.block(ir.Declare(self.counts[self._level], ir.ZERO), super().begin())

    def finish(self) -> ir.Stmt:
        """Find the widest row, then give every row as much room."""
        rows, given = self.view.levels[self._level], self._given.levels[self._level]
        pos, crd = rows.arrays["pos"], rows.arrays["crd"]
        fresh = self.context.names.fresh
        row, parents = ir.Var(fresh("row")), ir.Var(fresh(f"{self._given.tensor.name}_parents"))
        length = subtract(load_index(pos, ir.add(row, ir.ONE)), load_index(pos, row))
        total = ir.multiply(parents, self._width)
        values = self._given.values
        return ir.block(
            super().finish(),
            ir.Declare(parents, self._parents()),
            ir.Assign(self._width, ir.ZERO),
            ir.For(row, ir.ZERO, parents, ir.Assign(self._width, ir.Op("maximum", (self._width, length)))),
            ir.Allocate(given.arrays["len"], parents),
            ir.Allocate(given.arrays["crd"], total),
            ir.Allocate(values, ir.multiply(total, self.block())),
            ir.Fill(given.arrays["crd"], ir.ZERO, total, ir.Literal(0, crd.dtype)),
            ir.Fill(values, ir.ZERO, ir.multiply(total, self.block()), ir.constant(self._fill, values.dtype)),
            ir.For(row, ir.ZERO, parents, self._spread(row, length)),
            *(ir.Free(array) for array in (pos, crd, self.view.values)),
        )

    def _parents(self) -> ir.Expr:
        """How many rows there are: positions of the level above."""
        count: ir.Expr = ir.ONE
        for k, level in enumerate(self.view.levels[: self._level]):
            count = self.counts[k] if k in self.heads else count if k in self._branchless else ir.multiply(count, level.size)
        return count

    @property
    def _branchless(self) -> list[int]:
        return [k for k, level in enumerate(self.lhs.tensor.format.levels) if level.branchless]

    def _spread(self, row: ir.Var, length: ir.Expr) -> ir.Stmt:
        """Move one row to its place, with the block of values below each of its positions."""
        rows, given = self.view.levels[self._level].arrays, self._given.levels[self._level]
        level = self._given.tensor.format.levels[self._level]
        fresh = self.context.names.fresh
        entry, element, target = ir.Var(fresh("entry")), ir.Var(fresh("element")), ir.Var(fresh("place"))
        size = self.block()
        source = ir.add(load_index(rows["pos"], row), entry)
        below = ir.ZERO if size == ir.ONE else element
        value = ir.Load(self.view.values, ir.add(ir.multiply(source, size), below))
        move: ir.Stmt = ir.Store(self._given.values, ir.add(ir.multiply(target, size), below), value)
        if size != ir.ONE:
            move = ir.For(element, ir.ZERO, size, move)
        return ir.block(
            store_index(given.arrays["len"], row, length),
            ir.For(
                entry,
                ir.ZERO,
                length,
                ir.block(
                    ir.Declare(target, ir.add(ir.multiply(row, self._width), entry)),
                    level.append(given, target, load_index(rows["crd"], source)),
                    move,
                ),
            ),
        )
