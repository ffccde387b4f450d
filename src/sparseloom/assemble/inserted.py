"""Sparse results whose entries have places before they come, in whatever order: at once, or after something was asked of each row.

    for i                        pos: 0 0 0 2 1 ...      how many entries each row has, two places on
      for j with an entry
        pos[j + 2] += 1
    add up pos                   pos[j + 1] is where row j begins
    for i
      for j with an entry        crd, vals: written at pos[j + 1]++, after which pos[j + 1] is where row j ends
        put (i, value)

A level says what must be known of each parent (``Level.queries``): the loops run once to find it, and once to fill. A level that has
a place for every coordinate, as a bitmap has, asks for nothing, and neither do those above the last, so that every row has a place
before the loops run. Each entry comes once, and those of one row come in order: below fixed coordinates of the upper levels only the
loop over the last one is left, and it ascends.

Rows are met in any order, so that most entries miss the caches. Where one operand tells the row of each entry, the place of one that comes
a few entries later is fetched ahead: csr to csc took an eighth less time.

Threads that insert in pieces count apart, so that every piece has places of its own in every row (in ``places``).
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

from sparseloom.assemble.places import Places
from sparseloom.core.dtypes import INT32, INT64
from sparseloom.formats.level import Query, load_index
from sparseloom.loops import nodes as ir
from sparseloom.loops import routines
from sparseloom.notation.nodes import Access, Assign, IndexVar
from sparseloom.scope.expression import cast
from sparseloom.scope.ranges import least, subtract
from sparseloom.scope.scope import Scope, Sharing, Sink, Value
from sparseloom.scope.views import Slot

AHEAD = 12  # entries
_ASKED = {Query.COUNT: "add", Query.LEAST: "minimum", Query.MOST: "maximum"}


class InsertedResult(Sink):
    """Entries are put where they belong. The loops see no result to append to.

    ``driver`` is the operand whose entries come one after another, if they tell their rows. One that ``takes_leaves`` has the last
    coordinates and the values of an operand: its entries are only counted. ``places`` are those of pieces that threads insert.
    """

    needs_presence = True

    def __init__(
        self, scope: Scope, lhs: Access, driver: Access | None = None, takes_leaves: bool = False, places: ir.Expr | None = None
    ) -> None:
        self.context, self.lhs, self.view = scope.context, lhs, scope.view(lhs)
        self._stored = scope.provenance.stored(lhs)
        self._kinds, self._last = lhs.tensor.format.levels, self.view.levels[-1]
        self._kind = self._kinds[-1]
        self._driver, self._takes_leaves = driver, takes_leaves
        self.asks = bool(self._kind.queries)
        self.is_counting = self.asks
        self.sharing = Sharing.ROWS if self.asks else Sharing.PLACES
        stem, depth = lhs.tensor.name, len(self.view.levels)
        counted = None if self._kind.counted_in is None else self._last.arrays[self._kind.counted_in]
        self._pos = counted  # counts, then where the next entry of each row goes, and in the end where rows begin
        self._ahead = 1 if takes_leaves else 2  # how far behind its row a count stands, so that rows begin where the ones before ended
        self._total = next(iter(self._last.scalars.values()), None) or ir.Var(scope.fresh(f"{stem}{depth}_count"))
        self._begins = ir.Array(scope.fresh(f"{stem}_begins"), INT64)
        asked = () if counted is not None else self._kind.queries
        self._found = {query: ir.Array(scope.fresh(f"{stem}{depth}_{query.value}"), INT64) for query in asked}
        turns = bool(asked) and not self._kind.can_locate
        self._turn = self._found.get(Query.COUNT, ir.Array(scope.fresh(f"{stem}{depth}_next"), INT64)) if turns else None
        self.places: Places | None = None
        if places is not None and counted is not None:
            self.places = Places(ir.Array(scope.fresh(f"{stem}{depth}_places"), counted.dtype), places, self._rows())

    def parameters(self) -> list[tuple[ir.Param, Slot]]:
        """The arrays that are allocated here and handed out, and the last level's scalar, or how many positions it has."""
        name, last = self.lhs.tensor.name, len(self.view.levels) - 1
        taken = () if not self._takes_leaves else tuple(part for part in self._kind.array_names if part not in self._kind.parent_arrays)
        found = [
            (ir.Param(array, ir.Role.GROWN), Slot(name, part, k))
            for k, level in enumerate(self.view.levels)
            for part, array in level.arrays.items()
            if k < last or part not in taken
        ]
        if not self._takes_leaves:
            found.append((ir.Param(self.view.values, ir.Role.GROWN), Slot(name, "values")))
        if self.asks:
            found.append((ir.Param(self._total, ir.Role.COUNT), Slot(name, next(iter(self._last.scalars), "count"), last)))
        return found

    def _rows(self) -> ir.Expr:
        """How many parents the last level has: all levels above have a place for every coordinate."""
        rows: ir.Expr = ir.ONE
        for level in self.view.levels[:-1]:
            rows = ir.multiply(rows, level.size)
        return rows

    def begin(self) -> ir.Stmt:
        """Nothing is stored yet, and nothing is known of any row."""
        stmts: list[ir.Stmt] = []
        count: ir.Expr = ir.ONE
        for kind, level in zip(self._kinds[: -1 if self.asks else None], self.view.levels, strict=False):
            count = ir.multiply(count, level.size)
            stmts += [_filled(array, count, _zero(array)) for array in level.arrays.values() if kind.can_insert]
        if not self.asks:
            return ir.block(*stmts, _filled(self.view.values, count, ir.constant(self.lhs.tensor.fill, self.view.values.dtype)))
        if self.places is not None and self._pos is not None:
            return ir.block(*stmts, ir.Allocate(self._pos, ir.add(count, ir.ONE)), self.places.begin())
        if self._pos is not None:
            return ir.block(*stmts, _filled(self._pos, ir.add(count, ir.index(self._ahead)), _zero(self._pos)))
        first = {Query.COUNT: ir.ZERO, Query.LEAST: self._last.size, Query.MOST: ir.index(-1)}
        return ir.block(*stmts, *(_filled(array, count, first[query]) for query, array in self._found.items()))

    def filling(self) -> InsertedResult:
        """The same result when all that is asked of it is known."""
        other = copy(self)
        other.is_counting = False
        return other

    def arranged(self) -> ir.Stmt:
        """What runs between asking and filling: where each row begins, and room for all entries."""
        pos, names = self._pos, self.context.names
        if pos is None:
            return self._arranged_by_level()
        too_many = ir.compare("greater", self._total, ir.index(self.context.int32_limit))
        return ir.block(
            self._add_up(pos) if self.places is None else self.places.count(self._total, self._begins, names),
            ir.If(too_many, ir.Fail(ir.Status.INDEX_OVERFLOW)) if pos.dtype == INT32 else None,
            None if self.places is None else self.places.place(pos, self._begins, names),
            self._room(self._total),
        )

    def _arranged_by_level(self) -> ir.Stmt:
        """The level makes its arrays from what was found; then each row's entries go where it begins, in turn."""
        fresh, rows, row = self.context.names.fresh, self._rows(), ir.Var(self.context.names.fresh("row"))
        made, count = self._kind.arrange(self._last, rows, self._found, fresh)
        positions = self._total if not self._last.scalars else ir.Var(fresh(f"{self.lhs.tensor.name}_positions"))
        told = ir.Assign(positions, count) if positions == self._total else ir.Declare(positions, count)
        too_many = ir.compare("greater", positions, ir.index(self.context.int32_limit))
        is_narrow = any(array.dtype == INT32 for array in self._last.arrays.values())
        stmts = [made, told, ir.If(too_many, ir.Fail(ir.Status.INDEX_OVERFLOW)) if is_narrow else None, self._room(positions)]
        if self._turn is not None:
            stmts += [] if self._turn in self._found.values() else [ir.Allocate(self._turn, rows)]
            stmts.append(ir.For(row, ir.ZERO, rows, ir.Store(self._turn, row, self._kind.begin(self._last, row))))
        return ir.block(*stmts)

    def _room(self, positions: ir.Expr) -> ir.Stmt:
        """Make room for all positions; those that may stay unused hold what says so."""
        if self._takes_leaves:
            return ir.block()
        arrays = [array for part, array in self._last.arrays.items() if part not in self._kind.parent_arrays]
        values = self.view.values
        if self._kind.compact and not self._kind.padded:
            return ir.block(*(ir.Allocate(array, positions) for array in (*arrays, values)))
        fill = ir.constant(self.lhs.tensor.fill, values.dtype)
        return ir.block(*(_filled(array, positions, _zero(array)) for array in arrays), _filled(values, positions, fill))

    def _add_up(self, pos: ir.Array) -> ir.Stmt:
        """Turn the counts of rows into where they begin."""
        total, row = self._total, ir.Var(self.context.names.fresh("row"))
        here = ir.add(row, ir.index(self._ahead))
        added = ir.Assign(total, ir.add(total, ir.Cast(ir.Load(pos, here), INT64)))
        return ir.For(row, ir.ZERO, self._rows(), ir.block(added, ir.Store(pos, here, cast(total, pos.dtype))))

    def finish(self) -> ir.Stmt:
        """Give back what only served to find places."""
        arrays = [*self._found.values(), *([] if self._turn is None else [self._turn])]
        arrays += [] if self.places is None else [self.places.array]
        return ir.block(*map(ir.Free, dict.fromkeys(arrays)))

    def _row(self, coordinates: Mapping[IndexVar, ir.Expr]) -> ir.Expr:
        """The position above the last level."""
        row: ir.Expr = ir.ZERO
        for kind, level, var in zip(self._kinds[:-1], self.view.levels, self._stored, strict=False):
            row, _ = kind.locate(level, row, coordinates[var])
        return row

    def _fetched_ahead(self, scope: Scope) -> ir.Stmt:
        """Fetch the place of an entry that comes later; the last ones fetch that of the very last."""
        if self._driver is None or self._pos is None or self._kind.coordinate_array is None:
            return ir.block()
        form, levels = self._driver.tensor.format, scope.view(self._driver).levels
        begin, _ = form.chains[-1]
        tail = range(begin, len(form.levels))
        listed = all(form.levels[k].compact and form.levels[k].coordinate_array is not None for k in tail)
        if not all(level.full for level in form.levels[:begin]) or not listed:
            return ir.block()  # nothing tells how many entries there are, or where they are
        rows: ir.Expr = ir.ONE
        for level in levels[:begin]:
            rows = ir.multiply(rows, level.size)
        last = subtract(form.levels[begin].begin(levels[begin], rows), ir.ONE)
        later, place = ir.Var(scope.fresh("later")), ir.Var(scope.fresh("place"))
        stored = scope.provenance.stored(self._driver)
        row = self._row({stored[k]: form.levels[k].coordinate(levels[k], ir.ZERO, later) for k in tail})
        return ir.block(
            ir.Declare(later, least(ir.add(scope.at(self._driver).position, ir.index(AHEAD)), last)),
            ir.Declare(place, load_index(*self._next(row, self._pos, scope))),
            routines.prefetch(self._last.arrays[self._kind.coordinate_array], place),
            routines.prefetch(self.view.values, place),
        )

    def _next(self, row: ir.Expr, pos: ir.Array, scope: Scope) -> tuple[ir.Array, ir.Expr]:
        """What says where the next entry of a row goes; and while they are counted, how many there are."""
        if scope.copy is not None:
            return scope.copy[1], ir.add(scope.copy[2], row)
        return pos, ir.add(row, ir.index(self._ahead if self.is_counting else 1))

    def write(self, assign: Assign, value: Value, scope: Scope) -> ir.Stmt:
        """Note what is asked of one entry, or put it where it belongs."""
        return ir.when(value.present, self._asked(scope) if self.is_counting else self._inserted(value, scope))

    def _asked(self, scope: Scope) -> ir.Stmt:
        row = self._row(scope.coordinates)
        if self._pos is not None:
            array, at = self._next(row, self._pos, scope)
            return ir.Store(array, at, ir.Literal(1, array.dtype), "add")
        here = scope.coordinates.get(self._stored[-1], ir.ZERO)  # which need not be known where entries are only counted
        each = {Query.COUNT: ir.ONE, Query.LEAST: here, Query.MOST: here}
        return ir.block(*(ir.Store(array, row, each[query], _ASKED[query]) for query, array in self._found.items()))

    def _inserted(self, value: Value, scope: Scope) -> ir.Stmt:
        row, coordinate, values = self._row(scope.coordinates), scope.coordinates[self._stored[-1]], self.view.values
        computed = cast(value.computed, values.dtype)
        if self._kind.can_locate:
            place, _ = self._kind.locate(self._last, row, coordinate)
            return ir.block(*self._marks(scope), ir.Store(values, place, computed))
        if self._turn is not None:
            array, at = self._turn, row
        elif self._pos is not None:
            array, at = self._next(row, self._pos, scope)
        position = ir.Var(self.context.names.fresh(f"p{self.lhs.tensor.name}{len(self.view.levels)}"))
        return ir.block(
            self._fetched_ahead(scope),
            ir.Declare(position, ir.Cast(ir.Load(array, at), INT64)),
            *self._marks(scope, position),
            ir.Store(values, position, computed),
            ir.Store(array, at, cast(ir.add(position, ir.ONE), array.dtype)),
        )

    def _marks(self, scope: Scope, place: ir.Expr | None = None) -> list[ir.Stmt]:
        """What the levels note of an entry, the last one at a place."""
        stmts: list[ir.Stmt] = []
        position: ir.Expr = ir.ZERO
        for k, (kind, level, var) in enumerate(zip(self._kinds, self.view.levels, self._stored, strict=True)):
            coordinate, is_last = scope.coordinates[var], k + 1 == len(self._kinds)
            position = place if is_last and place is not None else kind.locate(level, position, coordinate)[0]
            if kind.can_insert:
                stmts.append(kind.insert(level, position, coordinate))
        return stmts


def _zero(array: ir.Array) -> ir.Expr:
    """What an array holds where nothing is stored."""
    return ir.constant(0, array.dtype)


def _filled(array: ir.Array, count: ir.Expr, first: ir.Expr) -> ir.Stmt:
    return ir.block(ir.Allocate(array, count), ir.Fill(array, ir.ZERO, count, first))
