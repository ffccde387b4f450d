"""What all kinds of loops share: the contract between them, and the recovery of variables from derived ones."""

from __future__ import annotations

from collections.abc import Callable

from sparseloom.core.errors import CompilerBug
from sparseloom.loops import nodes as ir
from sparseloom.lower.coiterate import Style
from sparseloom.lower.context import Context
from sparseloom.lower.result import Result
from sparseloom.lower.scope import Scope
from sparseloom.lower.space import Space
from sparseloom.notation.nodes import Access, Forall, IndexVar, Merge, Stmt, Tag, TensorVar
from sparseloom.relations.alias import Alias
from sparseloom.relations.fuse import FuseRelation
from sparseloom.relations.relation import Line, Relation
from sparseloom.targets.target import FACTS

Then = Callable[[Scope], ir.Stmt]


def style_of(tag: Tag) -> Style:
    """How a loop with this tag runs."""
    if tag.unit is not None:
        return Style(FACTS[tag.unit].kind, tag.unroll, tag.merge is Merge.Gallop)
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
        before: Scope | None = None
        while scope is not before:
            before = scope
            for relation in self.context.provenance.relations:
                space = self.context.space(scope)
                halves = self.context.provenance.halves(relation) if isinstance(relation, FuseRelation) else None
                match relation:
                    case Line() if relation.parent not in space.values and all(child in space.values for child in relation.children):
                        (value,) = relation.recover(space.values, space)
                        if not isinstance(relation, Alias):
                            value = self._declared(relation, relation.parent, value, relation.overruns, space, stmts, guards)
                        scope = scope.knowing(relation.parent, value)
                    case FuseRelation(fused=fused) if halves is not None and fused in space.values:
                        if halves.parent not in space.values:
                            whole = ir.add(space.range_of(halves.parent)[0], space.values[fused])
                            scope = scope.knowing(halves.parent, self._declared(relation, halves.parent, whole, True, space, stmts, guards))
                        elif halves.outer not in space.values:
                            parts = halves.derive(space.values, space)
                            for var, value in zip(relation.parents, parts, strict=True):
                                scope = scope.knowing(var, value)
        return stmts, ir.both(*guards), scope

    def origin(self, digit: IndexVar) -> str:
        """What made a variable, in a word."""
        relation = self.context.provenance.made_by(digit)
        return "" if relation is None else relation.word

    @staticmethod
    def _declared(
        made_by: Relation, var: IndexVar, value: ir.Expr, overruns: bool, space: Space, stmts: list[ir.Stmt], guards: list[ir.Expr]
    ) -> ir.Var:
        """A recovered variable under its name, guarded where it may lie beyond the end of its range."""
        made = ir.Var(var.name)
        stmts.append(ir.Declare(made, value, made_by.word))
        if overruns:
            guards.append(ir.compare("less", made, space.range_of(var)[1]))
        return made
