"""Where a statement's result goes: the kind of result that its format, its loops and its operands ask for."""

from __future__ import annotations

from sparseloom.core import algebra
from sparseloom.core.algebra import Scalar
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.layout import is_filled
from sparseloom.iteration.region import innermost, is_skippable
from sparseloom.iteration.sharing import is_bounded
from sparseloom.loops import nodes as ir
from sparseloom.lower.append import AppendResult
from sparseloom.lower.context import Context
from sparseloom.lower.counted import CountedResult
from sparseloom.lower.filled import FilledResult
from sparseloom.lower.insert import InsertResult
from sparseloom.lower.padded import PaddedResult, is_padded
from sparseloom.lower.refill import RefillResult
from sparseloom.lower.result import DenseResult, Result, SharedResult
from sparseloom.lower.structure import StructureResult
from sparseloom.notation.dtyping import fill_of, reduced_dtype
from sparseloom.notation.nodes import Access, Sequence, Stmt, SuchThat
from sparseloom.relations.fuse import FuseRelation
from sparseloom.relations.pos import PosRelation


def make_result(context: Context, concrete: Concrete, combines: bool, refill: bool) -> Result:
    """The result of a statement. ``combines`` says whether a location may be written more than once."""
    assign, stmt = concrete.assign, concrete.stmt
    lhs, view = assign.lhs, context.view(assign.lhs)
    first = first_value(stmt, lhs)
    if lhs.tensor.format.is_dense:
        return DenseResult(context, lhs, view, first, lhs.tensor.fill)
    if concrete.shared is not None:
        size = ir.Var(context.names.fresh(f"{lhs.tensor.name}_count"))
        return SharedResult(context, lhs, view, first, concrete.shared, size, combines)
    if is_filled(lhs.tensor.format):
        return FilledResult(context, lhs, view)
    if concrete.inserted:
        return InsertResult(context, lhs, view)
    repeated = len(set(lhs.indices)) < len(lhs.indices)
    gaps = repeated or any(isinstance(r, PosRelation | FuseRelation) for r in context.provenance.relations)
    made = innermost(stmt)
    certain = combines and made.op is not None and not is_skippable(made.rhs, made.op)
    first = first if combines else lhs.tensor.fill
    if is_padded(lhs.tensor.format):
        return PaddedResult(context, lhs, view, first, lhs.tensor.fill, gaps, certain)
    if refill:
        return RefillResult(context, lhs, view, first, gaps, certain)
    if concrete.counted:
        return CountedResult(context, lhs, view, first, gaps, certain)
    kind = StructureResult if concrete.takes_leaves else AppendResult
    return kind(context, lhs, view, first, gaps, certain, is_bounded(assign, stmt))


def first_statement(stmt: Stmt) -> Stmt:
    """What runs first of a sequence."""
    match stmt:
        case Sequence(stmts):
            return stmts[0]
        case SuchThat(Sequence(stmts), relations):
            return SuchThat(stmts[0], relations)
    return stmt


def first_value(stmt: Stmt, lhs: Access) -> Scalar:
    """What a location of the result holds before, or without, anything written to it."""
    assign = innermost(first_statement(stmt))
    if assign.op is not None:
        return algebra.identity(assign.op, reduced_dtype(assign.op, assign.rhs))  # type: ignore[no-any-return]
    fill = fill_of(assign.rhs)
    return lhs.tensor.fill if fill is None else fill
