"""Places that a loop adds to again and again, a few beside each other: they are kept by the thread until the loop has ended.

for p in first : last                    allocate C_kept: float32[4] local; fill it with 0
  for q in 0 : 4  [unrolled]             for p in first : last
    C[i * n + q] += A[p] * ...    ==>      for q in 0 : 4  [unrolled]
                                             C_kept[q] += A[p] * ...
                                         for q in 0 : 4  [unrolled]
                                           C[i * n + q] += C_kept[q]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace

from sparseloom.core.algebra import identity
from sparseloom.core.names import Names
from sparseloom.core.trees import Node, rewrite, walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.rename import unused_names

_MOST = 32  # places that a thread keeps
_IN_ORDER = (ir.LoopKind.SERIAL, ir.LoopKind.UNROLLED)


@dataclass(frozen=True)
class _Row:
    """An unrolled loop that adds to one place in each iteration; ``first`` are the scalars from which the place follows."""

    loop: ir.For
    first: tuple[ir.Stmt, ...]
    added: ir.Stmt
    store: ir.Store


def keep_in_registers(function: ir.Function) -> ir.Function:
    """Keep what threads of a GPU add to in memory of their own, where that is the same all through a loop."""
    names = unused_names(function)

    def rule(n: Node) -> Node | None:
        if isinstance(n, ir.For) and n.kind is ir.LoopKind.GPU_THREAD:
            return replace(n, body=_kept(n.body, names))
        return None

    return rewrite(function, rule)


def _kept(stmt: ir.Stmt, names: Names) -> ir.Stmt:
    """A statement of a thread whose outermost loops keep what they add to."""
    match stmt:
        case ir.Block(stmts):
            return ir.block(*(_kept(inner, names) for inner in stmts))
        case ir.If(condition, then, other):
            return ir.If(condition, _kept(then, names), _kept(other, names), origin=stmt.origin)
        case ir.For(kind=kind) if kind in _IN_ORDER:
            row = _row_of(stmt)
            return replace(stmt, body=_kept(stmt.body, names)) if row is None else _with_row(stmt, row, names)
        case ir.While(body=body):
            return replace(stmt, body=_kept(body, names))
    return stmt


def _row_of(loop: ir.For) -> _Row | None:
    """The one row of places that a loop adds to, if it does that and nothing else with their array."""
    rows = [row for n in walk(loop.body) if isinstance(n, ir.For) and (row := _as_row(n)) is not None]
    if len(rows) != 1:
        return None
    (row,) = rows
    varying = {loop.var.name} | {name for n in walk(loop.body) for name in _named_by(n)} - set(_names_of(row))
    touched = sum(n.array == row.store.array for n in walk(loop.body) if isinstance(n, ir.Load | ir.Store | ir.Fill | ir.Search))
    mine = sum(isinstance(n, ir.Store) for n in walk(row.added))
    place = [n for stmt in (*row.first, *_places(row.added)) for n in walk(stmt)]
    if touched != mine or any(isinstance(n, ir.Var) and n.name in varying for n in place):
        return None
    return row


def _as_row(loop: ir.For) -> _Row | None:
    """An unrolled loop of a few iterations whose body adds to one place."""
    match loop:
        case ir.For(begin=ir.Literal(0), end=ir.Literal(count), kind=ir.LoopKind.UNROLLED) if 1 < int(count.real) <= _MOST:
            *first, last = ir.stmts_of(loop.body)
            stores = [n for n in walk(last) if isinstance(n, ir.Store)]
            declared = all(isinstance(stmt, ir.Declare) and not any(isinstance(n, ir.Load) for n in walk(stmt)) for stmt in first)
            far = all(store.array.space is not ir.MemorySpace.LOCAL for store in stores)
            if far and declared and _is_adding(last) and len({(s.array, s.index, s.value, s.op) for s in stores}) == 1:
                return _Row(loop, tuple(first), last, stores[0])
    return None


def _is_adding(stmt: ir.Stmt) -> bool:
    match stmt:
        case ir.Store(op=str()):
            return True
        case ir.If(_, ir.Store(op=str()), ir.Store(op=str())):
            return True
    return False


def _places(added: ir.Stmt) -> Iterator[ir.Expr]:
    """What tells where, and how, something is added."""
    if isinstance(added, ir.If):
        yield added.condition
    yield from (n.index for n in walk(added) if isinstance(n, ir.Store))


def _named_by(n: Node) -> Sequence[str]:
    match n:
        case ir.Declare(var) | ir.Assign(var) | ir.For(var):
            return (var.name,)
    return ()


def _names_of(row: _Row) -> Set[str]:
    return {row.loop.var.name} | {stmt.var.name for stmt in row.first if isinstance(stmt, ir.Declare)}


def _with_row(loop: ir.For, row: _Row, names: Names) -> ir.Stmt:
    array, op = row.store.array, row.store.op or "add"
    kept = ir.Array(names.fresh(f"{array.name}_kept"), array.dtype, ir.MemorySpace.LOCAL)
    place = ir.Var(names.fresh("place"))
    nothing = ir.constant(identity(op, array.dtype), array.dtype)
    begun = replace(row.loop, var=place, body=ir.Store(kept, place, nothing, origin=row.store.origin))
    held = ir.Store(kept, row.loop.var, row.store.value, op, origin=row.store.origin)

    def inside(n: Node) -> Node | None:
        return replace(row.loop, body=ir.block(*row.first, held)) if n == row.loop else None

    def outside(n: Node) -> Node | None:
        return replace(n, value=ir.Load(kept, row.loop.var)) if isinstance(n, ir.Store) else None

    added = replace(row.loop, body=ir.block(*row.first, rewrite(row.added, outside)))
    return ir.block(ir.Allocate(kept, row.loop.end), begun, rewrite(loop, inside), added, ir.Free(kept))
