"""Sparse results whose entries come in storage order: coordinates and values are appended.

    for i                                    pos: 0 2 3      written when a row ends
      for j with an entry                    crd: 1 4 0      appended, arrays grow as needed
        append (j, value)                    vals: a b c

A level above others is appended only if something was appended below it, so results hold no empty rows where the format can leave
them out. Where the loops may pass over rows that the format cannot leave out, the row that ends next also ends those before it.
"""

from __future__ import annotations

from sparseloom.assemble.result import Result
from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import BOOL, INT32
from sparseloom.formats.level import load_index
from sparseloom.loops import nodes as ir
from sparseloom.loops import routines
from sparseloom.notation.nodes import Access, Assign, IndexVar
from sparseloom.scope.expression import cast
from sparseloom.scope.scope import Scope, Sharing, Value
from sparseloom.scope.views import Slot, TensorView


class AppendResult(Result):
    """Appends level by level. A compressed level and the singletons below it share one cursor: its *head*."""

    needs_presence = True
    sharing = Sharing.PARTS

    def __init__(
        self,
        scope: Scope,
        lhs: Access,
        first: Scalar,
        gaps: bool,
        certain: bool,
        bounded: bool = False,
        view: TensorView | None = None,
        goes_on: bool = False,
    ) -> None:
        super().__init__(scope, lhs, view)
        self.goes_on = goes_on  # whether a row may come again after it ended, as the next one: blocks of the loops cut rows
        self.first = first  # what the values of a dense block hold before anything is written
        self.gaps = gaps  # whether the loops may pass over empty rows of dense levels
        self.certain = certain  # whether a block has its values even if there is nothing to reduce into them
        self.in_parts = False  # whether threads make it in parts
        levels = lhs.tensor.format.levels
        self.heads = [k for k, level in enumerate(levels) if level.can_append and not level.branchless]
        self.last = self.heads[-1]
        # Whether there are never more entries than the guess says; full levels would multiply them.
        self.bounded = bounded and not any(level.full for level in levels[self.heads[0] :])
        self.tail = max(k for k, level in enumerate(levels) if level.can_append)
        stem = lhs.tensor.name
        fresh = scope.fresh
        self.cursor = {k: ir.Var(fresh(f"p{stem}{k + 1}")) for k in self.heads}
        self.counts = {k: ir.Var(fresh(f"{stem}{k + 1}_count")) for k in self.heads}
        self.begins = {k: ir.Var(fresh(f"p{stem}{k + 1}_begin")) for k in self.heads[1:]}
        # How many rows have ended, where the loops may pass over empty ones: rows of dense levels.
        passed = [k for k in self.heads if gaps and k > 0 and levels[k - 1].full]
        self.ended = {k: ir.Var(fresh(f"{stem}{k + 1}_ended")) for k in passed}
        self.guess = ir.Var(fresh(f"{stem}_guess"))
        self.written = ir.Var(fresh(f"{stem}_written"), BOOL)
        self.capacity = {a.name: ir.Var(fresh(f"{a.name}_capacity")) for a in self.view_arrays()}

    def view_arrays(self) -> list[ir.Array]:
        """Every array of the result."""
        return [a for level in self.view.levels for a in level.arrays.values()] + [self.view.values]

    def chain(self, head: int) -> range:
        """The head and the singleton levels that share its positions."""
        levels = self.lhs.tensor.format.levels
        end = head + 1
        while end < len(levels) and levels[end].branchless:
            end += 1
        return range(head, end)

    def block(self) -> ir.Expr:
        """How many values stand below one position of the last appended level."""
        count: ir.Expr = ir.ONE
        for level in self.view.levels[self.tail + 1 :]:
            count = ir.multiply(count, level.size)
        return count

    def parameters(self) -> list[tuple[ir.Param, Slot]]:
        """All arrays are allocated here and handed out, with a count per head; ``guess`` sizes the first allocation."""
        name = self.lhs.tensor.name
        found = []
        for k, level in enumerate(self.view.levels):
            found += [(ir.Param(a, ir.Role.GROWN), Slot(name, part, k)) for part, a in level.arrays.items()]
        found.append((ir.Param(self.view.values, ir.Role.GROWN), Slot(name, "values")))
        found += [(ir.Param(count, ir.Role.COUNT), Slot(name, "count", k)) for k, count in self.counts.items()]
        return [*found, (ir.Param(self.guess, ir.Role.SIZE), Slot(name, "guess"))]

    def expected(self) -> ir.Expr | None:
        """As many as the caller guesses."""
        return self.guess

    def arrays(self) -> list[ir.Array]:
        """The arrays that are allocated here."""
        return self.view_arrays()

    def begin(self) -> ir.Stmt:
        """Allocate, and set every cursor to the start; what is made in parts begins there."""
        if self.in_parts:
            return ir.block()
        stmts: list[ir.Stmt] = []
        for array in self.arrays():
            capacity = self.capacity[array.name]
            stmts += [ir.Declare(capacity, self._first_capacity(array)), ir.Allocate(array, capacity)]
        for head in self.heads:
            stmts.append(ir.Declare(self.cursor[head], ir.ZERO))
            pos = self.view.levels[head].arrays["pos"]
            if pos in self.arrays():
                stmts.append(ir.Store(pos, ir.ZERO, ir.Literal(0, pos.dtype)))
        return ir.block(*stmts, *(ir.Declare(ended, ir.ZERO) for ended in self.ended.values()))

    def _first_capacity(self, array: ir.Array) -> ir.Expr:
        if array == self.view.levels[self.heads[0]].arrays["pos"]:
            return ir.add(self.rows(self.heads[0]), ir.ONE)
        return ir.add(self.guess, ir.index(2))  # the end of a row is written before it is known whether the row is appended

    def rows(self, head: int) -> ir.Expr:
        """How many rows an appended level has: positions of the level above it."""
        rows: ir.Expr = ir.ONE
        for k in range(head):
            above = next((other for other in self.heads if k in self.chain(other)), None)
            rows = ir.multiply(rows, self.view.levels[k].size) if above is None else self.cursor[above]
        return rows

    def grow(self, needed: ir.Expr, *arrays: ir.Array) -> ir.Stmt:
        """Room for as many elements in arrays that grow alike; nothing to do where there never are more than there is room for."""
        if self.bounded:
            return ir.block()
        full = ir.compare("less", self.capacity[arrays[0].name], needed)
        grown = [routines.grow(array, self.capacity[array.name], needed) for array in arrays]
        return grown[0] if len(grown) == 1 else ir.If(full, ir.block(*grown))

    def position(self, level: int, scope: Scope) -> ir.Expr:
        """The position of the node under construction at a level; -1 is the root."""
        if level < 0:
            return ir.ZERO
        for head in self.heads:
            if level in self.chain(head):
                return self.cursor[head]
        above = self.position(level - 1, scope)
        return ir.add(ir.multiply(above, self.view.levels[level].size), scope.coordinates[self.variables[level]])

    def demands_all(self, var: IndexVar) -> bool:
        """A dense level above an appended one has a row for every coordinate, unless rows that are passed over end too."""
        levels = self.lhs.tensor.format.levels
        return not self.ended and any(v == var and levels[k].full for k, v in enumerate(self.variables[: self.last]))

    def around(self, var: IndexVar, body: ir.Stmt, scope: Scope) -> ir.Stmt:
        """Append this coordinate at the levels it is stored at, if something was appended below."""
        mine = [k for k, v in enumerate(self.variables) if v == var]
        ends = {self.chain(head)[-1]: head for head in self.heads}
        for k in reversed(mine):
            if k in ends:
                body = self.around_head(ends[k], body, scope)
            if k != mine[0]:
                body = ir.block(body, self.own(self.close(k, scope)))
        return body

    def around_head(self, head: int, body: ir.Stmt, scope: Scope) -> ir.Stmt:
        """Append a coordinate of a head if something was appended or written below."""
        if head != self.last:
            below = self.heads[self.heads.index(head) + 1]
            begin = self.begins[below]
            appended = ir.compare("greater", self.cursor[below], begin)
            append: ir.Stmt = ir.If(appended, ir.block(self.append(head, scope), self.advance(head)))
            if self.goes_on:
                pos = self.view.levels[below].arrays["pos"]
                later = ir.Store(pos, self.cursor[head], cast(self.cursor[below], pos.dtype))
                append = ir.If(self._is_last(head, scope), later, append)
            return ir.block(self.own(ir.Declare(begin, self.cursor[below])), body, self.own(append))
        if not self.has_blocks:
            return body
        append = ir.block(self.append(head, scope), self.advance(head))
        flag = ir.Declare(self.written, ir.TRUE if self.certain else ir.FALSE)
        return ir.block(self.own(self.open_block(), flag), body, self.own(ir.If(self.written, append)))

    def _is_last(self, head: int, scope: Scope) -> ir.Expr:
        """Whether the row that was appended last is this one, which goes on, as the row above does or is being made."""
        cursor, place = self.cursor[head], self.heads.index(head)
        before = ir.Op("subtract", (cursor, ir.ONE))
        crds = [(load_index(self.view.levels[k].arrays["crd"], before), scope.coordinates[self.variables[k]]) for k in self.chain(head)]
        same = [ir.compare("equal", there, here) for there, here in crds]
        if place == 0:
            return ir.both(ir.compare("greater", cursor, ir.ZERO), *same)
        above = self._is_last(self.heads[place - 1], scope)
        return ir.both(ir.either(ir.compare("greater", cursor, self.begins[head]), above), *same)

    @property
    def has_blocks(self) -> bool:
        """Whether full levels stand below the last appended one, so that each of its positions has a block of values."""
        return self.tail + 1 < len(self.view.levels)

    def open_block(self) -> ir.Stmt:
        """Give a new block its first values."""
        size, values, cursor = self.block(), self.view.values, self.cursor[self.last]
        room = self.grow(ir.multiply(ir.add(cursor, ir.ONE), size), values)
        return ir.block(room, ir.Fill(values, ir.multiply(cursor, size), size, ir.constant(self.first, values.dtype)))

    def append(self, head: int, scope: Scope, *beside: ir.Array) -> ir.Stmt:
        """Append the coordinates of a head and the singletons below it; ``beside`` has as many elements, and grows with them."""
        cursor, levels = self.cursor[head], self.lhs.tensor.format.levels
        crds = [self.view.levels[k].arrays["crd"] for k in self.chain(head)]
        stored = [levels[k].append(self.view.levels[k], cursor, scope.coordinates[self.variables[k]]) for k in self.chain(head)]
        return ir.block(self.grow(ir.add(cursor, ir.ONE), *crds, *beside), *stored)

    def advance(self, head: int) -> ir.Stmt:
        """Go on to the next position of a head."""
        return ir.Assign(self.cursor[head], ir.add(self.cursor[head], ir.ONE))

    def after(self, var: IndexVar, scope: Scope) -> ir.Stmt:
        """Write where this row ends; a loop over several rows at once has ended each of them inside."""
        mine = [k for k, v in enumerate(self.variables) if v == var]
        return self.own(self.close(mine[0], scope)) if mine and self._is_in_row(mine[0], scope) else ir.block()

    def _is_in_row(self, level: int, scope: Scope) -> bool:
        """Whether the coordinates of the dense levels above are known, so that the row has a place."""
        return all(not self.lhs.tensor.format.levels[k].full or self.variables[k] in scope.coordinates for k in range(level))

    def close(self, level: int, scope: Scope) -> ir.Stmt:
        """Write where the row of a head ends that is under construction."""
        if level not in self.heads:
            return ir.block()
        pos, cursor = self.view.levels[level].arrays["pos"], self.cursor[level]
        parent = self.position(level - 1, scope)
        stmts: list[ir.Stmt] = []
        if level != self.heads[0]:
            stmts.append(self.grow(ir.add(parent, ir.index(2)), pos))
        if pos.dtype == INT32:
            limit = ir.compare("greater", cursor, ir.index(self.context.int32_limit))
            stmts.append(ir.If(limit, ir.Fail(ir.Status.INDEX_OVERFLOW)))
        end = ir.add(parent, ir.ONE)
        stmts += [self._end_rows(level, parent), ir.Store(pos, end, cast(cursor, pos.dtype))]
        if level in self.ended:
            stmts.append(ir.Assign(self.ended[level], end))
        return ir.block(*stmts)

    def _end_rows(self, head: int, before: ir.Expr) -> ir.Stmt:
        """Rows that were passed over end where the last one before them did."""
        if head not in self.ended:
            return ir.block()
        pos, ended = self.view.levels[head].arrays["pos"], self.ended[head]
        following = ir.add(ended, ir.ONE)
        empty = ir.block(ir.Store(pos, following, ir.Load(pos, ended)), ir.Assign(ended, following))
        return ir.While(ir.compare("less", ended, before), empty)

    def write(self, assign: Assign, value: Value, scope: Scope) -> ir.Stmt:
        """Append one value, or put it into the block under construction."""
        values, cursor = self.view.values, self.cursor[self.last]
        computed = cast(value.computed, values.dtype)
        if self.has_blocks:
            where = self.position(len(self.view.levels) - 1, scope)
            op = assign.op if scope.combines else None
            stored: ir.Stmt = ir.block(ir.Store(values, where, computed, op), ir.Assign(self.written, ir.TRUE))
        else:
            stored = ir.block(self.append(self.last, scope, values), ir.Store(values, cursor, computed), self.advance(self.last))
        return ir.when(value.present, stored)

    def finish(self) -> ir.Stmt:
        """End the rows behind the last one that was visited, and hand out how many positions each level has."""
        if self.in_parts:
            return ir.block()
        stmts = [self.end_all(head) for head in self.ended]
        return ir.block(*stmts, *(ir.Assign(count, self.cursor[k]) for k, count in self.counts.items()))

    def end_all(self, head: int) -> ir.Stmt:
        """End every row of a head that has not ended."""
        rows = self.rows(head)
        room = self.grow(ir.add(rows, ir.ONE), self.view.levels[head].arrays["pos"]) if head != self.heads[0] else None
        return ir.block(room, self._end_rows(head, rows))
