"""Names by order of appearance, so that kernels which differ only in names become equal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import Node, rewrite
from sparseloom.loops import nodes as ir
from sparseloom.loops.routines import Call, Use

N = TypeVar("N", bound=Node)


def alpha_rename(function: ir.Function) -> ir.Function:
    """Call the function ``f``, its scalars ``v0, v1, ...`` and its arrays ``a0, a1, ...``; drop the remarks."""
    scope = _Scope()
    params = tuple(ir.Param(scope.bind(p.target), p.role) for p in function.params)
    scope.params = frozenset(scope.arrays)
    return ir.Function("f", params, _rename(function.body, scope))


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
            case ir.Var(name):
                self.scalars[name] = f"v{next(self.numbers[0])}"
            case ir.Array(name) if name not in self.params:
                self.arrays[name] = f"a{next(self.numbers[1])}"
        return self.replace(target)

    def replace(self, tree: N) -> N:
        """Replace the names in an expression, variable or array."""

        def rule(n: Node) -> Node | None:
            match n:
                case ir.Var(name, dtype):
                    return ir.Var(self.scalars[name], dtype)
                case ir.Array(name, dtype, space):
                    return ir.Array(self.arrays[name], dtype, space)
            return None

        return rewrite(tree, rule)


def _rename(stmt: ir.Stmt, scope: _Scope) -> ir.Stmt:
    """Rename one statement; what it declares is bound in ``scope``."""
    match stmt:
        case ir.Block(stmts):
            return ir.block(*(_rename(s, scope) for s in stmts))
        case ir.Declare(var, value):
            renamed = scope.replace(value)
            return ir.Declare(scope.bind(var), renamed)
        case ir.Allocate(array, size):
            renamed = scope.replace(size)
            return ir.Allocate(scope.bind(array), renamed)
        case ir.If(condition, then, other):
            return ir.If(scope.replace(condition), _rename(then, scope.inner()), _rename(other, scope.inner()))
        case ir.While(condition, body, factor):
            return ir.While(scope.replace(condition), _rename(body, scope.inner()), factor)
        case ir.For(var, begin, end, body, kind, factor, reduces):
            begin, end, inner = scope.replace(begin), scope.replace(end), scope.inner()
            return ir.For(inner.bind(var), begin, end, _rename(body, inner), kind, factor, tuple(map(scope.replace, reduces)))
        case Call():
            for made in stmt.using(Use.ALLOCATES):
                scope.bind(made)
            return scope.replace(stmt)
        case ir.Launch(blocks, threads, body):
            return ir.Launch(scope.replace(blocks), scope.replace(threads), _rename(body, scope.inner()))  # type: ignore[arg-type]
        case ir.Team(first, loop, last):
            inner = scope.inner()
            return ir.Team(_rename(first, inner), _rename(loop, inner), _rename(last, inner))  # type: ignore[arg-type]
        case ir.Assign() | ir.Store() | ir.Fill() | ir.Free() | ir.Shuffle() | ir.Barrier() | ir.Fail() | ir.Poll():
            return scope.replace(stmt)
    raise CompilerBug(stmt, "a statement that renaming knows")
