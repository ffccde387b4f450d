"""The contract of a relation: how derived variables stand for others, over any arithmetic.

A variable is *known* when its own loop is open, or when a relation recovers it from variables that are known. Every relation says
four things: how far what it makes runs, how parents are recovered from children, how children derive from parents, and how all of
that is written. Bounds, lowering, trip counts, promises, races and pictures ask it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, TypeVar

from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import Node
from sparseloom.notation import nodes
from sparseloom.notation.nodes import IndexVar
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

    def measured(self, relation: Any) -> tuple[V, V]:
        """The range of the last variable that a relation makes, where only the data tell: positions, pieces of equal weight."""
        raise CompilerBug(relation, "only the data tell, and here are none")

    def found(self, relation: Any, values: Mapping[IndexVar, V]) -> tuple[V, ...]:
        """The values of the children, where only the data tell."""
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
        """Where the range of a child begins and ends; only the data tell, unless a member says otherwise."""
        return ranges.measured(self)

    def reaches(self, ranges: Ranges[V]) -> tuple[V, ...]:
        """Numbers on the way to the parents that are larger than all ranges."""
        return ()

    def recover(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        """The values of the parents, from those of the children: recover_original."""
        raise CompilerBug(self, "only lowering recovers this")

    def derive(self, values: Mapping[IndexVar, V], ranges: Ranges[V]) -> tuple[V, ...]:
        """The values of the children, from those of the parents: recover_derived. They are found in the data, unless a member says how."""
        return ranges.found(self, values)

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
    def significant(self) -> tuple[IndexVar, ...]:
        """The children from the most to the least significant, if fixing leading ones leaves an interval; else none."""
        return ()

    def overruns(self, ranges: Ranges[V]) -> bool:
        """Whether a recovered value may lie beyond the end of the parent's range, and has to be compared with it."""
        return False

    def interval(self, known: Known[V]) -> tuple[V, V]:
        """The part of the parent's range that known children leave."""
        return known.range_of(self.parent)


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
