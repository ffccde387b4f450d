"""A sparse result whose structure is known already: only its values are computed again.

The loops find its entries in the order in which they are stored, so a cursor tells where each value goes. Where every row has a
place of its own, the cursor begins anew in each, and rows can be filled in any order, by several threads.
"""

from __future__ import annotations

from sparseloom.assemble.append import AppendResult
from sparseloom.core import algebra
from sparseloom.core.errors import CompilerBug
from sparseloom.formats.level import LevelView
from sparseloom.formats.levels.scattered import Scattered
from sparseloom.iteration.layout import has_row_places
from sparseloom.loops import nodes as ir
from sparseloom.notation.dtyping import reduced_dtype
from sparseloom.notation.nodes import Access, Assign, Forall, IndexVar, Stmt
from sparseloom.scope.expression import cast
from sparseloom.scope.scope import Scope, Sharing, Sink, Value
from sparseloom.scope.views import Slot, TensorView


class RefillResult(AppendResult):
    """Writes values beside a structure that is handed in."""

    @property
    def sharing(self) -> Sharing:  # type: ignore[override]
        """Rows are filled by whoever comes, if each has a place."""
        return Sharing.ROWS if self.has_places else Sharing.NOT

    @property
    def has_places(self) -> bool:
        """Whether the place of every row is known."""
        return has_row_places(self.lhs.tensor.format)

    def parameters(self) -> list[tuple[ir.Param, Slot]]:
        """The structure goes in, the values come out."""
        name = self.lhs.tensor.name
        found = [
            (ir.Param(array, ir.Role.INPUT), Slot(name, part, k))
            for k, level in enumerate(self.view.levels)
            for part, array in level.arrays.items()
        ]
        found.append((ir.Param(self.view.values, ir.Role.OUTPUT), Slot(name, "values")))
        return [*found, (ir.Param(self.counts[self.last], ir.Role.SIZE), Slot(name, "count"))]

    def expected(self) -> ir.Expr | None:
        """As many as there are."""
        return self.counts[self.last]

    def begin(self) -> ir.Stmt:
        """First values for blocks; one cursor for all entries, unless every row has its own."""
        values = self.view.values
        first = ir.Fill(values, ir.ZERO, self.counts[self.last], ir.constant(self.first, values.dtype)) if self.has_blocks else None
        return ir.block(first, None if self.has_places else ir.Declare(self.cursor[self.last], ir.ZERO))

    def open_block(self) -> ir.Stmt:
        """All blocks have their first values."""
        return ir.block()

    def finish(self) -> ir.Stmt:
        """Nothing is handed out."""
        return ir.block()

    def grow(self, needed: ir.Expr, *arrays: ir.Array) -> ir.Stmt:
        """There is room for everything."""
        return ir.block()

    def append(self, head: int, scope: Scope, *beside: ir.Array) -> ir.Stmt:
        """The coordinate is there."""
        return ir.block()

    def close(self, level: int, scope: Scope) -> ir.Stmt:
        """The row's end is there."""
        return ir.block()

    def around(self, var: IndexVar, body: ir.Stmt, scope: Scope) -> ir.Stmt:
        """Begin a row, and a block of values."""
        body = super().around(var, body, scope)
        if self.has_places and var == self.variables[self.last - 1]:
            return ir.block(ir.Declare(self.cursor[self.last], self.ends(scope)[0]), body)
        return body

    def around_head(self, head: int, body: ir.Stmt, scope: Scope) -> ir.Stmt:
        """Only entries count, and the blocks of values that stand for one."""
        return super().around_head(head, body, scope) if head == self.last else body

    def ends(self, scope: Scope) -> tuple[ir.Expr, ir.Expr]:
        """The positions of the row that the scope's coordinates select."""
        level = self.lhs.tensor.format.levels[self.last]
        return level.bounds(self.view.levels[self.last], self.position(self.last - 1, scope))


class Accumulated(Sink):
    """A row that is added up in a dense workspace and taken from there at the coordinates that the result has.

    It holds the reduction's identity wherever nothing was added, so what is read is reset.
    """

    needs_presence = True

    def __init__(self, scope: Scope, written: Access, made: Assign) -> None:
        if made.op is None:
            raise CompilerBug(made, "a scattered row is reduced into")
        tensor = written.tensor
        self._identity = ir.constant(algebra.identity(made.op, reduced_dtype(made.op, made.rhs)), tensor.dtype)
        extent = scope.context.sizes.of(written.indices[0])
        self.values = ir.Array(scope.fresh(f"{tensor.name}_vals"), tensor.dtype)
        self.view = TensorView(tensor, (LevelView(extent, {}, {}),), self.values)
        self._entry = ir.Var(scope.fresh(f"{tensor.name}_entry"))
        scope.home.first += [ir.Allocate(self.values, extent), ir.Fill(self.values, ir.ZERO, extent, self._identity)]
        scope.home.last.append(ir.Free(self.values))

    def write(self, assign: Assign, value: Value, scope: Scope) -> ir.Stmt:
        """Add one value."""
        place = scope.coordinates[assign.lhs.indices[0]]
        stored = ir.Store(self.values, place, cast(value.computed, self.values.dtype), assign.op)
        return ir.when(value.counts, stored)

    def take(self, result: RefillResult, scope: Scope) -> ir.Stmt:
        """Move the row into the result."""
        begin, end = result.ends(scope)
        level, view = result.lhs.tensor.format.levels[result.last], result.view.levels[result.last]
        place = level.coordinate(view, ir.ZERO, self._entry)
        out = result.view.values
        moved = ir.Store(out, self._entry, cast(ir.Load(self.values, place), out.dtype))
        return ir.For(self._entry, begin, end, ir.block(moved, ir.Store(self.values, place, self._identity)))


def takes_whole_row(consumer: Stmt, temporary: Access, result: Sink) -> bool:
    """Whether a consumer does nothing but move a row from a dense workspace into a result whose rows have places."""
    match consumer:
        case Forall(var, Assign(_, Access() as read, None)) if isinstance(result, RefillResult) and _is_dense_row(read):
            return result.has_places and read == temporary and (var,) == temporary.indices
    return False


def _is_dense_row(access: Access) -> bool:
    match access.tensor.format.levels:
        case (Scattered(hashed=False), *_):
            return True
    return False
