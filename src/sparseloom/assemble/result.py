"""Where results go whose places exist before the loops run: a dense array, or values with the structure of an operand.

DenseResult       every location exists; it is initialised as late as the loops allow
SharedResult      the entries are an operand's; only values are written
InsertedResult    every row has its place, and entries come in any order (in ``inserted.py``)
AppendedResult    entries come in the order of storage, one behind the other (in ``appended.py``)
"""

from __future__ import annotations

from dataclasses import replace

from sparseloom.core import algebra
from sparseloom.core.algebra import Scalar
from sparseloom.core.errors import CompilerBug
from sparseloom.iteration.making import Shared
from sparseloom.loops import nodes as ir
from sparseloom.loops.origins import stamped
from sparseloom.notation.nodes import Access, Assign, IndexVar, TensorVar
from sparseloom.scope.device import barrier
from sparseloom.scope.expression import cast
from sparseloom.scope.scope import Brought, Row, Scope, Sharing, Sink, Value
from sparseloom.scope.views import Slot


def owned(lhs: Access, *stmts: ir.Stmt) -> ir.Stmt:
    """Statements that are there for a result, whatever loop they stand in."""
    return stamped(ir.block(*stmts), lhs.tensor.name)


def located(lhs: Access, array: ir.Array, where: ir.Expr, first: Scalar, assign: Assign, value: Value, scope: Scope) -> ir.Stmt:
    """Store a value at a place of a result that holds ``first``, or combine it with what is there when an outer loop reduces too."""
    dtype = array.dtype
    if scope.brought is not None and scope.brought.tensor == lhs.tensor:
        return bring(scope.brought, where, assign, value)
    array, where = placed(lhs.tensor, array, where, scope)
    # A location that full loops have just reached for the first time holds nothing to combine with.
    if not scope.combines or scope.uninitialised is not None or assign.op is None:
        return ir.Store(array, where, cast(value.full, dtype))
    if value.present in (ir.TRUE, ir.FALSE):
        whole = value.whole and algebra.same_value(first, algebra.identity(assign.op, dtype))
        return combine(lhs.tensor, array, where, cast(value.full, dtype), assign.op, scope, whole)
    return ir.If(value.present, combine(lhs.tensor, array, where, cast(value.computed, dtype), assign.op, scope))


def placed(tensor: TensorVar, array: ir.Array, where: ir.Expr, scope: Scope) -> tuple[ir.Array, ir.Expr]:
    """Where a value goes: to its place, or to the same place in a private copy."""
    if scope.copy is None or scope.copy[0] != tensor:
        return array, where
    return scope.copy[1], ir.add(scope.copy[2], where)


def bring(brought: Brought, where: ir.Expr, assign: Assign, value: Value) -> ir.Stmt:
    """Note a value for a place; what is absent adds nothing to it."""
    var, computed = brought.value, cast(value.computed, brought.value.dtype)
    if value.present != ir.TRUE and not value.constant:
        computed = ir.Select(value.present, computed, ir.constant(algebra.identity(assign.op or "", var.dtype), var.dtype))
    return ir.block(ir.Assign(brought.place, where), ir.Assign(var, computed))


def combine(tensor: TensorVar, array: ir.Array, where: ir.Expr, value: ir.Expr, op: str, scope: Scope, whole: bool = False) -> ir.Stmt:
    """Combine a value with what is stored: atomically where another iteration may do the same, or in a place of its own.

    In a block of positions only the first and the last run can meet a neighbour's; the rest is written plainly, and need not be combined
    with anything if it is the ``whole`` of a run.
    """
    plain = ir.Store(array, where, value, None if whole else op)
    edge, carry = scope.edge, scope.carry
    if carry is not None and carry.tensor == tensor and edge is not None:
        slot, place = carry.slot(edge), ir.ZERO if carry.size == ir.ONE else ir.Op("remainder", (where, carry.size))
        begin = where if place == ir.ZERO else ir.Op("subtract", (where, place))
        kept = ir.Store(carry.values, ir.add(ir.multiply(slot, carry.size), place), value, op)
        return ir.If(edge.either, ir.block(ir.Store(carry.begins, slot, begin), kept), plain)
    if not any(written == tensor for written, _ in scope.atomic):
        return plain
    shared = ir.Store(array, where, value, op, atomic=True)
    return shared if edge is None else ir.If(edge.either, shared, plain)


