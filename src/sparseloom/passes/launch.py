"""Kernels of a GPU: everything that touches arrays is launched, and the host is left with sizes, memory and launches.

    y[0 : +n] = 0                             launch ceil(n / 256) blocks of 256 threads to fill y
    p_end = A2_pos[n]                         p_end = A2_pos[n]                       the host knows sizes and positions
    for b in 0 : (p_end + 63) // 64    ==>    launch (p_end + 63) // 64 blocks of 128 threads
      ...            [gpu block]                for b in 0 : (p_end + 63) // 64  [gpu block]
    for slot in 0 : 4                         launch 1 block of 1 thread
      t = t + t_slots[slot]                     t = 0.0; for slot in 0 : 4 ...
    y[0] = t                                    y[0] = t

What a schedule leaves to no unit of a GPU is run by one thread; loops over threads alone by one block. Scalars that several kernels
would share are made in each of them, or live in memory where one of them changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from sparseloom.core.dtypes import BOOL, INT64
from sparseloom.core.errors import DeviceError
from sparseloom.core.trees import Node, rewrite, walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.in_memory import in_memory
from sparseloom.loops.rename import unused_names
from sparseloom.loops.routines import Call, assigned_by
from sparseloom.passes.device_memory import made_outside
from sparseloom.targets.target import lanes_of_warp

_FILLING = 256  # threads of a block that fills memory
_GRID = 1024  # blocks, where nobody knows how many there should be


def add_launches(function: ir.Function, lanes: int, indices: Collection[ir.Array], always: bool) -> ir.Function:
    """Launch what a schedule gives to units of a GPU, whose warps have so many lanes; ``always``: also where it gives them nothing.

    The host may read ``indices``, which do not change from call to call.
    """
    if not always and not any(isinstance(n, ir.For) and n.kind in ir.GPU_KINDS for n in walk(function)):
        return function
    if any(p.role in (ir.Role.GROWN, ir.Role.COUNT) for p in function.params):
        if always:
            raise DeviceError("a sparse result cannot be made on a GPU yet\n  help: ask for format='dense', or run it with target='c'")
        return replace(function, body=_wrapped(function.body, lanes))
    body = _for_several(without_unused(rewrite(function.body, _left_out)))
    try:
        return replace(function, body=ir.block(*_Host(replace(function, body=body), lanes, indices).moved(ir.stmts_of(body))))
    except DeviceError:
        if always:
            raise
        return replace(function, body=_wrapped(function.body, lanes))


def _left_out(n: Node) -> Node | None:
    """What a GPU need not do: it is not cancelled, and hides the time that memory takes by other threads."""
    is_asking = isinstance(n, Call) and n.routine.name in ("prefetch", "prefetch_read")
    return ir.block() if is_asking or isinstance(n, ir.Poll) else None


def without_unused(body: ir.Stmt) -> ir.Stmt:
    """A body without scalars that nobody reads: finding one may take a search."""

    def rule(n: Node) -> Node | None:
        if not isinstance(n, ir.Block):
            return None
        kept: list[ir.Stmt] = []
        used: set[str] = set()
        for stmt in reversed(n.stmts):
            if not isinstance(stmt, ir.Declare) or stmt.var.name in used:
                used |= {inner.name for inner in walk(stmt) if isinstance(inner, ir.Var)}
                kept.append(stmt)
        return ir.block(*reversed(kept))

    return rewrite(body, rule)


def _wrapped(stmt: ir.Stmt, lanes: int) -> ir.Stmt:
    """Launch the outermost loops over units and leave everything else to the host, as if it had arrays: the interpreter's host has."""
    match stmt:
        case ir.Block(stmts):
            return ir.block(*(_wrapped(inner, lanes) for inner in stmts))
        case ir.If(condition, then, other):
            return ir.If(condition, _wrapped(then, lanes), _wrapped(other, lanes), origin=stmt.origin)
        case ir.For(kind=kind) if kind in ir.GPU_KINDS:
            blocks = ir.Op("subtract", (stmt.end, stmt.begin)) if kind is ir.LoopKind.GPU_BLOCK else ir.ONE
            return ir.Launch(blocks, ir.index(_threads(stmt, lanes, lanes)), stmt, lanes, lanes, origin=stmt.origin)
        case ir.For(body=body) | ir.While(body=body):
            return replace(stmt, body=_wrapped(body, lanes))
    return stmt


