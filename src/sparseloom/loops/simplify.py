"""One pass that folds what is known. It never changes a result: nan, -0.0 and wrapping integers stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from sparseloom.core import algebra
from sparseloom.core.dtypes import BOOL, INT64, DType, is_integer
from sparseloom.core.trees import Node, rewrite, walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.routines import declared_by

N = TypeVar("N", bound=Node)

_NOTHING = ir.Block(())

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
        case ir.Op():
            return _fold_op(n)
        case ir.Cast(operand, dtype) if operand.dtype == dtype:
            return operand
        case ir.Cast(ir.Literal(value, source), dtype):
            return _fold_cast(value, source, dtype)
        case ir.Select(ir.Literal(decided), then, other):
            return then if decided else other
        case ir.Stmt():
            return _fold_stmt(n)
    return None


def _fold_op(op: ir.Op) -> ir.Expr | None:
    """Fold an operator on constants, or drop the arguments that leave it unchanged."""
    match op:
        case ir.Op("logical_and" | "logical_or"):
            return _fold_logical(op, op.name == "logical_or")
        case ir.Op("logical_not", (ir.Op("logical_not", (inner,)),)):
            return inner
        case ir.Op("floor_divide" | "remainder", (ir.Literal(int(a)), ir.Literal(int(b)))) if b != 0:
            return ir.Literal(a // b if op.name == "floor_divide" else a % b)
        case ir.Op("floor_divide", (left, ir.Literal(1))):
            return left
        case ir.Op(name, (operand,)) if name.startswith("as_"):
            return operand
        case ir.Op(name, args) if name in _EXACT and all(isinstance(a, ir.Literal) and a.dtype.kind != "c" for a in args):
            return _literal(algebra.compute(name, [a.value for a in args if isinstance(a, ir.Literal)], args[0].dtype), op.dtype)
        case ir.Op("add" | "multiply", args):
            return _fold_neutral(op)
        case ir.Op("subtract", (ir.Op("add" | "subtract", (_, ir.Literal())) as left, ir.Literal()), dtype) if dtype == INT64:
            return _sum(_gather_constants([op]))
        case ir.Op("subtract", (ir.Op("add") as left, right), dtype) if dtype == INT64 and (rest := _cancelled(left, right)) is not None:
            return rest
        case ir.Op("subtract", (left, ir.Literal(value, dtype))) if value == 0 and dtype.kind != "c" and not np.signbit(value):
            return left
        case ir.Op(name, (left, right), dtype) if dtype == BOOL and is_integer(left.dtype):
            return _fold_comparison(name, left, right)
    return None


def _fold_logical(op: ir.Op, decides: bool) -> ir.Expr | None:
    """An argument that decides alone is the result; its opposite is dropped."""
    if any(isinstance(a, ir.Literal) and a.value == decides for a in op.args):
        return ir.Literal(decides, BOOL)
    kept = tuple(a for a in op.args if not isinstance(a, ir.Literal))
    if len(kept) < 2:
        return kept[0] if kept else ir.Literal(not decides, BOOL)
    return None if len(kept) == len(op.args) else ir.Op(op.name, kept, BOOL)


def _literal(value: Any, dtype: DType) -> ir.Literal:
    return ir.Literal(np.asarray(value).astype(dtype).item(), dtype)


def _fold_neutral(op: ir.Op) -> ir.Expr | None:
    """Drop the zeros of a sum and the ones of a product, where that is exact; an integer product with a zero is zero.

    ``x + 0.0`` stays, for it turns -0.0 into 0.0; so does ``x * 1`` on complex numbers, for it can make nan.
    """
    neutral = 0 if op.name == "add" else 1
    if op.dtype.kind == "c" or (op.dtype.kind == "f" and op.name == "add"):
        return None
    if op.dtype == INT64 and op.name == "multiply" and any(_is(a, 0) for a in op.args):
        return ir.Literal(0)
    kept = [a for a in op.args if not _is(a, neutral)]
    if op.dtype == INT64 and op.name == "add":
        made = _sum(_gather_constants(kept))
    elif len(kept) < 2:
        made = kept[0] if kept else ir.constant(neutral, op.dtype)
    else:
        made = ir.Op(op.name, tuple(kept), op.dtype)
    return None if made == op else made


def _gather_constants(terms: Sequence[ir.Expr]) -> tuple[list[ir.Expr], int]:
    """``(x + 1) + 2`` is ``x + 3``, and ``(x + 1) - 1`` is ``x``: the terms of a sum, and its one constant."""
    known, kept = 0, []
    several = sum(map(_has_constant, terms)) > 1
    for term in terms:
        match term:
            case ir.Literal(value):
                known += int(value.real)
            case ir.Op("add", (*rest, ir.Literal(value))):
                known += int(value.real)
                kept.extend(rest)
            case ir.Op("subtract", (left, ir.Literal(value))) if several or len(terms) == 1:
                inside, more = _gather_constants([left])
                known += more - int(value.real)
                kept.extend(inside)
            case _:
                kept.append(term)
    return kept, (known + 2**63) % 2**64 - 2**63


def _cancelled(left: ir.Expr, right: ir.Expr) -> ir.Expr | None:
    """``(x + y + 2) - (x + y)`` is 2: what is left where the same terms are added and taken away; None if any is not."""
    if isinstance(right, ir.Literal):
        return None
    (kept, known), (taken, less) = _gather_constants(_added(left)), _gather_constants(_added(right))
    for term in taken:
        if term not in kept:
            return None
        kept.remove(term)
    return _sum((kept, known - less))


def _added(expr: ir.Expr) -> list[ir.Expr]:
    """The terms of a sum."""
    match expr:
        case ir.Op("add", args):
            return [term for arg in args for term in _added(arg)]
    return [expr]


def _has_constant(term: ir.Expr) -> bool:
    match term:
        case ir.Literal() | ir.Op("add" | "subtract", (*_, ir.Literal())):
            return True
    return False


def _sum(gathered: tuple[list[ir.Expr], int]) -> ir.Expr:
    """Terms and a constant, which comes last."""
    kept, known = gathered
    if not kept:
        return ir.Literal(known)
    if -(2**63) < known < 0:
        return ir.Op("subtract", (kept[0] if len(kept) == 1 else ir.Op("add", tuple(kept)), ir.Literal(-known)))
    terms = (*kept, ir.Literal(known)) if known else tuple(kept)
    return terms[0] if len(terms) == 1 else ir.Op("add", terms)


def _is(expr: ir.Expr, value: int) -> bool:
    return isinstance(expr, ir.Literal) and expr.value == value


def _fold_comparison(name: str, left: ir.Expr, right: ir.Expr) -> ir.Expr | None:
    """Decide comparisons of an integer with itself, and of an unsigned one with zero."""
    if left == right:
        return ir.TRUE if name in ("equal", "less_equal", "greater_equal") else ir.FALSE
    if left.dtype.kind == "u" and _is(right, 0) and name in ("less", "greater_equal"):
        return ir.FALSE if name == "less" else ir.TRUE
    return None


def _fold_cast(value: algebra.Scalar, source: DType, target: DType) -> ir.Literal | None:
    """Convert a constant, unless a real number becomes an integer: out of range, that is the target's business."""
    if source.kind in "fc" and is_integer(target):
        return None
    exact = np.asarray(value, source)
    with np.errstate(all="ignore"):
        return _literal(exact.real if target.kind == "f" else exact, target)


