"""Vector loops with loops inside: strip-mined, with the lanes innermost.

    for k  [vector]                     for k_block
      acc = 0                             acc[lane] = 0                       for every lane
      for p                       ==>     for p
        acc += A[p] * B[p, k]               acc[lane] += A[p] * B[p, k]       for every lane
      C[k] = acc                          C[k] = acc[lane]                    for every lane
                                        and what is left, one k after another

What differs between lanes becomes a small array, which stays in vector registers; what does not is done once for all of them. A loop whose
control flow differs between lanes is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sparseloom.core.names import Names
from sparseloom.core.trees import rewrite, walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.lanes import is_lanewise
from sparseloom.loops.origins import stamped
from sparseloom.loops.rename import unused_names
from sparseloom.loops.routines import PREFETCH_READ, Call
from sparseloom.lower.ahead import LINE
from sparseloom.passes.in_lanes import lane_last, without_aliases

_HARMLESS = (ir.Block, ir.Declare, ir.Assign, ir.For, ir.While, ir.If)
BLOCKS = (4, 2, 1)  # how many vectors a block has: first four, for as long as that fits, then two, then one


def vectorize(function: ir.Function, vector_bytes: int) -> ir.Function:
    """Strip-mine every vector loop that has loops inside, for vectors of so many bytes."""
    names = unused_names(function)

    def rule(found: object) -> ir.Stmt | None:
        match found:
            case ir.For(kind=ir.LoopKind.VECTOR) if any(isinstance(n, ir.For | ir.While) for n in walk(found.body)):
                made = _strip_mine(found, vector_bytes, names)
                return None if made is None else stamped(made, found.origin)
        return None

    return rewrite(function, rule)


class _Divergent(Exception):
    """Lanes would take different ways through a loop."""


def _strip_mine(loop: ir.For, vector_bytes: int, names: Names) -> ir.Stmt | None:
    stored = [n.array.dtype.itemsize for n in walk(loop.body) if isinstance(n, ir.Store)]
    if not stored:
        return None
    width = loop.factor or vector_bytes // max(stored)
    loop = replace(loop, body=without_aliases(loop.body))
    widths = [width * vectors for vectors in (BLOCKS if not loop.factor else (1,))]
    try:
        return ir.block(*(_fixed_blocks if _is_fixed(loop) else _blocks)(loop, widths, names))
    except _Divergent:
        return None


def _is_fixed(loop: ir.For) -> bool:
    return isinstance(loop.begin, ir.Literal) and isinstance(loop.end, ir.Literal)


def _fixed_blocks(loop: ir.For, widths: Sequence[int], names: Names) -> Iterator[ir.Stmt]:
    """A loop between constants: only the blocks that it has."""
    start, end = (int(limit.value.real) for limit in (loop.begin, loop.end) if isinstance(limit, ir.Literal))
    for width in widths:
        count = max(0, end - start) // width
        if count:
            yield _block(loop, ir.index(start), ir.index(count), width, names)
        start += count * width
    if start < end:
        yield ir.For(loop.var, ir.index(start), loop.end, loop.body)


def _blocks(loop: ir.For, widths: Sequence[int], names: Names) -> Iterator[ir.Stmt]:
    """As many whole blocks as fit, the largest first; then what is left, one after another."""
    start = ir.Var(names.fresh(f"{loop.var.name}_start"))
    yield ir.Declare(start, loop.begin)
    for width in widths:
        count, size = ir.Var(names.fresh(f"{loop.var.name}_blocks")), ir.index(width)
        left = ir.Op("maximum", (ir.ZERO, ir.Op("subtract", (loop.end, start))))
        yield ir.Declare(count, ir.Op("floor_divide", (left, size)))
        yield _block(loop, start, count, width, names)
        yield ir.Assign(start, ir.add(start, ir.multiply(count, size)))
    yield ir.For(loop.var, start, loop.end, loop.body)


def _block(loop: ir.For, start: ir.Expr, count: ir.Expr, width: int, names: Names) -> ir.Stmt:
    """Some whole blocks, the first of which begins at ``start``."""
    base, block = (ir.Var(names.fresh(f"{loop.var.name}_{what}")) for what in ("base", "block"))
    lanes = _Lanes(loop, base, width, names)
    body = lanes.spread(loop.body)
    here = ir.Declare(base, ir.add(start, ir.multiply(block, ir.index(width))))
    return ir.For(block, ir.ZERO, count, ir.block(here, *lanes.opened, body, *lanes.closed))


class _Lanes:
    """Rewrites the body of a vector loop for a block of lanes."""

    def __init__(self, loop: ir.For, base: ir.Var, width: int, names: Names) -> None:
        self._width, self._origin = width, loop.origin
        self._lane = ir.Var(names.fresh(f"{loop.var.name}_lane"))
        self._var, self._base, self._coordinate = loop.var, base, ir.add(base, self._lane)
        self._varying = _varying(loop)
        self._shared = {n.array for n in walk(loop.body) if isinstance(n, ir.Allocate)}
        declared = {n.var for n in walk(loop.body) if isinstance(n, ir.Declare) and n.var.name in self._varying}
        ordered = sorted(declared, key=lambda v: v.name)
        self._arrays = {v: ir.Array(names.fresh(f"{v.name}_lanes"), v.dtype, ir.MemorySpace.LOCAL) for v in ordered}
        self.opened = [ir.Allocate(array, ir.index(width)) for array in self._arrays.values()]
        self.closed = [ir.Free(array) for array in self._arrays.values()]

    def spread(self, stmt: ir.Stmt) -> ir.Stmt:
        """The statement for all lanes: what differs between them in loops over lanes, the rest once."""
        if self._is_shared(stmt):
            return stmt
        match stmt:
            case ir.Block(stmts):
                return ir.block(*self._grouped(stmts))
            case ir.For(var, begin, end, body, ir.LoopKind.SERIAL | ir.LoopKind.UNROLLED) if not self._differs(begin, end):
                return ir.For(var, begin, end, self.spread(body), stmt.kind, stmt.factor, origin=stmt.origin)
            case ir.While(condition, body, factor) if not self._differs(condition):
                return ir.While(condition, self.spread(body), factor, origin=stmt.origin)
            case ir.If(condition, then, other) if not self._differs(condition):
                return ir.If(condition, self.spread(then), self.spread(other), origin=stmt.origin)
            case ir.Declare(var, value) | ir.Assign(var, value) if var.name not in self._varying and not self._differs(value):
                return stmt
            case Call(routine=routine) if routine is PREFETCH_READ:
                return self._asked_once(stmt)
        if self._is_lane_work(stmt):
            return self._per_lane((stmt,))
        raise _Divergent

    def _asked_once(self, call: Call) -> ir.Stmt:
        """Neighbouring lanes read neighbouring numbers, so one of each cache line asks for all."""
        if not self._differs(*call.args):
            return call
        step = max(1, LINE // call.arrays[0].dtype.itemsize)
        return ir.block(*(self._asked(call, first) for first in range(0, self._width, step)))

    def _asked(self, call: Call, lane: int) -> ir.Stmt:
        """What one lane asks for."""

        def rule(found: object) -> ir.Expr | None:
            match found:
                case ir.Var() if found == self._var:
                    return ir.add(self._base, ir.index(lane))
                case ir.Var() if found in self._arrays:
                    return ir.Load(self._arrays[found], ir.index(lane))
            return None

        made = rewrite(call, rule)
        if self._differs(*made.args):
            raise _Divergent
        return made

    def _grouped(self, stmts: Sequence[ir.Stmt]) -> Iterator[ir.Stmt]:
        """Neighbouring statements that differ between lanes share one loop over lanes."""
        group: list[ir.Stmt] = []
        for stmt in stmts:
            if self._is_lane_work(stmt):
                group.append(stmt)
                continue
            if group:
                yield self._per_lane(group)
                group = []
            yield self.spread(stmt)
        if group:
            yield self._per_lane(group)

    def _is_shared(self, stmt: ir.Stmt) -> bool:
        """Whether all lanes do the same here, so that it is done once: nothing differs, and only small arrays of their own are written."""
        for n in walk(stmt):
            match n:
                case ir.Var(name) if name in self._varying:
                    return False
                case ir.Store(array) | ir.Allocate(array) | ir.Free(array) if array in self._shared:
                    pass
                case ir.Stmt() if not isinstance(n, _HARMLESS):
                    return False
        return True

    def _is_lane_work(self, stmt: ir.Stmt) -> bool:
        """Whether a statement can run lane by lane: it differs, and neither loops nor ends the kernel."""
        match stmt:
            case ir.Declare(var) | ir.Assign(var):
                return var in self._arrays
            case ir.Store(_, index, _):
                return self._differs(index) and not stmt.atomic and stmt.array not in self._shared
            case ir.If(condition, then, other):
                branches = [*ir.stmts_of(then), *ir.stmts_of(other)]
                return self._differs(condition) and all(self._is_lane_work(s) for s in branches)
        return False

    def _per_lane(self, stmts: Sequence[ir.Stmt]) -> ir.Stmt:
        body = ir.block(*(rewrite(stmt, self._in_lane) for stmt in stmts))
        lanes = ir.For(self._lane, ir.ZERO, ir.index(self._width), body, ir.LoopKind.LANES, self._width, origin=self._origin)
        return lanes if is_lanewise(lanes) else replace(lanes, kind=ir.LoopKind.UNROLLED)

    def _in_lane(self, found: object) -> ir.Expr | ir.Stmt | None:
        match found:
            case ir.Var() if found == self._var:
                return self._coordinate
            case ir.Var() if found in self._arrays:
                return ir.Load(self._arrays[found], self._lane)
            case ir.Declare(ir.Load(array, index), value) | ir.Assign(ir.Load(array, index), value):
                return ir.Store(array, index, value, origin=found.origin)
        return lane_last(found, self._lane)

    def _differs(self, *exprs: ir.Expr) -> bool:
        return any(isinstance(n, ir.Var) and n.name in self._varying for expr in exprs for n in walk(expr))


def _varying(loop: ir.For) -> set[str]:
    """The scalars that differ between lanes: the loop's variable, and whatever is computed from it or chosen by it."""
    varying, before = {loop.var.name}, 0
    while len(varying) != before:
        before = len(varying)
        _spread_varying(loop.body, varying, False)
    return varying


def _spread_varying(stmt: ir.Stmt, varying: set[str], chosen: bool) -> None:
    def differs(*exprs: ir.Expr) -> bool:
        return any(isinstance(n, ir.Var) and n.name in varying for expr in exprs for n in walk(expr))

    match stmt:
        case ir.Block(stmts):
            for inner in stmts:
                _spread_varying(inner, varying, chosen)
        case ir.Declare(var, value) | ir.Assign(var, value):
            if chosen or differs(value):
                varying.add(var.name)
        case ir.For(var, begin, end, body):
            if differs(begin, end):
                varying.add(var.name)
            _spread_varying(body, varying, chosen or differs(begin, end))
        case ir.While(condition, body):
            _spread_varying(body, varying, chosen or differs(condition))
        case ir.If(condition, then, other):
            _spread_varying(then, varying, chosen or differs(condition))
            _spread_varying(other, varying, chosen or differs(condition))
