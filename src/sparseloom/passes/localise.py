"""Places that a loop adds to again and again, a few beside each other: they are kept by the thread until the loop has ended.

    for p in 0 : m                           allocate C_kept: float64[4] local
      for q in 0 : 4  [unrolled 4]           for q in 0 : 4  [unrolled 4]
        C[t * 4 + q] += A[p + q]      ==>      C_kept[q] = 0.0
                                             for p in 0 : m
                                               for q in 0 : 4  [unrolled 4]
                                                 C_kept[q] += A[p + q]
                                             for q in 0 : 4  [unrolled 4]
                                               C[t * 4 + q] += C_kept[q]
                                             free C_kept

A loop may add to several rows of places, and in several arrays, if it does nothing else with these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sparseloom.core.algebra import identity
from sparseloom.core.names import Names
from sparseloom.core.trees import Node, rewrite, walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.facts import added, depends, is_short, meaning, reads_memory, trip_count, uses
from sparseloom.loops.rename import unused_names

_MOST = 32  # places that a thread keeps
_IN_ORDER = (ir.LoopKind.SERIAL, ir.LoopKind.UNROLLED)


@dataclass(frozen=True)
class _Row:
    """What adds to places beside each other, in short loops, and the conditions under which a loop around these does.

    ``stmt`` is in terms of what is known outside, ``written`` as it is in the loop.
    """

    loops: tuple[ir.For, ...]
    stmt: ir.Store | ir.If
    conditions: tuple[ir.Expr, ...]
    written: ir.Store | ir.If

    @property
    def store(self) -> ir.Store:
        """How it adds."""
        return next(n for n in walk(self.stmt) if isinstance(n, ir.Store))

    @property
    def count(self) -> int:
        """How many places there are."""
        count = 1
        for loop in self.loops:
            count *= trip_count(loop) or 0
        return count

    @property
    def number(self) -> ir.Expr:
        """Which of them is added to."""
        number: ir.Expr = ir.ZERO
        for loop in self.loops:
            number = added([ir.multiply(number, loop.end), loop.var])
        return number

    def around(self, stmt: ir.Stmt) -> ir.Stmt:
        """The short loops around another statement."""
        for loop in reversed(self.loops):
            stmt = replace(loop, body=stmt)
        return stmt


def keep_in_registers(function: ir.Function) -> ir.Function:
    """Keep what threads of a GPU add to in memory of their own, where that is the same all through a loop."""
    names = unused_names(function)

    def rule(n: Node) -> Node | None:
        if isinstance(n, ir.For) and n.kind is ir.LoopKind.GPU_THREAD:
            return replace(n, body=_kept(n.body, names))
        return None

    return rewrite(function, rule, ir.Stmt)


def _kept(stmt: ir.Stmt, names: Names) -> ir.Stmt:
    """A statement of a thread whose outermost loops keep what they add to."""
    match stmt:
        case ir.Block(stmts):
            return ir.block(*(_kept(inner, names) for inner in stmts))
        case ir.If(condition, then, other):
            return ir.If(condition, _kept(then, names), _kept(other, names), origin=stmt.origin)
        case ir.For(kind=kind) if kind in _IN_ORDER:
            rows = _rows_of(stmt)
            return _with_rows(stmt, rows, names) if rows else replace(stmt, body=_kept(stmt.body, names))
        case ir.While(body=body):
            return replace(stmt, body=_kept(body, names))
    return stmt


def _rows_of(loop: ir.For) -> list[_Row]:
    """The rows that a loop adds to, of arrays with which it does nothing else."""
    inside = uses(loop)
    meant: dict[str, ir.Expr] = {}
    for n in walk(loop.body, ir.Stmt):
        if isinstance(n, ir.Declare) and n.var.name not in inside.assigned and not reads_memory(n.value):
            meant[n.var.name] = meaning(n.value, meant)
    rows = list(dict.fromkeys(_settled(row, meant) for row in _found(loop.body, (), ())))
    kept: list[_Row] = []
    for array in {row.store.array: None for row in rows}:
        mine = [row for row in rows if row.store.array == array]
        touched = sum(n.array == array for n in walk(loop.body) if isinstance(n, ir.Load | ir.Store | ir.Fill | ir.Search))
        stores = sum(isinstance(n, ir.Store) for row in mine for n in walk(row.stmt))
        apart = len({row.written for row in mine}) == len(mine) and len({row.store.op for row in mine}) == 1
        if touched == stores and apart and all(_is_steady(row, loop) for row in mine):
            kept += mine
    return kept


def _found(stmt: ir.Stmt, loops: tuple[ir.For, ...], conditions: tuple[ir.Expr, ...]) -> Iterator[_Row]:
    """What adds to a place in each iteration of some short loops."""
    match stmt:
        case ir.Block(stmts):
            for inner in stmts:
                yield from _found(inner, loops, conditions)
        case ir.For(body=body):
            yield from _found(body, (*loops, stmt) if is_short(stmt) else (), conditions)
        case ir.While(body=body):
            yield from _found(body, (), conditions)
        case ir.Store(op=str()) | ir.If(_, ir.Store(op=str()), ir.Store(op=str())):
            if loops and len({(n.array, n.index, n.value, n.op) for n in walk(stmt) if isinstance(n, ir.Store)}) == 1:
                yield _Row(loops, stmt, conditions, stmt)
        case ir.If(condition, then, other):
            yield from _found(then, loops, (*conditions, condition))
            yield from _found(other, loops, (*conditions, condition))


def _settled(row: _Row, meant: dict[str, ir.Expr]) -> _Row:
    """A row in terms of what is known outside, as far as scalars stand for that; what is added stays as it is."""

    def rule(n: Node) -> Node | None:
        match n:
            case ir.Store(index=index):
                return replace(n, index=meaning(index, meant))
            case ir.If(condition):
                return replace(n, condition=meaning(condition, meant))
        return None

    return replace(row, stmt=rewrite(row.stmt, rule, ir.Stmt), conditions=tuple(meaning(one, meant) for one in row.conditions))


def _is_steady(row: _Row, loop: ir.For) -> bool:
    """Whether places, and how they are added to, are the same all through a loop, and whether the loop adds does not tell where."""
    inside = uses(loop)
    own = (inside.declared | inside.assigned) - {one.var.name for one in row.loops}
    place = [row.store.index, *([row.stmt.condition] if isinstance(row.stmt, ir.If) else [])]
    apart = all(not depends(uses(row.store.index).read, condition) for condition in row.conditions)
    far = row.store.array.space is not ir.MemorySpace.LOCAL and uses(*place).loaded.isdisjoint(inside.stored)
    return far and apart and not depends(own, *place) and 1 < row.count <= _MOST


def _with_rows(loop: ir.For, rows: list[_Row], names: Names) -> ir.Stmt:
    """A loop that adds to arrays of the thread, before it their beginning and after it what becomes of them."""
    first, last, held = list[ir.Stmt](), list[ir.Stmt](), dict[Node, ir.Store]()
    for row in rows:
        array, op = row.store.array, row.store.op or "add"
        kept = ir.Array(names.fresh(f"{array.name}_kept"), array.dtype, ir.MemorySpace.LOCAL)
        nothing = ir.constant(identity(op, array.dtype), array.dtype)
        held[row.written] = ir.Store(kept, row.number, row.store.value, op, origin=row.store.origin)
        first += [ir.Allocate(kept, ir.index(row.count)), row.around(ir.Store(kept, row.number, nothing, origin=row.store.origin))]
        last += [row.around(_adding(row.stmt, ir.Load(kept, row.number))), ir.Free(kept)]
    inside = rewrite(loop, lambda n: held.get(n) if isinstance(n, ir.Store | ir.If) else None, ir.Stmt)
    return ir.block(*first, inside, *last)


def _adding(stmt: ir.Stmt, total: ir.Expr) -> ir.Stmt:
    """A statement that adds something else."""
    return rewrite(stmt, lambda n: replace(n, value=total) if isinstance(n, ir.Store) else None, ir.Stmt)
