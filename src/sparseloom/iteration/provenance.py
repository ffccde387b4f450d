"""The provenance graph: how the variables of a scheduled statement come from each other.

    fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,4096)

    i -+
       +-> f --pos(A)--> p --split--> p0, p1
    j -+

It is computed from the relations that the statement carries. Bounds walk it from left to right, recovery from right to left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter

from sparseloom.core.errors import CompilerBug
from sparseloom.core.once import cached_property
from sparseloom.core.trees import walk
from sparseloom.formats.level import Level
from sparseloom.iteration.ordering import Blocks, blocks_among, level_variables
from sparseloom.notation.contents import numbers_in
from sparseloom.notation.nodes import Access, Fixed, Forall, IndexVar, Sequence, Stmt, SuchThat, Where
from sparseloom.relations.arithmetic import UNKNOWNS, Arithmetic
from sparseloom.relations.relation import FoundAgain, Pieces, Positions, Ranges, Relation, carried


@dataclass(frozen=True)
class Span:
    """What a variable runs over: an interval of the tuples of ``variables``, in lexicographic order.

    That holds once ``needs``, the outer digits, are fixed. ``position`` is set when the interval is counted in stored entries.
    """

    variables: tuple[IndexVar, ...]
    needs: frozenset[IndexVar] = frozenset()
    position: Positions | None = None


class Provenance:
    """Answers questions about the variables that some relations connect.

    A renaming holds in the producer that it was made for. ``inside`` are the variables of the loops at hand: renamings into others are
    left out, and what is fused elsewhere is not fused here. If it is not given, all relations hold. ``numbers`` are known everywhere.
    """

    def __init__(
        self, relations: Iterable[Relation] = (), inside: Iterable[IndexVar] | None = None, numbers: frozenset[Fixed] = frozenset()
    ) -> None:
        self._all = tuple(relations)
        self._numbers = numbers
        self._inside = None if inside is None else frozenset(inside)
        self._known: dict[frozenset[IndexVar], frozenset[IndexVar]] = {}
        self._above: dict[IndexVar, frozenset[IndexVar]] = {}
        self.relations = tuple(r for r in self._all if not r.is_local or self.is_here(r.children[0]))

    @staticmethod
    def of(stmt: Stmt) -> Provenance:
        """The provenance graph of a statement, as its consumers see it."""
        relations = [r for n in walk(stmt) if isinstance(n, SuchThat) for r in carried(n)]
        return Provenance(relations, numbers=numbers_in(stmt)).within(stmt)

    def adding(self, relation: Relation) -> Provenance:
        """The graph with one relation more, and with its variables at hand."""
        inside = None if self._inside is None else self._inside.union(relation.children)
        return Provenance((*self._all, relation), inside, self._numbers)

    def within(self, stmt: Stmt, known: Iterable[IndexVar] = ()) -> Provenance:
        """The graph as a statement sees it, and not the producers inside it; ``known`` are the variables of the loops around it.

        In a producer, renamed variables stand for the consumer's, with the same siblings.
        """
        return self.along({*known, *_own_loops(stmt)})

    def along(self, variables: Iterable[IndexVar]) -> Provenance:
        """The graph as it is seen from inside loops over these variables."""
        return Provenance(self._all, variables, self._numbers)

    def is_here(self, var: IndexVar) -> bool:
        """Whether a variable, or one made from it, has a loop at hand."""
        return self._inside is None or not self._inside.isdisjoint(self._descendants(var))

    def _descendants(self, var: IndexVar) -> Iterator[IndexVar]:
        yield var
        for relation in self._all:
            if var in relation.parents:
                for child in relation.children:
                    yield from self._descendants(child)

    @cached_property
    def used_by(self) -> Callable[[IndexVar], Relation | None]:
        """The relation that replaced a variable by others."""
        renamed_last = sorted(self.relations, key=attrgetter("is_local"))
        return {parent: r for r in renamed_last for parent in r.parents}.get

    @cached_property
    def made_by(self) -> Callable[[IndexVar], Relation | None]:
        """The relation that made a variable from others; None for an original one."""
        return {child: r for r in self.relations for child in r.children}.get

    @cached_property
    def _blocks(self) -> Blocks:
        return blocks_among(self._all)

    def stored(self, access: Access) -> tuple[IndexVar, ...]:
        """The variable at every level of an access, from the root down: a blocked format has its own."""
        return level_variables(access, self._blocks)

    def replacement(self, var: IndexVar) -> Relation | None:
        """The relation that took the place of a variable's loop, if one did. A renaming leaves the loop where it is."""
        return next((r for r in self.relations if var in r.parents and not r.is_local), None)

    def known(self, given: Iterable[IndexVar]) -> frozenset[IndexVar]:
        """The given variables and all that are recovered from them: those of which all derived variables are known."""
        before = self._numbers.union(given)
        if before not in self._known:
            found, last = set(before), -1
            while len(found) != last:
                last = len(found)
                for relation in reversed(self.relations):
                    if found.issuperset(relation.children):
                        found.update(relation.parents)
            self._known[before] = frozenset(found)
        return self._known[before]

    def ancestors(self, var: IndexVar) -> frozenset[IndexVar]:
        """A variable and all that it comes from."""
        if var not in self._above:
            relation = self.made_by(var)
            above = relation.parents if relation is not None else ()
            self._above[var] = frozenset({var}).union(*map(self.ancestors, above))
        return self._above[var]

    def root(self, var: IndexVar) -> IndexVar:
        """The variable whose range the loops over ``var`` and its siblings cut up."""
        relation = self.made_by(var)
        while relation is not None and (above := self.whole(relation)) is not None:
            var, relation = above, self.made_by(above)
        return var

    def line(self, var: IndexVar) -> Iterator[IndexVar]:
        """A variable and those that it is a digit or another name of: up through relations of one parent.

        A fuse that puts the halves of a split together again counts what was split.
        """
        above: IndexVar | None = var
        while above is not None:
            yield above
            relation = self.made_by(above)
            above = None if relation is None else self.whole(relation)

    def whole(self, relation: Relation) -> IndexVar | None:
        """The variable whose range the loops over the children of a relation cut up; what was split, where they fuse its halves again."""
        halves = self.halves(relation)
        return relation.whole if halves is None else halves.whole

    def keeps_order(self, var: IndexVar) -> bool:
        """Whether what a variable is a digit of grows with it."""
        made = (self.made_by(above) for above in self.line(var))
        return all(relation.keeps_order for relation in made if relation is not None and relation.whole is not None)

    def replaced(self, var: IndexVar) -> Relation | None:
        """The relation that put digits or another name in the place of a variable."""
        relation = self.used_by(var)
        return relation if relation is not None and relation.whole is not None else None

    def is_leading(self, var: IndexVar, digit: IndexVar, known: Collection[IndexVar]) -> bool:
        """Whether, of the digits of ``var``, everything above ``digit`` is known: then its loop runs through an interval."""
        if var == digit:
            return True
        *above, last = self.significant(var) or (var,)
        return last != var and all(one in known for one in above) and self.is_leading(last, digit, known)

    def significant(self, var: IndexVar) -> tuple[IndexVar, ...]:
        """What a variable's interval follows from: its digits, its other name, or the fuse that put the digits together again."""
        relation = self.replaced(var)
        whole = None if relation is None else self.whole_again(relation)
        if whole is not None:
            return whole.children
        return () if relation is None else relation.significant

    def is_in_digits(self, var: IndexVar) -> bool:
        """Whether a variable was cut into digits, under this name or another."""
        relation = self.replaced(var)
        return relation is not None and (len(relation.children) > 1 or self.is_in_digits(relation.children[0]))

    def originals(self, var: IndexVar) -> tuple[IndexVar, ...]:
        """The original variables that ``var`` helps to determine, in order."""
        relation = self.made_by(var)
        if relation is None:
            return (var,)
        return tuple(dict.fromkeys(x for parent in relation.parents for x in self.originals(parent)))

    def covered(self, var: IndexVar, levels: tuple[IndexVar, ...] = ()) -> tuple[IndexVar, ...]:
        """The coordinate variables that a variable stands for, outermost first: a fuse stands for two.

        A variable of several others in no order that loops could follow stands for itself: what it determines is looked up at each value.

        ``levels`` are variables to stop at although they are derived: those of a blocked format's levels.
        """
        relation = None if var in levels else self.made_by(var)
        if relation is None:
            return (var,)
        halves = self.halves(relation)
        above = relation.nest or relation.parents if halves is None else halves.parents
        if len(above) > 1 and not relation.nest:
            return (var,)
        return tuple(member for parent in above for member in self.covered(parent, levels))

    def halves(self, relation: Relation) -> Relation | None:
        """The split or divide whose two halves a fuse puts together again, if it does.

        The blocks of a format stay apart: its levels are walked, or appended to, block by block.
        """
        members = tuple(map(self._unbound, relation.nest))
        found = self.made_by(members[0]) if members else None
        return found if found is not None and found.counts_up and found.children == members else None

    def _unbound(self, var: IndexVar) -> IndexVar:
        relation = self.made_by(var)
        return var if relation is None or relation.alias is None else self._unbound(relation.parents[0])

    def whole_again(self, relation: Relation) -> Relation | None:
        """The fuse that puts digits together again, if there is one."""
        fuses = (r for r in self.relations if r.nest and self.is_here(r.children[0]))
        return next((fuse for fuse in fuses if self.halves(fuse) == relation), None)

    def walked(self, relation: Positions) -> tuple[IndexVar, ...]:
        """The variables of the levels that a position variable runs through, outermost first."""
        return self.covered(relation.coordinate, self.stored(relation.access))

    def counted_again(self, relation: FoundAgain) -> Positions:
        """The positions whose coordinates a coord variable finds again."""
        position = self.position(relation.position)
        if position is None:
            raise CompilerBug(relation, "coord is applied to positions")
        return position

    def found_again(self, relation: FoundAgain) -> IndexVar:
        """The variable whose coordinates a coord variable counts: that of one level, or the fused one of several."""
        position = self.counted_again(relation)
        walked = self.walked(position)
        return walked[0] if len(walked) == 1 else self.root(position.coordinate)

    def cuts_rows(self, var: IndexVar, levels: tuple[IndexVar, ...] = ()) -> bool:
        """Whether outer digits cut the range of a variable that stands for several, so that it may begin and end within a row."""
        relation = self.made_by(var)
        whole = None if relation is None else self.whole(relation)
        if relation is None or (whole is None and not relation.nest):
            return False
        if whole is not None and len(relation.children) > 1:
            return len(self.covered(whole, levels)) > 1
        return self.cuts_rows(relation.nest[0] if whole is None else whole, levels)

    def is_cut(self, var: IndexVar) -> bool:
        """Whether outer digits confine the coordinates of a variable. Those of a block of positions are not: the positions are."""
        relation = self.made_by(var)
        if relation is None:
            return False
        whole = self.whole(relation)
        if whole is not None:
            return len(relation.children) > 1 or self.is_cut(whole)
        return any(map(self.is_cut, relation.nest))

    def position_levels(self, relation: Positions) -> range:
        """The levels of the operand that a position variable runs through."""
        variables = self.stored(relation.access)
        covered = self.walked(relation)
        first = variables.index(covered[0])
        return range(first, first + len(covered))

    def position(self, var: IndexVar) -> Positions | None:
        """The relation in whose position space a variable lives; None for coordinates."""
        relation = self.made_by(var)
        if relation is None or relation.positions is not None:
            return None if relation is None else relation.positions
        above = relation.whole or (relation.nest[-1] if relation.nest else None)
        return None if above is None else self.position(above)

    def counts_entries(self, var: IndexVar) -> bool:
        """Whether the values of a variable are positions, counted from where their segment begins: no blocks, nor places in one."""
        relation = self.made_by(var)
        if relation is None or relation.positions is not None:
            return relation is not None
        return relation.alias is not None and self.counts_entries(relation.parents[0])

    def span(self, var: IndexVar, levels: tuple[IndexVar, ...] = ()) -> Span | None:
        """The interval that a variable runs over, or None if it is none: the outer half of a split skips.

        ``levels`` are variables to stop at although they are derived: those of a blocked format's levels.
        """
        relation = self.made_by(var)
        if relation is None or var in levels:
            return Span((var,))
        above = self.whole(relation)
        if above is not None and (relation.whole is None or var in relation.significant[-1:]):
            walked = self.span(above, levels)
            return walked and Span(walked.variables, walked.needs.union(relation.significant[:-1]), walked.position)
        if relation.nest:
            return self._fused_span(relation.nest, levels)
        if relation.positions is None and relation.found_again is None:
            return None
        walked = self.span(relation.parents[0], levels)
        return walked and Span(walked.variables, walked.needs, relation.positions)

    def _fused_span(self, nest: tuple[IndexVar, ...], levels: tuple[IndexVar, ...]) -> Span | None:
        found = [span for var in nest if (span := self.span(var, levels)) is not None]
        if len(found) < len(nest) or any(span.needs for span in found[1:]):
            return None
        return Span(tuple(var for span in found for var in span.variables), found[0].needs, found[-1].position)

    def levels(self, var: IndexVar, access: Access) -> tuple[int, int] | None:
        """The first and last level of ``access`` that a variable runs over, if it runs over an interval of a run of them."""
        span = self.span(var, self.stored(access))
        return None if span is None else self.stored_levels(access, span.variables)

    def stored_levels(self, access: Access, variables: tuple[IndexVar, ...]) -> tuple[int, int] | None:
        """The first and last level of ``access`` that store exactly these variables, in this order; None if no run of levels does."""
        stored = self.stored(access)
        for first in range(len(stored) - len(variables) + 1):
            if stored[first : first + len(variables)] == variables:
                return first, first + len(variables) - 1
        return None

    def is_distinct(self, relation: Positions) -> bool:
        """Whether no two positions have the same coordinates below one parent, so that each stands for the other."""
        levels = self.levels(relation.coordinate, relation.access)
        return levels is not None and are_distinct(relation.access.tensor.format.levels, *levels)

    def limits(self, var: IndexVar) -> tuple[int | None, int | None]:
        """The first value and the end of a variable's range, where they are constants."""
        return _Constants(self).range_of(var)

    def extent(self, var: IndexVar) -> int | None:
        """How many values a variable takes, where that is a constant."""
        return _Constants(self).extent(var)


