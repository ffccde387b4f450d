"""Workspaces: arrays that a producer fills and a consumer reads, made by ``precompute``.

A workspace is dense over the extents of its variables, which need not be constants. Small constant ones live in registers or on the
stack. Where an entry that was never written must count as absent, a mask says which were.
"""

from __future__ import annotations

from sparseloom.core import algebra
from sparseloom.core.dtypes import BOOL, INT64, DType
from sparseloom.core.errors import CompilerBug
from sparseloom.formats.level import LevelView
from sparseloom.iteration.region import is_skippable
from sparseloom.loops import nodes as ir
from sparseloom.lower.context import Context
from sparseloom.lower.expression import Value, cast
from sparseloom.lower.result import combine, placed
from sparseloom.lower.scope import Scope
from sparseloom.lower.space import Space
from sparseloom.lower.views import TensorView
from sparseloom.notation.dtyping import fill_of, reduced_dtype
from sparseloom.notation.nodes import Access, Assign

LARGEST_LOCAL = 1024  # elements; a larger workspace is allocated


class Workspace:
    """One workspace in scope: its arrays, and how it is written."""

    def __init__(self, context: Context, written: Access, read: Access, made: Assign, scope: Scope, masked: bool) -> None:
        names, tensor = context.names, written.tensor
        self.needs_presence = masked
        space = Space(context.everything, context.sizes, scope.coordinates, scope.limits)
        extents = [space.extent(var) for var in read.indices]
        context.starts[tensor] = tuple(space.range_of(var)[0] for var in read.indices)
        size: ir.Expr = ir.ONE
        for extent in extents:
            size = ir.multiply(size, extent)
        local = isinstance(size, ir.Literal) and int(size.value.real) <= LARGEST_LOCAL
        where = ir.Space.LOCAL if local else ir.Space.GLOBAL
        self._values = ir.Array(names.fresh(f"{tensor.name}_vals"), tensor.dtype, where)
        self._mask = ir.Array(names.fresh(f"{tensor.name}_set"), BOOL, where) if masked else None
        self._size = size
        self._first = _first_value(made)
        self.view = TensorView(tensor, tuple(LevelView(extent, {}, {}) for extent in extents), self._values)
        context.views[tensor] = self.view
        if self._mask is not None:
            context.masks[tensor] = self._mask

    def part(self, scope: Scope) -> tuple[ir.Expr, ir.Expr]:
        """All elements."""
        return ir.ZERO, self._size

    def initialise(self, scope: Scope) -> ir.Stmt:
        """Nothing is left to do: a workspace is initialised when it is opened."""
        return ir.block()

    def open(self) -> ir.Stmt:
        """Make room and give every element its first value."""
        stmts: list[ir.Stmt] = [
            ir.Allocate(self._values, self._size),
            ir.Fill(self._values, ir.ZERO, self._size, ir.constant(self._first, self._values.dtype)),
        ]
        if self._mask is not None:
            stmts += [ir.Allocate(self._mask, self._size), ir.Fill(self._mask, ir.ZERO, self._size, ir.FALSE)]
        return ir.block(*stmts)

    def close(self) -> ir.Stmt:
        """Give the memory back."""
        return ir.block(ir.Free(self._values), None if self._mask is None else ir.Free(self._mask))

    def write(self, assign: Assign, value: Value, scope: Scope) -> ir.Stmt:
        """Store or combine one element."""
        tensor, dtype = assign.lhs.tensor, self._values.dtype
        array, place = placed(tensor, self._values, scope.at(assign.lhs).position, scope)
        mark = None if self._mask is None else ir.Store(self._mask, scope.at(assign.lhs).position, ir.TRUE)
        if assign.op is None:
            stored = ir.block(ir.Store(array, place, cast(value.computed, dtype)), mark)
        else:
            added = value.computed if is_skippable(assign.rhs, assign.op) else value.full
            stored = ir.block(combine(tensor, array, place, cast(added, dtype), assign.op, scope), mark)
            if not is_skippable(assign.rhs, assign.op):
                return stored
        if value.constant or value.present == ir.TRUE:
            return stored
        return ir.block() if value.present == ir.FALSE else ir.If(value.present, stored)


class Scatter:
    """A row under construction: its entries come in any order, are listed as they are met, and sorted before they are read.

    The arrays are allocated once, outside all loops; what one row used is reset after it was read.
    """

    needs_presence = True

    def __init__(self, context: Context, written: Access, index_dtype: DType) -> None:
        names, tensor = context.names, written.tensor
        self.extent = context.sizes.of(written.indices[0])
        self.values = ir.Array(names.fresh(f"{tensor.name}_vals"), tensor.dtype)
        self.mask = ir.Array(names.fresh(f"{tensor.name}_set"), BOOL)
        self.list = ir.Array(names.fresh(f"{tensor.name}_list"), index_dtype)
        self.scratch = ir.Array(names.fresh(f"{tensor.name}_scratch"), index_dtype)
        self.count = ir.Var(names.fresh(f"{tensor.name}_count"))
        self.entry = ir.Var(names.fresh(f"{tensor.name}_entry"))
        level = LevelView(self.extent, {"crd": self.list}, {"count": self.count})
        self.view = context.views[tensor] = TensorView(tensor, (level,), self.values)
        context.before.append(ir.block(*(ir.Allocate(array, self.extent) for array in self._arrays())))
        context.before.append(ir.Fill(self.mask, ir.ZERO, self.extent, ir.FALSE))
        context.behind += [ir.Free(array) for array in self._arrays()]

    def _arrays(self) -> tuple[ir.Array, ...]:
        return self.values, self.mask, self.list, self.scratch

    def open(self) -> ir.Stmt:
        """Begin a row."""
        return ir.Declare(self.count, ir.ZERO)

    def sort(self) -> ir.Stmt:
        """Put the row's coordinates in order."""
        return ir.Sort(self.list, self.scratch, self.count)

    def close(self) -> ir.Stmt:
        """Forget the row."""
        met = ir.Cast(ir.Load(self.list, self.entry), INT64)
        return ir.For(self.entry, ir.ZERO, self.count, ir.Store(self.mask, met, ir.FALSE))

    def write(self, assign: Assign, value: Value, scope: Scope) -> ir.Stmt:
        """Combine with what the row has at this coordinate, or list the coordinate."""
        if assign.op is None:
            raise CompilerBug(assign, "a scattered row is reduced into")
        place = scope.coordinates[assign.lhs.indices[0]]
        new = cast(value.computed, self.values.dtype)
        listed = ir.Store(self.list, self.count, cast(place, self.list.dtype))
        first = ir.block(ir.Store(self.mask, place, ir.TRUE), ir.Store(self.values, place, new), listed, _increment(self.count))
        stored = ir.If(ir.Load(self.mask, place), ir.Store(self.values, place, new, assign.op), first)
        if value.constant or value.present == ir.TRUE:
            return stored
        return ir.block() if value.present == ir.FALSE else ir.If(value.present, stored)


def _increment(var: ir.Var) -> ir.Stmt:
    return ir.Assign(var, ir.add(var, ir.ONE))


def _first_value(made: Assign) -> algebra.Scalar:
    if made.op is not None:
        return algebra.identity(made.op, reduced_dtype(made.op, made.rhs))  # type: ignore[no-any-return]
    fill = fill_of(made.rhs)
    return 0 if fill is None else fill
