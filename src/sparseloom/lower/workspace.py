"""Workspaces: arrays that a producer fills and a consumer reads, made by ``precompute``.

A workspace is dense over the extents of its variables, which need not be constants. Small constant ones live in registers, on the
stack, or in the shared memory of a GPU block. Where an entry that was never written must count as absent, a mask says which were.
"""

from __future__ import annotations

from sparseloom.core import algebra
from sparseloom.core.dtypes import BOOL
from sparseloom.core.errors import CompilerBug
from sparseloom.formats.level import LevelView
from sparseloom.loops import nodes as ir
from sparseloom.lower.device import barrier, is_on_gpu, memory
from sparseloom.lower.expression import cast
from sparseloom.lower.result import combine, placed
from sparseloom.lower.row_list import RowList
from sparseloom.lower.scope import Row, Scope, Sharing, Sink, Value
from sparseloom.lower.views import TensorView
from sparseloom.notation.dtyping import fill_of
from sparseloom.notation.nodes import Access, Assign, Stmt, TensorVar


class Workspace(Sink):
    """One workspace in scope: its arrays, and how it is written."""

    sharing = Sharing.PLACES

    def __init__(self, written: Access, read: Access, made: Assign, scope: Scope, masked: bool, users: tuple[Stmt, Stmt]) -> None:
        tensor, ranges = written.tensor, scope.ranges
        self.needs_presence = masked
        extents = [ranges.extent(var) for var in read.indices]
        starts = tuple(ranges.range_of(var)[0] for var in read.indices)
        size: ir.Expr = ir.ONE
        for extent in extents:
            size = ir.multiply(size, extent)
        where = memory(scope.context.target, size, scope, *users)
        self._wait = barrier(scope) if any(map(is_on_gpu, users)) else ir.block()
        self._values = ir.Array(scope.fresh(f"{tensor.name}_vals"), tensor.dtype, where)
        self._mask = ir.Array(scope.fresh(f"{tensor.name}_set"), BOOL, where) if masked else None
        self._size = size
        self._first = _first_value(made)
        self.view = TensorView(tensor, tuple(LevelView(extent, {}, {}) for extent in extents), self._values, self._mask, starts)

    def row(self, scope: Scope) -> Row:
        """All elements."""
        return Row(self._values, ir.ZERO, self._size)

    def begin(self) -> ir.Stmt:
        """Make room and give every element its first value."""
        stmts: list[ir.Stmt] = [
            ir.Allocate(self._values, self._size),
            ir.Fill(self._values, ir.ZERO, self._size, ir.constant(self._first, self._values.dtype)),
        ]
        if self._mask is not None:
            stmts += [ir.Allocate(self._mask, self._size), ir.Fill(self._mask, ir.ZERO, self._size, ir.FALSE)]
        return ir.block(*stmts, self._wait)

    def ready(self) -> ir.Stmt:
        """What stands between those who fill it and those who read it."""
        return self._wait

    def finish(self) -> ir.Stmt:
        """Give the memory back."""
        return ir.block(self._wait, ir.Free(self._values), None if self._mask is None else ir.Free(self._mask))

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


def mark_shared(tensor: TensorVar, mask: ir.Array, place: ir.Expr, scope: Scope) -> ir.Stmt:
    """Note that an element was written. There is one mask, also where iterations have copies of their own."""
    private = scope.copy is not None and scope.copy[0] == tensor
    if private or any(written == tensor for written, _ in scope.atomic):
        return ir.Store(mask, place, ir.TRUE, "logical_or", atomic=True)
    return ir.Store(mask, place, ir.TRUE)


class Scatter(RowList):
    """A row under construction: its entries come in any order, are listed as they are met, and stand at their coordinate."""

    needs_presence = True

    def __init__(self, scope: Scope, written: Access) -> None:
        tensor, extent = written.tensor, scope.context.sizes.of(written.indices[0])
        self.values = ir.Array(scope.fresh(f"{tensor.name}_vals"), tensor.dtype)
        scope.home.first.append(ir.Allocate(self.values, extent))
        scope.home.last.append(ir.Free(self.values))
        super().__init__(scope, tensor.name, extent, tensor.format.levels[0].ordered)
        self.view = TensorView(tensor, (self.listed,), self.values)

    def write(self, assign: Assign, value: Value, scope: Scope) -> ir.Stmt:
        """Combine with what the row has at this coordinate, or list the coordinate."""
        if assign.op is None:
            raise CompilerBug(assign, "a scattered row is reduced into")
        place = scope.coordinates[assign.lhs.indices[0]]
        new = cast(value.computed, self.values.dtype)
        first = ir.block(ir.Store(self.values, place, new), self.enlist(place))
        stored = ir.If(self.has(place), ir.Store(self.values, place, new, assign.op), first)
        return ir.when(value.counts, stored)


def _first_value(made: Assign) -> algebra.Scalar:
    if made.op is not None:
        return algebra.identity(made.op, made.lhs.tensor.dtype)  # type: ignore[no-any-return]
    fill = fill_of(made.rhs)
    return 0 if fill is None else fill