def _fold_stmt(stmt: ir.Stmt) -> ir.Stmt | None:
    """Drop what never runs or does nothing."""
    match stmt:
        case ir.Block(stmts):
            return _flatten(stmts)
        case ir.Assign(var, ir.Var() as value) if value == var:
            return _NOTHING
        case ir.If(ir.Literal(True), then, ir.Block(())) if _declared(then):
            return None
        case ir.If(ir.Literal(decided), then, other):
            return _alone(then if decided else other)
        case ir.If(_, ir.Block(()), ir.Block(())):
            return _NOTHING
        case ir.If(condition, ir.Block(()), other):
            return replace(stmt, condition=ir.Op("logical_not", (condition,), BOOL), then=other, other=_NOTHING)
        case ir.For(_, ir.Literal(int(begin)), ir.Literal(int(end))) if begin >= end:
            return _NOTHING
        case ir.For(body=ir.Block(())) | ir.Team(loop=ir.Block(())) | ir.Launch(body=ir.Block(())) | ir.While(ir.Literal(False)):
            return _NOTHING
        case ir.For(_, _, _, body, ir.LoopKind.GPU_BLOCK) if _waits_for_nobody(body):
            return replace(stmt, body=simplify(rewrite(body, lambda n: _NOTHING if isinstance(n, ir.Barrier) else None)))
        case ir.For(body=ir.If(ir.Literal(True), body)):
            return replace(stmt, body=body)
        case ir.While(body=ir.If(ir.Literal(True), body)):
            return replace(stmt, body=body)
    return None


def _waits_for_nobody(body: ir.Stmt) -> bool:
    """Whether a block has barriers but neither warps nor threads."""
    threads = any(isinstance(n, ir.For) and n.kind in ir.GPU_KINDS for n in walk(body))
    return not threads and any(isinstance(n, ir.Barrier) for n in walk(body))


def _alone(branch: ir.Stmt) -> ir.Stmt:
    """The branch that is always taken. If it declares names it stays a branch, until a block takes it in."""
    return ir.If(ir.TRUE, branch) if _declared(branch) else branch


def _flatten(stmts: Sequence[ir.Stmt]) -> ir.Stmt | None:
    """Splice blocks, and branches that are always taken, into the block around them; of barriers in a row one is left.

    A branch whose names are declared again further down stays a branch: its scope keeps the two apart.
    """
    flat: list[ir.Stmt] = []
    for place, stmt in enumerate(stmts):
        match stmt:
            case ir.Block(inner):
                flat.extend(inner)
            case ir.If(ir.Literal(True), branch) if _declared(branch).isdisjoint(_declared_below(stmts[place + 1 :])):
                flat.extend(ir.stmts_of(branch))
            case ir.Barrier() if flat and isinstance(flat[-1], ir.Barrier):
                pass
            case _:
                flat.append(stmt)
    if len(flat) == 1:
        return flat[0]
    return None if len(flat) == len(stmts) and all(a is b for a, b in zip(flat, stmts, strict=True)) else ir.Block(tuple(flat))


def _declared(stmt: ir.Stmt) -> set[str]:
    """The names a branch declares in its own scope."""
    return {made.name for inner in ir.stmts_of(stmt) if not isinstance(inner, ir.For) for made in declared_by(inner)}


def _declared_below(stmts: Sequence[ir.Stmt]) -> set[str]:
    """The names that statements declare at any depth."""
    return {made.name for stmt in stmts for n in walk(stmt) for made in declared_by(n)}
