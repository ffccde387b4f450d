"""Counting before filling: which loops count the entries of a result that is counted first. A pass over scheduled notation.

    forall i                           count   forall p            over all entries of A at once: each tells its row
      forall j                                   C_rows(j) = A(i,j)
        C(j,i) = A(i,j)         ==>    fill    forall i
                                                 forall j
                                                   C(j,i) = A(i,j)

Where no such loop is found, the loops run twice.
"""

from __future__ import annotations

from dataclasses import replace

from sparseloom.core.trees import rewrite, walk
from sparseloom.formats.level import Query
from sparseloom.formats.named import dense
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.foralls import body_of, fresh_variables, provenance, relations_of
from sparseloom.iteration.making import Counted, Inserted
from sparseloom.iteration.provenance import Provenance
from sparseloom.notation.nodes import Access, Assign, Forall, IndexVar, Reduce, Stmt, Tag, TensorVar
from sparseloom.schedule.primitives.fuse import Fuse
from sparseloom.schedule.primitives.pos import Pos


def count_first(concrete: Concrete) -> Concrete:
    """Choose the loops that count."""
    match concrete.making:
        case Inserted() as making if (found := _counting(concrete.stmt, concrete.assign.lhs)) is not None:
            counting, driver = found
            return replace(concrete, making=replace(making, counting=counting, driver=driver))
        case Counted() | Inserted() as making:
            return replace(concrete, making=replace(making, counting=concrete.stmt))
    return concrete


def _counting(stmt: Stmt, lhs: Access) -> tuple[Stmt, Access] | None:
    """Loops that count the entries of rows and need not know what else there is, and the only operand, where it tells the row of each."""
    inner = body_of(stmt)
    while isinstance(inner, Forall):
        inner = inner.body
    if not isinstance(inner, Assign) or inner.op is not None or any(isinstance(n, Reduce) for n in walk(inner.rhs)):
        return None
    operands, graph = [n for n in walk(inner.rhs) if isinstance(n, Access)], provenance(stmt)
    counts_only = lhs.tensor.format.levels[-1].queries == (Query.COUNT,)
    rows = graph.stored(lhs)[:-1] if counts_only else graph.stored(lhs)
    if len(operands) != 1 or not operands[0].tensor.format.is_unique or not {*rows} <= {*_listed(operands[0], graph)}:
        return None
    (counter,) = fresh_variables(stmt, f"{lhs.tensor.name}_rows")
    counts = TensorVar(counter.name, len(rows), dense(len(rows)), lhs.tensor.dtype)
    counted = Assign(Access(counts, rows), inner.rhs)
    stmt = rewrite(stmt, lambda found: counted if found is inner else None)
    is_tagged = any(isinstance(n, Forall) and n.tag != Tag() for n in walk(stmt))
    flat = _over_entries(stmt, operands[0]) if is_tagged else _flat_loop(stmt, operands[0])
    return None if flat is None else (flat, operands[0])


def _over_entries(stmt: Stmt, operand: Access) -> Stmt | None:
    """The loops as they are, where they run over the entries of an operand: threads fill in the pieces that they counted."""
    return stmt if any((counted := r.positions) is not None and counted.access == operand for r in relations_of(stmt)) else None


def _listed(operand: Access, graph: Provenance) -> tuple[IndexVar, ...]:
    """The variables of the last levels of an operand, whose coordinates every entry tells."""
    begin, _ = operand.tensor.format.chains[-1]
    return graph.stored(operand)[begin:]


def _flat_loop(stmt: Stmt, operand: Access) -> Stmt | None:
    """One loop over all entries of an operand: faster than loops over rows that are short."""
    variables = [n.var for n in walk(stmt) if isinstance(n, Forall)]
    if list(provenance(stmt).stored(operand)) != variables:
        return None
    fused = variables[0]
    for var in variables[1:]:
        (both,) = fresh_variables(stmt, f"{fused}{var}")
        stmt, fused = Fuse(fused, var, both).apply(stmt), both
    (position,) = fresh_variables(stmt, f"{fused}p")
    step = Pos(fused, position, operand)
    return step.apply(stmt) if step.check(stmt) is None else None
