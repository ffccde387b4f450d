"""The coordinates met in a row that is built in any order.

    set     1 . . 1 .       which were met
    list    3 0             in the order they were met; sorted before they are read, where that is asked for

The arrays are allocated once, outside all loops; what one row used is reset after it was read.
"""

from __future__ import annotations

from collections.abc import Callable

from sparseloom.core import algebra
from sparseloom.core.dtypes import BOOL
from sparseloom.core.errors import CompilerBug
from sparseloom.formats.level import LevelView, load_index
from sparseloom.loops import nodes as ir
from sparseloom.loops import routines
from sparseloom.notation.nodes import Access, Assign
from sparseloom.scope.expression import cast
from sparseloom.scope.scope import Scope, Sink, Value
from sparseloom.scope.views import TensorView

Put = Callable[["RowList", Assign, Value, Scope], ir.Stmt]


class RowList(Sink):
    """A row with room for ``size`` values, a list of the coordinates below ``count`` that it has, and which of them it has.

    ``put`` stores a value. A row that is prepared holds the ``neutral`` value at every coordinate before and after it is built.
    """

    def __init__(
        self,
        scope: Scope,
        written: Access,
        put: Put,
        count: ir.Expr,
        size: ir.Expr,
        ordered: bool = True,
        neutral: ir.Expr | None = None,
        needs_presence: bool = True,
        is_spread: bool = False,
    ) -> None:
        tensor, fresh, index_dtype, home = written.tensor, scope.fresh, scope.context.index_dtype, scope.home
        name = tensor.name
        self.values = ir.Array(fresh(f"{name}_vals"), tensor.dtype)
        home.first.append(ir.Allocate(self.values, size))
        home.last.append(ir.Free(self.values))
        self._put, self._extent, self.neutral, self.needs_presence = put, count, neutral, needs_presence
        self._is_spread = is_spread  # whether it is a row of an operand
        self.mask = ir.Array(fresh(f"{name}_set"), BOOL)
        self._list = ir.Array(fresh(f"{name}_list"), index_dtype)
        self._scratch = ir.Array(fresh(f"{name}_scratch"), index_dtype) if ordered else None
        self._count = ir.Var(fresh(f"{name}_count"))
        self._entry = ir.Var(fresh(f"{name}_entry"))
        self.listed = LevelView(count, {"crd": self._list}, {"count": self._count})
        self.view = TensorView(tensor, (self.listed,), self.values)
        room = routines.sort_room(count) if ordered else ir.add(count, ir.ONE)  # what is not new is written behind all others
        home.first += [ir.Allocate(self.mask, room), ir.Allocate(self._list, room), ir.Fill(self.mask, ir.ZERO, room, ir.FALSE)]
        home.last += [ir.Free(self.mask), ir.Free(self._list)]
        if self._scratch is not None:
            zeros, scratch = routines.sort_scratch(count)
            home.first += [ir.Allocate(self._scratch, scratch), ir.Fill(self._scratch, ir.ZERO, zeros, ir.Literal(0, index_dtype))]
            home.last.append(ir.Free(self._scratch))
        if neutral is not None:
            home.first.append(ir.Fill(self.values, ir.ZERO, size, neutral))

    @property
    def is_sorted(self) -> bool:
        """Whether the coordinates are in order when they are read."""
        return self._scratch is not None

    @property
    def is_prepared(self) -> bool:
        """Whether every place holds what changes nothing before a row begins."""
        return self.neutral is not None

    @property
    def story(self) -> str:
        """What it is, for ``explain``."""
        if self._is_spread:
            return "a row set out by coordinate"
        prepared = ", set before the first row," if self.is_prepared else ""
        order = "sorted before it is read" if self.is_sorted else "in no order"
        return f"a row in a dense workspace{prepared} with a list of coordinates, {order}"

    def begin(self) -> ir.Stmt:
        """Begin a row."""
        return ir.Declare(self._count, ir.ZERO)

    def has(self, coordinate: ir.Expr) -> ir.Expr:
        """Whether the row has a coordinate already."""
        return ir.Load(self.mask, coordinate)

    def enlist(self, coordinate: ir.Expr) -> ir.Stmt:
        """Note a coordinate that is new."""
        return ir.block(
            ir.Store(self.mask, coordinate, ir.TRUE),
            ir.Store(self._list, self._count, cast(coordinate, self._list.dtype)),
            ir.Assign(self._count, ir.add(self._count, ir.ONE)),
        )

    def enlist_if_new(self, coordinate: ir.Expr) -> ir.Stmt:
        """Note a coordinate, which the next one writes over if it is not new: nothing branches on that."""
        return ir.block(
            ir.Store(self._list, self._count, cast(coordinate, self._list.dtype)),
            ir.Assign(self._count, ir.add(self._count, ir.Select(self.has(coordinate), ir.ZERO, ir.ONE))),
            ir.Store(self.mask, coordinate, ir.TRUE),
        )

    def ready(self) -> ir.Stmt:
        """Put the row's coordinates in order, where that is asked for."""
        if self._scratch is None:
            return ir.block()
        return routines.sort(self._list, self._scratch, self.mask, self._count, self._extent)

    def finish(self) -> ir.Stmt:
        """Forget the row."""
        met = load_index(self._list, self._entry)
        reset = None if self.neutral is None else ir.Store(self.values, met, self.neutral)
        return ir.For(self._entry, ir.ZERO, self._count, ir.block(ir.Store(self.mask, met, ir.FALSE), reset))

    def write(self, assign: Assign, value: Value, scope: Scope) -> ir.Stmt:
        """Put one entry into the row."""
        return self._put(self, assign, value, scope)


