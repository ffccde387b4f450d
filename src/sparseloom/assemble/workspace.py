"""Workspaces: arrays that a producer fills and a consumer reads, made by ``precompute``.

A workspace is dense over the extents of its variables, which need not be constants. Small constant ones live in registers, on the
stack, or in the shared memory of a GPU block; others are made once for each thread, where their size does not depend on the loops.
Where an entry that was never written must count as absent, a mask says which were; or one flag, where all are written or none.
"""

from __future__ import annotations

from sparseloom.assemble.result import combine, placed
from sparseloom.core import algebra
from sparseloom.core.dtypes import BOOL
from sparseloom.core.trees import walk
from sparseloom.formats.level import LevelView
from sparseloom.iteration.provenance import Provenance
from sparseloom.iteration.region import innermost, written
from sparseloom.loops import nodes as ir
from sparseloom.notation.dtyping import fill_of
from sparseloom.notation.nodes import Access, Assign, Forall, IndexVar, Stmt, TensorVar, Unit
from sparseloom.scope.device import barrier, is_on_gpu, memory
from sparseloom.scope.expression import cast
from sparseloom.scope.scope import Row, Scope, Sharing, Sink, Value
from sparseloom.scope.views import TensorView


class Workspace(Sink):
    """One workspace in scope: its arrays, and how it is written."""

    sharing = Sharing.PLACES

    def __init__(self, read: Access, scope: Scope, masked: bool, consumer: Stmt, producer: Stmt) -> None:
        tensor, ranges, users = read.tensor, scope.ranges, (consumer, producer)
        self.needs_presence = masked
        extents = [ranges.extent(var) for var in read.indices]
        starts = tuple(ranges.range_of(var)[0] for var in read.indices)
        size: ir.Expr = ir.ONE
        for extent in extents:
            size = ir.multiply(size, extent)
        where = memory(scope.context.target, size, scope, *users)
        self._wait = barrier(scope) if any(map(is_on_gpu, users)) else ir.block()
        self._values = ir.Array(scope.fresh(f"{tensor.name}_vals"), tensor.dtype, where)
        whole = fills_whole(producer, scope.provenance.within(producer, scope.coordinates), scope)
        self.mark = (whole, ir.Var(scope.fresh(f"{tensor.name}_seen"), BOOL)) if masked and whole is not None else None
        self._mask = ir.Array(scope.fresh(f"{tensor.name}_set"), BOOL, where) if masked and whole is None else None
        self._size = size
        self._first = _first_value(innermost(producer))
        self._is_cleared = not (whole is not None and is_written_once(producer) and (masked or not tensor.partial))
        self.view = TensorView(tensor, tuple(LevelView(extent, {}, {}) for extent in extents), self._values, self._mask, starts)
        self._arrays = [self._values] if self._mask is None else [self._values, self._mask]
        self._is_kept = where is ir.MemorySpace.GLOBAL and not scope.units_of_gpu and _is_known(size, scope)
        if self._is_kept:
            scope.home.first += [ir.Allocate(array, size) for array in self._arrays]
            scope.home.last += map(ir.Free, self._arrays)

    def row(self, scope: Scope) -> Row:
        """All elements."""
        return Row(self._values, ir.ZERO, self._size)

    def begin(self) -> ir.Stmt:
        """Make room and give every element its first value, unless each is written before it is read."""
        made = [] if self._is_kept else [ir.Allocate(array, self._size) for array in self._arrays]
        first = ir.constant(self._first, self._values.dtype)
        return ir.block(
            *made,
            ir.Fill(self._values, ir.ZERO, self._size, first) if self._is_cleared else None,
            None if self._mask is None else ir.Fill(self._mask, ir.ZERO, self._size, ir.FALSE),
            None if self.mark is None else ir.Declare(self.mark[1], ir.FALSE),
            self._wait,
        )

    def ready(self) -> ir.Stmt:
        """What stands between those who fill it and those who read it."""
        return self._wait

    def finish(self) -> ir.Stmt:
        """Give the memory back."""
        return ir.block(self._wait, *(() if self._is_kept else map(ir.Free, self._arrays)))

    def write(self, assign: Assign, value: Value, scope: Scope) -> ir.Stmt:
        """Store or combine one element."""
        tensor, dtype = assign.lhs.tensor, self._values.dtype
        array, place = placed(tensor, self._values, scope.at(assign.lhs).position, scope)
        mark = None if self._mask is None else mark_shared(tensor, self._mask, scope.at(assign.lhs).position, scope)
        if assign.op is None:
            stored = ir.block(ir.Store(array, place, cast(value.computed, dtype)), mark)
        else:
            stored = ir.block(combine(tensor, array, place, cast(value.computed, dtype), assign.op, scope), mark)
        return ir.when(value.counts, stored)


def fills_whole(producer: Stmt, graph: Provenance, scope: Scope) -> IndexVar | None:
    """The loop that writes all elements of a workspace whenever it runs: inside of everything else, it visits every one of them.

    None if there is no such loop: what the operands store along its variables must be there at each, and threads may not take part.
    """
    lhs, loops, stmt = written(producer), list[Forall](), producer
    while isinstance(stmt, Forall):
        loops.append(stmt)
        stmt = stmt.body
    own = {graph.root(var) for var in lhs.indices}
    inner = [loop for loop in loops if graph.root(loop.var) in own]
    outer = loops[: len(loops) - len(inner)]
    alone = all(loop.tag.unit is None for loop in outer) and all(loop.tag.unit in (None, Unit.CPUVector) for loop in inner)
    if not isinstance(stmt, Assign) or not inner or [*outer, *inner] != loops or not alone or scope.copy is not None:
        return None
    whole = all((made := graph.made_by(var)) is None or made.is_local for var in own)
    reads = [n for n in walk(stmt.rhs) if isinstance(n, Access)]
    mine = {original for var in lhs.indices for original in graph.originals(var)}
    there = all(scope.is_array(n) and _is_there_along(n, mine, graph) for n in reads)
    return inner[0].var if whole and there else None


def _is_there_along(access: Access, variables: set[IndexVar], graph: Provenance) -> bool:
    """Whether an operand has everything at each value of some variables, once it is known to have anything."""
    stored = [graph.originals(var) for var in graph.stored(access)]
    first = next((k for k, originals in enumerate(stored) if variables.intersection(originals)), len(stored))
    return all(level.full for level in access.tensor.format.levels[first:])


def is_written_once(producer: Stmt) -> bool:
    """Whether each element gets one value, which it is assigned."""
    lhs = written(producer)
    return innermost(producer).op is None and len({n for n in walk(producer) if isinstance(n, Forall)}) == len({*lhs.indices})


def _is_known(size: ir.Expr, scope: Scope) -> bool:
    """Whether a size follows from the extents of variables, before any loop."""
    return {n for n in walk(size) if isinstance(n, ir.Var)} <= {*scope.context.sizes.params.values()}


def mark_shared(tensor: TensorVar, mask: ir.Array, place: ir.Expr, scope: Scope) -> ir.Stmt:
    """Note that an element was written. There is one mask, also where iterations have copies of their own."""
    private = scope.copy is not None and scope.copy[0] == tensor
    if private or any(written == tensor for written, _ in scope.atomic):
        return ir.Store(mask, place, ir.TRUE, "logical_or", atomic=True)
    return ir.Store(mask, place, ir.TRUE)


def _first_value(made: Assign) -> algebra.Scalar:
    if made.op is not None:
        return algebra.identity(made.op, made.lhs.tensor.dtype)  # type: ignore[no-any-return]
    fill = fill_of(made.rhs)
    return 0 if fill is None else fill