@dataclass
class _Kernel:
    """Statements that become one kernel; ``grid`` if they are one loop over blocks."""

    stmts: list[ir.Stmt] = field(default_factory=list)
    grid: bool = False


@dataclass
class _Choice:
    """What the host does only if the condition of a branch holds, and otherwise."""

    branch: ir.If
    then: list[_Part]
    other: list[_Part]


_Part = ir.Stmt | _Kernel | _Choice


class _Host:
    """Tells what the host does from what it launches."""

    def __init__(self, function: ir.Function, lanes: int, indices: Collection[ir.Array]) -> None:
        self.lanes = lanes
        self.indices = frozenset(indices)
        self.names = unused_names(function)
        self.inputs = {p.target for p in function.params if p.role is ir.Role.INPUT}
        self.known = {p.target.name for p in function.params if p.role is ir.Role.SIZE}
        self.assigned = {var.name for n in walk(function.body) if (var := assigned_by(n)) is not None}
        self.assigned |= {n.var.name for n in walk(function.body) if isinstance(n, ir.Shuffle)}

    def moved(self, stmts: Sequence[ir.Stmt]) -> list[ir.Stmt]:
        """Statements of the host in place of these."""
        parts = self._parts(stmts)
        kept = self._settle_scalars(list(_kernels(parts)))
        return [*kept, *self._launched(parts), *(ir.Free(stmt.array, origin=stmt.origin) for stmt in kept)]

    def _parts(self, stmts: Sequence[ir.Stmt]) -> list[_Part]:
        parts: list[_Part] = []
        for stmt in stmts:
            if not isinstance(stmt, ir.Free):
                self._take(stmt, parts)
        return [*parts, *(stmt for stmt in stmts if isinstance(stmt, ir.Free))]

    def is_known(self, expr: ir.Expr) -> bool:
        """Whether the host can work an expression out: it is made of sizes and of positions of operands."""
        for n in walk(expr):
            match n:
                case ir.Search() | ir.Thread():
                    return False
                case ir.Var(name) if name not in self.known:
                    return False
                case ir.Load(array) if array not in self.indices:
                    return False
        return True

    def _take(self, stmt: ir.Stmt, parts: list[_Part]) -> None:
        """Give one statement to the host or to a kernel."""
        match stmt:
            case ir.Declare(var, value) if var.name not in self.assigned and var.dtype in (INT64, BOOL) and self.is_known(value):
                self.known.add(var.name)
                parts.insert(_before_last(parts), stmt)
            case ir.Allocate(array, size):
                if not self.is_known(size):
                    raise DeviceError(f"how large {array.name} is turns out only while kernels run, and a GPU needs to know before")
                parts.insert(_before_last(parts), stmt)
            case ir.Fail():
                parts.append(stmt)
            case ir.Fill(_, begin, count, value) if all(map(self.is_known, (begin, count, value))):
                parts.append(_Kernel([self._filling(stmt)], grid=True))
            case ir.If(condition, then, other) if self.is_known(condition) and (_has_blocks(stmt) or _is_check(stmt)):
                parts.append(_Choice(stmt, *(self._parts(ir.stmts_of(branch)) for branch in (then, other))))
            case ir.If(condition, then, other) if _has_blocks(stmt):
                self._take_where(condition, then, parts)
                self._take_where(ir.Op("logical_not", (condition,), BOOL), other, parts)
            case ir.For(kind=ir.LoopKind.GPU_BLOCK):
                parts += self._checked_first(self._with_known_blocks(stmt))
            case _ if parts and isinstance(last := parts[-1], _Kernel) and not last.grid:
                last.stmts.append(stmt)
            case _:
                parts.append(_Kernel([stmt]))

    def _take_where(self, condition: ir.Expr, branch: ir.Stmt, parts: list[_Part]) -> None:
        """Give a branch to kernels, each of which finds out for itself whether it is taken."""
        first: list[ir.Stmt] = []
        for stmt in ir.stmts_of(branch):
            match stmt:
                case ir.Declare():
                    first.append(stmt)
                case ir.For(kind=ir.LoopKind.GPU_BLOCK):
                    loop = self._with_known_blocks(stmt)
                    self._take(replace(loop, body=ir.If(condition, ir.block(*first, loop.body))), parts)
                case _:
                    self._take(ir.If(condition, ir.block(*first, stmt), origin=stmt.origin), parts)

    def _with_known_blocks(self, loop: ir.For) -> ir.For:
        """A loop over blocks whose number the host knows. Where it turns out later how many iterations there are, blocks take several."""
        if self.is_known(loop.begin) and self.is_known(loop.end):
            return loop
        block, turn = (ir.Var(self.names.fresh(f"{loop.var.name}_{what}")) for what in ("block", "turn"))
        rest = ir.Op("subtract", (ir.Op("subtract", (loop.end, loop.begin)), block))
        turns = ir.Op("floor_divide", (ir.add(rest, ir.index(_GRID - 1)), ir.index(_GRID)))
        here = ir.add(ir.add(loop.begin, block), ir.multiply(turn, ir.index(_GRID)))
        body = ir.For(turn, ir.ZERO, turns, ir.block(ir.Declare(loop.var, here), loop.body, ir.Barrier()), origin=loop.origin)
        return ir.For(block, ir.ZERO, ir.index(_GRID), body, ir.LoopKind.GPU_BLOCK, origin=loop.origin)

    def _checked_first(self, loop: ir.For) -> Iterator[_Part]:
        """A loop over blocks; what can be checked before it is launched is checked then."""
        checks: list[ir.Stmt] = []
        runs = ir.compare("less", loop.begin, loop.end)

        def rule(n: Node) -> Node | None:
            match n:
                case ir.If(condition, ir.Fail() as fail, ir.Block(())) if self.is_known(condition):
                    checks.append(ir.If(ir.both(runs, condition), fail, origin=n.origin))
                    return ir.block()
            return None

        body = rewrite(loop, rule)
        yield from dict.fromkeys(checks)
        yield _Kernel([body], grid=True)

    def _filling(self, fill: ir.Fill) -> ir.For:
        """A kernel that fills memory: every thread writes one element."""
        block, thread, place = (ir.Var(self.names.fresh(f"{fill.array.name}_{what}")) for what in ("block", "thread", "place"))
        width = ir.index(_FILLING)
        blocks = ir.Op("floor_divide", (ir.add(fill.count, ir.index(_FILLING - 1)), width))
        store = ir.Store(fill.array, ir.add(fill.begin, place), fill.value)
        here = ir.Declare(place, ir.add(ir.multiply(block, width), thread))
        body = ir.block(here, ir.If(ir.compare("less", place, fill.count), store))
        threads = ir.For(thread, ir.ZERO, width, body, ir.LoopKind.GPU_THREAD, _FILLING, origin=fill.origin)
        return ir.For(block, ir.ZERO, blocks, threads, ir.LoopKind.GPU_BLOCK, origin=fill.origin)

    def _settle_scalars(self, kernels: Sequence[_Kernel]) -> list[ir.Allocate]:
        """Scalars of kernels where they are used: each kernel makes its own; one that changes between kernels lives in memory."""
        kept: list[ir.Allocate] = []
        pure = self._pure(kernels)
        for kernel, stmt in reversed([(k, stmt) for k in kernels for stmt in k.stmts if isinstance(stmt, ir.Declare)]):
            users = [k for k in kernels if _uses(k, stmt.var) > (k is kernel)]
            if stmt.var.name in pure and users != [kernel] and (stmt.var.name not in self.assigned or len(users) <= 1):
                kernel.stmts.remove(stmt)
                for user in users:
                    user.stmts[:] = _beginning_with(stmt, user)
            elif any(user is not kernel for user in users):
                kept.append(replace(self._kept_in_memory(stmt.var, kernels), origin=stmt.origin))
        return kept

    def _pure(self, kernels: Sequence[_Kernel]) -> set[str]:
        """The scalars that begin with the same value wherever they are declared."""
        found: set[str] = set()
        for stmt in (stmt for kernel in kernels for stmt in kernel.stmts if isinstance(stmt, ir.Declare)):
            read = [n for n in walk(stmt.value) if isinstance(n, ir.Load | ir.Search)]
            names = {n.name for n in walk(stmt.value) if isinstance(n, ir.Var)}
            if all(n.array in self.inputs for n in read) and names <= self.known | (found - self.assigned):
                found.add(stmt.var.name)
        return found

    def _kept_in_memory(self, var: ir.Var, kernels: Sequence[_Kernel]) -> ir.Allocate:
        """Let a scalar live in an array of one element."""
        array = ir.Array(self.names.fresh(f"{var.name}_kept"), var.dtype)
        for kernel in kernels:
            kernel.stmts[:] = [in_memory(stmt, var, ir.Load(array, ir.ZERO)) for stmt in kernel.stmts]
        return ir.Allocate(array, ir.ONE)

    def _launched(self, parts: Sequence[_Part]) -> Iterator[ir.Stmt]:
        """Statements of the host, with a launch for every kernel."""
        for part in parts:
            match part:
                case _Kernel(stmts):
                    yield from self._launch(part) if stmts else []
                case _Choice(branch, then, other):
                    yield replace(branch, then=ir.block(*self._launched(then)), other=ir.block(*self._launched(other)))
                case _:
                    yield part

    def _launch(self, kernel: _Kernel) -> list[ir.Stmt]:
        """The launch of a kernel, with the memory that it needs."""
        if kernel.grid:
            (loop,) = kernel.stmts
        else:
            body = ir.block(*(_waiting(stmt) for stmt in kernel.stmts))
            origin = kernel.stmts[-1].origin  # what comes last is what the others are for
            loop = ir.For(ir.Var(self.names.fresh("alone")), ir.ZERO, ir.ONE, body, ir.LoopKind.GPU_BLOCK, origin=origin)
        if not isinstance(loop, ir.For):
            raise TypeError(loop)
        for n in walk(loop):
            if isinstance(n, Call):
                raise DeviceError(f"kernels for a GPU cannot call {n.routine.name} yet: sparse workspaces come later")
        lanes = _lanes(loop, self.lanes)
        first, loop, last = made_outside(loop, self.names, self.is_known)
        blocks = loop.end if loop.begin == ir.ZERO else ir.Op("subtract", (loop.end, loop.begin))
        threads = ir.index(_threads(loop, lanes, self.lanes))
        return [*first, ir.Launch(blocks, threads, loop, lanes, self.lanes, origin=loop.origin), *last]