def scattered_row(scope: Scope, written: Access, op: str | None = None) -> RowList:
    """A row under construction: its entries come in any order, are listed as they are met, and stand at their coordinate."""
    tensor, extent = written.tensor, scope.context.sizes.of(written.indices[0])
    neutral = algebra.neutral(op, tensor.dtype) if scope.context.rows.prepared and op is not None else None
    held = None if neutral is None else ir.constant(neutral, tensor.dtype)
    return RowList(scope, written, _combined, extent, extent, tensor.format.levels[0].ordered, held)


def _combined(row: RowList, assign: Assign, value: Value, scope: Scope) -> ir.Stmt:
    """Combine with what the row has at this coordinate, or list the coordinate."""
    if assign.op is None:
        raise CompilerBug(assign, "a scattered row is reduced into")
    place = scope.coordinates[assign.lhs.indices[0]]
    new = cast(value.computed, row.values.dtype)
    combined = ir.Store(row.values, place, new, assign.op)
    if row.is_prepared:
        return ir.when(value.counts, ir.block(combined, row.enlist_if_new(place)))
    first = ir.block(ir.Store(row.values, place, new), row.enlist(place))
    return ir.when(value.counts, ir.If(row.has(place), combined, first))


def spread_row(scope: Scope, written: Access) -> RowList:
    """A row of an operand, set out by coordinate before loops that would walk it again and again."""
    extent = scope.context.sizes.of(written.indices[0])
    row = RowList(scope, written, _spread, extent, extent, ordered=False, needs_presence=False, is_spread=True)
    level = LevelView(extent, {**row.listed.arrays, "set": row.mask}, row.listed.scalars)
    row.view = TensorView(written.tensor, (level,), row.values)
    return row


def _spread(row: RowList, assign: Assign, value: Value, scope: Scope) -> ir.Stmt:
    """Put one entry at its coordinate; each comes once."""
    place = scope.coordinates[assign.lhs.indices[0]]
    stored = ir.Store(row.values, place, cast(value.computed, row.values.dtype))
    return ir.when(value.counts, ir.block(stored, row.enlist(place)))
