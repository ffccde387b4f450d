"""Going on at a point of the loops: variables that follow from those known are recovered, operands located, and then comes the body.

forall i0                for i0
  forall i1                for i1
    y(i) = x(i)              i = i0 * 4 + i1; if i < i_size:      recovered, and guarded at the end of the range
"""

from __future__ import annotations

from sparseloom.loops import nodes as ir
from sparseloom.lower.walking import settle
from sparseloom.notation.nodes import IndexVar
from sparseloom.relations.relation import Relation
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
            if relation.positions is None and relation.found_again is None:
                scope = _recovered(relation, scope, stmts, guards)
    return stmts, ir.both(*guards), scope


def _recovered(relation: Relation, scope: Scope, stmts: list[ir.Stmt], guards: list[ir.Expr]) -> Scope:
    """The scope with what follows from the children of a relation, if these are known."""
    ranges, known = scope.ranges, scope.coordinates
    if any(child not in known for child in relation.children):
        return scope
    halves = scope.provenance.halves(relation)
    if halves is None:
        values = relation.recover(known, ranges) if any(var not in known for var in relation.parents) else ()
        for var, value in zip(relation.parents, values, strict=False):
            if var not in known:
                sides = relation.guards(var, ranges)
                made = value if relation.alias is not None else _declared(relation, var, value, sides, ranges, stmts, guards)
                scope = scope.knowing(var, made)
        return scope
    (parent,), (fused,) = halves.parents, relation.children
    if parent not in known:
        value = ir.add(ranges.range_of(parent)[0], known[fused])
        return scope.knowing(parent, _declared(relation, parent, value, (False, True), ranges, stmts, guards))
    if halves.children[0] not in known:
        for var, value in zip(relation.parents, halves.derive(known, ranges), strict=True):
            scope = scope.knowing(var, value)
    return scope


def _declared(
    made_by: Relation,
    var: IndexVar,
    value: ir.Expr,
    sides: tuple[bool, bool],
    ranges: Ranges,
    stmts: list[ir.Stmt],
    guards: list[ir.Expr],
) -> ir.Var:
    """A recovered variable under its name, compared with the beginning and the end of its range where it may lie outside."""
    made, (low, high) = ir.Var(var.name), ranges.range_of(var)
    stmts.append(ir.Declare(made, value, made_by.word))
    if sides[0]:
        guards.append(ir.compare("greater_equal", made, low))
    if sides[1]:
        guards.append(ir.compare("less", made, high))
    return made
