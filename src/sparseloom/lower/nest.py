"""What all kinds of loops share: the contract between them, and the recovery of variables from derived ones."""

from __future__ import annotations

from collections.abc import Callable

from sparseloom.core.errors import CompilerBug
from sparseloom.loops import nodes as ir
from sparseloom.lower.coiterate import Style
from sparseloom.lower.context import Context
from sparseloom.lower.result import Result
from sparseloom.lower.scope import Scope
from sparseloom.notation.nodes import Access, Forall, IndexVar, Merge, Stmt, Tag, TensorVar, Unit
from sparseloom.notation.relations import BoundRelation, DivideRelation, FuseRelation, RenameRelation, SplitRelation

Then = Callable[[Scope], ir.Stmt]

KINDS = {
    Unit.CPUThread: ir.LoopKind.THREADS,
    Unit.CPUVector: ir.LoopKind.VECTOR,
    Unit.GPUBlock: ir.LoopKind.GPU_BLOCK,
    Unit.GPUWarp: ir.LoopKind.GPU_WARP,
    Unit.GPUThread: ir.LoopKind.GPU_THREAD,
}


def style_of(tag: Tag) -> Style:
    """How a loop with this tag runs."""
    if tag.unit is not None:
        return Style(KINDS[tag.unit], tag.unroll, tag.merge is Merge.Gallop)
    kind = ir.LoopKind.UNROLLED if tag.unroll else ir.LoopKind.SERIAL
    return Style(kind, tag.unroll, tag.merge is Merge.Gallop)


class Nest:
    """Loops inside loops: each kind of loop is a room of its own, and all of them meet here."""

    context: Context
    hooks: Result  # the result as the loops being made see it
    operands: list[Access]
    atomic: frozenset[tuple[IndexVar, TensorVar]]  # parallel loops whose iterations meet in a place of this tensor, and write it atomically

    def enter(self, stmt: Stmt, scope: Scope, go: Then) -> ir.Stmt:
        """Go on with what is left of a statement; a subclass may put a scalar to reduce into around it."""
        raise CompilerBug(stmt, "a subclass says how statements are entered")

    def lower(self, stmt: Stmt, scope: Scope) -> ir.Stmt:
        """Lower a statement."""
        raise CompilerBug(stmt, "a subclass lowers statements")

    def over_digit(self, stmt: Forall, digit: IndexVar, scope: Scope, style: Style, then: Then) -> ir.Stmt:
        """A loop over one variable, original or derived; ``stmt`` is what it belongs to."""
        raise CompilerBug(stmt, "a subclass chooses the kind of loop")

    def recover(self, scope: Scope) -> tuple[list[ir.Stmt], ir.Expr, Scope]:
        """Variables whose derived variables are now all known."""
        stmts: list[ir.Stmt] = []
        guards: list[ir.Expr] = []
        changed = True
        while changed:
            changed = False
            for relation in self.context.provenance.relations:
                space = self.context.space(scope)
                match relation:
                    case SplitRelation(parent, outer, inner, _) | DivideRelation(parent, outer, inner, _):
                        if parent in space.values or outer not in space.values or inner not in space.values:
                            continue
                        var = ir.Var(parent.name)
                        stmts.append(ir.Declare(var, space.joined(relation)))
                        guards.append(ir.compare("less", var, space.range_of(parent)[1]))
                        scope, changed = scope.knowing(parent, var), True
                    case FuseRelation(outer, inner, fused):
                        halves = self.context.provenance.halves(relation)
                        if halves is None:
                            continue
                        if fused in space.values and halves.parent not in space.values:
                            low, high = space.range_of(halves.parent)
                            var = ir.Var(halves.parent.name)
                            stmts.append(ir.Declare(var, ir.add(low, space.values[fused])))
                            guards.append(ir.compare("less", var, high))
                            scope, changed = scope.knowing(halves.parent, var), True
                        elif halves.parent in space.values and fused in space.values and outer not in space.values:
                            first, second = space.split_value(halves, space.values[halves.parent])
                            scope, changed = scope.knowing(outer, first).knowing(inner, second), True
                    case BoundRelation(parent, child, _, _) | RenameRelation(parent, child):
                        if child in space.values and parent not in space.values:
                            scope, changed = scope.knowing(parent, space.values[child]), True
        return stmts, ir.both(*guards), scope
