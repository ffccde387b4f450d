"""The contract of a relation: how any number of derived variables stand for any number of others, over any arithmetic.

A variable is *known* when its own loop is open, or when a relation recovers it from variables that are known. Every relation says how far
what it makes runs, how parents are recovered from children, how children derive from parents, where what is recovered leaves its range,
which interval is left when some variables are fixed, whether the order of the parents is kept, and how all of that is written. Bounds,
lowering, trip counts, promises, races, laws and pictures ask it; nobody outside of this room looks at its class.

Three kinds follow from data instead of arithmetic: positions, coordinates that are found again, and pieces of equal weight. A relation of
such a kind gives itself out as one (``positions``, ``found_again``, ``pieces``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol, TypeVar

from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import Node
from sparseloom.notation import nodes
from sparseloom.notation.nodes import Access, IndexVar
from sparseloom.relations.arithmetic import WORDS, Arithmetic, Text

V = TypeVar("V")


class Ranges(Protocol[V]):
    """How far variables run, at one place and in one arithmetic."""

    @property
    def arithmetic(self) -> Arithmetic[V]:
        """What to compute with."""

    def range_of(self, var: IndexVar) -> tuple[V, V]:
        """Where the range of a variable begins and ends."""

    def extent(self, var: IndexVar) -> V:
        """How many values a variable takes."""
        low, high = self.range_of(var)
        return self.arithmetic.subtract(high, low)

    def positions_of(self, relation: Positions) -> tuple[V, V]:
        """Where the positions begin and end that a relation counts."""
        raise CompilerBug(relation, f"the range of {relation.position} must be known before its loops")

    def coordinates_of(self, relation: FoundAgain) -> tuple[V, V]:
        """The coordinates from the first to the last of some positions."""
        raise CompilerBug(relation, f"the range of {relation.coordinate} must be known before its loops")

    def piece_of(self, relation: Pieces) -> tuple[V, V]:
        """Where the current piece begins and ends: inside of the whole."""
        return self.range_of(relation.parent)

    def position_at(self, relation: Positions, values: Mapping[IndexVar, V]) -> V:
        """The position of a coordinate."""
        raise CompilerBug(relation, "only the data tell, and here are none")

    def coordinate_at(self, relation: FoundAgain, values: Mapping[IndexVar, V]) -> V:
        """The coordinate at a position."""
        raise CompilerBug(relation, "only the data tell, and here are none")

    def piece_at(self, relation: Pieces, values: Mapping[IndexVar, V]) -> V:
        """The number of the piece that has a value of the parent."""
        raise CompilerBug(relation, "only the data tell, and here are none")


class Known(Ranges[V], Protocol[V]):
    """Ranges, and what the loops so far have fixed of them."""

    def value(self, var: IndexVar) -> V | None:
        """The value of a variable; None while it is open."""

    def interval(self, var: IndexVar) -> tuple[V, V]:
        """The part of its range that known variables leave to a variable."""

    def is_narrowed(self, var: IndexVar) -> bool:
        """Whether that may be less than all of it."""


class Relation(nodes.Relation):
    """How ``children`` stand for ``parents``."""

    __slots__ = ()
    word: ClassVar[str]  # what made it
    is_local: ClassVar[bool] = False  # whether it holds in the producer that has its children alone, and leaves the parents' loops there
    is_block: ClassVar[bool] = False  # whether a format made it, whose levels are walked and appended to block by block
    promises: ClassVar[bool] = False  # whether something must hold that the caller vouches for: ``broken`` says what
    counts_up: ClassVar[bool] = False  # whether the children, fused again, count the parent from its first value on

    @property
    def parents(self) -> tuple[IndexVar, ...]:
        """The variables that others derive from."""
        raise CompilerBug(self, "a relation must say what it derives from")

    @property
    def children(self) -> tuple[IndexVar, ...]:
        """The variables that are made."""
        raise CompilerBug(self, "a relation must say what it makes")

    @property
    def label(self) -> str:
        """The relation in one word, with its constant or its operand."""
        return f"{self.word}({self.constants[0]})" if self.constants else self.word

    @property
    def constants(self) -> tuple[int, ...]:
        """The numbers at whose multiples something begins anew."""
        return ()

    def range_of(self, var: IndexVar, ranges: Ranges[V]) -> tuple[V, V]:
        """Where the range of a child begins and ends."""
        raise CompilerBug(self, "a relation must say how far its children run")

    def extent_of(self, var: IndexVar, ranges: Ranges[V]) -> V:
        """How many values a child takes, if that is known better than from where its range begins and ends."""
        low, high = self.range_of(var, ranges)
        return ranges.arithmetic.subtract(high, low)

    def reaches(self, ranges: Ranges[V]) -> tuple[V, ...]:
        """Numbers on the way to the parents that are larger than all ranges."""
        return ()

    def recover(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        """The values of the parents, from those of the children: recover_original."""
        raise CompilerBug(self, "only lowering recovers this")

    def derive(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        """The values of the children, from those of the parents: recover_derived."""
        raise CompilerBug(self, "a relation must say how its children derive")

    def guards(self, var: IndexVar, ranges: Ranges[V]) -> tuple[bool, bool]:
        """Whether a recovered value of a parent may lie before the beginning, and behind the end, of its range.

        It is compared with them there, so a member that says nothing is right, and one that says where it cannot happen is faster.
        """
        return True, True

    def interval(self, var: IndexVar, known: Known[V]) -> tuple[V, V]:
        """The part of its range that known variables leave to a parent, or to a child whose siblings are known.

        Where children are ``significant``, an interval of the parent reaches from what the least of those left open stand for to what
        the largest do.
        """
        low, high = known.range_of(var)
        leading = self.significant[0] if var == self.whole and self.significant else None
        if leading is None or not (len(self.significant) == 1 or known.value(leading) is not None or known.is_narrowed(leading)):
            return low, high
        do, first, last = known.arithmetic, dict[IndexVar, V](), dict[IndexVar, V]()
        is_open = False
        for child in self.significant:
            value = known.value(child)
            begin, end = known.range_of(child) if is_open else known.interval(child)
            first[child] = begin if value is None or is_open else value
            last[child] = do.subtract(end, do.number(1)) if value is None or is_open else value
            is_open = is_open or value is None
        (begin,), (end,) = self.recover(first, known), self.recover(last, known)
        end = do.add(end, do.number(1))
        return begin, do.least(end, high) if self.guards(var, known)[1] else end

    @property
    def significant(self) -> tuple[IndexVar, ...]:
        """The children from the most to the least significant, if fixing leading ones leaves an interval of the one parent; else none."""
        return ()

    @property
    def nest(self) -> tuple[IndexVar, ...]:
        """The parents, outermost first, as loops that visit in the same order what the only child counts, if there are such loops.

        The last parent grows by one where the child does, until it is at the end of its range.
        """
        return ()

    @property
    def keeps_order(self) -> bool:
        """Whether the loops over the children visit the parents in lexicographic order: entries may then be appended."""
        return bool(self.significant or self.nest)

    @property
    def whole(self) -> IndexVar | None:
        """The variable whose range the loops over the children cut up, if arithmetic tells: the parent, where there is only one."""
        return self.parents[0] if len(self.parents) == 1 else None

    @property
    def alias(self) -> IndexVar | None:
        """The child, where that is the parent under another name."""
        return None

    @property
    def positions(self) -> Positions | None:
        """The relation itself, if it counts positions of an operand."""
        return None

    @property
    def found_again(self) -> FoundAgain | None:
        """The relation itself, if it counts the coordinates of some positions."""
        return None

    @property
    def pieces(self) -> Pieces | None:
        """The relation itself, if it cuts a variable into pieces that hold equally many entries."""
        return None

    def block_of(self, var: IndexVar) -> int | None:
        """How many values of the parent each value of a child stands for, all but the last, if it counts blocks of a constant size."""
        return None

    @property
    def follows_from_data(self) -> bool:
        """Whether the range of the last child is measured in the data."""
        return self.positions is not None or self.found_again is not None or self.pieces is not None

    def broken(self, ranges: Ranges[V]) -> tuple[str, V, V] | None:
        """What must not hold of the parent's limits: the name of a comparison, and what it compares. None where nothing is promised."""
        return None

    @property
    def as_step(self) -> str:
        """The step that made the relation."""
        return f"{self.word}({', '.join(map(str, (*self.parents, *self.children, *self.constants)))})"

    @property
    def promise(self) -> str:
        """What is promised of the limits besides what they are, in words."""
        return ""

    @property
    def recovery(self) -> str:
        """How the parents follow, in words."""
        return _equations(self.parents, self.recover({var: Text(str(var)) for var in self.children}, IN_WORDS))

    @property
    def derivation(self) -> str:
        """How the children follow, in words."""
        return _equations(self.children, self.derive({var: Text(str(var)) for var in self.parents}, IN_WORDS))

    def __str__(self) -> str:
        return self.recovery


