"""What must hold of every concrete statement. A pass that breaks it is a bug, found here rather than in a wrong result."""

from __future__ import annotations

from collections.abc import Iterator

from sparseloom.core.algebra import INTERNAL, OPERATORS
from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import Node, walk
from sparseloom.notation.nodes import Access, Apply, Assign, Fixed, Forall, IndexVar, Reduce, Sequence, Stmt, SuchThat, TensorVar, Where


def verify(stmt: Stmt) -> None:
    """Check a concrete statement.

    Every variable is bound by one loop or stands in a relation around its use, every tensor has one declaration and one
    index per mode, temporaries are written before they are read, and all reductions have become loops.
    """
    _check_tensors(stmt)
    _check_operators(stmt)
    computed = frozenset(found.lhs.tensor.name for found in walk(stmt) if isinstance(found, Assign))
    _check(stmt, frozenset(), frozenset(), computed)


def _check(stmt: Stmt, loops: frozenset[IndexVar], related: frozenset[IndexVar], pending: frozenset[str]) -> frozenset[str]:
    """Check one statement below ``loops``, and return the names of the tensors it writes.

    ``pending`` are the tensors that the whole statement computes, but that are not complete yet.
    """
    match stmt:
        case Assign(lhs):
            _check_variables(stmt, loops | related)
            _check_reads(stmt, pending)
            return frozenset({lhs.tensor.name})
        case Forall(var, body):
            if var in loops:
                raise CompilerBug(stmt, f"{var} must be bound by one loop only")
            return _check(body, loops | {var}, related, pending)
        case Where(consumer, producer):
            produced = _check(producer, loops, related, pending)
            return produced | _check(consumer, loops, related, pending - produced)
        case Sequence(stmts):
            done: frozenset[str] = frozenset()
            for part in stmts:
                done |= _check(part, loops, related, pending - done)
            return done
        case SuchThat(body, relations):
            named = frozenset(found for relation in relations for found in walk(relation) if isinstance(found, IndexVar))
            return _check(body, loops, related | named, pending)
    raise CompilerBug(stmt, "a statement must be an Assign, Forall, Where, Sequence or SuchThat")


def _check_variables(assign: Assign, known: frozenset[IndexVar]) -> None:
    for var in (var for access in _accesses(assign) for var in access.indices):
        if var not in known and not isinstance(var, Fixed):
            raise CompilerBug(assign, f"{var} must be bound by a loop or a relation")


def _check_reads(assign: Assign, pending: frozenset[str]) -> None:
    for tensor in (access.tensor for access in _accesses(assign.rhs)):
        if tensor.name == assign.lhs.tensor.name:
            raise CompilerBug(assign, f"{tensor} must not be read by the assignment that writes it")
        if tensor.name in pending:
            raise CompilerBug(assign, f"{tensor} must be written before it is read")


def _check_tensors(stmt: Stmt) -> None:
    declared: dict[str, TensorVar] = {}
    for access in _accesses(stmt):
        tensor = access.tensor
        if not tensor.order == tensor.format.order == len(access.indices):
            raise CompilerBug(access, f"{tensor} must have one index and one stored mode for each of its {tensor.order} modes")
        if declared.setdefault(tensor.name, tensor) != tensor:
            raise CompilerBug(access, f"{tensor} must mean one tensor throughout the statement")


def _accesses(root: Node) -> Iterator[Access]:
    return (found for found in walk(root) if isinstance(found, Access))


def _check_operators(stmt: Stmt) -> None:
    known = OPERATORS | INTERNAL
    for found in walk(stmt):
        match found:
            case Apply(op, args) if op not in known:
                raise CompilerBug(found, f"{op} must be an operator of core.algebra")
            case Apply(op, args) if len(args) < known[op].arity or (len(args) > known[op].arity and not known[op].associative):
                raise CompilerBug(found, f"{op} must have {known[op].arity} arguments, not {len(args)}")
            case Reduce():
                raise CompilerBug(found, "every reduction must have become a loop")
            case Assign(_, _, str(op)):
                if op not in OPERATORS or OPERATORS[op].identity is None:
                    raise CompilerBug(found, f"an assignment must accumulate with an operator that has an identity, not {op}")
