"""The provenance graph: which variables a scheduled statement has, and how each is recovered from others.

    i   j                 original variables
     \\ /
      f      fuse         f known: so are i and j
      |
      p      pos(A)       p known: so is f
     / \\
    p0  p1   split        p0 and p1 known: so is p
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from sparseloom.core.trees import walk
from sparseloom.iteration.ordering import level_variables
from sparseloom.notation.nodes import Access, Forall, IndexVar, Relation, Stmt, SuchThat
from sparseloom.notation.relations import (
    BoundRelation,
    CoordRelation,
    DivideRelation,
    FuseRelation,
    PosRelation,
    RenameRelation,
    SplitRelation,
)

Digits = SplitRelation | DivideRelation


class Provenance:
    """Questions about the relations of one statement."""

    def __init__(self, relations: Iterable[Relation] = (), inside: Iterable[IndexVar] = ()) -> None:
        self._all = tuple(relations)
        here = set(inside)
        self.relations = tuple(r for r in self._all if not isinstance(r, RenameRelation) or here & set(self._descendants(r.renamed)))

    @staticmethod
    def of(stmt: Stmt) -> Provenance:
        """The provenance graph of a statement, as its consumers see it."""
        return Provenance(r for n in walk(stmt) if isinstance(n, SuchThat) for r in n.relations)

    def adding(self, relation: Relation) -> Provenance:
        """The graph with one relation more."""
        inside = {r.renamed for r in self.relations if isinstance(r, RenameRelation)}
        return Provenance((*self._all, relation), inside)

    def within(self, producer: Stmt) -> Provenance:
        """The graph as a producer sees it: its renamed variables stand for the consumer's, with the same siblings."""
        return Provenance(self._all, {n.var for n in walk(producer) if isinstance(n, Forall)})

    def _descendants(self, var: IndexVar) -> Iterator[IndexVar]:
        yield var
        for relation in self._all:
            if var in parents(relation):
                for child in children(relation):
                    yield from self._descendants(child)

    @cached_property
    def _used(self) -> dict[IndexVar, Relation]:
        renamed_last = sorted(self.relations, key=lambda r: isinstance(r, RenameRelation))
        return {parent: r for r in renamed_last for parent in parents(r)}

    @cached_property
    def _made(self) -> dict[IndexVar, Relation]:
        return {child: r for r in self.relations for child in children(r)}

    def used_by(self, var: IndexVar) -> Relation | None:
        """The relation that replaced ``var`` by others."""
        return self._used.get(var)

    def made_by(self, var: IndexVar) -> Relation | None:
        """The relation that made ``var`` from others; None for an original variable."""
        return self._made.get(var)

    def known(self, given: Iterable[IndexVar]) -> set[IndexVar]:
        """All variables that can be recovered from the given ones."""
        found = set(given)
        changed = True
        while changed:
            changed = False
            for relation in self.relations:
                if set(children(relation)) <= found:
                    new = set(parents(relation)) - found
                    found |= new
                    changed = changed or bool(new)
        return found

    def root(self, var: IndexVar) -> IndexVar:
        """The variable whose range the loops over ``var`` and its siblings cut up: up through splits, divides, bounds and renamings."""
        relation = self.made_by(var)
        match relation:
            case SplitRelation(parent) | DivideRelation(parent) | BoundRelation(parent):
                return self.root(parent)
            case RenameRelation(original):
                return self.root(original)
        return var

    def digits(self, var: IndexVar) -> Digits | None:
        """The split or divide that cut ``var``, looking through bounds."""
        relation = self.used_by(var)
        match relation:
            case SplitRelation() | DivideRelation():
                return relation
            case BoundRelation(_, bounded):
                return self.digits(bounded)
            case RenameRelation(_, renamed):
                return self.digits(renamed)
        return None

    def originals(self, var: IndexVar) -> tuple[IndexVar, ...]:
        """The original variables that ``var`` helps to determine, in order."""
        relation = self.made_by(var)
        if relation is None:
            return (var,)
        return tuple(dict.fromkeys(x for parent in parents(relation) for x in self.originals(parent)))

    def covered(self, var: IndexVar) -> tuple[IndexVar, ...]:
        """The coordinate variables that a variable stands for, outermost first: a fuse stands for two."""
        relation = self.made_by(var)
        match relation:
            case FuseRelation(outer, inner):
                return (*self.covered(outer), *self.covered(inner))
            case SplitRelation(parent) | DivideRelation(parent) | BoundRelation(parent):
                return self.covered(parent)
            case RenameRelation(original):
                return self.covered(original)
            case CoordRelation(position):
                return self.covered(position)
            case PosRelation(coordinate):
                return self.covered(coordinate)
        return (var,)

    def position_levels(self, relation: PosRelation) -> range:
        """The levels of the operand that a position variable runs through."""
        variables = level_variables(relation.access)
        covered = self.covered(relation.coordinate)
        first = variables.index(covered[0])
        return range(first, first + len(covered))

    def accesses(self) -> Iterator[Access]:
        """The operands whose positions drive loops."""
        return (r.access for r in self.relations if isinstance(r, PosRelation))


def parents(relation: Relation) -> tuple[IndexVar, ...]:
    """The variables a relation starts from."""
    match relation:
        case SplitRelation(parent) | DivideRelation(parent) | BoundRelation(parent):
            return (parent,)
        case FuseRelation(outer, inner, _):
            return (outer, inner)
        case PosRelation(coordinate, _, _):
            return (coordinate,)
        case CoordRelation(position, _):
            return (position,)
        case RenameRelation(original, _):
            return (original,)
    raise TypeError(relation)


def children(relation: Relation) -> tuple[IndexVar, ...]:
    """The variables a relation makes; when all of them are known, so are its parents."""
    match relation:
        case SplitRelation(_, outer, inner, _) | DivideRelation(_, outer, inner, _):
            return (outer, inner)
        case FuseRelation(_, _, fused):
            return (fused,)
        case PosRelation(_, position, _):
            return (position,)
        case CoordRelation(_, coordinate):
            return (coordinate,)
        case BoundRelation(_, bounded, _, _):
            return (bounded,)
        case RenameRelation(_, renamed):
            return (renamed,)
    raise TypeError(relation)
