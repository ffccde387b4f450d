"""Neighbours that a thread reads or writes in an unrolled loop are read and written at once.

    for v in 0 : 4  [unrolled 4]            allocate A_wide: float64[4] local
      C[t + v * 4] = A[t * 4 + v]           for q in 0 : 4  [wide 4]
                                     ==>      A_wide[q] = A[t * 4 + q]
                                            for v in 0 : 4  [unrolled 4]
                                              C[t + v * 4] = A_wide[v]
                                            free A_wide
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from sparseloom.core.names import Names
from sparseloom.core.trees import Node, rewrite, walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.facts import depends, is_short, meaning, meanings, multiple_of, reads_memory, trip_count, without_addend
from sparseloom.loops.rename import unused_names

_WIDEST, _LEAST = 16, 8  # bytes that one instruction moves
_MOST = 16  # numbers that a thread keeps


def widen(function: ir.Function) -> ir.Function:
    """Let threads of a GPU read and write neighbours at once, where it is known that they begin at a multiple of as many."""
    names = unused_names(function)

    def inside(n: Node) -> Node | None:
        return _widened(n, names) if isinstance(n, ir.For) and is_short(n, _MOST) else None

    def rule(n: Node) -> Node | None:
        if isinstance(n, ir.For) and n.kind is ir.LoopKind.GPU_THREAD:
            return replace(n, body=rewrite(rewrite(n.body, _parted), inside))
        return None

    return rewrite(function, rule)


def _parted(n: Node) -> Node | None:
    """A short loop of one branch whose condition is the same for all iterations: a loop in each branch."""
    if not isinstance(n, ir.For) or not is_short(n, _MOST):
        return None
    *first, last = ir.stmts_of(n.body)
    match last:
        case ir.If(condition, ir.Store() as then, ir.Store() as other):
            own = {n.var.name} | {stmt.var.name for stmt in first if isinstance(stmt, ir.Declare)}
            if not depends(own, condition):
                branches = (replace(n, body=ir.block(*first, branch)) for branch in (then, other))
                return ir.If(condition, *branches, origin=last.origin)
    return None


@dataclass(frozen=True)
class _Neighbours:
    """Numbers of an array, one for each iteration of a loop, which begin at ``base``."""

    array: ir.Array
    base: ir.Expr

    def moved_to(self, other: _Neighbours, loop: ir.For, names: Names) -> ir.For:
        """The loop that moves them, to or from memory of the thread."""
        at = ir.Var(names.fresh("q"))
        body = ir.Store(other.array, ir.add(other.base, at), ir.Load(self.array, ir.add(self.base, at)))
        return replace(loop, var=at, body=body, kind=ir.LoopKind.WIDE)


def _widened(loop: ir.For, names: Names) -> ir.Stmt | None:
    """The loop with what it reads, or writes, moved at once; None if there is nothing of the kind."""
    stmts = ir.stmts_of(loop.body)
    if not all(isinstance(stmt, ir.Declare | ir.Assign | ir.Store) for stmt in stmts):
        return None
    meant = meanings(stmts)
    match stmts[-1]:
        case ir.Store(array, index, ir.Load(kept, at), None) if kept.space is ir.MemorySpace.LOCAL:
            found, base = _neighbours(array, index, loop, meant), without_addend(meaning(at, meant), loop.var)
            if found is not None and base is not None and all(isinstance(stmt, ir.Declare) for stmt in stmts[:-1]):
                return _Neighbours(kept, base).moved_to(found, loop, names)
    return _reading_wide(loop, meant, names)


def _reading_wide(loop: ir.For, meant: Mapping[str, ir.Expr], names: Names) -> ir.Stmt | None:
    written = {n.array for n in walk(loop) if isinstance(n, ir.Store)}
    loads = {n: found for n in _certain(loop.body) if n.array not in written and (found := _neighbours(n.array, n.index, loop, meant))}
    if not loads:
        return None
    kept = {found: ir.Array(names.fresh(f"{found.array.name}_wide"), found.array.dtype, ir.MemorySpace.LOCAL) for found in loads.values()}

    def moved(n: Node) -> Node | None:
        return ir.Load(kept[loads[n]], loop.var) if isinstance(n, ir.Load) and n in loads else None

    made = [(ir.Allocate(array, loop.end), found.moved_to(_Neighbours(array, ir.ZERO), loop, names)) for found, array in kept.items()]
    return ir.block(*chain.from_iterable(made), replace(loop, body=rewrite(loop.body, moved)), *(ir.Free(array) for array in kept.values()))


def _certain(stmt: ir.Stmt) -> Iterator[ir.Load]:
    """What is read whatever the data are."""
    chosen = {load for n in walk(stmt) if isinstance(n, ir.Select) for load in walk(n) if isinstance(load, ir.Load)}
    return (n for n in walk(stmt) if isinstance(n, ir.Load) and n not in chosen)


def _neighbours(array: ir.Array, index: ir.Expr, loop: ir.For, meant: Mapping[str, ir.Expr]) -> _Neighbours | None:
    """Where the numbers begin that ``index`` runs over, if they lie beside each other and begin at a multiple of what is moved at once."""
    count, size = trip_count(loop) or 0, array.dtype.itemsize
    at_once = min(_WIDEST, count * size)
    if array.space is not ir.MemorySpace.GLOBAL or at_once < _LEAST or count * size % at_once or at_once % size:
        return None
    base = without_addend(meaning(index, meant), loop.var)
    if base is None or reads_memory(base) or multiple_of(base) % (at_once // size):
        return None
    return _Neighbours(array, base)
