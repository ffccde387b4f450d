"""Sparse results of any levels that are counted first and then filled in: the loops run twice, and nothing grows or moves.

    parts of the rows         0    1    2
    entries counted           3    0    2         one number for each appended level
    each begins at            0    3    3  5      these are added up, and all arrays allocated; then every part is filled from there on

Threads take parts; without threads there is one. How many entries a row of the full levels above has is counted in ``pos``, which becomes
positions by adding up. Every other ``pos`` is written where its row ends.
"""

from __future__ import annotations

from sparseloom.assemble.append import AppendResult
from sparseloom.assemble.parts import add_up_parts
from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import INT64
from sparseloom.loops import nodes as ir
from sparseloom.notation.nodes import Access, Assign
from sparseloom.scope.expression import cast
from sparseloom.scope.ranges import subtract
from sparseloom.scope.scope import Scope, Sharing, Value


class CountedResult(AppendResult):
    """Counts in a first run of the loops and fills in a second one. Positions of a part that is filled end at its *limits*."""

    sharing = Sharing.COUNTED

    def __init__(self, scope: Scope, lhs: Access, first: Scalar, gaps: bool, certain: bool) -> None:
        super().__init__(scope, lhs, first, gaps, certain)
        self.bounded = True  # by what was counted, full levels included
        self.parts: ir.Expr = ir.ONE
        self.is_counting = True
        fresh, view = scope.fresh, self.view
        self._starts = {k: ir.Array(fresh(f"{lhs.tensor.name}{k + 1}_starts"), INT64) for k in self.heads}
        self._rows = view.levels[self.heads[0]].arrays["pos"]
        self._renew()

    def _renew(self) -> None:
        """Cursors of their own for each run of the loops."""
        fresh, stem = self.context.names.fresh, self.lhs.tensor.name
        self.cursor = {k: ir.Var(fresh(f"p{stem}{k + 1}")) for k in self.heads}
        self.ended = {k: ir.Var(fresh(f"{stem}{k + 1}_ended")) for k in self.ended}
        self._limit = {k: ir.Var(fresh(f"p{stem}{k + 1}_limit")) for k in self.heads}
        # Where the row stood that ended last, for each level.
        self._stood = {k: ir.Var(fresh(f"p{stem}{k + 1}_stood")) for k in {self.heads[0], *self.ended}}

    def begin(self) -> ir.Stmt:
        """Rows without a count, and room to note where parts begin."""
        size, more = ir.add(self.rows(self.heads[0]), ir.ONE), ir.add(self.parts, ir.ONE)
        made: list[ir.Stmt] = [ir.Allocate(self._rows, size), ir.Fill(self._rows, ir.ZERO, size, ir.Literal(0, self._rows.dtype))]
        for starts in self._starts.values():
            made += [ir.Allocate(starts, more), ir.Fill(starts, ir.ZERO, more, ir.ZERO)]
        return ir.block(*made)

    def begin_part(self, part: ir.Expr) -> ir.Stmt:
        """Set every cursor to where the part begins; while it is counted, to the start."""
        stmts: list[ir.Stmt] = []
        for k, cursor in self.cursor.items():
            starts = self._starts[k]
            stmts.append(ir.Declare(cursor, ir.ZERO if self.is_counting else ir.Load(starts, part)))
            if not self.is_counting:
                stmts.append(ir.Declare(self._limit[k], ir.Load(starts, ir.add(part, ir.ONE))))
        stmts += [ir.Declare(stood, self.cursor[k]) for k, stood in self._stood.items()]
        return ir.block(*stmts, *(ir.Declare(ended, self._rows_before(k, self.cursor)) for k, ended in self.ended.items()))

    def end_part(self, part: ir.Expr) -> ir.Stmt:
        """Note how many positions each head has in the part; or end what rows are left."""
        if self.is_counting:
            following = ir.add(part, ir.ONE)
            return ir.block(*(ir.Store(starts, following, self.cursor[k]) for k, starts in self._starts.items()))
        return ir.block(*(self._end_rows(k, self._rows_before(k, self.cursor)) for k in self.ended if k != self.heads[0]))

    def _rows_before(self, head: int, positions: dict[int, ir.Var]) -> ir.Expr:
        """How many rows of a head stand below so many positions of the one above."""
        rows: ir.Expr = ir.ONE
        for k in range(head):
            above = next((other for other in self.heads if k in self.chain(other)), None)
            rows = ir.multiply(rows, self.view.levels[k].size) if above is None else positions[above]
        return rows

    def fill_next(self) -> ir.Stmt:
        """What runs between counting and filling: where each part begins, and room for all of them."""
        self.is_counting = False
        first = self.heads[0]
        stmts = [add_up_parts(self, self._starts, self.parts)]
        for head in self.heads:
            pos = self.view.levels[head].arrays["pos"]
            if head != first:
                size = ir.add(self._rows_before(head, self.counts), ir.ONE)
                stmts += [ir.Allocate(pos, size), ir.Store(pos, ir.ZERO, ir.Literal(0, pos.dtype))]
            stmts += [ir.Allocate(self.view.levels[k].arrays["crd"], self.counts[head]) for k in self.chain(head)]
        stmts.append(ir.Allocate(self.view.values, ir.multiply(self.counts[self.last], self.block())))
        self._renew()
        return ir.block(*stmts)

    def finish(self) -> ir.Stmt:
        """Everything stands where it belongs."""
        return ir.block(*map(ir.Free, self._starts.values()))

    def append(self, head: int, scope: Scope, *beside: ir.Array) -> ir.Stmt:
        """Store coordinates; while they are counted, nothing."""
        return ir.block() if self.is_counting else super().append(head, scope, *beside)

    def open_block(self) -> ir.Stmt:
        """Give a new block its first values. One behind the part may never be written, and is another's."""
        if self.is_counting:
            return ir.block()
        return ir.If(ir.compare("less", self.cursor[self.last], self._limit[self.last]), super().open_block())

    def close(self, level: int, scope: Scope) -> ir.Stmt:
        """A row ends: that of the first head is counted in the first run, that of another one written in the second."""
        if level not in self.heads or level == 0:
            return ir.block()
        if level == self.heads[0]:
            return self._count_row(scope) if self.is_counting else ir.block()
        return ir.block() if self.is_counting else self._end_row(level, scope)

    def _count_row(self, scope: Scope) -> ir.Stmt:
        """Count the entries of a row of the first head."""
        level, pos = self.heads[0], self._rows
        cursor, stood, end = self.cursor[level], self._stood[level], ir.add(self.position(level - 1, scope), ir.ONE)
        return ir.block(ir.Store(pos, end, cast(subtract(cursor, stood), pos.dtype), "add"), ir.Assign(stood, cursor))

    def _end_row(self, level: int, scope: Scope) -> ir.Stmt:
        """Write where a row ends, if it is of this part."""
        cursor, parent, pos = self.cursor[level], self.position(level - 1, scope), self.view.levels[level].arrays["pos"]
        end = ir.add(parent, ir.ONE)
        noted = [ir.Assign(self.ended[level], end), ir.Assign(self._stood[level], cursor)] if level in self.ended else []
        is_mine = ir.compare("less", parent, self._rows_before(level, self._limit))
        return ir.If(is_mine, ir.block(self._end_rows(level, parent), ir.Store(pos, end, cast(cursor, pos.dtype)), *noted))

    def _end_rows(self, head: int, before: ir.Expr) -> ir.Stmt:
        """Rows that were passed over end where the last one before them did, which may be of another part."""
        if head not in self.ended:
            return ir.block()
        pos, ended = self.view.levels[head].arrays["pos"], self.ended[head]
        following = ir.add(ended, ir.ONE)
        empty = ir.block(ir.Store(pos, following, cast(self._stood[head], pos.dtype)), ir.Assign(ended, following))
        return ir.While(ir.compare("less", ended, before), empty)

    def write(self, assign: Assign, value: Value, scope: Scope) -> ir.Stmt:
        """Fill one value in, or count it."""
        if not self.is_counting:
            return super().write(assign, value, scope)
        counted = ir.Assign(self.written, ir.TRUE) if self.has_blocks else self.advance(self.last)
        return ir.when(value.present, counted)
