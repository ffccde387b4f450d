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

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from math import prod

from sparseloom.core.names import Names
from sparseloom.core.trees import Node, rewrite, walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.in_memory import in_memory
from sparseloom.loops.rename import unused_names

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
    names = unused_names(function)

    def rule(n: Node) -> Node | None:
        return replace(n, body=_within(n.body, names)) if isinstance(n, ir.For) and n.kind is ir.LoopKind.GPU_THREAD else None

    return rewrite(function, rule)


def _within(stmt: ir.Stmt, names: Names) -> ir.Stmt:
    """A statement of a thread, with its outermost short loops first."""
    match stmt:
        case ir.Block(stmts):
            return ir.block(*(_within(inner, names) for inner in stmts))
        case ir.If(condition, then, other):
            return ir.If(condition, _within(then, names), _within(other, names), origin=stmt.origin)
        case ir.For() if is_short(stmt) and (made := _jammed(_nest_of(stmt), names)) is not None:
            return made
        case ir.For(body=body) | ir.While(body=body):
            return replace(stmt, body=_within(body, names))
    return stmt


def is_short(loop: ir.For, most: int = _MOST) -> bool:
    """Whether a loop is unrolled, and of so few iterations that a thread can keep a number for each."""
    match loop:
        case ir.For(begin=ir.Literal(0), end=ir.Literal(count), kind=ir.LoopKind.UNROLLED):
            return 1 < int(count.real) <= most
    return False


@dataclass(frozen=True)
class _Nest:
    """Short loops directly inside each other, and the statements of the innermost."""

    loops: tuple[ir.For, ...]
    stmts: tuple[ir.Stmt, ...]

    @property
    def vars(self) -> set[str]:
        """The names of what they count."""
        return {loop.var.name for loop in self.loops}

    @property
    def count(self) -> int:
        """How many iterations there are."""
        counts = [int(loop.end.value.real) for loop in self.loops if isinstance(loop.end, ir.Literal)]
        return prod(counts)

    @property
    def number(self) -> ir.Expr:
        """Which of them an iteration is."""
        number: ir.Expr = ir.ZERO
        for loop in self.loops:
            number = ir.add(ir.multiply(number, loop.end), loop.var)
        return number

    def around(self, *stmts: ir.Stmt) -> ir.Stmt:
        """The loops with another body."""
        made = ir.block(*stmts)
        for loop in reversed(self.loops):
            made = replace(loop, body=made)
        return made


def _nest_of(loop: ir.For) -> _Nest:
    """A short loop, and those directly inside it; scalars between them go inside."""
    *first, last = ir.stmts_of(loop.body)
    plain = all(isinstance(stmt, ir.Declare) and not any(isinstance(n, ir.Load) for n in walk(stmt)) for stmt in first)
    if not plain or not isinstance(last, ir.For) or not is_short(last):
        return _Nest((loop,), (*first, last))
    inner = _nest_of(last)
    return _Nest((loop, *inner.loops), (*first, *inner.stmts))


def _jammed(nest: _Nest, names: Names) -> ir.Stmt | None:
    """The loops with their iterations side by side, if all they do is one sum, or that again and again in a loop that is common to all."""
    if nest.count > _MOST:
        return None
    found = _sum_of(nest.stmts, nest.vars)
    if found is None:
        return _sunk(nest, names)
    own = {*nest.vars, *(stmt.var.name for stmt in found.first)}
    if not own.isdisjoint((*_names_in(found.loop.begin), *_names_in(found.loop.end))):
        return None
    kept = ir.Array(names.fresh(f"{found.begun.var.name}_of"), found.begun.var.dtype, ir.MemorySpace.LOCAL)
    here = ir.Load(kept, nest.number)

    def each(*stmts: ir.Stmt) -> ir.Stmt:
        return nest.around(*found.first, *(in_memory(stmt, found.begun.var, here) for stmt in stmts))

    summed = replace(found.loop, body=_inward(ir.stmts_of(found.loop.body), own | {found.begun.var.name}, each))
    begun = each(ir.Store(kept, nest.number, found.begun.value, origin=found.begun.origin))
    return ir.block(*found.outside, ir.Allocate(kept, ir.index(nest.count)), begun, summed, each(*found.last), ir.Free(kept))


def _inward(stmts: Sequence[ir.Stmt], own: Set[str], each: Callable[..., ir.Stmt]) -> ir.Stmt:
    """What each iteration does, as far inside as loops and branches go that are the same for all."""
    shared, rest = _split(stmts, own)
    match rest:
        case [ir.For(_, begin, end, body) as loop] if own.isdisjoint((*_names_in(begin), *_names_in(end))):
            return ir.block(*shared, replace(loop, body=_inward(ir.stmts_of(body), own, each)))
        case [ir.If(condition, then, ir.Block(())) as branch] if own.isdisjoint(_names_in(condition)):
            return ir.block(*shared, replace(branch, then=_inward(ir.stmts_of(then), own, each)))
    return ir.block(*shared, each(*rest))


def _sunk(nest: _Nest, names: Names) -> ir.Stmt | None:
    """The loops inside the one branch or loop of their body, which is the same for all iterations, if a sum is found there."""
    *declared, last = nest.stmts
    scalars = [stmt for stmt in declared if isinstance(stmt, ir.Declare)]
    own = _depending(scalars, nest.vars)
    mine = [stmt for stmt in scalars if stmt.var.name in own]
    reads = any(isinstance(n, ir.Load | ir.Search) for stmt in mine for n in walk(stmt))
    if len(scalars) < len(declared) or reads or not _writes_apart(nest.stmts, own):
        return None
    match last:
        case ir.If(condition, then, ir.Block(())) if own.isdisjoint(_names_in(condition)):
            body = then
        case ir.For(_, begin, end, body, ir.LoopKind.SERIAL) if own.isdisjoint((*_names_in(begin), *_names_in(end))):
            pass
        case _:
            return None
    inner = _jammed(replace(nest, stmts=(*mine, *ir.stmts_of(body))), names)
    if inner is None:
        return None
    common = [stmt for stmt in scalars if stmt not in mine]
    return ir.block(*common, replace(last, then=inner) if isinstance(last, ir.If) else replace(last, body=inner))


def _writes_apart(stmts: Sequence[ir.Stmt], own: Set[str]) -> bool:
    """Whether each iteration writes places of its own, and none reads what another writes."""
    nodes = [n for stmt in stmts for n in walk(stmt)]
    own = _depending([n for n in nodes if isinstance(n, ir.Declare)], own)
    stores = [n for n in nodes if isinstance(n, ir.Store)]
    apart = all(not own.isdisjoint(_names_in(store.index)) for store in stores)
    read = {n.array for n in nodes if isinstance(n, ir.Load | ir.Search)}
    return apart and read.isdisjoint(store.array for store in stores) and not any(isinstance(n, ir.Fill) for n in nodes)


def _names_in(expr: ir.Expr) -> Iterator[str]:
    return (n.name for n in walk(expr) if isinstance(n, ir.Var))


def _sum_of(stmts: Sequence[ir.Stmt], counted: Set[str]) -> _Sum | None:
    """Scalars, one that is assigned in a loop, and what becomes of it, in loops that count these."""
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
    varying = _depending(declared, counted)
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
