"""Where the threads of a block, or the lanes of a warp, wait for each other, so that each sees what the others wrote before.

for w in 0 : 8  [gpu warp]                      for w in 0 : 8  [gpu warp]
  work[0 : +32] = 0.0                             barrier
  for t in 0 : 32  [gpu thread]                   work[0 : +32] = 0.0          each lane fills a part
    work[31 - t] = x[t]                           barrier
  for t in 0 : 32  [gpu thread]           ==>     for t in 0 : 32  [gpu thread]
    y[t] = work[t]                                  work[31 - t] = x[t]
                                                  barrier
                                                  for t in 0 : 32  [gpu thread]
                                                    y[t] = work[t]
                                                  barrier

Lowering places the barriers around the loops over the threads of a block. This pass adds those around the loops over lanes, and around the
stores and fills outside of such loops: there one thread stores for all, and each fills a part.
"""

from __future__ import annotations

from sparseloom.core.trees import walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.units import Rule, UnitLevel, Units, over_launches


def place_barriers(function: ir.Function) -> ir.Function:
    """Place the barriers that are left to place. The launches are settled then."""
    return over_launches(function, _placing, settled=True)


def _placing(launch: ir.Launch) -> Rule:
    reread = _reread(launch.body)

    def rule(stmt: ir.Stmt, units: Units) -> ir.Stmt:
        match stmt:
            case ir.Block():
                return _without_doubles(stmt)
            case _ if units.count == 1:
                return stmt
            case ir.For(kind=ir.LoopKind.GPU_THREAD) if units.level is UnitLevel.WARP and reread:
                return _between_barriers(stmt)
            case ir.Store(array) if array in reread:
                return _between_barriers(stmt)
            case ir.Fill(array) if array.space is not ir.MemorySpace.LOCAL:
                return _between_barriers(stmt)
        return stmt

    return rule


def _between_barriers(stmt: ir.Stmt) -> ir.Stmt:
    return ir.Block((ir.Barrier(), stmt, ir.Barrier()))


def _without_doubles(block: ir.Block) -> ir.Stmt:
    """Statements of which no two barriers follow each other."""
    waits = [isinstance(stmt, ir.Barrier) for stmt in block.stmts]
    kept = [stmt for k, stmt in enumerate(block.stmts) if not (k and waits[k - 1] and waits[k])]
    return block if len(kept) == len(block.stmts) else ir.block(*kept)


def _reread(loop: ir.For) -> frozenset[ir.Array]:
    """The arrays of several threads that a kernel both writes and reads."""
    written = {n.array for n in walk(loop) if isinstance(n, ir.Store | ir.Fill) and n.array.space is not ir.MemorySpace.LOCAL}
    return frozenset(written & {n.array for n in walk(loop) if isinstance(n, ir.Load | ir.Search)})
