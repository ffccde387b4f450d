"""A loop over units that may have more iterations than there are units: each unit takes several, one after another.

for t in begin : end  [gpu thread]             for unit in 0 : 32  [gpu thread]
  s += shuffle a[t]                              t = begin + unit
                                       ==>       sum = 0
                                                 while t < end
                                                   sum = sum + a[t]
                                                   t = t + 32
                                                 s += shuffle sum

Then a unit has at most one iteration of any loop over units, and its text is a branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from sparseloom.core.algebra import identity
from sparseloom.core.errors import CompilerBug
from sparseloom.core.names import Names
from sparseloom.loops import nodes as ir
from sparseloom.loops.rename import unused_names
from sparseloom.loops.segments import Segments
from sparseloom.loops.simplify import simplify
from sparseloom.loops.units import Units, over_launches


def fit_units(function: ir.Function) -> ir.Function:
    """Give each unit of a launch at most one iteration of every loop over units."""
    names = unused_names(function)

    def rule(stmt: ir.Stmt, units: Units) -> ir.Stmt:
        match stmt:
            case ir.For(kind=ir.LoopKind.GPU_WARP | ir.LoopKind.GPU_THREAD) if not fits(stmt, count := units.of_loop(stmt.kind)):
                return _strided(stmt, count, names)
        return stmt

    return over_launches(function, lambda launch: rule)


def _strided(loop: ir.For, count: int, names: Names) -> ir.Stmt:
    """A loop over so many units, in which each takes its iterations."""
    stmts = ir.stmts_of(loop.body)
    if any(isinstance(stmt, Segments) for stmt in stmts):
        raise CompilerBug(loop, "lanes that bring a place each have one iteration")
    unit, end = (ir.Var(names.fresh(f"{loop.var.name}_{what}")) for what in ("unit", "last"))
    shuffles = {stmt: ir.Var(names.fresh(f"{stmt.var.name}_sum"), stmt.var.dtype) for stmt in stmts if isinstance(stmt, ir.Shuffle)}
    begun = [ir.Declare(made, ir.constant(identity(stmt.op, made.dtype), made.dtype)) for stmt, made in shuffles.items()]
    added = [ir.Assign(made, ir.Op(stmt.op, (made, stmt.value), made.dtype)) for stmt, made in shuffles.items()]
    further = ir.Assign(loop.var, ir.add(loop.var, ir.index(count)))
    turns = ir.While(ir.compare("less", loop.var, end), ir.block(*_without(stmts, ir.Shuffle), *added, further), origin=loop.origin)
    brought = [ir.Shuffle(stmt.var, stmt.op, made, origin=stmt.origin) for stmt, made in shuffles.items()]
    body = ir.block(ir.Declare(loop.var, ir.add(loop.begin, unit)), *begun, turns, *brought)
    return ir.block(
        ir.Declare(end, loop.end, origin=loop.origin),
        ir.For(unit, ir.ZERO, ir.index(count), body, loop.kind, count, origin=loop.origin),
    )


def _without(stmts: Sequence[ir.Stmt], kind: type[ir.Stmt]) -> list[ir.Stmt]:
    return [stmt for stmt in stmts if not isinstance(stmt, kind)]


def fits(loop: ir.For, count: int) -> bool:
    """Whether a loop is known to have no more iterations than there are units. One that walks entries may have more."""
    end, begin = loop.end, loop.begin
    match end:
        case ir.Op("subtract", (above, below)) if begin == ir.ZERO:
            end, begin = above, below
    extents = (simplify(ir.Op("subtract", (limit, begin))) for limit in _limits(end))
    return any(isinstance(extent, ir.Literal) and extent.value.real <= count for extent in extents)


def _limits(expr: ir.Expr) -> Iterator[ir.Expr]:
    """What an expression is at most: each of several that a minimum is taken of, also within a sum."""
    match expr:
        case ir.Op("minimum", args):
            for arg in args:
                yield from _limits(arg)
        case ir.Op("add", args):
            yield from (ir.Op("add", terms) for terms in product(*map(_limits, args)))
        case _:
            yield expr
