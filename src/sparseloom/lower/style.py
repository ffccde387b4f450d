"""How a loop runs: in order, unrolled, or as the units of a target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import walk
from sparseloom.loops import nodes as ir
from sparseloom.notation.nodes import Merge, Tag
from sparseloom.targets.target import FACTS


@dataclass(frozen=True)
class Style:
    """How a counted or driven loop runs: in order, or as its tag says."""

    kind: ir.LoopKind = ir.LoopKind.SERIAL
    factor: int = 0
    gallops: bool = field(default=False, compare=False)  # cursors that fall behind jump ahead by search
    around: Callable[[ir.Stmt], ir.Stmt] | None = field(default=None, compare=False)  # what every iteration does, guarded or not
    held: tuple[ir.Reduction, ...] = field(default=(), compare=False)  # the scalars around the loop that something reduces into

    @property
    def in_order(self) -> bool:
        """Whether iterations run one after another, so that cursors may be carried along."""
        return self.kind in (ir.LoopKind.SERIAL, ir.LoopKind.UNROLLED)

    @property
    def is_parallel(self) -> bool:
        """Whether iterations may run at the same time."""
        return not self.in_order

    def repeat(self, condition: ir.Expr, body: ir.Stmt) -> ir.Stmt:
        """A loop without a count in this style: only unrolling is left to it."""
        return ir.While(condition, body, self.factor if self.kind is ir.LoopKind.UNROLLED else 0)

    def loop(self, var: ir.Var, begin: ir.Expr, end: ir.Expr, body: ir.Stmt, room: ir.Expr | None = None) -> ir.Stmt:
        """The loop in this style. ``room`` is up to where entries stand, for one that walks them in vectors."""
        body = body if self.around is None else self.around(body)
        if self.kind is ir.LoopKind.VECTOR and any(isinstance(n, ir.Allocate) for n in walk(body)):
            raise CompilerBug(body, "lanes cannot allocate, so such loops are refused")
        assigned = {n.var for n in walk(body) if isinstance(n, ir.Assign)} if self.held else set()
        reduces = tuple(held for held in self.held if held.var in assigned)
        return ir.For(var, begin, end, body, self.kind, self.factor, reduces, room if self.kind is ir.LoopKind.VECTOR else None)


SERIAL = Style()


def style_of(tag: Tag) -> Style:
    """How a loop with this tag runs."""
    if tag.unit is not None:
        return Style(FACTS[tag.unit].kind, tag.unroll, tag.merge is Merge.Gallop)
    kind = ir.LoopKind.UNROLLED if tag.unroll else ir.LoopKind.SERIAL
    return Style(kind, tag.unroll, tag.merge is Merge.Gallop)
