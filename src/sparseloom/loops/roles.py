"""Which scalars count and address, and which of them are never negative.

Index arithmetic stays in range, or the kernel would already have left its arrays; values may wrap around. Both are int64, so a
target that must tell them apart asks here.
"""

from __future__ import annotations

from collections.abc import Iterator

from sparseloom.core.dtypes import INT64
from sparseloom.core.trees import walk
from sparseloom.loops.nodes import (
    Allocate,
    Assign,
    Cast,
    Declare,
    Expr,
    Fill,
    For,
    Function,
    Launch,
    Literal,
    Load,
    Op,
    Param,
    Role,
    Search,
    Select,
    Shuffle,
    Store,
    Var,
)
from sparseloom.loops.routines import Call

_STAYS_POSITIVE = ("add", "multiply", "minimum", "maximum", "floor_divide", "remainder")


def index_names(function: Function) -> frozenset[str]:
    """The int64 scalars that are sizes, counts and loop variables, or whose value flows into an index, a bound or a size."""
    found: set[str] = set()
    flows: list[tuple[str, frozenset[str]]] = []
    for n in walk(function):
        match n:
            case Param(Var(name)):
                found.add(name)
            case Load(_, place) | Store(_, place):
                found.update(_flowing(place))
            case For(Var(name), begin, end):
                found |= {name, *_flowing(begin), *_flowing(end)}
            case Search(_, begin, end, key):
                found |= {*_flowing(begin), *_flowing(end), *_flowing(key)}
            case Launch(blocks, threads):
                found |= {*_flowing(blocks), *_flowing(threads)}
            case Allocate(_, size):
                found.update(_flowing(size))
            case Fill(_, begin, count):
                found |= {*_flowing(begin), *_flowing(count)}
            case Call(args=args):
                found.update(name for arg in args for name in _flowing(arg))
            case Declare(Var(name), value) | Assign(Var(name), value):
                flows.append((name, frozenset(_flowing(value))))
            case Shuffle(Var(name), _, value):
                flows.append((name, frozenset(_flowing(value))))
    while any(name in found and not sources <= found for name, sources in flows):
        for name, sources in flows:
            if name in found:
                found |= sources
    return frozenset(found)


def _flowing(expr: Expr) -> Iterator[str]:
    """The int64 scalars of which an expression is a sum, product or choice."""
    match expr:
        case Var(name, dtype) if dtype == INT64:
            yield name
        case Op(_, args, dtype) if dtype == INT64:
            for arg in args:
                yield from _flowing(arg)
        case Select(_, then, other):
            yield from _flowing(then)
            yield from _flowing(other)
        case Cast(operand, dtype) if dtype == INT64:
            yield from _flowing(operand)


def nonnegative_names(function: Function) -> frozenset[str]:
    """The scalars that provably never are negative: sizes, and whatever starts and stays so."""
    sizes = {p.target.name for p in function.params if p.role is Role.SIZE}
    given: list[tuple[str, Expr]] = []
    for n in walk(function.body):
        match n:
            case Declare(Var(name), value) | Assign(Var(name), value) | For(Var(name), value):
                given.append((name, value))
            case Shuffle(Var(name) as var, op, value):
                given.append((name, Op(op, (var, value))))
    claimed = sizes | {name for name, _ in given}
    while True:
        refuted = {name for name, value in given if name in claimed and not is_nonnegative(value, claimed)}
        if not refuted:
            return frozenset(claimed)
        claimed -= refuted


def is_nonnegative(expr: Expr, names: set[str] | frozenset[str]) -> bool:
    """Whether an index expression cannot be negative if these scalars are not."""
    match expr:
        case Literal(int(value)):
            return value >= 0
        case Var(name, dtype):
            return name in names and dtype == INT64
        case Op(op, args) if op in _STAYS_POSITIVE:
            return all(is_nonnegative(arg, names) for arg in args)
        case Select(_, then, other):
            return is_nonnegative(then, names) and is_nonnegative(other, names)
        case Search(_, begin):
            return is_nonnegative(begin, names)
    return False
