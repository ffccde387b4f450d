"""Places where a running kernel can be cancelled.

A poll stands in the two outermost loops that have loops inside. A loop without loops inside that is itself outermost is cut into
chunks, so that polling never stands between its iterations.
"""

from __future__ import annotations

from dataclasses import replace

from sparseloom.core.names import Names
from sparseloom.loops import nodes as ir
from sparseloom.loops.facts import long_loops_in
from sparseloom.loops.rename import unused_names

CHUNK = 1 << 16
_POLLED = (ir.LoopKind.SERIAL, ir.LoopKind.THREADS, ir.LoopKind.UNROLLED)


def add_polls(function: ir.Function) -> ir.Function:
    """Insert polls into the loops of a kernel."""
    names = unused_names(function)
    return replace(function, body=_poll(function.body, 0, names))


def _poll(stmt: ir.Stmt, depth: int, names: Names) -> ir.Stmt:
    match stmt:
        case ir.Block(stmts):
            return ir.block(*(_poll(s, depth, names) for s in stmts))
        case ir.If(condition, then, other):
            return ir.If(condition, _poll(then, depth, names), _poll(other, depth, names), origin=stmt.origin)
        case ir.Team(loop=loop):
            return replace(stmt, loop=_poll(loop, depth, names))  # type: ignore[arg-type]
        case ir.While(_, body) if depth == 0 or (depth == 1 and _has_loop(body)):
            return replace(stmt, body=ir.block(ir.Poll(), _poll(body, depth + 1, names)))
        case ir.For(kind=kind) if kind not in _POLLED:
            return stmt
        case ir.For() if depth < 2 and _has_loop(stmt.body):
            return replace(stmt, body=ir.block(ir.Poll(), _poll(stmt.body, depth + 1, names)))
        case ir.For(kind=ir.LoopKind.SERIAL) if depth == 0 and not (isinstance(stmt.end, ir.Literal) and int(stmt.end.value.real) <= CHUNK):
            return _chunked(stmt, names)
    return stmt


def _has_loop(stmt: ir.Stmt) -> bool:
    """Whether there is a loop inside that may take long; one over lanes, or a short one that is unrolled, is a few instructions."""
    return bool(long_loops_in(stmt))


def _chunked(loop: ir.For, names: Names) -> ir.Stmt:
    """Cut a loop into chunks with a poll before each."""
    chunk, stop = (ir.Var(names.fresh(f"{loop.var.name}_{what}")) for what in ("chunk", "stop"))
    size = ir.index(CHUNK)
    extent = ir.Op("subtract", (loop.end, loop.begin))
    count = ir.Op("floor_divide", (ir.add(extent, ir.index(CHUNK - 1)), size))
    begin = ir.add(loop.begin, ir.multiply(chunk, size))
    inner = replace(loop, begin=begin, end=stop)
    least = ir.Op("minimum", (loop.end, ir.add(begin, size)))
    return ir.For(chunk, ir.ZERO, count, ir.block(ir.Poll(), ir.Declare(stop, least), inner), origin=loop.origin)
