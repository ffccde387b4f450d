"""One pass that folds what is known. It never changes a result: nan, -0.0 and wrapping integers stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from sparseloom.core import algebra
from sparseloom.core.dtypes import BOOL, INT64, DType, is_integer
from sparseloom.core.trees import Node, rewrite, walk
from sparseloom.loops.nodes import (
    FALSE,
    GPU_KINDS,
    TRUE,
    Assign,
    Barrier,
    Block,
    Cast,
    Declare,
    Expr,
    For,
    If,
    Launch,
    Literal,
    LoopKind,
    Op,
    Select,
    Stmt,
    Team,
    Var,
    While,
    constant,
)
from sparseloom.loops.routines import allocated

N = TypeVar("N", bound=Node)

_NOTHING = Block(())

# Operators whose value is exact or correctly rounded, so that folding them agrees with every target to the last bit.
_EXACT = frozenset(
    "add subtract multiply divide negative minimum maximum absolute sign square sqrt floor ceil trunc conjugate real imag "
    "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor logical_not".split()
)


def simplify(root: N) -> N:
    """Fold constants, drop neutral arguments, dead branches, empty loops and nested blocks."""
    return rewrite(root, _rule)


def _rule(n: Node) -> Node | None:
    match n:
        case Op():
            return _fold_op(n)
        case Cast(operand, dtype) if operand.dtype == dtype:
            return operand
        case Cast(Literal(value, source), dtype):
            return _fold_cast(value, source, dtype)
        case Select(Literal(decided), then, other):
            return then if decided else other
        case Stmt():
            return _fold_stmt(n)
    return None


def _fold_op(op: Op) -> Expr | None:
    """Fold an operator on constants, or drop the arguments that leave it unchanged."""
    match op:
        case Op("logical_and" | "logical_or"):
            return _fold_logical(op, op.name == "logical_or")
        case Op("logical_not", (Op("logical_not", (inner,)),)):
            return inner
        case Op("floor_divide" | "remainder", (Literal(int(a)), Literal(int(b)))) if b != 0:
            return Literal(a // b if op.name == "floor_divide" else a % b)
        case Op("floor_divide", (left, Literal(1))):
            return left
        case Op(name, (operand,)) if name.startswith("as_"):
            return operand
        case Op(name, args) if name in _EXACT and all(isinstance(a, Literal) and a.dtype.kind != "c" for a in args):
            return _fold_constants(op)
        case Op("add" | "multiply", args):
            return _fold_neutral(op)
        case Op("subtract", (Op("add" | "subtract", (_, Literal())) as left, Literal()), dtype) if dtype == INT64:
            return _sum(_gather_constants([op]))
        case Op("subtract", (left, Literal(value, dtype))) if value == 0 and _positive_zero(value) and dtype.kind != "c":
            return left
        case Op(name, (left, right), dtype) if dtype == BOOL and is_integer(left.dtype):
            return _fold_comparison(name, left, right)
    return None


def _fold_logical(op: Op, decides: bool) -> Expr | None:
    """An argument that decides alone is the result; its opposite is dropped."""
    if any(isinstance(a, Literal) and a.value == decides for a in op.args):
        return Literal(decides, BOOL)
    kept = tuple(a for a in op.args if not isinstance(a, Literal))
    if len(kept) < 2:
        return kept[0] if kept else Literal(not decides, BOOL)
    return None if len(kept) == len(op.args) else Op(op.name, kept, BOOL)


def _changed(old: Expr, new: Expr) -> Expr | None:
    return None if new == old else new


def _fold_constants(op: Op) -> Expr:
    """Compute an operator whose arguments are all constants."""
    values = [a.value for a in op.args if isinstance(a, Literal)]
    return _literal(algebra.compute(op.name, values, op.args[0].dtype), op.dtype)


def _literal(value: Any, dtype: DType) -> Literal:
    return Literal(np.asarray(value).astype(dtype).item(), dtype)


def _fold_neutral(op: Op) -> Expr | None:
    """Drop the zeros of a sum and the ones of a product, where that is exact; an integer product with a zero is zero.

    ``x + 0.0`` stays, for it turns -0.0 into 0.0; so does ``x * 1`` on complex numbers, for it can make nan.
    """
    neutral = 0 if op.name == "add" else 1
    if op.dtype.kind == "c" or (op.dtype.kind == "f" and op.name == "add"):
        return None
    if op.dtype == INT64 and op.name == "multiply" and any(_is(a, 0) for a in op.args):
        return Literal(0)
    kept = [a for a in op.args if not _is(a, neutral)]
    if op.dtype == INT64 and op.name == "add":
        return _changed(op, _sum(_gather_constants(kept)))
    if not kept:
        return constant(neutral, op.dtype)
    if len(kept) == 1:
        return kept[0]
    return _changed(op, Op(op.name, tuple(kept), op.dtype))


def _gather_constants(terms: Sequence[Expr]) -> tuple[list[Expr], int]:
    """``(x + 1) + 2`` is ``x + 3``, and ``(x + 1) - 1`` is ``x``: the terms of a sum, and its one constant."""
    known, kept = 0, []
    several = sum(map(_has_constant, terms)) > 1
    for term in terms:
        match term:
            case Literal(value):
                known += int(value.real)
            case Op("add", (*rest, Literal(value))):
                known += int(value.real)
                kept.extend(rest)
            case Op("subtract", (left, Literal(value))) if several or len(terms) == 1:
                inside, more = _gather_constants([left])
                known += more - int(value.real)
                kept.extend(inside)
            case _:
                kept.append(term)
    return kept, (known + 2**63) % 2**64 - 2**63


def _has_constant(term: Expr) -> bool:
    return isinstance(term, Literal) or (isinstance(term, Op) and term.name in ("add", "subtract") and isinstance(term.args[-1], Literal))


def _sum(gathered: tuple[list[Expr], int]) -> Expr:
    """Terms and a constant, which comes last."""
    kept, known = gathered
    if not kept:
        return Literal(known)
    if -(2**63) < known < 0:
        return Op("subtract", (kept[0] if len(kept) == 1 else Op("add", tuple(kept)), Literal(-known)))
    terms = (*kept, Literal(known)) if known else tuple(kept)
    return terms[0] if len(terms) == 1 else Op("add", terms)


def _is(expr: Expr, value: int) -> bool:
    return isinstance(expr, Literal) and expr.value == value


def _positive_zero(value: algebra.Scalar) -> bool:
    return not np.signbit(np.real(value))


def _fold_comparison(name: str, left: Expr, right: Expr) -> Expr | None:
    """Decide comparisons of an integer with itself, and of an unsigned one with zero."""
    if left == right:
        return TRUE if name in ("equal", "less_equal", "greater_equal") else FALSE
    if left.dtype.kind == "u" and _is(right, 0) and name in ("less", "greater_equal"):
        return FALSE if name == "less" else TRUE
    return None


def _fold_cast(value: algebra.Scalar, source: DType, target: DType) -> Literal | None:
    """Convert a constant, unless a real number becomes an integer: out of range, that is the target's business."""
    if source.kind in "fc" and is_integer(target):
        return None
    exact = np.asarray(value, source)
    with np.errstate(all="ignore"):
        return _literal(exact.real if target.kind == "f" else exact, target)


