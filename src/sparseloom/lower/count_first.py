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
from sparseloom.formats.named import dense
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.making import CountedFirst, Inserted
from sparseloom.notation.nodes import Access, Assign, Forall, IndexVar, Reduce, Stmt, Tag, TensorVar
from sparseloom.schedule.loops import fresh_variables, provenance
from sparseloom.schedule.primitives.fuse import Fuse
from sparseloom.schedule.primitives.pos import Pos


def count_first(concrete: Concrete) -> Concrete:
    """Choose the loops that count."""
    match concrete.making:
        case Inserted() as making if (found := flat_loop(concrete.stmt, concrete.assign.lhs)) is not None:
            flat, driver = found
            return replace(concrete, making=replace(making, counting=flat, driver=driver))
        case CountedFirst() as making:
            return replace(concrete, making=replace(making, counting=concrete.stmt))
    return concrete


def flat_loop(stmt: Stmt, lhs: Access) -> tuple[Stmt, Access] | None:
    """One loop over all entries of the only operand, and which that is, where it tells the row of each: faster than loops over rows that
    are short."""
    inner, variables = stmt, list[IndexVar]()
    while isinstance(inner, Forall) and inner.tag == Tag():
        variables.append(inner.var)
        inner = inner.body
    if not isinstance(inner, Assign) or inner.op is not None or any(isinstance(n, Reduce) for n in walk(inner.rhs)):
        return None
    operands = [n for n in walk(inner.rhs) if isinstance(n, Access)]
    if len(operands) != 1 or list(provenance(stmt).stored(operands[0])) != variables:
        return None
    begin, _ = operands[0].tensor.format.chains[-1]
    rows = provenance(stmt).stored(lhs)[:-1]
    if begin == 0 or not {*rows} <= {*variables[begin:]}:
        return None
    (counter,) = fresh_variables(stmt, f"{lhs.tensor.name}_rows")
    counts = TensorVar(counter.name, len(rows), dense(len(rows)), lhs.tensor.dtype)
    counted = Assign(Access(counts, rows), inner.rhs)
    stmt = rewrite(stmt, lambda found: counted if found is inner else None)
    fused = variables[0]
    for var in variables[1:]:
        (both,) = fresh_variables(stmt, f"{fused}{var}")
        stmt, fused = Fuse(fused, var, both).apply(stmt), both
    (position,) = fresh_variables(stmt, f"{fused}p")
    step = Pos(fused, position, operands[0])
    return (step.apply(stmt), operands[0]) if step.check(stmt) is None else None
