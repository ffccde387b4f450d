"""An unrolled loop around a sum in vectors: its rows go through the sum together, so that what they share is read once.

    for r in 0 : min(4, n - 4*i)  [unrolled by 4]        if n - 4*i >= 4
      acc[lane] = 0                 for every lane          acc_of[r, lane] = 0               for 4 rows, for every lane
      for j                                         ==>     for j
        acc[lane] += A[r, j] * B[j, lane]                     acc_of[r, lane] += A[r, j] * B[j, lane]
      C[r, lane] = acc[lane]                                C[r, lane] = acc_of[r, lane]
                                                          else what is left, as it was

A sum in which rows take different ways, or which reads what the rows before it wrote, stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from sparseloom.core.names import Names
from sparseloom.core.trees import Node, rewrite, walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.rename import unused_names
from sparseloom.passes.in_lanes import lane_last

_MOST = 16  # rows
_IN_ORDER = (ir.LoopKind.SERIAL, ir.LoopKind.UNROLLED)


@dataclass(frozen=True)
class _Rows:
    """An unrolled loop that sums into lanes: the scalars that differ from row to row, how a sum begins, goes on and ends."""

    loop: ir.For
    first: tuple[ir.Declare, ...]
    begun: ir.For
    summed: ir.For
    last: tuple[ir.Stmt, ...]
    lanes: ir.Array
    width: int

    @property
    def own(self) -> set[str]:
        """The names of what differs from row to row."""
        return {self.loop.var.name, *(stmt.var.name for stmt in self.first)}


class _Apart(Exception):
    """Rows take different ways through a sum."""


def jam_lanes(function: ir.Function) -> ir.Function:
    """Let unrolled loops go through the sums in vectors inside them together."""
    names = unused_names(function)

    def rule(n: Node) -> Node | None:
        rows = _rows_of(n) if isinstance(n, ir.For) and n.kind is ir.LoopKind.UNROLLED and 1 < n.factor <= _MOST else None
        return None if rows is None else _jammed(rows, names)

    return rewrite(function, rule)


def _rows_of(loop: ir.For) -> _Rows | None:
    """A loop as rows, if all it does is one sum in lanes."""
    stmts = ir.stmts_of(loop.body)
    first = tuple(stmt for stmt in stmts if isinstance(stmt, ir.Declare))
    rest = stmts[len(first) :]
    if loop.begin != ir.ZERO or len(rest) < 3 or stmts[: len(first)] != first or any(map(_reads, first)):
        return None
    begun, summed, *last = rest
    if not (_is_over_lanes(begun) and isinstance(summed, ir.For) and summed.kind in _IN_ORDER and all(map(_is_over_lanes, last))):
        return None
    stored = {n.array for n in walk(ir.block(begun, summed)) if isinstance(n, ir.Store)}
    if len(stored) != 1 or not isinstance(begun, ir.For):
        return None
    (lanes,) = stored
    found = _Rows(loop, first, begun, summed, tuple(last), lanes, begun.factor)
    return found if lanes.space is ir.MemorySpace.LOCAL and _is_apart(found) else None


def _is_over_lanes(stmt: ir.Stmt) -> bool:
    match stmt:
        case ir.For(begin=ir.ZERO, end=ir.Literal(), kind=ir.LoopKind.LANES, factor=factor):
            return factor > 0
    return False


def _reads(stmt: ir.Stmt) -> bool:
    return any(isinstance(n, ir.Load | ir.Search) for n in walk(stmt))


def _is_apart(rows: _Rows) -> bool:
    """Whether no row reads what another one writes, and all write whole vectors of their sum and nothing else before they end."""
    written = {n.array for stmt in rows.last for n in walk(stmt) if isinstance(n, ir.Store)}
    read = {n.array for stmt in (rows.begun, rows.summed) for n in walk(stmt) if isinstance(n, ir.Load | ir.Search)}
    lanes = (n for stmt in (rows.begun, rows.summed, *rows.last) for n in walk(stmt) if isinstance(n, ir.For))
    widths = {n.factor for n in lanes if n.kind is ir.LoopKind.LANES}
    starts = all(isinstance(n, ir.Store) and n.op is None for n in ir.stmts_of(rows.begun.body))
    return starts and not written & (read | {rows.lanes}) and widths == {rows.width}


def _jammed(rows: _Rows, names: Names) -> ir.Stmt | None:
    """The rows side by side where there are as many as the loop is unrolled by, and one after another where there are fewer."""
    loop, count = rows.loop, ir.index(rows.loop.factor)
    kept = ir.Array(names.fresh(f"{rows.lanes.name}_of"), rows.lanes.dtype, ir.MemorySpace.LOCAL)

    def each(stmts: Sequence[ir.Stmt]) -> ir.Stmt:
        held = (_held(stmt, rows, kept) for stmt in stmts)
        return ir.For(loop.var, ir.ZERO, count, ir.block(*rows.first, *held), ir.LoopKind.UNROLLED, loop.factor, origin=loop.origin)

    try:
        summed = _together(rows.summed, rows.own, each)
    except _Apart:
        return None
    room = ir.Allocate(kept, ir.index(loop.factor * rows.width))
    together = ir.block(room, each((rows.begun,)), summed, each(rows.last), ir.Free(kept))
    return together if loop.end == count else ir.If(ir.compare("equal", loop.end, count), together, loop, origin=loop.origin)


def _together(stmt: ir.Stmt, own: set[str], each: Callable[[Sequence[ir.Stmt]], ir.Stmt]) -> ir.Stmt:
    """A part of the sum for all rows: what is the same for them once, the rest row by row innermost."""
    match stmt:
        case ir.For(kind=kind, begin=begin, end=end, body=body) if kind in _IN_ORDER and not _differs(own, begin, end):
            return replace(stmt, body=ir.block(*_in_turn(ir.stmts_of(body), own, each)))
    raise _Apart


def _in_turn(stmts: Sequence[ir.Stmt], own: set[str], each: Callable[[Sequence[ir.Stmt]], ir.Stmt]) -> Iterator[ir.Stmt]:
    """Statements of the sum: declarations that are the same for all rows, loops, and work in lanes, which comes last."""
    for at, stmt in enumerate(stmts):
        match stmt:
            case ir.Declare(_, value) if not _differs(own, value):
                yield stmt
            case ir.For(kind=ir.LoopKind.LANES) if all(map(_is_over_lanes, stmts[at:])):
                yield each(stmts[at:])
                return
            case _:
                yield _together(stmt, own, each)


def _differs(own: set[str], *exprs: ir.Expr) -> bool:
    return any(isinstance(n, ir.Var) and n.name in own for expr in exprs for n in walk(expr))


def _held(stmt: ir.Stmt, rows: _Rows, kept: ir.Array) -> ir.Stmt:
    """A statement of one row with its lanes in the place that they have among those of all rows."""

    def rule(n: Node) -> Node | None:
        match n:
            case ir.Load(array, index) if array == rows.lanes:
                return ir.Load(kept, _placed(index, rows))
            case ir.Store(array, index, value, op) if array == rows.lanes:
                return ir.Store(kept, _placed(index, rows), value, op, origin=n.origin)
        return None

    return rewrite(stmt, rule)


def _placed(index: ir.Expr, rows: _Rows) -> ir.Expr:
    moved = ir.add(ir.multiply(rows.loop.var, ir.index(rows.width)), index)
    found = lane_last(moved, index) if isinstance(index, ir.Var) else None
    return moved if found is None else found