def _fold_stmt(stmt: Stmt) -> Stmt | None:
    """Drop what never runs or does nothing."""
    match stmt:
        case Block(stmts):
            return _flatten(stmts)
        case Assign(var, Var() as value) if value == var:
            return _NOTHING
        case If(Literal(True), then, other) if _is_empty(other) and _declared(then):
            return None
        case If(Literal(decided), then, other):
            return _alone(then if decided else other)
        case If(_, then, other) if _is_empty(then) and _is_empty(other):
            return _NOTHING
        case If(condition, then, other) if _is_empty(then):
            return If(Op("logical_not", (condition,), BOOL), other)
        case For(_, Literal(int(begin)), Literal(int(end))) if begin >= end:
            return _NOTHING
        case For(_, _, _, body) if _is_empty(body):
            return _NOTHING
        case For(_, _, _, body, LoopKind.GPU_BLOCK) if _waits_for_nobody(body):
            return replace(stmt, body=simplify(rewrite(body, lambda n: _NOTHING if isinstance(n, Barrier) else None)))
        case For(body=If(Literal(True), body)):
            return replace(stmt, body=body)
        case Team(_, loop) if _is_empty(loop):
            return _NOTHING
        case Launch(_, _, loop) if _is_empty(loop):
            return _NOTHING
        case While(Literal(False)):
            return _NOTHING
        case While(condition, If(Literal(True), body), factor):
            return While(condition, body, factor)
    return None


def _waits_for_nobody(body: Stmt) -> bool:
    """Whether a block has barriers but neither warps nor threads."""
    threads = any(isinstance(n, For) and n.kind in GPU_KINDS for n in walk(body))
    return not threads and any(isinstance(n, Barrier) for n in walk(body))


def _alone(branch: Stmt) -> Stmt:
    """The branch that is always taken. If it declares names it stays a branch, until a block takes it in."""
    return If(TRUE, branch) if _declared(branch) else branch


def _flatten(stmts: Sequence[Stmt]) -> Stmt | None:
    """Splice blocks, and branches that are always taken, into the block around them; of barriers in a row one is left.

    A branch whose names are declared again further down stays a branch: its scope keeps the two apart.
    """
    flat: list[Stmt] = []
    for place, stmt in enumerate(stmts):
        match stmt:
            case Block(inner):
                flat.extend(inner)
            case If(Literal(True), branch) if _declared(branch).isdisjoint(_declared_below(stmts[place + 1 :])):
                flat.extend(branch.stmts if isinstance(branch, Block) else [branch])
            case Barrier() if flat and isinstance(flat[-1], Barrier):
                pass
            case _:
                flat.append(stmt)
    if len(flat) == 1:
        return flat[0]
    return None if len(flat) == len(stmts) and all(a is b for a, b in zip(flat, stmts, strict=True)) else Block(tuple(flat))


def _declared(stmt: Stmt) -> set[str]:
    """The names a branch declares in its own scope."""
    match stmt:
        case Block(stmts):
            return {name for inner in stmts for name in _declared(inner)}
        case Declare(var):
            return {var.name}
    return {array.name for array in allocated(stmt)}


def _declared_below(stmts: Sequence[Stmt]) -> set[str]:
    """The names that statements declare at any depth."""
    names: set[str] = set()
    for stmt in stmts:
        for n in walk(stmt):
            match n:
                case Declare(var) | For(var):
                    names.add(var.name)
                case _:
                    names.update(array.name for array in allocated(n))
    return names


def _is_empty(stmt: Stmt) -> bool:
    """Whether a statement does nothing."""
    match stmt:
        case Block(stmts):
            return all(_is_empty(inner) for inner in stmts)
    return False
