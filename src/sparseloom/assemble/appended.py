"""Sparse results whose entries come in storage order: one run of the loops appends them, or one counts them and another fills them in.

    for i                                    pos: 0 2 3      written when a row ends
      for j with an entry                    crd: 1 4 0      appended, arrays grow as needed
        append (j, value)                    vals: a b c

A level above others is appended only if something was appended below it, so results hold no empty rows where the format can leave
them out. Where the loops may pass over rows that the format cannot leave out, the row that ends next also ends those before it.

    parts of the rows         0    1    2
    entries counted           3    0    2         one number for each appended level
    each begins at            0    3    3  5      these are added up, and all arrays allocated; then every part is filled from there on

Threads take parts: of what grows, they are joined (in ``parts``); of what is counted, each is filled where it belongs. How many entries a
row of the full levels above has is then counted in ``pos``, which becomes positions by adding up.

Where the structure is known, only values are computed again: a cursor tells where each goes. Where every row has a place of its own, the
cursor begins anew in each, and rows can be filled in any order, by several threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from enum import Enum

from sparseloom.assemble.result import owned
from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import BOOL, INT32, INT64
from sparseloom.iteration.layout import has_row_places
from sparseloom.loops import nodes as ir
from sparseloom.loops import routines
from sparseloom.notation.nodes import Access, Assign, IndexVar
from sparseloom.scope.expression import cast
from sparseloom.scope.ranges import subtract
from sparseloom.scope.scope import Scope, Sharing, Sink, Value
from sparseloom.scope.views import Slot


class Stage(Enum):
    """What a run of the loops does to a result."""

    GROW = "grow"  # entries are appended to arrays that grow
    COUNT = "count"  # they are counted, and nothing is stored
    FILL = "fill"  # they are stored in arrays that were made for as many
    REFILL = "refill"  # their values are stored beside a structure that is handed in


@dataclass(frozen=True)
class Visits:
    """What is known of the loops that visit the entries of a result."""

    gaps: bool = False  # whether they may pass over empty rows of dense levels
    certain: bool = False  # whether a block has its values even if there is nothing to reduce into them
    bounded: bool = False  # whether there are never more entries than the guess says
    goes_on: bool = False  # whether a row may come again after it ended, as the next one: blocks of the loops cut rows


class AppendedResult(Sink):
    """Appends level by level. A compressed level and the singletons below it share one cursor: its *head*.

    ``first`` is what the values of a dense block hold before anything is written. One that ``takes_leaves`` has the last coordinates and
    the values of an operand in the same order. ``parts`` says in how many parts threads make it; None if they do not.
    """

    needs_presence = True

    def __init__(
        self,
        scope: Scope,
        lhs: Access,
        first: Scalar,
        visits: Visits,
        stage: Stage = Stage.GROW,
        takes_leaves: bool = False,
        parts: ir.Expr | None = None,
    ) -> None:
        self.context, self.lhs, self.first, self.visits, self.stage, self.parts = scope.context, lhs, first, visits, stage, parts
        self.view, self.variables = scope.view(lhs), scope.provenance.stored(lhs)
        levels, stem, fresh = lhs.tensor.format.levels, lhs.tensor.name, scope.fresh
        self.heads = [k for k, level in enumerate(levels) if level.can_append and not level.branchless]
        self.last, self.tail = self.heads[-1], max(k for k, level in enumerate(levels) if level.can_append)
        self.counts_rows = stage is Stage.COUNT  # whether rows of the first head are counted in its pos
        self._takes_leaves = takes_leaves
        # Full levels would multiply what the guess says.
        self._is_roomy = stage is not Stage.GROW or (visits.bounded and not any(level.full for level in levels[self.heads[0] :]))
        self.counts = {k: ir.Var(fresh(f"{stem}{k + 1}_count")) for k in self.heads}
        self.begins = {k: ir.Var(fresh(f"p{stem}{k + 1}_begin")) for k in self.heads[1:]}
        self._passed = [k for k in self.heads if visits.gaps and k > 0 and levels[k - 1].full]
        self.guess = ir.Var(fresh(f"{stem}_guess"))
        self.written = ir.Var(fresh(f"{stem}_written"), BOOL)
        self._capacity = {array: ir.Var(fresh(f"{array.name}_capacity")) for array in self.arrays()}
        self.starts = {k: ir.Array(fresh(f"{stem}{k + 1}_starts"), INT64) for k in self.heads if stage is Stage.COUNT}
        self._name_cursors()

    def _name_cursors(self) -> None:
        """Cursors for one run of the loops."""
        fresh, stem = self.context.names.fresh, self.lhs.tensor.name
        self.cursor = {k: ir.Var(fresh(f"p{stem}{k + 1}")) for k in self.heads}
        # How many rows have ended, where the loops may pass over empty ones: rows of dense levels.
        self.ended = {k: ir.Var(fresh(f"{stem}{k + 1}_ended")) for k in self._passed}
        self.limit = {k: ir.Var(fresh(f"p{stem}{k + 1}_limit")) for k in self.heads}
        # Where the row stood that ended last, for each level.
        self.stood = {k: ir.Var(fresh(f"p{stem}{k + 1}_stood")) for k in {self.heads[0], *self._passed}}

    def at(self, stage: Stage) -> AppendedResult:
        """The same result as another run of the loops sees it."""
        other = copy(self)
        other.stage, other.counts_rows = stage, stage is Stage.COUNT
        other._name_cursors()
        return other

    def of_thread(self, own: Mapping[ir.Array, ir.Array]) -> AppendedResult:
        """The same result as one thread sees it that appends parts: with arrays and cursors of its own, beside the counts of rows."""
        other = copy(self)
        other.parts, other.counts_rows, other.view = None, True, self.view.renamed(own)
        other._capacity = {array: ir.Var(self.context.names.fresh(f"{array.name}_capacity")) for array in other.arrays()}
        other._name_cursors()
        return other

    @property
    def sharing(self) -> Sharing:  # type: ignore[override]
        """Parts are joined, or filled where they belong; rows whose places are known are filled by any thread."""
        match self.stage:
            case Stage.COUNT | Stage.FILL:
                return Sharing.COUNTED
            case Stage.REFILL:
                return Sharing.ROWS if self.has_places else Sharing.NOT
        return Sharing.NOT if self._takes_leaves else Sharing.PARTS

    @property
    def has_places(self) -> bool:
        """Whether the place of every row is known, if the structure is."""
        return has_row_places(self.lhs.tensor.format)

    @property
    def rows_array(self) -> ir.Array:
        """The array in which rows of the first head begin."""
        return self.pos(self.heads[0])

    def pos(self, head: int) -> ir.Array:
        """The array in which the rows of a head begin."""
        return self.view.levels[head].arrays[str(self.lhs.tensor.format.levels[head].counted_in)]

    def stored(self, level: int) -> list[ir.Array]:
        """The arrays of a level that have an element for each position."""
        above = self.lhs.tensor.format.levels[level].parent_arrays
        return [array for part, array in self.view.levels[level].arrays.items() if part not in above]

    def every_array(self) -> list[ir.Array]:
        """Every array of the result."""
        return [a for level in self.view.levels for a in level.arrays.values()] + [self.view.values]

    def arrays(self) -> list[ir.Array]:
        """The arrays that are made here: not those that an operand lends, nor the counts of rows that threads share."""
        taken = [*self.stored(len(self.view.levels) - 1), self.view.values] if self._takes_leaves else []
        shared = [self.rows_array] if self.counts_rows and self.stage is Stage.GROW else []
        return [array for array in self.every_array() if array not in (*taken, *shared)]

    def chain(self, head: int) -> range:
        """The head and the singleton levels that share its positions."""
        levels = self.lhs.tensor.format.levels
        end = head + 1
        while end < len(levels) and levels[end].branchless:
            end += 1
        return range(head, end)

    def parameters(self) -> list[tuple[ir.Param, Slot]]:
        """All arrays are allocated here and handed out, with a count per head; or the structure goes in, and the values come out.

        ``guess`` sizes the first allocation.
        """
        name, refills = self.lhs.tensor.name, self.stage is Stage.REFILL
        role, made = ir.Role.INPUT if refills else ir.Role.GROWN, self.arrays()
        found = [
            (ir.Param(array, role), Slot(name, part, k))
            for k, level in enumerate(self.view.levels)
            for part, array in level.arrays.items()
            if array in made
        ]
        values = (ir.Param(self.view.values, ir.Role.OUTPUT if refills else ir.Role.GROWN), Slot(name, "values"))
        found += [values] if self.view.values in made else []
        if refills:
            return [*found, (ir.Param(self.counts[self.last], ir.Role.SIZE), Slot(name, "count"))]
        found += [(ir.Param(count, ir.Role.COUNT), Slot(name, "count", k)) for k, count in self.counts.items()]
        return [*found, (ir.Param(self.guess, ir.Role.SIZE), Slot(name, "guess"))]

    def expected(self) -> ir.Expr | None:
        """As many as there are, or as the caller guesses."""
        return self.counts[self.last] if self.stage is Stage.REFILL else self.guess

    def begin(self) -> ir.Stmt:
        """Allocate, and set every cursor to the start. What threads append in parts begins there."""
        if self.stage is Stage.REFILL:
            return self._begin_values()
        if self.stage is not Stage.GROW:
            more = ir.add(self.parts or ir.ONE, ir.ONE)
            return ir.block(self.without_rows(), *(_filled(starts, more) for starts in self.starts.values()))
        if self.parts is not None:
            return ir.block()
        stmts: list[ir.Stmt] = []
        for array in self.arrays():
            capacity = self._capacity[array]
            stmts += [ir.Declare(capacity, self._first_capacity(array)), ir.Allocate(array, capacity)]
        for head in self.heads:
            stmts.append(ir.Declare(self.cursor[head], ir.ZERO))
            pos = self.pos(head)
            if pos in self.arrays():
                stmts.append(ir.Store(pos, ir.ZERO, ir.Literal(0, pos.dtype)))
        stmts += [ir.Declare(ended, ir.ZERO) for ended in self.ended.values()]
        return ir.block(*stmts, ir.Declare(self.stood[self.heads[0]], ir.ZERO) if self.counts_rows else None)

    def _begin_values(self) -> ir.Stmt:
        """First values for blocks; one cursor for all entries, unless every row has its own."""
        values, has_blocks = self.view.values, self.has_blocks
        first = ir.Fill(values, ir.ZERO, self.counts[self.last], ir.constant(self.first, values.dtype)) if has_blocks else None
        return ir.block(first, None if self.has_places else ir.Declare(self.cursor[self.last], ir.ZERO))

    def without_rows(self) -> ir.Stmt:
        """Rows without a count."""
        return _filled(self.rows_array, ir.add(self.rows(self.heads[0]), ir.ONE))

    def _first_capacity(self, array: ir.Array) -> ir.Expr:
        if array == self.rows_array:
            return ir.add(self.rows(self.heads[0]), ir.ONE)
        return ir.add(self.guess, ir.index(2))  # the end of a row is written before it is known whether the row is appended

    def rows(self, head: int, positions: Mapping[int, ir.Var] | None = None) -> ir.Expr:
        """How many rows of a head stand below so many positions of the one above: below those of the cursor."""
        rows: ir.Expr = ir.ONE
        for k in range(head):
            above = next((other for other in self.heads if k in self.chain(other)), None)
            known = self.cursor if positions is None else positions
            rows = ir.multiply(rows, self.view.levels[k].size) if above is None else known[above]
        return rows

    def grow(self, needed: ir.Expr, *arrays: ir.Array) -> ir.Stmt:
        """Room for as many elements in arrays that grow alike; nothing to do where there never are more than there is room for."""
        if self._is_roomy:
            return ir.block()
        full = ir.compare("less", self._capacity[arrays[0]], needed)
        grown = [routines.grow(array, self._capacity[array], needed) for array in arrays]
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
        return not self._passed and any(v == var and levels[k].full for k, v in enumerate(self.variables[: self.last]))

    def around(self, var: IndexVar, body: ir.Stmt, scope: Scope) -> ir.Stmt:
        """Append this coordinate at the levels it is stored at, if something was appended below."""
        mine = [k for k, v in enumerate(self.variables) if v == var]
        ends = {self.chain(head)[-1]: head for head in self.heads}
        for k in reversed(mine):
            if k in ends:
                body = self._around_head(ends[k], body, scope)
            if k != mine[0]:
                body = ir.block(body, owned(self.lhs, self.close(k, scope)))
        if self.stage is Stage.REFILL and self.has_places and var == self.variables[self.last - 1]:
            return ir.block(ir.Declare(self.cursor[self.last], self.row_ends(scope)[0]), body)
        return body

    def row_ends(self, scope: Scope) -> tuple[ir.Expr, ir.Expr]:
        """The positions of the row that the scope's coordinates select."""
        level = self.lhs.tensor.format.levels[self.last]
        return level.bounds(self.view.levels[self.last], self.position(self.last - 1, scope))

    def _around_head(self, head: int, body: ir.Stmt, scope: Scope) -> ir.Stmt:
        """Append a coordinate of a head if something was appended or written below."""
        if head == self.last:
            return self._around_block(body, scope) if self.has_blocks else body
        if self.stage is Stage.REFILL:
            return body
        below = self.heads[self.heads.index(head) + 1]
        begin = self.begins[below]
        appended = ir.compare("greater", self.cursor[below], begin)
        append: ir.Stmt = ir.If(appended, ir.block(self._append(head, scope), self._advance(head)))
        if self.visits.goes_on:
            pos = self.pos(below)
            later = ir.Store(pos, self.cursor[head], cast(self.cursor[below], pos.dtype))
            append = ir.If(self._is_last(head, scope), later, append)
        return ir.block(owned(self.lhs, ir.Declare(begin, self.cursor[below])), body, owned(self.lhs, append))

    def _around_block(self, body: ir.Stmt, scope: Scope) -> ir.Stmt:
        """Append a coordinate with a block of values if something was written to it."""
        append = ir.block(self._append(self.last, scope), self._advance(self.last))
        flag = ir.Declare(self.written, ir.TRUE if self.visits.certain else ir.FALSE)
        return ir.block(owned(self.lhs, self._open_block(), flag), body, owned(self.lhs, ir.If(self.written, append)))

    def _is_last(self, head: int, scope: Scope) -> ir.Expr:
        """Whether the row that was appended last is this one, which goes on, as the row above does or is being made."""
        cursor, place = self.cursor[head], self.heads.index(head)
        before = ir.Op("subtract", (cursor, ir.ONE))
        levels = self.lhs.tensor.format.levels
        there = {k: levels[k].coordinate(self.view.levels[k], ir.ZERO, before) for k in self.chain(head)}
        same = [ir.compare("equal", last, scope.coordinates[self.variables[k]]) for k, last in there.items()]
        if place == 0:
            return ir.both(ir.compare("greater", cursor, ir.ZERO), *same)
        above = self._is_last(self.heads[place - 1], scope)
        return ir.both(ir.either(ir.compare("greater", cursor, self.begins[head]), above), *same)

    @property
    def has_blocks(self) -> bool:
        """Whether full levels stand below the last appended one, so that each of its positions has a block of values."""
        return self.tail + 1 < len(self.view.levels)

    def block(self) -> ir.Expr:
        """How many values stand below one position of the last appended level."""
        return self.view.size_below(self.tail + 1)

    def _open_block(self) -> ir.Stmt:
        """Give a new block its first values. One behind the part that is filled may never be written, and is another's."""
        if self.stage in (Stage.COUNT, Stage.REFILL):
            return ir.block()
        size, values, cursor = self.block(), self.view.values, self.cursor[self.last]
        room = self.grow(ir.multiply(ir.add(cursor, ir.ONE), size), values)
        opened = ir.block(room, ir.Fill(values, ir.multiply(cursor, size), size, ir.constant(self.first, values.dtype)))
        return ir.If(ir.compare("less", cursor, self.limit[self.last]), opened) if self.stage is Stage.FILL else opened

    def _append(self, head: int, scope: Scope, *beside: ir.Array) -> ir.Stmt:
        """Append the coordinates of a head and the singletons below it; ``beside`` has as many elements, and grows with them."""
        made = [k for k in self.chain(head) if not (self._takes_leaves and k + 1 == len(self.view.levels))]
        if self.stage in (Stage.COUNT, Stage.REFILL) or not made:
            return ir.block()
        cursor, levels = self.cursor[head], self.lhs.tensor.format.levels
        stored = [levels[k].append(self.view.levels[k], cursor, scope.coordinates[self.variables[k]]) for k in made]
        grown = [array for k in made for array in self.stored(k)]
        return ir.block(self.grow(ir.add(cursor, ir.ONE), *grown, *beside), *stored)

    def _advance(self, head: int) -> ir.Stmt:
        """Go on to the next position of a head."""
        return ir.Assign(self.cursor[head], ir.add(self.cursor[head], ir.ONE))

    def after(self, var: IndexVar, scope: Scope) -> ir.Stmt:
        """Write where this row ends; a loop over several rows at once has ended each of them inside."""
        mine = [k for k, v in enumerate(self.variables) if v == var]
        return owned(self.lhs, self.close(mine[0], scope)) if mine and self._is_in_row(mine[0], scope) else ir.block()

    def _is_in_row(self, level: int, scope: Scope) -> bool:
        """Whether the coordinates of the dense levels above are known, so that the row has a place."""
        return all(not self.lhs.tensor.format.levels[k].full or self.variables[k] in scope.coordinates for k in range(level))

    def close(self, level: int, scope: Scope) -> ir.Stmt:
        """Write where the row of a head ends that is under construction; or count its entries, if they are in the first head."""
        if level not in self.heads or self.stage is Stage.REFILL:
            return ir.block()
        pos, cursor, parent = self.pos(level), self.cursor[level], self.position(level - 1, scope)
        is_first, end = level == self.heads[0], ir.add(parent, ir.ONE)
        if is_first and self.counts_rows and level:
            stood = self.stood[level]
            return ir.block(ir.Store(pos, end, cast(subtract(cursor, stood), pos.dtype), "add"), ir.Assign(stood, cursor))
        if self.stage is Stage.COUNT or (is_first and (self.counts_rows or self.stage is Stage.FILL)):
            return ir.block()
        noted = [ir.Assign(self.ended[level], end)] if level in self.ended else []
        if self.stage is Stage.FILL:
            noted += [ir.Assign(self.stood[level], cursor)] if noted else []
            is_mine = ir.compare("less", parent, self.rows(level, self.limit))
            return ir.If(is_mine, ir.block(self.end_rows(level, parent), ir.Store(pos, end, cast(cursor, pos.dtype)), *noted))
        room = None if is_first else self.grow(ir.add(parent, ir.index(2)), pos)
        limit = ir.compare("greater", cursor, ir.index(self.context.int32_limit))
        fits = ir.If(limit, ir.Fail(ir.Status.INDEX_OVERFLOW)) if pos.dtype == INT32 else None
        return ir.block(room, fits, self.end_rows(level, parent), ir.Store(pos, end, cast(cursor, pos.dtype)), *noted)

    def end_rows(self, head: int, before: ir.Expr) -> ir.Stmt:
        """Rows that were passed over end where the last one before them did, which may be of another part."""
        if head not in self.ended:
            return ir.block()
        pos, ended = self.pos(head), self.ended[head]
        following = ir.add(ended, ir.ONE)
        there = cast(self.stood[head], pos.dtype) if self.stage is Stage.FILL else ir.Load(pos, ended)
        empty = ir.block(ir.Store(pos, following, there), ir.Assign(ended, following))
        return ir.While(ir.compare("less", ended, before), empty)

    def write(self, assign: Assign, value: Value, scope: Scope) -> ir.Stmt:
        """Append one value, or put it into the block under construction."""
        values, cursor = self.view.values, self.cursor[self.last]
        computed, is_stored = cast(value.computed, values.dtype), self.stage is not Stage.COUNT and values in self.arrays()
        stored: ir.Stmt
        if self.has_blocks:
            where = self.position(len(self.view.levels) - 1, scope) if is_stored else ir.ZERO
            written = ir.Store(values, where, computed, assign.op if scope.combines else None) if is_stored else None
            stored = ir.block(written, ir.Assign(self.written, ir.TRUE))
        else:
            appended = self._append(self.last, scope, *([values] if is_stored else []))
            stored = ir.block(appended, ir.Store(values, cursor, computed) if is_stored else None, self._advance(self.last))
        return ir.when(value.present, stored)

    def finish(self) -> ir.Stmt:
        """End the rows behind the last one that was visited, and hand out how many positions each level has."""
        if self.stage is not Stage.GROW:
            return ir.block(*map(ir.Free, self.starts.values()))
        if self.parts is not None:
            return ir.block()
        stmts = [self.end_all(head) for head in self.ended]
        return ir.block(*stmts, *(ir.Assign(count, self.cursor[k]) for k, count in self.counts.items()))

    def end_all(self, head: int) -> ir.Stmt:
        """End every row of a head that has not ended."""
        rows = self.rows(head)
        room = self.grow(ir.add(rows, ir.ONE), self.pos(head)) if head != self.heads[0] else None
        return ir.block(room, self.end_rows(head, rows))


def _filled(array: ir.Array, size: ir.Expr) -> ir.Stmt:
    """Room in which nothing is counted yet."""
    return ir.block(ir.Allocate(array, size), ir.Fill(array, ir.ZERO, size, ir.Literal(0, array.dtype)))
