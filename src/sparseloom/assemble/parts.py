"""Sparse results made in parts: each is appended by one thread, and they are joined; or each is counted, and filled where it belongs.

    rows 0 .. 9      thread 1: crd 2 2 5                              parts    0      1
    rows 10 .. 19    thread 0: crd 1 4 0, vals ...   each from 0 on   ==>      2 2 5  1 4 0

A thread that appends does so to arrays of its own, and notes where each part of the rows begins there. Positions below other appended
levels move along with what they point to.
"""

from __future__ import annotations

from collections.abc import Mapping

from sparseloom.assemble.appended import AppendedResult, Stage
from sparseloom.core.dtypes import INT32, INT64
from sparseloom.loops import nodes as ir
from sparseloom.loops import routines
from sparseloom.scope.expression import cast
from sparseloom.scope.ranges import subtract


class JoinedParts:
    """The parts of a result that threads append, and how they are joined. ``thread`` is the result as one thread sees it."""

    def __init__(self, whole: AppendedResult, count: ir.Expr) -> None:
        self.whole, self._count = whole, count
        stem, fresh = whole.lhs.tensor.name, whole.context.names.fresh
        self.owners = ir.Array(fresh(f"{stem}_owners"), INT64)
        self.of: dict[int, routines.Parts] = {}
        for k in whole.heads:
            begins, starts = (ir.Array(fresh(f"{stem}{k + 1}_{what}"), INT64) for what in ("begins", "starts"))
            self.of[k] = routines.Parts(self.owners, begins, starts, count)
        self._own = {array: ir.Array(fresh(f"{array.name}_own"), array.dtype) for array in whole.every_array() if array != whole.rows_array}
        self.thread = whole.of_thread(self._own)
        self._pieces = {mine: routines.pieces(fresh(f"{mine.name}_pieces"), mine) for mine in self._own.values()}

    def open(self) -> ir.Stmt:
        """Rows without a count, and room to note the parts."""
        notes, more = self._notes(), ir.add(self._count, ir.ONE)
        made: list[ir.Stmt] = [*(ir.Allocate(array, more) for array in notes), *(ir.Fill(array, ir.ZERO, more, ir.ZERO) for array in notes)]
        pieces = [routines.make_pieces(pieces, self._count) for pieces in self._pieces.values()]
        return ir.block(self.whole.without_rows(), *made, *pieces)

    def _notes(self) -> list[ir.Array]:
        return [self.owners, *(array for parts in self.of.values() for array in (parts.begins, parts.starts))]

    def begin_part(self, part: ir.Expr) -> ir.Stmt:
        """Note whose part it is, and where it begins."""
        thread, first = self.thread, self.thread.heads[0]
        begins = [ir.Store(parts.begins, part, thread.cursor[k]) for k, parts in self.of.items()]
        return ir.block(ir.Store(self.owners, part, ir.Thread()), *begins, ir.Assign(thread.stood[first], thread.cursor[first]))

    def end_part(self, part: ir.Expr) -> ir.Stmt:
        """Note how many positions each head has in it."""
        lengths = {k: subtract(self.thread.cursor[k], ir.Load(parts.begins, part)) for k, parts in self.of.items()}
        return ir.block(*(ir.Store(self.of[k].starts, ir.add(part, ir.ONE), length) for k, length in lengths.items()))

    def keep(self) -> ir.Stmt:
        """End what rows are left to a thread, and hand its arrays over."""
        ended = [self.thread.end_all(head) for head in self.thread.ended if head != self.thread.heads[0]]
        return ir.block(*ended, *(routines.keep(pieces, mine) for mine, pieces in self._pieces.items()))

    def join(self) -> ir.Stmt:
        """Put the parts behind each other. Positions that do not fit are noticed before anything is written."""
        whole = self.whole
        stmts = [add_up(whole, {k: parts.starts for k, parts in self.of.items()}, self._count)]

        def joined(array: ir.Array, parts: routines.Parts, each: ir.Expr = ir.ONE, below: routines.Parts | None = None) -> ir.Stmt:
            return routines.join(array, self._pieces[self._own[array]], parts, each, below)

        above: tuple[routines.Parts, ir.Expr] | None = None
        for head, parts in self.of.items():
            if above is not None:
                stmts.append(joined(whole.pos(head), *above, below=parts))
            stmts += [joined(array, parts) for k in whole.chain(head) for array in whole.stored(k)]
            above = parts, _positions_below(whole, whole.chain(head).stop)
        stmts.append(joined(whole.view.values, self.of[whole.last], whole.block()))
        return ir.block(*stmts, *(ir.Free(array) for array in self._notes()))


