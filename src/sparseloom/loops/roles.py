"""Which scalars count and address, and which of them are never negative.

Index arithmetic stays in range, or the kernel would already have left its arrays; values may wrap around. Both are int64, so a
target that must tell them apart asks here.
"""

from __future__ import annotations

from sparseloom.core.dtypes import INT64
from sparseloom.core.trees import walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.routines import indices_of

_STAYS_POSITIVE = ("add", "multiply", "minimum", "maximum", "floor_divide", "remainder")


def index_names(function: ir.Function) -> frozenset[str]:
    """The int64 scalars that are sizes, counts and loop variables, or whose value flows into an index, a bound or a size."""
    found: set[str] = set()
    flows: list[tuple[str, set[str]]] = []
    for n in walk(function):
        for expr in indices_of(n):
            found |= _flowing(expr)
        match n:
            case ir.Param(ir.Var(name)) | ir.For(ir.Var(name)):
                found.add(name)
            case ir.Declare(ir.Var(name), value) | ir.Assign(ir.Var(name), value) | ir.Shuffle(ir.Var(name), _, value):
                flows.append((name, _flowing(value)))
    while any(name in found and not sources <= found for name, sources in flows):
        for name, sources in flows:
            if name in found:
                found |= sources
    return frozenset(found)


def _flowing(expr: ir.Expr) -> set[str]:
    """The int64 scalars of which an expression is a sum, product or choice."""
    found, waiting = set[str](), [expr]
    while waiting:
        match waiting.pop():
            case ir.Var(name, dtype) if dtype == INT64:
                found.add(name)
            case ir.Op(_, args, dtype) if dtype == INT64:
                waiting += args
            case ir.Select(_, then, other):
                waiting += (then, other)
            case ir.Cast(operand, dtype) if dtype == INT64:
                waiting.append(operand)
    return found


def nonnegative_names(function: ir.Function) -> frozenset[str]:
    """The scalars that provably never are negative: sizes, and whatever starts and stays so."""
    sizes = {p.target.name for p in function.params if p.role is ir.Role.SIZE}
    given: list[tuple[str, ir.Expr]] = []
    for n in walk(function.body):
        match n:
            case ir.Declare(ir.Var(name), value) | ir.Assign(ir.Var(name), value) | ir.For(ir.Var(name), value):
                given.append((name, value))
            case ir.Shuffle(ir.Var(name) as var, op, value):
                given.append((name, ir.Op(op, (var, value))))
    claimed = sizes | {name for name, _ in given}
    while True:
        refuted = {name for name, value in given if name in claimed and not is_nonnegative(value, claimed)}
        if not refuted:
            return frozenset(claimed)
        claimed -= refuted


def is_nonnegative(expr: ir.Expr, names: set[str] | frozenset[str]) -> bool:
    """Whether an index expression cannot be negative if these scalars are not."""
    match expr:
        case ir.Literal(int(value)):
            return value >= 0
        case ir.Var(name, dtype):
            return name in names and dtype == INT64
        case ir.Op(op, args) if op in _STAYS_POSITIVE:
            return all(is_nonnegative(arg, names) for arg in args)
        case ir.Select(_, then, other):
            return is_nonnegative(then, names) and is_nonnegative(other, names)
        case ir.Search(_, begin):
            return is_nonnegative(begin, names)
    return False
