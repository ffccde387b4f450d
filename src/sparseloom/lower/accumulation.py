"""Reducing into a scalar: what one point contributes, and how the scalar remembers whether it is absent.

t_acc += v                          absent terms are left out: t_seen is set when there is one
t_acc = min(t_acc, v or fill)       absent terms take part: t_seen is set when one is present
t_acc *= v or fill                  one absent term decides: t_lacks is set when there is one
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sparseloom.core import algebra
from sparseloom.core.dtypes import BOOL
from sparseloom.iteration.region import is_skippable
from sparseloom.loops import nodes as ir
from sparseloom.notation.dtyping import Absence
from sparseloom.notation.nodes import Assign, TensorVar
from sparseloom.scope.expression import operate
from sparseloom.scope.scope import Accumulator, Scope, Value


def decides_value(absence: Absence, made: Assign) -> bool:
    """Whether it shows in the value of a reduction that a term was absent: 0 beside nan or infinity."""
    return absence is Absence.ONE_DECIDES and made.lhs.tensor.dtype.kind in "fc"


def contribution(assign: Assign, value: Value) -> Value:
    """What an assignment contributes at one point: everywhere something, where its reduction may not leave out what is absent."""
    if assign.op is None or is_skippable(assign.rhs, assign.op):
        return value
    return Value(value.full, ir.TRUE, None)


def accumulate(accumulator: Accumulator, value: Value, present: ir.Expr) -> ir.Stmt:
    """Reduce one value into a scalar, and remember that there was one; where absent ones take part too, whether it was ``present``."""
    op, var, flag = accumulator.op, accumulator.var, accumulator.seen
    update = ir.Assign(var, operate(op, [var, value.computed], var.dtype, var.dtype))
    mark = None if flag is None else ir.Assign(flag, ir.TRUE)
    match accumulator.absence:
        case Absence.ALL_ABSENT if mark is not None:
            return ir.block(update, ir.when(present, mark))
        case Absence.ONE_DECIDES if mark is not None:
            return ir.block(update, ir.when(_denied(present), mark))
    return ir.when(value.counts, ir.block(update, mark))


def _denied(condition: ir.Expr) -> ir.Expr:
    match condition:
        case ir.Literal(value):
            return ir.FALSE if value else ir.TRUE
    return ir.Op("logical_not", (condition,), BOOL)


def fresh_accumulator(target: TensorVar, op: str, tracked: bool, scope: Scope, absence: Absence = Absence.LEFT_OUT) -> Accumulator:
    """A scalar for what is written to a tensor, and a flag where it matters whether there was anything."""
    var = ir.Var(scope.fresh(f"{target.name}_acc"), target.dtype)
    flag = "lacks" if absence is Absence.ONE_DECIDES else "seen"
    return Accumulator(var, op, ir.Var(scope.fresh(f"{target.name}_{flag}"), BOOL) if tracked else None, absence)


def declared(accumulator: Accumulator, seen: ir.Expr = ir.FALSE) -> ir.Stmt:
    """Declare a scalar before anything is reduced into it."""
    var = accumulator.var
    identity = ir.constant(algebra.identity(accumulator.op, var.dtype), var.dtype)
    return ir.block(ir.Declare(var, identity), None if accumulator.seen is None else ir.Declare(accumulator.seen, seen))


@dataclass(frozen=True)
class Own:
    """A scalar that all iterations reduce into, and the one that an iteration has for itself."""

    held: ir.Var
    var: ir.Var
    op: str

    @property
    def identity(self) -> ir.Expr:
        """What it is worth before anything was reduced into it."""
        return ir.constant(algebra.identity(self.op, self.var.dtype), self.var.dtype)

    def combined(self, value: ir.Expr) -> ir.Stmt:
        """What combines the value of one iteration with that of the others."""
        if self.op == "logical_or":
            return ir.If(value, ir.Assign(self.held, ir.TRUE))
        return ir.Assign(self.held, operate(self.op, [self.held, value], self.held.dtype, self.held.dtype))


def own_of(held: Accumulator, scope: Scope) -> tuple[list[Own], Accumulator]:
    """What an iteration reduces into instead of what all of them hold: a scalar, and whether there was anything."""
    scalars = [(held.var, held.op)] + ([] if held.seen is None else [(held.seen, "logical_or")])
    parts = [Own(var, ir.Var(scope.fresh(f"{var.name}_own"), var.dtype), op) for var, op in scalars]
    return parts, replace(held, var=parts[0].var, seen=parts[1].var if held.seen is not None else None)
