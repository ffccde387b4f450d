"""What a loop says it reduces is what it does.

A vector or threads loop may assign a scalar declared outside it only if it declares to reduce it, and only as ``s = s op ...``; or, where
that was folded, as the value that decides (a flag as ``s = true``, an integer product as ``s = 0``) or as ``s = s - 2``.
"""

from __future__ import annotations

from collections.abc import Set

from sparseloom.core.algebra import OPERATORS
from sparseloom.core.dtypes import BOOL, is_integer
from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import walk
from sparseloom.loops.nodes import Assign, Declare, Expr, For, Literal, Op, Team, Var
from sparseloom.loops.routines import Call, assigned_by


def check_reductions(loop: For, private: Set[str] = frozenset()) -> None:
    """Raise ``CompilerBug`` where a loop assigns a scalar from outside in another way than it says; ``private`` are each thread's own."""
    declared = {reduction.var: reduction.op for reduction in loop.reduces}
    own = private | {n.var.name for n in walk(loop) if isinstance(n, Declare | For)}
    for var, op in declared.items():
        if var.name in own or not (op in OPERATORS and OPERATORS[op].associative):
            raise CompilerBug(loop, f"{op} is associative and combines copies of {var.name}, which is declared outside")
    for stmt in walk(loop.body):
        match stmt:
            case Assign(var, value) if var.name not in own and not (var in declared and _combines(var, declared[var], value)):
                form = f"{var.name} = {var.name} op ..."
                raise CompilerBug(stmt, f"a {loop.kind.value} loop assigns {var.name}, declared outside it, only as {form}, as it declares")
            case Call(assigned=Var(name)) if name not in own:
                raise CompilerBug(stmt, f"a {loop.kind.value} loop hands a call no scalar to assign from outside it, such as {name}")


def check_own(team: Team) -> frozenset[str]:
    """The scalars of each thread of a team; raise ``CompilerBug`` where what it does first or last assigns others, which all share."""
    own = frozenset(n.var.name for n in walk(team.first) if isinstance(n, Declare))
    for part in (team.first, team.last):
        mine = own | {n.var.name for n in walk(part) if isinstance(n, Declare | For)}
        for stmt in walk(part):
            if (var := assigned_by(stmt)) is not None and var.name not in mine:
                raise CompilerBug(stmt, f"what a thread does around a loop assigns its own scalars only, not {var.name}")
    return own


def _combines(var: Var, op: str, value: Expr) -> bool:
    """Whether an assignment combines a scalar with something by this operator."""
    match value:
        case Literal(decides) if var.dtype == BOOL:
            return op in (("logical_or", "add", "maximum") if decides else ("logical_and", "multiply", "minimum"))
        case Literal(0) if is_integer(var.dtype):
            return op == "multiply"
        case Op(name, (Var(first), *rest)):
            adds = (name, op) == ("subtract", "add")  # a number that was negative
            return (name == op or adds) and first == var.name and not any(n == var for expr in rest for n in walk(expr))
    return False
