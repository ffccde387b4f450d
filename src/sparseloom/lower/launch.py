"""Kernels of a GPU: the outermost loop over its units is launched, as so many blocks of so many threads.

    for b in 0 : n  [gpu block]               launch n blocks of 128 threads
      for w in 0 : 4  [gpu warp]       ==>      for b in 0 : n  [gpu block]
        for t in 0 : 32  [gpu thread]             ...
"""

from __future__ import annotations

from dataclasses import replace

from sparseloom.core.trees import walk
from sparseloom.loops import nodes as ir


def add_launches(function: ir.Function, lanes: int) -> ir.Function:
    """Launch every outermost loop over units of a GPU, whose warps have so many lanes."""
    return replace(function, body=_launched(function.body, lanes))


def _launched(stmt: ir.Stmt, lanes: int) -> ir.Stmt:
    match stmt:
        case ir.Block(stmts):
            return ir.block(*(_launched(inner, lanes) for inner in stmts))
        case ir.If(condition, then, other):
            return ir.If(condition, _launched(then, lanes), _launched(other, lanes))
        case ir.While(body=body):
            return replace(stmt, body=_launched(body, lanes))
        case ir.For(kind=kind) if kind in ir.GPU_KINDS:
            blocks = ir.Op("subtract", (stmt.end, stmt.begin)) if kind is ir.LoopKind.GPU_BLOCK else ir.ONE
            return ir.Launch(blocks, ir.index(_threads(stmt, lanes)), stmt)
        case ir.For(body=body):
            return replace(stmt, body=_launched(body, lanes))
    return stmt


def _threads(loop: ir.For, lanes: int) -> int:
    """How many threads a block has: those of its largest loop over threads, or the lanes of its largest loop over warps."""
    loops = [n for n in walk(loop) if isinstance(n, ir.For)]
    warps = [n.factor * lanes for n in loops if n.kind is ir.LoopKind.GPU_WARP]
    threads = [n.factor for n in loops if n.kind is ir.LoopKind.GPU_THREAD]
    return max([1, *(warps or threads)])