class DenseResult(Sink):
    """A dense array. Leading modes that full loops cover are initialised row by row, just before they are reduced into.

    ``outside`` is what the places hold that a repeated variable, as in ``B(i,i)``, does not reach.
    """

    sharing = Sharing.PLACES

    def __init__(self, scope: Scope, lhs: Access, fill: Scalar, outside: Scalar) -> None:
        self.context, self.lhs, self.fill = scope.context, lhs, fill
        self.view, self.variables = scope.view(lhs), scope.provenance.stored(lhs)
        self._outside = outside

    def parameters(self) -> list[tuple[ir.Param, Slot]]:
        """The values."""
        return [(ir.Param(self.view.values, ir.Role.OUTPUT), Slot(self.lhs.tensor.name, "values"))]

    def row(self, scope: Scope) -> Row:
        """What stands below the leading modes whose coordinates are known."""
        known = next((k for k, var in enumerate(self.variables) if var not in scope.coordinates), len(self.variables))
        count = self.view.size_below(known)
        return Row(self.view.values, ir.multiply(self._offset(scope, known), count), count)

    def holds(self, place: ir.Expr, scope: Scope) -> ir.Expr:
        """Modes behind an open one may be known too: their coordinates are part of the place."""
        tests: list[ir.Expr] = []
        stride: ir.Expr = ir.ONE
        for var, level in zip(reversed(self.variables), reversed(self.view.levels), strict=True):
            if var in scope.coordinates:
                here = ir.Op("remainder", (place if stride == ir.ONE else ir.Op("floor_divide", (place, stride)), level.size))
                tests.append(ir.compare("equal", here, scope.coordinates[var]))
            stride = ir.multiply(stride, level.size)
        known = [var in scope.coordinates for var in self.variables]
        return ir.TRUE if known == sorted(known, reverse=True) else ir.both(*tests)

    def location(self, scope: Scope) -> ir.Expr:
        """Row-major in the order of the levels."""
        return self._offset(scope, len(self.variables))

    def _offset(self, scope: Scope, depth: int) -> ir.Expr:
        offset: ir.Expr = ir.ZERO
        for k in range(depth):
            offset = ir.add(ir.multiply(offset, self.view.levels[k].size), scope.coordinates[self.variables[k]])
        return offset

    def write(self, assign: Assign, value: Value, scope: Scope) -> ir.Stmt:
        """Where a place has its first value and this one is absent, nothing is written: positions may visit a place in vain."""
        where, values = self.location(scope), self.view.values
        if assign.op is not None or scope.uninitialised is not None or value.constant or value.fill is None:
            return located(self.lhs, values, where, self.fill, assign, value, scope)
        return ir.when(value.present, located(self.lhs, values, where, self.fill, assign, replace(value, present=ir.TRUE), scope))

    def initialise(self, scope: Scope) -> ir.Stmt:
        """Fill the rows below the modes that are covered by full loops."""
        depth = scope.uninitialised
        if depth is None:
            return ir.block()
        count = self.view.size_below(depth)
        begin = ir.multiply(self._offset(scope, depth), count)
        values = self.view.values
        if len(set(self.variables)) == len(self.variables) or algebra.same_value(self.fill, self._outside):
            return owned(self.lhs, ir.Fill(values, begin, count, ir.constant(self.fill, values.dtype)), barrier(scope))
        filled = ir.Fill(values, begin, count, ir.constant(self._outside, values.dtype))
        return owned(self.lhs, filled, self._reset_diagonal(scope), barrier(scope))

    def _reset_diagonal(self, scope: Scope) -> ir.Stmt:
        """Give the places that a repeated variable reaches the value from which they are reduced."""
        counters: dict[IndexVar, tuple[ir.Var, ir.Expr]] = {}
        for var, level in zip(self.variables, self.view.levels, strict=True):
            counters.setdefault(var, (ir.Var(self.context.names.fresh(var.name)), level.size))
        inner = replace(scope, coordinates={**scope.coordinates, **{var: counter for var, (counter, _) in counters.items()}})
        stmt: ir.Stmt = ir.Store(self.view.values, self.location(inner), ir.constant(self.fill, self.view.values.dtype))
        for counter, size in reversed(counters.values()):
            stmt = ir.For(counter, ir.ZERO, size, stmt)
        return stmt


