"""Where memory lives that the threads of a GPU use together, and where they must wait for each other.

in a thread     private memory
in a warp       shared memory; the lanes meet at the end of their loop
in a block      shared memory, with a barrier where one thread reads what another wrote
outside         global memory; the end of the kernel is the barrier
"""

from __future__ import annotations

from sparseloom.core.trees import walk
from sparseloom.loops import nodes as ir
from sparseloom.notation.nodes import Forall, Stmt, Unit
from sparseloom.schedule.units import GPU_UNITS
from sparseloom.scope.scope import Scope
from sparseloom.targets.target import Target


def is_on_gpu(stmt: Stmt) -> bool:
    """Whether a statement is, or holds, a loop over units of a GPU."""
    return any(isinstance(n, Forall) and n.tag.unit in GPU_UNITS for n in walk(stmt))


def memory(target: Target, size: ir.Expr, scope: Scope, *users: Stmt) -> ir.MemorySpace:
    """Where an array of this size lives that is made in a scope and used by these statements."""
    if not isinstance(size, ir.Literal):
        return ir.MemorySpace.GLOBAL
    if not any(map(is_on_gpu, users)):
        return ir.MemorySpace.LOCAL if int(size.value.real) <= target.largest_local else ir.MemorySpace.GLOBAL
    return ir.MemorySpace.SHARED if scope.units and int(size.value.real) <= target.largest_shared else ir.MemorySpace.GLOBAL


def awaited(stmt: Forall, made: ir.Stmt, scope: Scope) -> ir.Stmt:
    """A loop over the threads of a block, and a barrier if it counts stored entries: the next time other threads may have its places."""
    if stmt.tag.unit not in GPU_UNITS:
        return made
    counted = any(isinstance(n, ir.For) and n.kind in ir.GPU_KINDS and n.var.name == stmt.var.name for n in walk(made))
    return made if counted else ir.block(made, barrier(scope))


def barrier(scope: Scope) -> ir.Stmt:
    """What makes the threads inside this scope wait for each other, if anything must."""
    return ir.Barrier() if scope.units[-1:] == (Unit.GPUBlock,) else ir.block()
