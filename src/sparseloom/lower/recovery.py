"""Going on at a point of the loops: variables that follow from those known are recovered, operands located, and then comes the body.

forall i0                for i0
  forall i1                for i1
    y(i) = x(i)              i = i0 * 4 + i1; if i < i_size:      recovered, and guarded at the end of the range
"""

from __future__ import annotations

from sparseloom.loops import nodes as ir
from sparseloom.lower.walking import settle
from sparseloom.notation.nodes import IndexVar
from sparseloom.relations.alias import Alias
from sparseloom.relations.fuse import FuseRelation
from sparseloom.relations.relation import Line, Relation
from sparseloom.scope.ranges import Ranges
from sparseloom.scope.scope import Scope, Then


def go_on(scope: Scope, then: Then, inside: ir.Expr = ir.TRUE) -> ir.Stmt:
    """What runs at a point, if it lies ``inside``: recover, locate, then the body."""
    recovered, guard, scope = recover(scope)
    settled, scope = settle(scope)
    return ir.block(*recovered, ir.when(ir.both(guard, inside), ir.block(settled, then(scope))))


def around_all(covered: tuple[IndexVar, ...], body: ir.Stmt, scope: Scope) -> ir.Stmt:
    """A coordinate of several levels at once: each is appended around those below it, and the rows below end here."""
    for var in reversed(covered):
        body = scope.sink.around(var, body, scope)
        if var != covered[0]:
            body = ir.block(body, scope.sink.after(var, scope))
    return body


def recover(scope: Scope) -> tuple[list[ir.Stmt], ir.Expr, Scope]:
    """Variables whose derived variables are now all known."""
    stmts: list[ir.Stmt] = []
    guards: list[ir.Expr] = []
    before: Scope | None = None
    while scope is not before:
        before = scope
        for relation in scope.provenance.relations:
            ranges = scope.ranges
            halves = scope.provenance.halves(relation) if isinstance(relation, FuseRelation) else None
            match relation:
                case Line() if relation.parent not in ranges.values and all(child in ranges.values for child in relation.children):
                    (value,) = relation.recover(ranges.values, ranges)
                    if not isinstance(relation, Alias):
                        value = _declared(relation, relation.parent, value, relation.overruns(ranges), ranges, stmts, guards)
                    scope = scope.knowing(relation.parent, value)
                case FuseRelation(fused=fused) if halves is not None and fused in ranges.values:
                    if halves.parent not in ranges.values:
                        whole = ir.add(ranges.range_of(halves.parent)[0], ranges.values[fused])
                        scope = scope.knowing(halves.parent, _declared(relation, halves.parent, whole, True, ranges, stmts, guards))
                    elif halves.outer not in ranges.values:
                        parts = halves.derive(ranges.values, ranges)
                        for var, value in zip(relation.parents, parts, strict=True):
                            scope = scope.knowing(var, value)
    return stmts, ir.both(*guards), scope


def _declared(
    made_by: Relation, var: IndexVar, value: ir.Expr, overruns: bool, ranges: Ranges, stmts: list[ir.Stmt], guards: list[ir.Expr]
) -> ir.Var:
    """A recovered variable under its name, guarded where it may lie beyond the end of its range."""
    made = ir.Var(var.name)
    stmts.append(ir.Declare(made, value, made_by.word))
    if overruns:
        guards.append(ir.compare("less", made, ranges.range_of(var)[1]))
    return made
