"""Reducing into a scalar: what one point contributes, and how the scalar remembers whether it is absent.

    t_acc += v                          absent terms are left out: t_seen is set when there is one
    t_acc = min(t_acc, v or fill)       absent terms take part: t_seen is set when one is present
    t_acc *= v or fill                  one absent term decides: t_lacks is set when there is one
"""

from __future__ import annotations

from sparseloom.core.dtypes import BOOL
from sparseloom.iteration.region import is_skippable
from sparseloom.loops import nodes as ir
from sparseloom.lower.expression import Value, operate
from sparseloom.lower.scope import Accumulator
from sparseloom.notation.dtyping import Absence
from sparseloom.notation.nodes import Assign


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
            return ir.block(update, _marking(present, mark))
        case Absence.ONE_DECIDES if mark is not None:
            return ir.block(update, _marking(_denied(present), mark))
    if value.present == ir.TRUE:
        return ir.block(update, mark)
    return ir.block() if value.present == ir.FALSE and not value.constant else ir.If(_counts(value), ir.block(update, mark))


def _marking(condition: ir.Expr, mark: ir.Stmt) -> ir.Stmt:
    return ir.block() if condition == ir.FALSE else mark if condition == ir.TRUE else ir.If(condition, mark)


def _denied(condition: ir.Expr) -> ir.Expr:
    match condition:
        case ir.Literal(value):
            return ir.FALSE if value else ir.TRUE
    return ir.Op("logical_not", (condition,), BOOL)


def _counts(value: Value) -> ir.Expr:
    return ir.TRUE if value.constant else value.present
