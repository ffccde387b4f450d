"""Reductions that a step names, as what they have become: a temporary with loops of its own, or the loops of an assignment.

y(i) = a(i) * sum(m, B(i,m))    ==>    forall i
                                         y(i) = a(i) * t                 sum(m, B(i,m)) is t
                                         where forall m: t += B(i,m)
"""

from __future__ import annotations

from sparseloom.core.trees import Node, rewrite
from sparseloom.iteration.foralls import accesses, paths, provenance, reads, temporaries
from sparseloom.iteration.region import innermost
from sparseloom.notation.nodes import Access, Expr, IndexVar, Reduce, Stmt
from sparseloom.schedule.matching import key


def with_temporaries(stmt: Stmt, expr: Expr) -> Expr:
    """The expression with the statement's temporaries in the place of the reductions that fill them."""

    def rule(found: Node) -> Node | None:
        return _temporary(stmt, found) if isinstance(found, Reduce) else None

    return rewrite(expr, rule)


def with_reductions(stmt: Stmt, expr: Expr) -> Expr:
    """The expression with reductions in the place of the scalars that they fill."""
    filled = {made: reduce for made, reduce in _reductions(stmt) if not made.indices}
    while any(access in filled for access in accesses(expr)):
        expr = rewrite(expr, lambda found: filled.get(found) if isinstance(found, Access) else None)
    return expr


def _temporary(stmt: Stmt, wanted: Reduce) -> Access | None:
    """The temporary that a reduction fills."""
    for made, reduce in _reductions(stmt):
        if reduce.op == wanted.op and {*reduce.variables} == {*wanted.variables} and key(reduce.body) == key(wanted.body):
            return made
    return None


def _reductions(stmt: Stmt) -> list[tuple[Access, Reduce]]:
    """Every temporary that is reduced into, and the reduction that it stands for."""
    graph, found = provenance(stmt), []
    for _, where in temporaries(stmt):
        assign = innermost(where.producer)
        if assign.op is None or assign.lhs not in reads(where.consumer):
            continue
        around = next(path.variables for path in paths(where.producer) if path.assign is assign)
        over = dict.fromkeys(x for var in around for x in graph.originals(var) if x not in assign.lhs.indices)
        found.append((assign.lhs, Reduce(assign.op, tuple[IndexVar, ...](over), assign.rhs)))
    return found
