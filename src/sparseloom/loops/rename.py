"""Names by order of appearance, so that kernels which differ only in names become equal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import Node, rewrite
from sparseloom.loops.nodes import (
    Allocate,
    Array,
    Assign,
    Barrier,
    Block,
    Declare,
    Fail,
    Fill,
    For,
    Free,
    Function,
    If,
    Launch,
    Param,
    Poll,
    Shuffle,
    Stmt,
    Store,
    Team,
    Var,
    While,
    block,
)
from sparseloom.loops.routines import Call, Use

N = TypeVar("N", bound=Node)


def alpha_rename(function: Function) -> Function:
    """Call the function ``f``, its scalars ``v0, v1, ...`` and its arrays ``a0, a1, ...``; drop the remarks."""
    scope = _Scope()
    params = tuple(Param(scope.bind(p.target), p.role) for p in function.params)
    scope.params = frozenset(scope.arrays)
    return Function("f", params, _rename(function.body, scope))


@dataclass
class _Scope:
    """The new names that are live, and the numbers for further ones, which all scopes share."""

    scalars: dict[str, str] = field(default_factory=dict)
    arrays: dict[str, str] = field(default_factory=dict)
    params: frozenset[str] = frozenset()
    numbers: tuple[Iterator[int], Iterator[int]] = field(default_factory=lambda: (count(), count()))

    def inner(self) -> _Scope:
        """A scope for a loop body or branch."""
        return _Scope(dict(self.scalars), dict(self.arrays), self.params, self.numbers)

    def bind(self, target: Any) -> Any:
        """Give a declared name its new one."""
        match target:
            case Var(name):
                self.scalars[name] = f"v{next(self.numbers[0])}"
            case Array(name) if name not in self.params:
                self.arrays[name] = f"a{next(self.numbers[1])}"
        return self.replace(target)

    def replace(self, tree: N) -> N:
        """Replace the names in an expression, variable or array."""

        def rule(n: Node) -> Node | None:
            match n:
                case Var(name, dtype):
                    return Var(self.scalars[name], dtype)
                case Array(name, dtype, space):
                    return Array(self.arrays[name], dtype, space)
            return None

        return rewrite(tree, rule)


def _rename(stmt: Stmt, scope: _Scope) -> Stmt:
    """Rename one statement; what it declares is bound in ``scope``."""
    match stmt:
        case Block(stmts):
            return block(*(_rename(s, scope) for s in stmts))
        case Declare(var, value):
            renamed = scope.replace(value)
            return Declare(scope.bind(var), renamed)
        case Allocate(array, size):
            renamed = scope.replace(size)
            return Allocate(scope.bind(array), renamed)
        case If(condition, then, other):
            return If(scope.replace(condition), _rename(then, scope.inner()), _rename(other, scope.inner()))
        case While(condition, body, factor):
            return While(scope.replace(condition), _rename(body, scope.inner()), factor)
        case For(var, begin, end, body, kind, factor, reduces):
            begin, end, inner = scope.replace(begin), scope.replace(end), scope.inner()
            return For(inner.bind(var), begin, end, _rename(body, inner), kind, factor, tuple(map(scope.replace, reduces)))
        case Call():
            for made in stmt.using(Use.ALLOCATES):
                scope.bind(made)
            return scope.replace(stmt)
        case Launch(blocks, threads, body):
            return Launch(scope.replace(blocks), scope.replace(threads), _rename(body, scope.inner()))  # type: ignore[arg-type]
        case Team(first, loop, last):
            inner = scope.inner()
            return Team(_rename(first, inner), _rename(loop, inner), _rename(last, inner))  # type: ignore[arg-type]
        case Assign() | Store() | Fill() | Free() | Shuffle() | Barrier() | Fail() | Poll():
            return scope.replace(stmt)
    raise CompilerBug(stmt, "a statement that renaming knows")
