"""Where a statement has something to do, as a presence formula.

The rules follow from two laws of ``core.algebra``. If absent arguments annihilate an operation, all of them must be
present for it to matter; otherwise one present argument is enough. A term that equals its reduction's identity where it is
absent may be skipped; any other must be visited everywhere.
"""

from __future__ import annotations

from collections.abc import Callable

from sparseloom.core import algebra
from sparseloom.core.errors import CompilerBug
from sparseloom.iteration.formula import ALWAYS, NEVER, Formula, all_of, any_of
from sparseloom.notation.dtyping import Absence, absence_of, constant_of, fill_of
from sparseloom.notation.nodes import Access, Apply, Assign, Expr, Forall, Literal, Points, Sequence, Stmt, SuchThat, Where

Leaf = Callable[[Access], Formula]


def region(stmt: Stmt, leaf: Leaf) -> Formula:
    """When ``stmt`` has something to do; ``leaf`` tells what is known of each operand at the current loop."""
    match stmt:
        case Forall(_, body) | SuchThat(body, _):
            return region(body, leaf)
        case Sequence(stmts):
            return any_of([region(part, leaf) for part in stmts])
        case Where(consumer, producer):
            temporary = written(producer).tensor
            made = region(producer, leaf) if temporary.may_be_absent else ALWAYS
            return region(consumer, lambda access: made if access.tensor == temporary else leaf(access))
        case Assign(_, rhs, None):
            return present(rhs, leaf)
        case Assign(_, rhs, str(op)):
            return present(rhs, leaf) if is_skippable(rhs, op) else ALWAYS
    raise CompilerBug(stmt, "only concrete index notation has a region")


def is_skippable(rhs: Expr, op: str) -> bool:
    """Whether reducing with ``op`` may leave out the points at which ``rhs`` is absent."""
    return absence_of(op, rhs) is Absence.LEFT_OUT


def innermost(stmt: Stmt) -> Assign:
    """The assignment that a statement ends in."""
    match stmt:
        case Assign():
            return stmt
        case Forall(_, body) | SuchThat(body, _) | Where(body, _):
            return innermost(body)
        case Sequence(stmts):
            return innermost(stmts[-1])
    raise CompilerBug(stmt, "a statement must end in an assignment")


def written(stmt: Stmt) -> Access:
    """The left side of the one assignment that a producer ends in."""
    return innermost(stmt).lhs


def present(expr: Expr, leaf: Leaf) -> Formula:
    """When ``expr`` is present, that is, not merely worth its fill."""
    match expr:
        case Access():
            return leaf(expr)
        case Literal():
            return NEVER
        case Points():
            return ALWAYS
        case Apply(_, args, _):
            deciding = annihilating(expr)
            if deciding:
                return all_of([present(args[k], leaf) for k in deciding])
            return any_of([present(arg, leaf) for arg in args])
    raise CompilerBug(expr, "reductions must have become temporaries")


def annihilating(expr: Apply) -> tuple[int, ...]:
    """The arguments that decide the result when they are absent: both factors of a product of sparse operands."""
    if expr.op in ("within", "or_else"):
        return (0,)
    found = []
    for position, arg in enumerate(expr.args):
        fill = fill_of(arg) if constant_of(arg) is None else None
        if fill is not None and algebra.annihilates(expr.op, position, fill, expr.zero):
            found.append(position)
    return tuple(found)
