"""Memory that the units of a GPU have for themselves and that is too large to be theirs: it is made before the kernel, for all of them.

launch 3 blocks                             allocate w: float64[3 * n]
  for b in 0 : 3  [gpu block]        ==>    launch 3 blocks
    allocate w: float64[n]                    for b in 0 : 3  [gpu block]
    w[k] = ...                                  w_first = b * n
    free w                                      w[w_first + k] = ...
                                            free w
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from sparseloom.core.errors import DeviceError
from sparseloom.core.names import Names
from sparseloom.core.trees import Node, rewrite, walk
from sparseloom.loops import nodes as ir

_N = TypeVar("_N", bound=Node)
_MOST_SHARED = 40 << 10  # bytes that arrays of a block share; 48 kB is what every kernel may have


def made_outside(loop: ir.For, names: Names, is_known: Callable[[ir.Expr], bool]) -> tuple[list[ir.Stmt], ir.For, list[ir.Stmt]]:
    """What is allocated before a loop over blocks, the loop without it, and what is freed after it."""
    found = _Found(names, is_known, {n.var.name: n.value for n in walk(loop) if isinstance(n, ir.Declare)})
    body = found.moved(_within_limits(loop), ())
    if not isinstance(body, ir.For):
        raise TypeError(body)
    return found.made, body, [ir.Free(stmt.array, origin=stmt.origin) for stmt in found.made if isinstance(stmt, ir.Allocate)]


def _within_limits(loop: ir.For) -> ir.For:
    """The loop, with the largest shared arrays in global memory if together they are too large."""
    sizes = dict(_shared(loop, 1))
    moved: set[ir.Array] = set()
    while sum(sizes.values()) > _MOST_SHARED:
        largest = max(sizes, key=lambda array: sizes[array])
        moved.add(largest)
        del sizes[largest]
    if not moved:
        return loop

    def rule(n: Node) -> Node | None:
        return replace(n, space=ir.MemorySpace.GLOBAL) if isinstance(n, ir.Array) and n in moved else None

    return rewrite(loop, rule)


def _shared(stmt: Node, warps: int) -> list[tuple[ir.Array, int]]:
    """The arrays that threads share, each with its bytes in a block."""
    match stmt:
        case ir.Allocate(ir.Array(space=ir.MemorySpace.SHARED) as array, ir.Literal(size)):
            return [(array, warps * int(size.real) * array.dtype.itemsize)]
        case ir.For(kind=ir.LoopKind.GPU_WARP, factor=factor, body=body):
            return _shared(body, factor)
        case ir.Block(stmts):
            return [one for inner in stmts for one in _shared(inner, warps)]
        case ir.If(_, then, other):
            return _shared(then, warps) + _shared(other, warps)
        case ir.For(body=body) | ir.While(body=body):
            return _shared(body, warps)
    return []


@dataclass
class _Found:
    """Collects allocations. ``values`` are what scalars of the kernel are worth where they are declared."""

    names: Names
    is_known: Callable[[ir.Expr], bool]
    values: dict[str, ir.Expr]
    made: list[ir.Stmt] = field(default_factory=list)
    starts: dict[ir.Array, ir.Var] = field(default_factory=dict)

    def moved(self, stmt: ir.Stmt, units: tuple[ir.For, ...]) -> ir.Stmt:
        """A statement inside these loops over units, with its allocations taken out."""
        match stmt:
            case ir.Block(stmts):
                return ir.block(*[self.moved(inner, units) for inner in stmts])
            case ir.If(condition, then, other):
                return ir.If(self._placed(condition), self.moved(then, units), self.moved(other, units), origin=stmt.origin)
            case ir.While(condition, body):
                return replace(stmt, condition=self._placed(condition), body=self.moved(body, units))
            case ir.For(_, begin, end, body):
                inside = (*units, stmt) if stmt.kind in ir.GPU_KINDS else units
                return replace(stmt, begin=self._placed(begin), end=self._placed(end), body=self.moved(body, inside))
            case ir.Allocate(array, size) if array.space is ir.MemorySpace.GLOBAL:
                return self._hoisted(stmt, self._outside(size), units)
            case ir.Free(array) if array in self.starts:
                return ir.block()
        return self._placed(stmt)

    def _hoisted(self, stmt: ir.Allocate, size: ir.Expr, units: tuple[ir.For, ...]) -> ir.Stmt:
        """Allocate for all units what one of them has; here only where its own begins is left to say."""
        array = stmt.array
        if not self.is_known(size):
            help = "bound its extent, or precompute into something smaller"
            why = "turns out only while a kernel runs, and a GPU needs to know before"
            raise DeviceError(f"how large {array.name} is {why}\n  help: {help}")
        number: ir.Expr = ir.ZERO
        count: ir.Expr = ir.ONE
        for unit in units:
            extent = ir.index(unit.factor) if unit.factor else ir.Op("subtract", (unit.end, unit.begin))
            here = unit.var if unit.begin == ir.ZERO else ir.Op("subtract", (unit.var, unit.begin))
            number, count = ir.add(ir.multiply(number, extent), here), ir.multiply(count, extent)
        self.made.append(replace(stmt, size=ir.multiply(count, size)))
        first = self.starts[array] = ir.Var(self.names.fresh(f"{array.name}_first"))
        return ir.Declare(first, ir.multiply(number, size), origin=stmt.origin)

    def _outside(self, expr: ir.Expr) -> ir.Expr:
        """An expression in terms of what is known before the kernel, as far as possible."""

        def rule(n: Node) -> Node | None:
            return self._outside(self.values[n.name]) if isinstance(n, ir.Var) and n.name in self.values else None

        return rewrite(expr, rule)

    def _placed(self, stmt: _N) -> _N:
        """A statement or expression that finds these arrays where they begin."""

        def rule(n: Node) -> Node | None:
            match n:
                case ir.Load(array, index) | ir.Store(array, index) if array in self.starts:
                    return replace(n, index=ir.add(self.starts[array], index))
                case ir.Fill(array, begin) if array in self.starts:
                    return replace(n, begin=ir.add(self.starts[array], begin))
                case ir.Search(array, begin, end) if array in self.starts:
                    first = self.starts[array]
                    found = replace(n, begin=ir.add(first, begin), end=ir.add(first, end))
                    return ir.Op("subtract", (found, first))
            return None

        return rewrite(stmt, rule) if self.starts else stmt