def begin_counted(result: AppendedResult, part: ir.Expr) -> ir.Stmt:
    """Set every cursor to where the part begins; while it is counted, to the start."""
    stmts: list[ir.Stmt] = []
    for k, cursor in result.cursor.items():
        starts = result.starts[k]
        stmts.append(ir.Declare(cursor, ir.ZERO if result.stage is Stage.COUNT else ir.Load(starts, part)))
        if result.stage is Stage.FILL:
            stmts.append(ir.Declare(result.limit[k], ir.Load(starts, ir.add(part, ir.ONE))))
    stmts += [ir.Declare(stood, result.cursor[k]) for k, stood in result.stood.items()]
    return ir.block(*stmts, *(ir.Declare(ended, result.rows(k)) for k, ended in result.ended.items()))


def end_counted(result: AppendedResult, part: ir.Expr) -> ir.Stmt:
    """Note how many positions each head has in the part; or end what rows are left."""
    if result.stage is Stage.COUNT:
        following = ir.add(part, ir.ONE)
        return ir.block(*(ir.Store(starts, following, result.cursor[k]) for k, starts in result.starts.items()))
    return ir.block(*(result.end_rows(k, result.rows(k)) for k in result.ended if k != result.heads[0]))


def arranged(result: AppendedResult) -> ir.Stmt:
    """What runs between counting and filling: where each part begins, and room for all of them."""
    stmts, first = [add_up(result, result.starts, result.parts or ir.ONE)], result.heads[0]
    for head in result.heads:
        pos = result.pos(head)
        if head != first:
            size = ir.add(result.rows(head, result.counts), ir.ONE)
            stmts += [ir.Allocate(pos, size), ir.Store(pos, ir.ZERO, ir.Literal(0, pos.dtype))]
        stmts += [ir.Allocate(array, result.counts[head]) for k in result.chain(head) for array in result.stored(k)]
    return ir.block(*stmts, ir.Allocate(result.view.values, ir.multiply(result.counts[result.last], result.block())))


def add_up(whole: AppendedResult, starts: Mapping[int, ir.Array], count: ir.Expr) -> ir.Stmt:
    """Turn the counts of parts into where each begins, and those of the first rows into their positions; too many are rejected."""
    names, first, rows = whole.context.names, whole.heads[0], whole.rows_array

    def summed(counts: ir.Array, length: ir.Expr) -> ir.Stmt:
        place = ir.Var(names.fresh("place"))
        return ir.For(place, ir.ZERO, length, ir.Store(counts, ir.add(place, ir.ONE), ir.Load(counts, place), "add"))

    stmts = [summed(counts, count) for counts in starts.values()]
    stmts += [ir.Assign(whole.counts[k], ir.Load(counts, count)) for k, counts in starts.items()]
    if rows.dtype == INT32:
        too_many = (ir.compare("greater", total, ir.index(whole.context.int32_limit)) for total in whole.counts.values())
        stmts.append(ir.If(ir.either(*too_many), ir.Fail(ir.Status.INDEX_OVERFLOW)))
    only = ir.Store(rows, ir.ONE, cast(whole.counts[first], rows.dtype))
    return ir.block(*stmts, summed(rows, whole.rows(first)) if first else only)


def _positions_below(whole: AppendedResult, begin: int) -> ir.Expr:
    """How many positions the full levels from ``begin`` on have below one position, down to the next appended level."""
    size: ir.Expr = ir.ONE
    for k in range(begin, len(whole.view.levels)):
        if k in whole.heads:
            break
        size = ir.multiply(size, whole.view.levels[k].size)
    return size
