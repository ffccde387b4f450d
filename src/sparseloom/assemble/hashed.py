"""A row whose coordinates are found through a hash table: its memory follows the entries of the longest row, not the extent.

    key 40, hash 2; key 7, hash 2 as well

    table   . . 0 1         entry 0 is at its hash, entry 1 in the next free place; -1 is free
    crd     40 7            entries in the order they were met
    vals    a  b
    slots   2  3            where the table must be emptied after the row

The table is at most half full: it doubles together with the lists, and every entry is put into it again.
"""

from __future__ import annotations

from sparseloom.core.dtypes import INT64, UINT8, DType
from sparseloom.core.errors import CompilerBug
from sparseloom.formats.level import LevelView, load_index, store_index
from sparseloom.loops import nodes as ir
from sparseloom.loops import routines
from sparseloom.notation.nodes import Access, Assign
from sparseloom.scope.expression import cast
from sparseloom.scope.scope import Scope, Sink, Value
from sparseloom.scope.views import TensorView

FIRST_BITS = 8  # the table has as many places at first as these bits count


class HashRow(Sink):
    """A row under construction: its entries come in any order, are listed as they are met, and found again by their hash."""

    needs_presence = True

    def __init__(self, scope: Scope, written: Access) -> None:
        tensor, self._fresh, context = written.tensor, scope.fresh, scope.context
        self.is_sorted = tensor.format.levels[0].ordered
        self._table, self._crd = (self._named(tensor.name, part, context.index_dtype) for part in ("table", "crd"))
        self._slots = self._named(tensor.name, "slots", INT64)  # the table is longer than coordinates are wide
        self.values = self._named(tensor.name, "vals", tensor.dtype)
        self._room = tuple(self._named(tensor.name, part, UINT8) for part in ("from", "to")) if self.is_sorted else ()
        self._count, self._entry = ir.Var(self._fresh(f"{tensor.name}_count")), ir.Var(self._fresh(f"{tensor.name}_entry"))
        self._size, self._shift = ir.Var(self._fresh(f"{tensor.name}_size")), ir.Var(self._fresh(f"{tensor.name}_shift"))
        self._lists = {array: ir.Var(self._fresh(f"{array.name}_capacity")) for array in self._listed()}
        self._place(scope)
        level = LevelView(context.sizes.of(written.indices[0]), {"crd": self._crd}, {"count": self._count})
        self.view = TensorView(tensor, (level,), self.values)

    def _named(self, tensor: str, part: str, dtype: DType) -> ir.Array:
        return ir.Array(self._fresh(f"{tensor}_{part}"), dtype)

    def _listed(self) -> list[ir.Array]:
        """The arrays that have room for every entry that the table can take."""
        return [self._crd, self.values, self._slots, *self._room]

    def _place(self, scope: Scope) -> None:
        """Memory that outlives one row."""
        first = 1 << FIRST_BITS
        scope.home.first += [ir.Declare(self._size, ir.index(first)), ir.Declare(self._shift, ir.index(64 - FIRST_BITS))]
        scope.home.first += [ir.Allocate(self._table, self._size), self._emptied()]
        for array, capacity in self._lists.items():
            scope.home.first += [ir.Declare(capacity, self._length(array, ir.index(first // 2))), ir.Allocate(array, capacity)]
        scope.home.last += [ir.Free(array) for array in (self._table, *self._lists)]

    def _length(self, array: ir.Array, entries: ir.Expr) -> ir.Expr:
        """How many elements an array needs for so many entries: sorting moves whole ones, byte by byte."""
        return ir.multiply(entries, ir.index(routines.entry_size(self._crd, self.values))) if array in self._room else entries

    def _emptied(self) -> ir.Stmt:
        return ir.Fill(self._table, ir.ZERO, self._size, ir.Literal(-1, self._table.dtype))

    @property
    def story(self) -> str:
        """What it is, for ``explain``."""
        return f"a row in a hash table, {'sorted before it is read' if self.is_sorted else 'in no order'}"

    def begin(self) -> ir.Stmt:
        """Begin a row."""
        return ir.Declare(self._count, ir.ZERO)

    def write(self, assign: Assign, value: Value, scope: Scope) -> ir.Stmt:
        """Combine with what the row has at this coordinate, or list the coordinate. There is always room for one more."""
        if assign.op is None:
            raise CompilerBug(assign, "a row in a hash table is reduced into")
        key = scope.coordinates[assign.lhs.indices[0]]
        slot, found = ir.Var(self._fresh("slot")), ir.Var(self._fresh("found"))
        there, taken = load_index(self._table, slot), ir.compare("greater_equal", found, ir.ZERO)
        other = ir.both(taken, ir.compare("not_equal", load_index(self._crd, found), key))
        new = cast(value.computed, self.values.dtype)
        first = ir.block(
            store_index(self._table, slot, self._count),
            store_index(self._slots, self._count, slot),
            store_index(self._crd, self._count, key),
            ir.Store(self.values, self._count, new),
            ir.Assign(self._count, ir.add(self._count, ir.ONE)),
            ir.If(ir.compare("equal", ir.multiply(self._count, ir.index(2)), self._size), self._grown()),
        )
        stored = ir.block(
            ir.Declare(slot, self._hash(key)),
            ir.Declare(found, there),
            ir.While(other, ir.block(self._step(slot), ir.Assign(found, there))),
            ir.If(taken, ir.Store(self.values, found, new, assign.op), first),
        )
        return ir.when(value.counts, stored)

    def _hash(self, key: ir.Expr) -> ir.Expr:
        return ir.Op("hash", (key, self._shift))

    def _step(self, slot: ir.Var) -> ir.Stmt:
        """Go to the next place of the table; behind the last comes the first."""
        after = ir.add(slot, ir.ONE)
        return ir.Assign(slot, ir.Select(ir.compare("less", after, self._size), after, ir.ZERO))

    def _grown(self) -> ir.Stmt:
        """Twice the room, and every entry at its place in the longer table."""
        slot, entry = ir.Var(self._fresh("slot")), self._entry
        lists = [routines.grow(array, capacity, self._length(array, self._size)) for array, capacity in self._lists.items()]
        put = ir.block(
            ir.Declare(slot, self._hash(load_index(self._crd, entry))),
            ir.While(ir.compare("greater_equal", load_index(self._table, slot), ir.ZERO), self._step(slot)),
            store_index(self._table, slot, entry),
            store_index(self._slots, entry, slot),
        )
        return ir.block(
            *lists,
            routines.grow(self._table, self._size, ir.multiply(self._size, ir.index(2))),
            ir.Assign(self._shift, ir.Op("subtract", (self._shift, ir.ONE))),
            self._emptied(),
            ir.For(entry, ir.ZERO, self._count, put),
        )

    def ready(self) -> ir.Stmt:
        """Put the entries in order, where that is asked for. The table no longer tells where they are."""
        return routines.sort_entries([self._crd], self.values, self._room, self._count, 1) if self.is_sorted else ir.block()

    def finish(self) -> ir.Stmt:
        """Empty the table again."""
        taken = load_index(self._slots, self._entry)
        return ir.For(self._entry, ir.ZERO, self._count, ir.Store(self._table, taken, ir.Literal(-1, self._table.dtype)))
