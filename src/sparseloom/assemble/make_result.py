"""Where a statement's result goes: the kind of result that its format, its loops and its operands ask for."""

from __future__ import annotations

from dataclasses import replace

from sparseloom.assemble.appended import AppendedResult, Stage, Visits
from sparseloom.assemble.inserted import InsertedResult
from sparseloom.assemble.result import DenseResult, SharedResult
from sparseloom.core import algebra
from sparseloom.core.algebra import Scalar
from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import walk
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.making import Appended, Counted, Dense, Filled, Inserted, Refilled, Shared
from sparseloom.iteration.provenance import Provenance
from sparseloom.iteration.region import innermost, is_skippable, written
from sparseloom.iteration.sharing import is_bounded
from sparseloom.loops import nodes as ir
from sparseloom.notation.dtyping import dtype_of, fill_of, reduced_dtype
from sparseloom.notation.nodes import Access, Forall, IndexVar, Sequence, Stmt, SuchThat, Unit, Where
from sparseloom.schedule.laws import cut_row
from sparseloom.schedule.units import GPU_UNITS
from sparseloom.scope.expression import cast
from sparseloom.scope.scope import Scope, Sink


def make_result(scope: Scope, concrete: Concrete, pieces: ir.Expr | None = None) -> Sink:
    """The result of a statement; threads insert so many ``pieces``, if each has places of its own."""
    assign, stmt, lhs, combines = concrete.assign, concrete.stmt, concrete.assign.lhs, scope.combines
    first = first_value(stmt, lhs)
    match concrete.making:
        case Dense():
            return DenseResult(scope, lhs, first, lhs.tensor.fill)
        case Shared() as taken:
            return SharedResult(scope, lhs, first, taken, _comes_once(stmt, taken, scope.provenance))
        case Filled():
            return InsertedResult(scope, lhs)
        case Inserted(driver=driver, takes_leaves=takes_leaves):
            return InsertedResult(scope, lhs, driver, takes_leaves, pieces)
    repeated = len(set(lhs.indices)) < len(lhs.indices)
    gaps = repeated or any(r.positions is not None or r.nest for r in scope.provenance.relations)
    made, first = innermost(stmt), first if combines else lhs.tensor.fill
    visits = Visits(gaps, certain=combines and made.op is not None and not is_skippable(made.rhs, made.op))
    threads = any(isinstance(n, Forall) and n.tag.unit is Unit.CPUThread and written(n) == lhs for n in walk(stmt))
    parts = ir.index(scope.context.target.parts) if threads else None
    match concrete.making:
        case Refilled():
            return AppendedResult(scope, lhs, first, visits, Stage.REFILL)
        case Counted():
            return AppendedResult(scope, lhs, first, visits, Stage.COUNT, parts=parts)
        case Appended(takes_leaves=takes_leaves):
            goes_on = not takes_leaves and cut_row(stmt, lhs) is not None
            visits = replace(visits, bounded=not goes_on and is_bounded(assign, stmt), goes_on=goes_on)
            return AppendedResult(scope, lhs, first, visits, takes_leaves=takes_leaves, parts=parts)
    raise CompilerBug(concrete.making, "a way to make a result")


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
    if fill is None:
        return lhs.tensor.fill
    # As a value is converted when it is stored: infinity to an integer, too.
    stored = cast(ir.constant(fill, dtype_of(assign.rhs)), lhs.tensor.dtype)
    return stored.value if isinstance(stored, ir.Literal) else fill


def _comes_once(stmt: Stmt, taken: Shared, provenance: Provenance) -> bool:
    """Whether the loops come only once to each position that a result takes over, on a CPU."""
    if any(isinstance(n, Forall) and n.tag.unit in GPU_UNITS for n in walk(stmt)):
        return False
    return not _returns(stmt, {*provenance.stored(taken.operand)[: taken.depth]}, provenance)


def reduces_outside(stmt: Stmt, lhs: Access, provenance: Provenance) -> bool:
    """Whether some loop up to the one that fixes a result location helps to reduce, so that locations may be met again."""
    return _returns(stmt, {*lhs.indices}, provenance)


def _returns(stmt: Stmt, variables: set[IndexVar], provenance: Provenance) -> bool:
    """Whether the loops up to the one that settles these variables may come to the same values of them again."""
    known: set[IndexVar] = set()
    current = stmt
    while not variables <= provenance.known(known):
        match current:
            case Forall(var, body):
                if not set(provenance.originals(var)) <= variables:
                    return True
                if _repeats(provenance, var):
                    return True
                known.add(var)
                current = body
            case Where(body, _) | SuchThat(body, _):
                current = body
            case _:
                return False
    return False


def _repeats(provenance: Provenance, var: IndexVar) -> bool:
    """Whether positions of a level that repeats coordinates are walked, so that one coordinate is met more than once."""
    relation = provenance.position(var)
    if relation is None:
        return False
    return not relation.access.tensor.format.levels[provenance.position_levels(relation)[-1]].unique
