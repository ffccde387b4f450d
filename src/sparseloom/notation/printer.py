"""Index notation and concrete index notation as text.

    show(expression)    (A(i,j) + B(i,j)) * x(j)
    show(statement)     forall i
                          forall j
                            y(i) += w(j)
                          where
                            forall k
                              w(k) = A(i,k) * x(k)

What ``show`` prints of index notation, ``text.parse`` reads back.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from sparseloom.core.algebra import OPERATORS, Scalar
from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import Node, walk
from sparseloom.notation.nodes import (
    Access,
    Apply,
    Assign,
    Expr,
    Forall,
    IndexVar,
    Literal,
    Points,
    Reduce,
    Relation,
    Sequence,
    Stmt,
    SuchThat,
    Where,
)
from sparseloom.notation.syntax import AND, ATOM, COMPARISON, CONSTANTS, FUNCTIONS, NOT, OR, POWER, PRODUCT, SIGN, SUM

_LEVELS = {
    "logical_or": OR, "logical_and": AND, "logical_not": NOT, "add": SUM, "subtract": SUM, "multiply": PRODUCT, "divide": PRODUCT,
    "floordiv": PRODUCT, "mod": PRODUCT, "negative": SIGN, "power": POWER,
} | {op.name: COMPARISON for op in OPERATORS.values() if op.symbol[:1] in tuple("<>=!")}  # fmt: skip
_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "minimum": "min", "maximum": "max",
    "logical_or": "any", "logical_and": "all", "logical_xor": "xor",
}  # fmt: skip


def show(node: Node) -> str:
    """An expression or an assignment on one line; other statements as an indented loop nest."""
    match node:
        case Expr():
            return _expression(node)
        case Stmt():
            return "\n".join(text for text, _ in lines(node))
    return str(node)


def lines(stmt: Stmt, before: str = "") -> Iterator[tuple[str, Stmt | Relation]]:
    """Every line of a statement, with the statement or the relation that it stands for; ``before`` is the indentation."""
    inside = f"{before}  "
    match stmt:
        case Assign(lhs, rhs, op):
            yield f"{before}{_access(lhs)} {_assignment(op)} {_expression(rhs)}", stmt
        case Forall(var, body):
            yield f"{before}forall {var}", stmt
            yield from lines(body, inside)
        case Where(consumer, producer):
            yield from lines(consumer, before)
            yield f"{before}where", stmt
            yield from lines(producer, inside)
        case Sequence(stmts):
            yield f"{before}sequence", stmt
            for part in stmts:
                yield from lines(part, inside)
        case SuchThat(body, relations):
            yield from lines(body, before)
            yield f"{before}such that", stmt
            yield from ((f"{inside}{relation}", relation) for relation in relations)
        case _:
            raise CompilerBug(stmt, "a statement is an Assign, Forall, Where, Sequence or SuchThat")


def _assignment(op: str | None) -> str:
    """``=``, ``+=``, or for other operators their name: ``max=``."""
    return "=" if op is None else "+=" if op == "add" else f"{_REDUCTIONS.get(op, op)}="


def _expression(expr: Expr, floor: int = 0) -> str:
    """``expr``, in parentheses if it binds less tightly than ``floor``."""
    text = _unenclosed(expr)
    return f"({text})" if _level(expr) < floor else text


def _level(expr: Expr) -> int:
    match expr:
        case Apply(op):
            return _LEVELS.get(op, ATOM)
        case Literal(value):
            return SIGN if _number(value).startswith("-") else ATOM
    return ATOM


def _unenclosed(expr: Expr) -> str:
    match expr:
        case Access():
            return _access(expr)
        case Literal(value):
            return _number(value)
        case Points(names):
            return " * ".join(f"|{name}|" for name in names)
        case Apply("is_stored", (arg,)):
            return f"stored({_expression(arg)})"
        case Apply("or_else", (value,), otherwise):
            return f"({_expression(value)} where stored, else {otherwise})"
        case Apply("within", (condition, value), otherwise):
            return f"({_expression(value)} where {_expression(condition)}, else {otherwise})"
        case Apply("negative", (Literal() as literal,)) if _level(literal) == ATOM:
            return f"-({_expression(literal)})"  # without them it would be read as a negative number
        case Apply("negative", (arg,)):
            return f"-{_expression(arg, SIGN)}"
        case Apply("logical_not", (arg,)):
            return f"not {_expression(arg, NOT)}"
        case Apply("power", (base, exponent)):
            return f"{_expression(base, ATOM)}**{_expression(exponent, SIGN)}"
        case Apply(op, args) if op in _LEVELS:
            return _infix(op, args)
        case Apply(op, args):
            return f"{op}({', '.join(map(_expression, args))})"
        case Reduce(op, variables, body):
            return f"{_REDUCTIONS[op]}({_bound(variables, body)}, {_expression(body)})"
    raise CompilerBug(expr, "an expression is an Access, a Literal, an Apply or a Reduce")


def _infix(op: str, args: tuple[Expr, ...]) -> str:
    """Operators bind from left to right, so only the first argument may be of the same level; comparisons do not chain."""
    level = _LEVELS[op]
    same = isinstance(args[0], Apply) and args[0].op == op and OPERATORS[op].associative
    first = _expression(args[0], level + 1 if same or level == COMPARISON else level)
    return f" {OPERATORS[op].symbol} ".join([first, *(_expression(arg, level + 1) for arg in args[1:])])


def _access(access: Access) -> str:
    """``A(i,j)``; brackets keep a tensor apart from a function of its name."""
    name, indices = access.tensor.name, ",".join(map(str, access.indices))
    if name in FUNCTIONS or name in CONSTANTS:
        return f"{name}[{indices}]"
    return f"{name}({indices})" if indices else name


def _bound(variables: tuple[IndexVar, ...], body: Expr) -> str:
    """``j`` or ``{j,k}``; braces also where nothing else tells that ``j`` is a variable."""
    names = ",".join(var.name for var in variables)
    is_clear = len(variables) == 1 and any(isinstance(found, Access) and variables[0] in found.indices for found in walk(body))
    return names if is_clear else f"{{{names}}}"


def _number(value: Scalar) -> str:
    match value:
        case complex(real=0.0, imag=imaginary) if math.isfinite(imaginary):
            return f"{imaginary!r}j"
        case complex(real=real, imag=imaginary):
            return f"complex({real!r}, {imaginary!r})"
    return repr(value)