class SharedResult(Sink):
    """Values beside the structure of an operand with the same pattern, or in blocks below its first levels.

    ``at_once`` says that the loops come to each of its positions once, where its block can get its first values.
    """

    sharing = Sharing.PLACES

    def __init__(self, scope: Scope, lhs: Access, fill: Scalar, taken: Shared, at_once: bool = False) -> None:
        self.context, self.lhs, self.fill = scope.context, lhs, fill
        self.view, self.variables = scope.view(lhs), scope.provenance.stored(lhs)
        self.operand, self.depth = taken.operand, taken.depth
        self._combines = scope.combines
        self._at_once = at_once and self.depth < len(self.view.levels)
        self._size = ir.Var(scope.fresh(f"{lhs.tensor.name}_count"))

    def parameters(self) -> list[tuple[ir.Param, Slot]]:
        """The values, and how many there are."""
        name = self.lhs.tensor.name
        values = (ir.Param(self.view.values, ir.Role.OUTPUT), Slot(name, "values"))
        return [values, (ir.Param(self._size, ir.Role.SIZE), Slot(name, "count"))]

    @property
    def _is_written_whole(self) -> bool:
        """Whether every value is written once and for all."""
        form, below = self.operand.tensor.format, self.variables[self.depth :]
        compact = not form.blocks and all(level.compact for level in form.levels)
        return compact and not self._combines and not {*below} & {*self.operand.indices}

    def begin(self) -> ir.Stmt:
        """Unused positions and values that several loops reduce into need a first value."""
        return ir.block() if self._at_once or self._is_written_whole else self._first_values(ir.ZERO, self._size)

    def _first_values(self, begin: ir.Expr, count: ir.Expr) -> ir.Stmt:
        return ir.Fill(self.view.values, begin, count, ir.constant(self.fill, self.view.values.dtype))

    def around(self, var: IndexVar, body: ir.Stmt, scope: Scope) -> ir.Stmt:
        """Where a position is come to, its block gets its first values."""
        if not self._at_once or self._is_written_whole or var != self.variables[self.depth - 1]:
            return body
        position, present = self._position(scope)
        size = self.view.size_below(self.depth)
        return ir.block(owned(self.lhs, ir.when(present, self._first_values(ir.multiply(position, size), size))), body)

    def _position(self, scope: Scope) -> tuple[ir.Expr, ir.Expr]:
        """The operand's position at the last level that is taken over, and whether it is there."""
        place = scope.at(self.operand)
        if place.depth == len(self.operand.tensor.format.levels) == self.depth:
            return place.position, place.present
        found = place.passed(self.depth)
        if found is None:
            raise CompilerBug(self.lhs, f"the position of {self.operand} at depth {self.depth} should be known")
        return found

    def row(self, scope: Scope) -> Row:
        """What stands below the position, if that is known; else as many as there are."""
        if not {*self.variables[: self.depth]} <= {*scope.coordinates}:
            return Row(self.view.values, ir.ZERO, self._size)
        known = self.depth
        while known < len(self.variables) and self.variables[known] in scope.coordinates:
            known += 1
        count = self.view.size_below(known)
        return Row(self.view.values, ir.multiply(self._offset(scope, known), count), count)

    def location(self, scope: Scope) -> ir.Expr:
        """The operand's position, and the place in the block below it."""
        return self._offset(scope, len(self.variables))

    def _offset(self, scope: Scope, known: int) -> ir.Expr:
        offset, _ = self._position(scope)
        for level, var in list(zip(self.view.levels, self.variables, strict=True))[self.depth : known]:
            offset = ir.add(ir.multiply(offset, level.size), scope.coordinates[var])
        return offset

    def write(self, assign: Assign, value: Value, scope: Scope) -> ir.Stmt:
        """Only where the operand has an entry is there a place to write to."""
        stored = located(self.lhs, self.view.values, self.location(scope), self.fill, assign, value, scope)
        return ir.when(self._position(scope)[1], stored)
