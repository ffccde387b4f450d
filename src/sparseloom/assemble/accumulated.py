"""A row of a result whose structure is known: it is added up in a dense workspace, and taken from there at the result's coordinates."""

from __future__ import annotations

from sparseloom.assemble.appended import AppendedResult, Stage
from sparseloom.core import algebra
from sparseloom.core.errors import CompilerBug
from sparseloom.formats.level import Collector, LevelView
from sparseloom.loops import nodes as ir
from sparseloom.notation.dtyping import reduced_dtype
from sparseloom.notation.nodes import Access, Assign, Forall, Stmt
from sparseloom.scope.expression import cast
from sparseloom.scope.scope import Scope, Sink, Value
from sparseloom.scope.views import TensorView


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

    def take(self, result: AppendedResult, scope: Scope) -> ir.Stmt:
        """Move the row into the result."""
        begin, end = result.row_ends(scope)
        level, view = result.lhs.tensor.format.levels[result.last], result.view.levels[result.last]
        place = level.coordinate(view, ir.ZERO, self._entry)
        out = result.view.values
        moved = ir.Store(out, self._entry, cast(ir.Load(self.values, place), out.dtype))
        return ir.For(self._entry, begin, end, ir.block(moved, ir.Store(self.values, place, self._identity)))


def takes_whole_row(consumer: Stmt, temporary: Access, result: Sink) -> bool:
    """Whether a consumer does nothing but move a row from a dense workspace into a result whose rows have places."""
    match consumer:
        case Forall(var, Assign(_, Access() as read, None)) if isinstance(result, AppendedResult) and _is_dense_row(read):
            return result.stage is Stage.REFILL and result.has_places and read == temporary and (var,) == temporary.indices
    return False


def _is_dense_row(access: Access) -> bool:
    levels = access.tensor.format.levels
    return bool(levels) and levels[0].collector is Collector.ROW