def _kernels(parts: Sequence[_Part]) -> Iterator[_Kernel]:
    """All kernels, in order."""
    for part in parts:
        match part:
            case _Kernel():
                yield part
            case _Choice(_, then, other):
                yield from _kernels(then)
                yield from _kernels(other)


def _before_last(parts: Sequence[_Part]) -> int:
    """Where the host does something as early as it can, so that what stands before and after it is one kernel."""
    return len(parts) - (bool(parts) and isinstance(parts[-1], _Kernel))


def _uses(kernel: _Kernel, var: ir.Var) -> int:
    """How often a scalar stands in a kernel."""
    return sum(n == var for stmt in kernel.stmts for n in walk(stmt))


def _beginning_with(stmt: ir.Declare, kernel: _Kernel) -> list[ir.Stmt]:
    """The statements of a kernel, and first of all a scalar of its own."""
    match kernel.stmts:
        case [ir.For(body=body) as loop] if kernel.grid:
            return [replace(loop, body=ir.block(stmt, body))]
    return [stmt, *kernel.stmts]


def _for_several(body: ir.Stmt) -> ir.Stmt:
    """A body whose own arrays are for all kernels."""
    mine = {stmt.array for stmt in ir.stmts_of(body) if isinstance(stmt, ir.Allocate)}

    def rule(n: Node) -> Node | None:
        return replace(n, space=ir.MemorySpace.GLOBAL) if isinstance(n, ir.Array) and n in mine else None

    return rewrite(body, rule)


