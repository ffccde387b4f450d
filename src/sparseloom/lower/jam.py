"""An unrolled loop around a sum: all of its iterations go through the sum together, so that what they share is read once.

    for q in 0 : 4  [unrolled]                 allocate acc_of: float32[4] local; fill it with 0
      acc = 0.0                                for p in first : last
      for p in first : last                      j = A2_crd[p]
        j = A2_crd[p]                   ==>      for q in 0 : 4  [unrolled]
        acc = acc + A[p] * B[j, q]                 acc_of[q] += A[p] * B[j, q]
      C[i, q] = acc                            for q in 0 : 4  [unrolled]
                                                 C[i, q] = acc_of[q]
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from sparseloom.core.names import Names
from sparseloom.core.trees import Node, rewrite, walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.in_memory import in_memory

_MOST = 32  # sums that a thread keeps


@dataclass(frozen=True)
class _Sum:
    """A loop that sums into one scalar, with what stands before and after it."""

    outside: tuple[ir.Declare, ...]  # the same for all iterations of the loop around it
    first: tuple[ir.Declare, ...]
    begun: ir.Declare
    loop: ir.For
    last: tuple[ir.Stmt, ...]


def jam_unrolled(function: ir.Function) -> ir.Function:
    """Let unrolled loops of threads of a GPU go through the sums inside them together."""
    names = Names(n.name for n in walk(function) if isinstance(n, ir.Var | ir.Array))

    def inside(n: Node) -> Node | None:
        return _jammed(n, names) if isinstance(n, ir.For) and _is_short(n) else None

    def rule(n: Node) -> Node | None:
        return replace(n, body=rewrite(n.body, inside)) if isinstance(n, ir.For) and n.kind is ir.LoopKind.GPU_THREAD else None

    return rewrite(function, rule)


def _is_short(loop: ir.For) -> bool:
    match loop:
        case ir.For(begin=ir.Literal(0), end=ir.Literal(count), kind=ir.LoopKind.UNROLLED):
            return 1 < int(count.real) <= _MOST
    return False


def _jammed(loop: ir.For, names: Names) -> ir.Stmt | None:
    """The loop with its iterations side by side, if all it does is one sum."""
    found = _sum_of(ir.stmts_of(loop.body), loop.var)
    if found is None:
        return None
    own = {loop.var.name, *(stmt.var.name for stmt in found.first)}
    if any(isinstance(n, ir.Var) and n.name in own for bound in (found.loop.begin, found.loop.end) for n in walk(bound)):
        return None
    kept = ir.Array(names.fresh(f"{found.begun.var.name}_of"), found.begun.var.dtype, ir.MemorySpace.LOCAL)
    here = ir.Load(kept, loop.var)

    def each(*stmts: ir.Stmt) -> ir.For:
        return replace(loop, body=ir.block(*found.first, *(in_memory(stmt, found.begun.var, here) for stmt in stmts)))

    shared, rest = _split(ir.stmts_of(found.loop.body), own | {found.begun.var.name})
    summed = replace(found.loop, body=ir.block(*shared, each(*rest)))
    begun = each(ir.Store(kept, loop.var, found.begun.value))
    return ir.block(*found.outside, ir.Allocate(kept, loop.end), begun, summed, each(*found.last), ir.Free(kept))


def _sum_of(stmts: Sequence[ir.Stmt], var: ir.Var) -> _Sum | None:
    """Scalars, one that is assigned in a loop, and what becomes of it, in a loop over a variable."""
    at = next((k for k, stmt in enumerate(stmts) if not isinstance(stmt, ir.Declare)), len(stmts))
    if at == 0 or at >= len(stmts):
        return None
    loop, last = stmts[at], tuple(stmts[at + 1 :])
    if not isinstance(loop, ir.For) or loop.kind not in (ir.LoopKind.SERIAL, ir.LoopKind.UNROLLED):
        return None
    own = {n.var.name for n in walk(loop) if isinstance(n, ir.Declare | ir.For)}
    assigned = {n.var.name for n in walk(loop) if isinstance(n, ir.Assign)} - own
    writes = any(isinstance(n, ir.Store | ir.Fill | ir.Allocate | ir.While | ir.Fail) for n in walk(loop))
    later = any(isinstance(n, ir.For | ir.While | ir.Allocate) for stmt in last for n in walk(stmt))
    declared = [stmt for stmt in stmts[:at] if isinstance(stmt, ir.Declare)]
    begun = [stmt for stmt in declared if stmt.var.name in assigned]
    if writes or later or len(begun) != 1 or len(assigned) != 1:
        return None
    varying = _depending(declared, {var.name})
    first = tuple(stmt for stmt in declared if stmt.var.name in varying)
    outside = tuple(stmt for stmt in declared if stmt not in (*first, *begun))
    reads = any(isinstance(n, ir.Load | ir.Search) for stmt in first for n in walk(stmt))
    return None if reads or begun[0] in first else _Sum(outside, first, begun[0], loop, last)


def _depending(first: Sequence[ir.Declare], names: Set[str]) -> set[str]:
    """These names, and those of scalars that follow from them."""
    found = set(names)
    for stmt in first:
        if any(isinstance(n, ir.Var) and n.name in found for n in walk(stmt.value)):
            found.add(stmt.var.name)
    return found


def _split(stmts: Sequence[ir.Stmt], own: Set[str]) -> tuple[list[ir.Stmt], list[ir.Stmt]]:
    """The first statements that are the same for all iterations, and the others."""
    shared: list[ir.Stmt] = []
    for k, stmt in enumerate(stmts):
        if not isinstance(stmt, ir.Declare) or any(isinstance(n, ir.Var) and n.name in own for n in walk(stmt.value)):
            return shared, list(stmts[k:])
        shared.append(stmt)
    return shared, []
