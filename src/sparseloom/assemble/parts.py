"""A sparse result made in parts: threads append rows of their own, and the parts are joined.

    rows 0 .. 9      thread 1: crd 2 2 5                              parts    0      1
    rows 10 .. 19    thread 0: crd 1 4 0, vals ...   each from 0 on   ==>      2 2 5  1 4 0

Every thread appends what it makes to arrays of its own, and notes where each part of the rows begins there. How many entries a row
of the full levels above has is counted in ``pos``, which becomes positions by adding up. Positions below other appended levels move
along with what they point to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sparseloom.assemble.append import AppendResult
from sparseloom.core.dtypes import INT32, INT64
from sparseloom.formats.level import LevelView
from sparseloom.loops import nodes as ir
from sparseloom.loops import routines
from sparseloom.scope.expression import cast
from sparseloom.scope.ranges import subtract
from sparseloom.scope.scope import Scope
from sparseloom.scope.views import TensorView


class ThreadResult(AppendResult):
    """The result as one thread sees it: arrays and cursors of its own."""

    def __init__(self, parts: PartedResult, scope: Scope) -> None:
        whole = parts.whole
        super().__init__(scope, whole.lhs, whole.first, whole.gaps, whole.certain, whole.bounded, _own_view(whole), whole.goes_on)
        self._parts = parts
        self._ended = ir.Var(scope.fresh(f"p{whole.lhs.tensor.name}_ended"))
        self.guess = whole.guess

    def arrays(self) -> list[ir.Array]:
        """Those of the thread alone: the rows' counts are shared."""
        return [array for array in self.view_arrays() if array != self._parts.rows]

    def begin(self) -> ir.Stmt:
        """Allocate, and set every cursor to the start."""
        return ir.block(super().begin(), ir.Declare(self._ended, ir.ZERO))

    def begin_part(self, part: ir.Expr) -> ir.Stmt:
        """Note whose part it is, and where it begins."""
        begins = [ir.Store(self._parts.of[k].begins, part, self.cursor[k]) for k in self.heads]
        return ir.block(ir.Store(self._parts.owners, part, ir.Thread()), *begins, ir.Assign(self._ended, self.cursor[self.heads[0]]))

    def end_part(self, part: ir.Expr) -> ir.Stmt:
        """Note how many positions each head has in it."""
        lengths = {k: subtract(self.cursor[k], ir.Load(self._parts.of[k].begins, part)) for k in self.heads}
        return ir.block(*(ir.Store(self._parts.of[k].starts, ir.add(part, ir.ONE), length) for k, length in lengths.items()))

    def keep(self) -> ir.Stmt:
        """End what rows are left, and hand the arrays over."""
        ended = [self.end_all(head) for head in self.ended if head != self.heads[0]]
        return ir.block(*ended, *(routines.keep(self._parts.pieces[mine], mine) for mine in self.arrays()))

    def close(self, level: int, scope: Scope) -> ir.Stmt:
        """Count the entries of a row of the first head, unless it has but one row; further down nothing is shared."""
        if level != self.heads[0]:
            return super().close(level, scope)
        if level == 0:
            return ir.block()
        pos, cursor = self._parts.rows, self.cursor[level]
        row = ir.add(self.position(level - 1, scope), ir.ONE)
        counted = ir.Store(pos, row, cast(subtract(cursor, self._ended), pos.dtype), "add")
        return ir.block(counted, ir.Assign(self._ended, cursor))


