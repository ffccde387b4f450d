"""Which scalars a loop accumulates across its iterations, and how.

A vector or threads loop may assign a scalar declared outside it only as ``s = s op ...``, a flag as ``s = true``, or an integer product as
``s = 0``: then each lane or thread keeps its own copy and the copies are combined at the end.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from sparseloom.core.algebra import OPERATORS
from sparseloom.core.dtypes import BOOL, is_integer
from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import walk
from sparseloom.loops.nodes import Assign, Declare, Expr, For, Literal, Op, Var


def accumulated(loop: For, private: Set[str] = frozenset()) -> dict[Var, str]:
    """The scalars from outside that the loop's body assigns, each with its one reduction operator; ``private`` are each thread's own."""
    own = private | {n.var.name for n in walk(loop) if isinstance(n, Declare | For)}
    found: dict[Var, str] = {}
    for stmt in walk(loop.body):
        match stmt:
            case Assign(var) if var.name in own:
                pass
            case Assign(var, value) if (op := _combined_by(var, value)) is not None:
                if found.setdefault(var, op) != op:
                    raise CompilerBug(stmt, f"one operator accumulates {var.name} in a {loop.kind.value} loop")
            case Assign(var):
                form = f"{var.name} = {var.name} op ..."
                raise CompilerBug(stmt, f"a {loop.kind.value} loop assigns {var.name}, declared outside it, only as {form}")
    return found


def _combined_by(var: Var, value: Expr) -> str | None:
    """The operator that an assignment accumulates with, also where it was folded to the value that decides."""
    match value:
        case Literal(True) if var.dtype == BOOL:
            return "logical_or"
        case Literal(0) if is_integer(var.dtype):
            return "multiply"
        case Op(op, (Var(first), *rest)) if first == var.name and _combines(op) and not _reads(rest, var):
            return op
    return None


def _combines(op: str) -> bool:
    return op in OPERATORS and OPERATORS[op].associative


def _reads(exprs: Sequence[Expr], var: Var) -> bool:
    return any(n == var for expr in exprs for n in walk(expr))
