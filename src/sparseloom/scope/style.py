"""How a loop runs: in order, unrolled, or as the units of a target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import walk
from sparseloom.loops import nodes as ir
from sparseloom.notation.nodes import Merge, Tag, Unit
from sparseloom.scope.ranges import Range, ceil_divide, least, subtract
from sparseloom.targets.target import FACTS


@dataclass(frozen=True)
class Spread:
    """Groups of lanes that share out the rows of a block of positions, and their lanes, which share out the entries of a row."""

    group: ir.Var
    groups: int
    lane: ir.Var
    lanes: int

    def rows(self, turn: ir.Var, row: ir.Var, limits: Range, body: ir.Stmt) -> ir.Stmt:
        """Every group takes one row after another, each so many further."""
        (begin, end), width = limits, ir.index(self.groups)
        mine = ir.add(ir.add(begin, ir.multiply(turn, width)), self.group)
        taken = ir.block(ir.Declare(row, mine), ir.If(ir.compare("less", row, end), body))
        turns = ir.For(turn, ir.ZERO, ceil_divide(subtract(end, begin), width), taken)
        return ir.For(self.group, ir.ZERO, width, turns, ir.LoopKind.GPU_WARP, self.groups)

    def entries(self, turn: ir.Var, entry: ir.Var, limits: Range, body: ir.Stmt, around: tuple[ir.Stmt, ir.Stmt]) -> ir.Stmt:
        """Every lane takes one entry after another, between what it does first and last."""
        (begin, end), (first, last), width = limits, around, ir.index(self.lanes)
        mine = ir.add(ir.add(begin, self.lane), ir.multiply(turn, width))
        left = subtract(subtract(end, begin), self.lane)
        taken = ir.For(turn, ir.ZERO, ceil_divide(left, width), ir.block(ir.Declare(entry, mine), body))
        return ir.For(self.lane, ir.ZERO, width, ir.block(first, taken, last), ir.LoopKind.GPU_THREAD, self.lanes)


@dataclass(frozen=True)
class Turns:
    """Iterations that a thread takes in one turn, as copies of the body: the loop runs over the turns, from ``first`` to ``last``."""

    count: int
    turn: ir.Var
    first: ir.Var
    last: ir.Var

    def around(self, loop: ir.For) -> ir.Stmt:
        """The loop over turns, each of them unrolled."""
        size, limits = ir.index(self.count), ((self.first, loop.begin), (self.last, loop.end))
        declared = [ir.Declare(var, limit) for var, limit in limits if not isinstance(limit, ir.Literal)]
        first, last = (limit if isinstance(limit, ir.Literal) else var for var, limit in limits)
        begin = ir.add(first, ir.multiply(self.turn, size))
        inside = ir.For(loop.var, begin, least(ir.add(begin, size), last), loop.body, ir.LoopKind.UNROLLED, self.count)
        turns = replace(loop, var=self.turn, begin=ir.ZERO, end=ceil_divide(subtract(last, first), size), body=inside)
        return ir.block(*declared, turns)


@dataclass(frozen=True)
class Style:
    """How a counted or driven loop runs: in order, or as its tag says."""

    kind: ir.LoopKind = ir.LoopKind.SERIAL
    factor: int = 0
    gallops: bool = field(default=False, compare=False)  # cursors that fall behind jump ahead by search
    around: Callable[[ir.Stmt], ir.Stmt] | None = field(default=None, compare=False)  # what every iteration does, guarded or not
    held: tuple[ir.Reduction, ...] = field(default=(), compare=False)  # the scalars around the loop that something reduces into
    spread: Spread | None = None
    turns: Turns | None = field(default=None, compare=False)  # those of an unrolled loop of threads

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
        made = ir.For(var, begin, end, body, self.kind, self.factor, reduces, room if self.kind is ir.LoopKind.VECTOR else None)
        return made if self.turns is None else self.turns.around(made)


SERIAL = Style()


def style_of(tag: Tag) -> Style:
    """How a loop with this tag runs. Unrolling one over lanes says how many there are; what else units share out has no such count."""
    gallops = tag.merge is Merge.Gallop
    if tag.unit is not None:
        return Style(FACTS[tag.unit].kind, tag.unroll if tag.unit is Unit.CPUVector else 0, gallops)
    return Style(ir.LoopKind.UNROLLED if tag.unroll else ir.LoopKind.SERIAL, tag.unroll, gallops)