class PartedResult:
    """The parts of an appended result, and how they are joined."""

    def __init__(self, whole: AppendResult, count: ir.Expr, scope: Scope) -> None:
        self.whole, self._count = whole, count
        whole.in_parts = True
        stem, fresh = whole.lhs.tensor.name, scope.fresh
        self.rows = whole.view.levels[whole.heads[0]].arrays["pos"]
        self.owners = ir.Array(fresh(f"{stem}_owners"), INT64)
        self.of: dict[int, routines.Parts] = {}
        for k in whole.heads:
            begins, starts = (ir.Array(fresh(f"{stem}{k + 1}_{what}"), INT64) for what in ("begins", "starts"))
            self.of[k] = routines.Parts(self.owners, begins, starts, count)
        self.thread = ThreadResult(self, scope)
        self.pieces = {mine: routines.pieces(fresh(f"{mine.name}_pieces"), mine) for mine in self.thread.arrays()}

    def open(self) -> ir.Stmt:
        """Rows without a count, and room to note the parts."""
        size, more = ir.add(self.whole.rows(self.whole.heads[0]), ir.ONE), ir.add(self._count, ir.ONE)
        made: list[ir.Stmt] = [ir.Allocate(self.rows, size), ir.Fill(self.rows, ir.ZERO, size, ir.Literal(0, self.rows.dtype))]
        made += [ir.Allocate(array, more) for array in self._notes()]
        made += [ir.Fill(array, ir.ZERO, more, ir.ZERO) for array in self._notes()]
        return ir.block(*made, *(routines.make_pieces(pieces, self._count) for pieces in self.pieces.values()))

    def _notes(self) -> list[ir.Array]:
        return [self.owners, *(array for parts in self.of.values() for array in (parts.begins, parts.starts))]

    def join(self) -> ir.Stmt:
        """Put the parts behind each other. Positions that do not fit are noticed before anything is written."""
        whole = self.whole
        stmts = [add_up_parts(whole, {k: parts.starts for k, parts in self.of.items()}, self._count)]
        own = dict(zip(whole.view_arrays(), self.thread.view_arrays(), strict=True))

        def joined(array: ir.Array, parts: routines.Parts, each: ir.Expr = ir.ONE, below: routines.Parts | None = None) -> ir.Stmt:
            return routines.join(array, self.pieces[own[array]], parts, each, below)

        above: tuple[routines.Parts, ir.Expr] | None = None
        for head, parts in self.of.items():
            if above is not None:
                stmts.append(joined(whole.view.levels[head].arrays["pos"], *above, below=parts))
            stmts += [joined(whole.view.levels[k].arrays["crd"], parts) for k in whole.chain(head)]
            above = parts, _positions_below(whole, whole.chain(head).stop)
        stmts.append(joined(whole.view.values, self.of[whole.last], whole.block()))
        return ir.block(*stmts, *(ir.Free(array) for array in self._notes()))


def add_up_parts(whole: AppendResult, starts: Mapping[int, ir.Array], count: ir.Expr) -> ir.Stmt:
    """Turn the counts of parts into where each begins, and those of the first rows into their positions; too many are refused."""
    names, first = whole.context.names, whole.heads[0]
    rows = whole.view.levels[first].arrays["pos"]

    def add_up(counts: ir.Array, length: ir.Expr) -> ir.Stmt:
        place = ir.Var(names.fresh("place"))
        return ir.For(place, ir.ZERO, length, ir.Store(counts, ir.add(place, ir.ONE), ir.Load(counts, place), "add"))

    stmts = [add_up(counts, count) for counts in starts.values()]
    stmts += [ir.Assign(whole.counts[k], ir.Load(counts, count)) for k, counts in starts.items()]
    if rows.dtype == INT32:
        too_many = (ir.compare("greater", total, ir.index(whole.context.int32_limit)) for total in whole.counts.values())
        stmts.append(ir.If(ir.either(*too_many), ir.Fail(ir.Status.INDEX_OVERFLOW)))
    only = ir.Store(rows, ir.ONE, cast(whole.counts[first], rows.dtype))
    return ir.block(*stmts, add_up(rows, whole.rows(first)) if first else only)


def _positions_below(whole: AppendResult, begin: int) -> ir.Expr:
    """How many positions the full levels from ``begin`` on have below one position, down to the next appended level."""
    size: ir.Expr = ir.ONE
    for k in range(begin, len(whole.view.levels)):
        if k in whole.heads:
            break
        size = ir.multiply(size, whole.view.levels[k].size)
    return size


def _own_view(whole: AppendResult) -> TensorView:
    """The same arrays under names of a thread's own, but for the rows' counts."""
    view, fresh = whole.view, whole.context.names.fresh
    shared = view.levels[whole.heads[0]].arrays["pos"]
    levels = []
    for level in view.levels:
        arrays = {name: a if a == shared else ir.Array(fresh(f"{a.name}_own"), a.dtype) for name, a in level.arrays.items()}
        levels.append(LevelView(level.size, arrays, level.scalars))
    return replace(view, levels=tuple(levels), values=ir.Array(fresh(f"{view.values.name}_own"), view.values.dtype))