class Line(Relation):
    """A relation of one parent: its children are digits of it, another name for it, or its values in another order.

    Loops over the children cut the parent's range up, so they share one root.
    """

    __slots__ = ()
    parent: IndexVar  # a field of every member

    @property
    def parents(self) -> tuple[IndexVar, ...]:
        return (self.parent,)

    @property
    def whole(self) -> IndexVar:
        return self.parent


class Positions(Relation):
    """``position`` counts the positions at which ``access`` stores coordinates of ``coordinate``."""

    __slots__ = ()
    coordinate: IndexVar  # fields of every member
    position: IndexVar
    access: Access

    @property
    def parents(self) -> tuple[IndexVar, ...]:
        return (self.coordinate,)

    @property
    def children(self) -> tuple[IndexVar, ...]:
        return (self.position,)

    @property
    def whole(self) -> None:
        return None

    @property
    def positions(self) -> Positions:
        return self

    def range_of(self, var: IndexVar, ranges: Ranges[V]) -> tuple[V, V]:
        return ranges.positions_of(self)

    def derive(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        return (ranges.position_at(self, values),)


class FoundAgain(Relation):
    """``coordinate`` runs over the coordinates of the positions that ``position`` would run over."""

    __slots__ = ()
    position: IndexVar  # fields of every member
    coordinate: IndexVar

    @property
    def parents(self) -> tuple[IndexVar, ...]:
        return (self.position,)

    @property
    def children(self) -> tuple[IndexVar, ...]:
        return (self.coordinate,)

    @property
    def whole(self) -> None:
        return None

    @property
    def found_again(self) -> FoundAgain:
        return self

    def range_of(self, var: IndexVar, ranges: Ranges[V]) -> tuple[V, V]:
        return ranges.coordinates_of(self)

    def derive(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        return (ranges.coordinate_at(self, values),)


class Pieces(Line):
    """``outer`` counts ``count`` pieces that hold equally many entries of ``access``, and ``inner`` runs through the values of one."""

    __slots__ = ()
    outer: IndexVar  # fields of every member
    inner: IndexVar
    count: int
    access: Access
    rows: int

    @property
    def pieces(self) -> Pieces:
        return self


class _InWords(Ranges[Text]):
    """Ranges as text: ``|i|`` is the extent of i. What only the data tell has words of its own."""

    arithmetic = WORDS

    def range_of(self, var: IndexVar) -> tuple[Text, Text]:
        return Text("0"), Text(f"|{var}|")

    def extent(self, var: IndexVar) -> Text:
        return Text(f"|{var}|")


IN_WORDS = _InWords()


def carried(stmt: Node) -> tuple[Relation, ...]:
    """The relations that a scheduled statement carries, oldest first."""
    return tuple(r for r in stmt.relations if isinstance(r, Relation)) if isinstance(stmt, nodes.SuchThat) else ()


def _equations(variables: tuple[IndexVar, ...], values: tuple[Text, ...]) -> str:
    return ", ".join(f"{var} = {value.words}" for var, value in zip(variables, values, strict=True))
