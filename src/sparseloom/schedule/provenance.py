"""The provenance graph: how the variables of a scheduled statement come from each other.

    fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,4096)

    i -+
       +-> f --pos(A)--> p --split--> p0, p1
    j -+

It is computed from the relations that the statement carries. Bounds walk it from left to right, recovery from right to left.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sparseloom.core.errors import CompilerBug
from sparseloom.formats.level import Level
from sparseloom.iteration.ordering import level_variables
from sparseloom.notation.nodes import Access, IndexVar, Relation
from sparseloom.notation.relations import (
    BoundRelation,
    BoundType,
    CoordRelation,
    DivideRelation,
    FuseRelation,
    PosRelation,
    RenameRelation,
    SplitRelation,
)


def parents(relation: Relation) -> tuple[IndexVar, ...]:
    """The variables that a relation derives others from."""
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
    raise CompilerBug(relation, "a relation must say what it derives from")


def children(relation: Relation) -> tuple[IndexVar, ...]:
    """The variables that a relation makes."""
    match relation:
        case SplitRelation(_, outer, inner, _) | DivideRelation(_, outer, inner, _):
            return (outer, inner)
        case FuseRelation(_, _, made) | PosRelation(_, made, _) | CoordRelation(_, made) | BoundRelation(_, made) | RenameRelation(_, made):
            return (made,)
    raise CompilerBug(relation, "a relation must say what it makes")


@dataclass(frozen=True)
class Span:
    """What a variable runs over: an interval of the tuples of ``variables``, in lexicographic order.

    That holds once ``needs``, the outer digits, are fixed. ``position`` is set when the interval is counted in stored entries.
    """

    variables: tuple[IndexVar, ...]
    needs: frozenset[IndexVar] = frozenset()
    position: PosRelation | None = None


class Provenance:
    """Answers questions about the variables that some relations connect."""

    def __init__(self, relations: tuple[Relation, ...]) -> None:
        self.relations = relations
        self._makers = {child: relation for relation in relations for child in children(relation)}

    def maker(self, var: IndexVar) -> Relation | None:
        """The relation that made a variable; None for an original one."""
        return self._makers.get(var)

    def replacement(self, var: IndexVar) -> Relation | None:
        """The relation that took the place of a variable's loop, if one did. A renaming leaves the loop where it is."""
        return next((r for r in self.relations if var in parents(r) and not isinstance(r, RenameRelation)), None)

    def ancestors(self, var: IndexVar) -> frozenset[IndexVar]:
        """A variable and all that it comes from."""
        found, waiting = {var}, [var]
        while waiting:
            maker = self._makers.get(waiting.pop())
            for parent in parents(maker) if maker is not None else ():
                if parent not in found:
                    found.add(parent)
                    waiting.append(parent)
        return frozenset(found)

    def roots(self, var: IndexVar) -> frozenset[IndexVar]:
        """The original variables that a variable comes from."""
        return frozenset(v for v in self.ancestors(var) if v not in self._makers)

    def recovered(self, known: Iterable[IndexVar]) -> frozenset[IndexVar]:
        """``known`` and every variable that is recovered from it: those of which all derived variables are known."""
        found = set(known)
        for relation in reversed(self.relations):
            if all(child in found for child in children(relation)):
                found.update(parents(relation))
        return frozenset(found)

    def position(self, var: IndexVar) -> PosRelation | None:
        """The relation in whose position space a variable lives; None for coordinates."""
        match self._makers.get(var):
            case PosRelation() as relation:
                return relation
            case SplitRelation(parent) | DivideRelation(parent) | BoundRelation(parent) | RenameRelation(parent):
                return self.position(parent)
            case FuseRelation(_, inner, _):
                return self.position(inner)
        return None

    def span(self, var: IndexVar, levels: tuple[IndexVar, ...] = ()) -> Span | None:
        """The interval that a variable runs over, or None if it is none: the outer half of a split skips.

        ``levels`` are variables to stop at although they are derived: those of a blocked format's levels.
        """
        relation = self._makers.get(var)
        if relation is None or var in levels:
            return Span((var,))
        match relation:
            case SplitRelation(parent, outer, inner, _) | DivideRelation(parent, outer, inner, _) if var == inner:
                whole = self.span(parent, levels)
                return whole and Span(whole.variables, whole.needs | {outer}, whole.position)
            case BoundRelation(parent) | RenameRelation(parent):
                return self.span(parent, levels)
            case FuseRelation():
                return self._fused_span(relation, levels)
            case PosRelation(coordinate, _, _):
                walked = self.span(coordinate, levels)
                return walked and Span(walked.variables, walked.needs, relation)
            case CoordRelation(position, _):
                walked = self.span(position, levels)
                return walked and Span(walked.variables, walked.needs)
        return None

    def _fused_span(self, relation: FuseRelation, levels: tuple[IndexVar, ...]) -> Span | None:
        match self._makers.get(relation.outer):
            case SplitRelation(parent, outer, inner, _) | DivideRelation(parent, outer, inner, _) if (outer, inner) == (
                relation.outer,
                relation.inner,
            ):
                return self.span(parent, levels)  # the two halves of a split, put together again
        left, right = self.span(relation.outer, levels), self.span(relation.inner, levels)
        if left is None or right is None or right.needs:
            return None
        return Span(left.variables + right.variables, left.needs, right.position)

    def levels(self, var: IndexVar, access: Access) -> tuple[int, int] | None:
        """The first and last level of ``access`` that a variable runs over, if it runs over an interval of a run of them."""
        span = self.span(var, level_variables(access))
        return None if span is None else stored_levels(access, span.variables)

    def is_distinct(self, relation: PosRelation) -> bool:
        """Whether no two positions have the same coordinates below one parent, so that each stands for the other."""
        levels = self.levels(relation.coordinate, relation.access)
        return levels is not None and are_distinct(relation.access.tensor.format.levels, *levels)

    def limits(self, var: IndexVar) -> tuple[int | None, int | None]:
        """The first value and the end of a variable's range, where they are constants."""
        match self._makers.get(var):
            case None:
                return 0, None
            case SplitRelation(_, _, inner, size) if var == inner:
                return 0, size
            case DivideRelation(_, outer, _, count) if var == outer:
                return 0, count
            case SplitRelation(parent, _, _, part) | DivideRelation(parent, _, _, part):
                extent = self.extent(parent)
                return 0, None if extent is None else max(1, -(-extent // part))
            case FuseRelation(outer, inner, _):
                first, second = self.extent(outer), self.extent(inner)
                return 0, None if first is None or second is None else first * second
            case BoundRelation(parent, _, value, kind):
                lower, upper = self.limits(parent)
                return (value if kind is BoundType.MinExact else lower), (value if kind is BoundType.MaxExact else upper)
            case RenameRelation(original, _):
                return self.limits(original)
        return None, None

    def extent(self, var: IndexVar) -> int | None:
        """How many values a variable takes, where that is a constant."""
        lower, upper = self.limits(var)
        return None if lower is None or upper is None else max(0, upper - lower)


def stored_levels(access: Access, variables: tuple[IndexVar, ...]) -> tuple[int, int] | None:
    """The first and last level of ``access`` that store exactly these variables, in this order; None if no run of levels does."""
    stored = level_variables(access)
    for first in range(len(stored) - len(variables) + 1):
        if stored[first : first + len(variables)] == variables:
            return first, first + len(variables) - 1
    return None


def are_distinct(levels: tuple[Level, ...], first: int, last: int) -> bool:
    """Whether no tuple of coordinates repeats in these levels below one parent.

    A chain such as COO's is unique if its last level is, whatever the levels above it say.
    """
    ends = [k for k in range(first, last + 1) if k == last or not levels[k + 1].branchless]
    return all(levels[k].unique for k in ends)