@dataclass(frozen=True)
class _Constants(Ranges[int | None]):
    """How far variables run, as far as the relations alone tell."""

    graph: Provenance
    arithmetic: Arithmetic[int | None] = UNKNOWNS

    def range_of(self, var: IndexVar) -> tuple[int | None, int | None]:
        relation = self.graph.made_by(var)
        return (0, None) if relation is None else relation.range_of(var, self)

    def extent(self, var: IndexVar) -> int | None:
        relation = self.graph.made_by(var)
        extent = None if relation is None else relation.extent_of(var, self)
        return None if extent is None else max(0, extent)

    def positions_of(self, relation: Positions) -> tuple[int | None, int | None]:
        return None, None

    def coordinates_of(self, relation: FoundAgain) -> tuple[int | None, int | None]:
        return None, None

    def piece_of(self, relation: Pieces) -> tuple[int | None, int | None]:
        return None, None


def _own_loops(stmt: Stmt) -> list[IndexVar]:
    """The variables of a statement's loops, without those of the producers inside it."""
    found, left = list[IndexVar](), [stmt]
    while left:
        match left.pop():
            case Forall(var, body):
                found.append(var)
                left.append(body)
            case SuchThat(body, _) | Where(body, _):
                left.append(body)
            case Sequence(stmts):
                left += stmts
    return found


def are_distinct(levels: tuple[Level, ...], first: int, last: int) -> bool:
    """Whether no tuple of coordinates repeats in these levels below one parent.

    A chain such as COO's is unique if its last level is, whatever the levels above it say.
    """
    ends = [k for k in range(first, last + 1) if k == last or not levels[k + 1].branchless]
    return all(levels[k].unique for k in ends)
