"""Vector loops with loops inside: strip-mined, with the lanes innermost.

    for k  [vector]                     for k_block
      acc = 0                             acc[lane] = 0                       for every lane
      for p                       ==>     for p
        acc += A[p] * B[p, k]               acc[lane] += A[p] * B[p, k]       for every lane
      C[k] = acc                          C[k] = acc[lane]                    for every lane
                                        and what is left, one k after another

What differs between lanes becomes a small array, which stays in vector registers. A loop whose control flow differs between lanes is
left as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sparseloom.core.dtypes import INT64
from sparseloom.core.names import Names
from sparseloom.core.trees import rewrite, walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.lanes import is_lanewise
from sparseloom.loops.routines import PREFETCH_READ, Call

BLOCKS = (4, 1)  # how many vectors a block has: first four, for as long as that fits, then one


def vectorize(function: ir.Function, vector_bytes: int) -> ir.Function:
    """Strip-mine every vector loop that has loops inside, for vectors of so many bytes."""
    names = Names(n.name for n in walk(function) if isinstance(n, ir.Var | ir.Array))

    def rule(found: object) -> ir.Stmt | None:
        match found:
            case ir.For(kind=ir.LoopKind.VECTOR) if any(isinstance(n, ir.For | ir.While) for n in walk(found.body)):
                return _strip_mine(found, vector_bytes, names)
        return None

    return rewrite(function, rule)


class _Divergent(Exception):
    """Lanes would take different ways through a loop."""


def _strip_mine(loop: ir.For, vector_bytes: int, names: Names) -> ir.Stmt | None:
    stored = [n.array.dtype.itemsize for n in walk(loop.body) if isinstance(n, ir.Store)]
    if not stored:
        return None
    width = loop.factor or vector_bytes // max(stored)
    start = ir.Var(names.fresh(f"{loop.var.name}_start"))
    made: list[ir.Stmt] = [ir.Declare(start, loop.begin)]
    for vectors in BLOCKS if not loop.factor else (1,):
        try:
            made += _blocks(loop, start, width * vectors, names)
        except _Divergent:
            return None
    return ir.block(*made, ir.For(loop.var, start, loop.end, loop.body))


def _blocks(loop: ir.For, start: ir.Var, width: int, names: Names) -> Iterator[ir.Stmt]:
    """As many whole blocks as fit, beginning at ``start``, which then moves behind them."""
    base, block, count = (ir.Var(names.fresh(f"{loop.var.name}_{what}")) for what in ("base", "block", "blocks"))
    lanes = _Lanes(loop, base, width, names)
    body = lanes.spread(loop.body)
    size = ir.index(width)
    left = ir.Op("maximum", (ir.ZERO, ir.Op("subtract", (loop.end, start))))
    here = ir.Declare(base, ir.add(start, ir.multiply(block, size)))
    yield ir.Declare(count, ir.Op("floor_divide", (left, size)))
    yield ir.For(block, ir.ZERO, count, ir.block(here, *lanes.opened, body, *lanes.closed))
    yield ir.Assign(start, ir.add(start, ir.multiply(count, size)))


class _Lanes:
    """Rewrites the body of a vector loop for a block of lanes."""

    def __init__(self, loop: ir.For, base: ir.Var, width: int, names: Names) -> None:
        self._width = width
        self._lane = ir.Var(names.fresh(f"{loop.var.name}_lane"))
        self._var, self._base, self._coordinate = loop.var, base, ir.add(base, self._lane)
        self._varying = _varying(loop)
        declared = {n.var for n in walk(loop.body) if isinstance(n, ir.Declare) and n.var.name in self._varying}
        ordered = sorted(declared, key=lambda v: v.name)
        self._arrays = {v: ir.Array(names.fresh(f"{v.name}_lanes"), v.dtype, ir.MemorySpace.LOCAL) for v in ordered}
        self.opened = [ir.Allocate(array, ir.index(width)) for array in self._arrays.values()]
        self.closed = [ir.Free(array) for array in self._arrays.values()]

    def spread(self, stmt: ir.Stmt) -> ir.Stmt:
        """The statement for all lanes: what differs between them in loops over lanes, the rest once."""
        match stmt:
            case ir.Block(stmts):
                return ir.block(*self._grouped(stmts))
            case ir.For(var, begin, end, body, ir.LoopKind.SERIAL | ir.LoopKind.UNROLLED) if not self._differs(begin, end):
                return ir.For(var, begin, end, self.spread(body), stmt.kind, stmt.factor)
            case ir.While(condition, body, factor) if not self._differs(condition):
                return ir.While(condition, self.spread(body), factor)
            case ir.If(condition, then, other) if not self._differs(condition):
                return ir.If(condition, self.spread(then), self.spread(other))
            case ir.Declare(var, value) | ir.Assign(var, value) if var.name not in self._varying and not self._differs(value):
                return stmt
            case Call(routine=routine) if routine is PREFETCH_READ:
                return self._asked_once(stmt)
        if self._is_lane_work(stmt):
            return self._per_lane((stmt,))
        raise _Divergent

    def _asked_once(self, stmt: ir.Stmt) -> ir.Stmt:
        """Neighbouring lanes read neighbouring numbers, so the first of them asks for all."""

        def rule(found: object) -> ir.Expr | None:
            match found:
                case ir.Var() if found == self._var:
                    return self._base
                case ir.Var() if found in self._arrays:
                    return ir.Load(self._arrays[found], ir.ZERO)
            return None

        made = rewrite(stmt, rule)
        if any(isinstance(n, ir.Var) and n.name in self._varying for n in walk(made)):
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

    def _is_lane_work(self, stmt: ir.Stmt) -> bool:
        """Whether a statement can run lane by lane: it differs, and neither loops nor ends the kernel."""
        match stmt:
            case ir.Declare(var) | ir.Assign(var):
                return var in self._arrays
            case ir.Store(_, index, _):
                return self._differs(index) and not stmt.atomic
            case ir.If(condition, then, other):
                branches = [*ir.stmts_of(then), *ir.stmts_of(other)]
                return self._differs(condition) and all(self._is_lane_work(s) for s in branches)
        return False

    def _per_lane(self, stmts: Sequence[ir.Stmt]) -> ir.Stmt:
        body = ir.block(*(rewrite(stmt, self._in_lane) for stmt in stmts))
        lanes = ir.For(self._lane, ir.ZERO, ir.index(self._width), body, ir.LoopKind.LANES, self._width)
        return lanes if is_lanewise(lanes) else replace(lanes, kind=ir.LoopKind.UNROLLED)

    def _in_lane(self, found: object) -> ir.Expr | ir.Stmt | None:
        match found:
            case ir.Var() if found == self._var:
                return self._coordinate
            case ir.Var() if found in self._arrays:
                return ir.Load(self._arrays[found], self._lane)
            case ir.Declare(ir.Load(array, index), value) | ir.Assign(ir.Load(array, index), value):
                return ir.Store(array, index, value)
            case ir.Op("add", _, dtype) if dtype == INT64 and self._lane in (terms := _terms(found)):
                # The lane comes last, so that the C compiler sees neighbouring addresses and packs them.
                rest: ir.Expr = ir.ZERO
                for term in terms:
                    rest = rest if term == self._lane else ir.add(rest, term)
                return ir.Op("add", (rest, self._lane))
        return None

    def _differs(self, *exprs: ir.Expr) -> bool:
        return any(isinstance(n, ir.Var) and n.name in self._varying for expr in exprs for n in walk(expr))


def _terms(expr: ir.Expr) -> list[ir.Expr]:
    """The terms of a sum of indices."""
    match expr:
        case ir.Op("add", args, dtype) if dtype == INT64:
            return [term for arg in args for term in _terms(arg)]
    return [expr]


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
