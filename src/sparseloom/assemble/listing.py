"""Lists: workspaces of several dimensions that take entries in any order, and are sorted before they are read.

for k                         i: 4 1 4 ...      coordinates and values as the loops find them
  for i                       j: 0 2 0 ...
    for j                     vals: a b c ...
      list (i, j, value)
sort by (i, j)                1 4 4  |  2 0 0  |  b a c
combine equal entries         1 4    |  2 0    |  b a+c
"""

from __future__ import annotations

from sparseloom.core.dtypes import INT64, UINT8
from sparseloom.formats.level import LevelView
from sparseloom.iteration.region import innermost, written
from sparseloom.loops import nodes as ir
from sparseloom.loops import routines
from sparseloom.notation.nodes import Access, Assign, Forall, IndexVar, Stmt, SuchThat, Where
from sparseloom.scope.expression import cast
from sparseloom.scope.scope import Scope, Sink, Value
from sparseloom.scope.views import TensorView

LONG = 1 << 20  # entries; a longer list is combined before it grows


class ListWorkspace(Sink):
    """One list in scope: a column of coordinates per level, beside the values. The arrays are kept from one list to the next."""

    needs_presence = True

    def __init__(self, scope: Scope, producer: Stmt, guess: ir.Expr, repeats: bool, ordered: bool) -> None:
        names, context, self._target = scope.context.names, scope.context, written(producer)
        tensor = self._target.tensor
        levels = range(len(self._target.indices))
        self._columns = [ir.Array(names.fresh(f"{tensor.name}{k + 1}_crd"), context.index_dtype) for k in levels]
        self._values = ir.Array(names.fresh(f"{tensor.name}_vals"), tensor.dtype)
        arrays = [*self._columns, self._values]
        self._room = ir.Array(names.fresh(f"{tensor.name}_from"), UINT8), ir.Array(names.fresh(f"{tensor.name}_to"), UINT8)
        self._capacity = [ir.Var(names.fresh(f"{a.name}_capacity")) for a in arrays]
        self._count = ir.Var(names.fresh(f"{tensor.name}_count"))
        self._entry, self._kept = ir.Var(names.fresh(f"{tensor.name}_entry")), ir.Var(names.fresh(f"{tensor.name}_kept"))
        self._needed = ir.Var(names.fresh(f"{tensor.name}_needed"))
        self._op = innermost(producer).op if repeats else None
        self._keys = unsorted_levels(producer, self._target) if ordered else len(self._columns)
        sizes = [context.sizes.of(var) for var in self._target.indices]
        views = [LevelView(sizes[k], {"crd": self._columns[k]}, {"count": self._count} if k == 0 else {}) for k in levels]
        self.view = TensorView(tensor, tuple(views), self._values)
        for array, capacity in zip(arrays, self._capacity, strict=True):
            scope.home.first += [ir.Declare(capacity, ir.add(guess, ir.ONE)), ir.Allocate(array, capacity)]
            scope.home.last.append(ir.Free(array))

    @property
    def story(self) -> str:
        """What it is, for ``explain``."""
        return f"a list of coordinates and values, sorted{'' if self._op is None else ' and combined'} before it is read"

    def begin(self) -> ir.Stmt:
        """Begin a list."""
        return ir.Declare(self._count, ir.ZERO)

    def write(self, assign: Assign, value: Value, scope: Scope) -> ir.Stmt:
        """List one entry. All arrays are as large, so one look tells whether they must grow."""
        needed = ir.add(self._count, ir.ONE)
        coordinates = [scope.coordinates[var] for var in self._target.indices]
        listed = ir.block(
            ir.If(ir.compare("less", self._capacity[0], needed), self._made_room()),
            *(ir.Store(c, self._count, cast(at, c.dtype)) for c, at in zip(self._columns, coordinates, strict=True)),
            ir.Store(self._values, self._count, cast(value.computed, self._values.dtype)),
            ir.Assign(self._count, needed),
        )
        return ir.when(value.counts, listed)

    def _made_room(self) -> ir.Stmt:
        """Grow; but a long list in which entries repeat is combined first, and grows only if that does not make it half as long."""
        arrays = zip([*self._columns, self._values], self._capacity, strict=True)
        needed = ir.Declare(self._needed, ir.add(self._capacity[0], ir.ONE))
        grown = ir.block(needed, *(routines.grow(array, capacity, self._needed) for array, capacity in arrays))
        if self._op is None:
            return grown
        half_full = ir.compare("greater", ir.multiply(ir.index(2), self._count), self._capacity[0])
        is_short = ir.compare("less", self._capacity[0], ir.index(LONG))
        return ir.If(is_short, grown, ir.block(self.ready(), ir.If(half_full, grown)))

    def ready(self) -> ir.Stmt:
        """Put the entries in order, and make one of those that are equal."""
        if not self._keys:
            return self._combined()
        sort = routines.sort_entries(self._columns, self._values, self._room, self._count, self._keys)
        size = ir.index(routines.entry_size(*self._columns, self._values))
        made = [ir.Allocate(array, ir.multiply(self._count, size)) for array in self._room]
        return ir.block(*made, sort, *(ir.Free(array) for array in self._room), self._combined())

    def _combined(self) -> ir.Stmt:
        if self._op is None:
            return ir.block()
        entry, kept = self._entry, self._kept
        last = ir.Op("subtract", (kept, ir.ONE))
        same = [ir.compare("equal", _number(ir.Load(c, entry)), _number(ir.Load(c, last))) for c in self._columns]
        arrays = [*self._columns, self._values]
        moved = ir.block(*(ir.Store(a, kept, ir.Load(a, entry)) for a in arrays), ir.Assign(kept, ir.add(kept, ir.ONE)))
        added = ir.Store(self._values, last, ir.Load(self._values, entry), self._op)
        body = ir.If(ir.both(ir.compare("greater", kept, ir.ZERO), *same), added, moved)
        return ir.block(ir.Declare(kept, ir.ZERO), ir.For(entry, ir.ZERO, self._count, body), ir.Assign(self._count, kept))


def _number(expr: ir.Expr) -> ir.Expr:
    return ir.Cast(expr, INT64)


def unsorted_levels(producer: Stmt, target: Access) -> int:
    """How many leading columns must be sorted by: the rest comes in order already, since a sort keeps the order of equal entries.

    Loops outside of every sum list their coordinates in order.
    """
    order: list[IndexVar] = []
    stmt = producer
    while not isinstance(stmt, Assign):
        match stmt:
            case Forall(var, body) if var in target.indices:
                order.append(var)
                stmt = body
            case Where(body, _) | SuchThat(body, _):
                stmt = body
            case _:
                break
    for keys in range(len(target.indices)):
        rest = target.indices[keys:]
        if [var for var in order if var in rest] == [*rest]:
            return keys
    return len(target.indices)