def _has_blocks(stmt: ir.If) -> bool:
    """Whether a branch holds a loop over blocks."""
    return any(isinstance(n, ir.For) and n.kind is ir.LoopKind.GPU_BLOCK for n in walk(stmt))


def _is_check(stmt: ir.If) -> bool:
    """Whether a branch ends the run, and nothing else."""
    return isinstance(stmt.then, ir.Fail) and stmt.other == ir.Block(())


def _waiting(stmt: ir.Stmt) -> ir.Stmt:
    """A statement of a block; before and after a loop over its warps or threads all of them wait for each other."""
    match stmt:
        case ir.For(kind=ir.LoopKind.GPU_WARP | ir.LoopKind.GPU_THREAD):
            return ir.block(ir.Barrier(), stmt, ir.Barrier())
        case ir.Block(stmts):
            return ir.block(*map(_waiting, stmts))
        case ir.If(condition, then, other):
            return ir.If(condition, _waiting(then), _waiting(other), origin=stmt.origin)
        case ir.For(body=body) | ir.While(body=body):
            return replace(stmt, body=_waiting(body))
    return stmt


def _lanes(loop: ir.For, most: int) -> int:
    """How many lanes stand for a warp: no more than its loops over lanes need, a power of two."""
    warps = [n for n in walk(loop) if isinstance(n, ir.For) and n.kind is ir.LoopKind.GPU_WARP]
    wanted = max((n.factor for warp in warps for n in walk(warp) if isinstance(n, ir.For) and n.kind is ir.LoopKind.GPU_THREAD), default=1)
    return lanes_of_warp(wanted, most)


