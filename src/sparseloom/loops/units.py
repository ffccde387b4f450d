"""Which units of a GPU run a statement: all threads of a block, all lanes of a warp, or one thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from sparseloom.core.trees import Node, field_names, rewrite, walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.routines import Call


class UnitLevel(Enum):
    """The units that run a statement together, with scalars that are worth the same for each."""

    BLOCK = "block"
    WARP = "warp"
    THREAD = "thread"


@dataclass(frozen=True)
class Units:
    """The units that run a statement: their level, and the sizes of their launch."""

    level: UnitLevel
    threads: int
    lanes: int  # of what stands for a warp
    warp: int  # of a warp of the processor

    @property
    def count(self) -> int:
        """How many threads run it."""
        return {UnitLevel.BLOCK: self.threads, UnitLevel.WARP: self.lanes, UnitLevel.THREAD: 1}[self.level]

    def of_loop(self, kind: ir.LoopKind) -> int:
        """How many units there are for the iterations of a loop."""
        return self.threads // self.lanes if kind is ir.LoopKind.GPU_WARP else self.count

    def inside(self, loop: ir.For) -> Units:
        """The units that run the body of a loop."""
        match loop.kind:
            case ir.LoopKind.GPU_WARP:
                return replace(self, level=UnitLevel.WARP)
            case ir.LoopKind.GPU_THREAD:
                return replace(self, level=UnitLevel.THREAD)
        return self


Rule = Callable[[ir.Stmt, Units], ir.Stmt]


def units_of(launch: ir.Launch) -> Units:
    """The units that run the body of a launch: blocks, each with so many threads."""
    if not isinstance(launch.threads, ir.Literal):
        raise TypeError(launch.threads)
    return Units(UnitLevel.BLOCK, int(launch.threads.value.real), launch.lanes, launch.warp)


def over_launches(function: ir.Function, rule_of: Callable[[ir.Launch], Rule], settled: bool = False) -> ir.Function:
    """Apply a rule to every statement of every launch that a device can run, inner ones first; the launch is ``settled`` then, or not yet.

    The others are run by the interpreter alone, as if the host had arrays: they allocate memory of all, or call functions of the library.
    """

    def found(n: Node) -> Node | None:
        if not isinstance(n, ir.Launch) or any(map(_is_of_host, walk(n.body))):
            return None
        body = over(n.body, units_of(n), rule_of(n))
        if not isinstance(body, ir.For):
            raise TypeError(body)
        return n if body is n.body and n.settled == settled else replace(n, body=body, settled=settled)

    return rewrite(function, found, ir.Stmt)


def _is_of_host(n: Node) -> bool:
    return isinstance(n, Call) or (isinstance(n, ir.Allocate) and n.array.space is ir.MemorySpace.GLOBAL)


def over(stmt: ir.Stmt, units: Units, rule: Rule) -> ir.Stmt:
    """Apply a rule to a statement that these units run, and first to those inside of it."""
    inside = units.inside(stmt) if isinstance(stmt, ir.For) else units
    if isinstance(stmt, ir.Block):
        made = [over(inner, inside, rule) for inner in stmt.stmts]
        same = all(one is inner for one, inner in zip(made, stmt.stmts, strict=True))
        return rule(stmt if same else ir.Block(ir.stmts_of(ir.block(*made))), units)
    parts = {name: value for name in field_names(type(stmt)) if isinstance(value := getattr(stmt, name), ir.Stmt)}
    changed: dict[str, Any] = {name: new for name, part in parts.items() if (new := over(part, inside, rule)) is not part}
    return rule(replace(stmt, **changed) if changed else stmt, units)
