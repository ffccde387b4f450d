"""The coordinates met in a row that is built in any order.

    set     1 . . 1 .       which were met
    list    3 0             in the order they were met; sorted before they are read, where that is asked for

The arrays are allocated once, outside all loops; what one row used is reset after it was read.
"""

from __future__ import annotations

from sparseloom.core.dtypes import BOOL
from sparseloom.formats.level import LevelView, load_index
from sparseloom.loops import nodes as ir
from sparseloom.loops import routines
from sparseloom.scope.expression import cast
from sparseloom.scope.scope import Scope, Sink


class RowList(Sink):
    """A list of the coordinates below ``extent`` that a row has, and which of them it has."""

    def __init__(self, scope: Scope, name: str, extent: ir.Expr, ordered: bool = True) -> None:
        fresh, index_dtype, home = scope.fresh, scope.context.index_dtype, scope.home
        self._extent = extent
        self._mask = ir.Array(fresh(f"{name}_set"), BOOL)
        self._list = ir.Array(fresh(f"{name}_list"), index_dtype)
        self._scratch = ir.Array(fresh(f"{name}_scratch"), index_dtype) if ordered else None
        self._count = ir.Var(fresh(f"{name}_count"))
        self._entry = ir.Var(fresh(f"{name}_entry"))
        self.listed = LevelView(extent, {"crd": self._list}, {"count": self._count})
        room = routines.sort_room(extent) if ordered else ir.add(extent, ir.ONE)  # what is not new is written behind all others
        home.first += [ir.Allocate(self._mask, room), ir.Allocate(self._list, room), ir.Fill(self._mask, ir.ZERO, room, ir.FALSE)]
        home.last += [ir.Free(self._mask), ir.Free(self._list)]
        if self._scratch is not None:
            zeros, size = routines.sort_scratch(extent)
            home.first += [ir.Allocate(self._scratch, size), ir.Fill(self._scratch, ir.ZERO, zeros, ir.Literal(0, index_dtype))]
            home.last.append(ir.Free(self._scratch))

    @property
    def is_sorted(self) -> bool:
        """Whether the coordinates are in order when they are read."""
        return self._scratch is not None

    is_prepared = False  # whether every place holds what changes nothing before a row begins

    @property
    def story(self) -> str:
        """What it is, for ``explain``."""
        prepared = ", set before the first row," if self.is_prepared else ""
        order = "sorted before it is read" if self.is_sorted else "in no order"
        return f"a row in a dense workspace{prepared} with a list of coordinates, {order}"

    def begin(self) -> ir.Stmt:
        """Begin a row."""
        return ir.Declare(self._count, ir.ZERO)

    def has(self, coordinate: ir.Expr) -> ir.Expr:
        """Whether the row has a coordinate already."""
        return ir.Load(self._mask, coordinate)

    def enlist(self, coordinate: ir.Expr) -> ir.Stmt:
        """Note a coordinate that is new."""
        return ir.block(
            ir.Store(self._mask, coordinate, ir.TRUE),
            ir.Store(self._list, self._count, cast(coordinate, self._list.dtype)),
            ir.Assign(self._count, ir.add(self._count, ir.ONE)),
        )

    def enlist_if_new(self, coordinate: ir.Expr) -> ir.Stmt:
        """Note a coordinate, which the next one writes over if it is not new: nothing branches on that."""
        return ir.block(
            ir.Store(self._list, self._count, cast(coordinate, self._list.dtype)),
            ir.Assign(self._count, ir.add(self._count, ir.Select(self.has(coordinate), ir.ZERO, ir.ONE))),
            ir.Store(self._mask, coordinate, ir.TRUE),
        )

    def ready(self) -> ir.Stmt:
        """Put the row's coordinates in order, where that is asked for."""
        if self._scratch is None:
            return ir.block()
        return routines.sort(self._list, self._scratch, self._mask, self._count, self._extent)

    def finish(self) -> ir.Stmt:
        """Forget the row."""
        met = load_index(self._list, self._entry)
        return ir.For(self._entry, ir.ZERO, self._count, ir.block(ir.Store(self._mask, met, ir.FALSE), self.forget(met)))

    def forget(self, coordinate: ir.Expr) -> ir.Stmt:
        """What else is reset at a coordinate after a row."""
        return ir.block()