def _threads(loop: ir.For, lanes: int, warp: int) -> int:
    """How many threads a block has: those of its largest loop over threads, or the lanes of its largest loop over warps.

    Where all of them shuffle there are whole warps, or a power of two, so that each has a neighbour at every step.
    """
    needed = max([1, *_needed(loop, lanes)])
    if not any(map(_shuffles, walk(loop))):
        return needed
    return lanes_of_warp(needed, warp) if needed <= warp else -(-needed // warp) * warp


def _shuffles(n: Node) -> bool:
    """Whether this is a loop at the end of which values are added up."""
    return isinstance(n, ir.For) and any(isinstance(stmt, ir.Shuffle) for stmt in ir.stmts_of(n.body))


def _needed(stmt: Node, lanes: int) -> Iterator[int]:
    for n in walk(stmt):
        match n:
            case ir.For(kind=ir.LoopKind.GPU_WARP, factor=factor):
                yield factor * lanes
            case ir.For(kind=ir.LoopKind.GPU_THREAD, factor=factor) if not _inside_warp(n, stmt):
                yield factor


def _inside_warp(loop: ir.For, stmt: Node) -> bool:
    return any(any(inner is loop for inner in walk(n)) for n in walk(stmt) if isinstance(n, ir.For) and n.kind is ir.LoopKind.GPU_WARP)
