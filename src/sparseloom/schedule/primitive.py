"""The contract of a primitive: one step of the scheduling language.

A primitive is a node whose fields are its arguments. It says when it may be used (``check``), what it makes of a statement
(``apply``), and gives instances of itself that make sense for a statement (``candidates``). Its text form follows from
the fields. Every primitive is one file in ``primitives/``.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import Enum
from random import Random
from typing import Self, TypeVar, dataclass_transform

from sparseloom.core.errors import CompilerBug
from sparseloom.core.names import Names
from sparseloom.core.trees import Node, field_names, node
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.foralls import loops, provenance, tag_of, taken_names, tensors
from sparseloom.notation.nodes import SERIAL, Assembly, Expr, IndexVar, Merge, Races, Stmt, Tag, Unit
from sparseloom.notation.printer import show
from sparseloom.notation.syntax import CONSTANTS
from sparseloom.relations.bound import BoundType
from sparseloom.schedule.own_names import rename
from sparseloom.schedule.refusal import Refusal, listed

P = TypeVar("P", bound="Primitive")

PRIMITIVES: dict[str, type[Primitive]] = {}


@dataclass_transform(frozen_default=True)
def primitive(cls: type[P]) -> type[P]:
    """Declare a primitive: a node, and a word of the language."""
    made = node(cls)
    PRIMITIVES[made.word()] = made
    return made


class Primitive(Node):
    """One step of a schedule."""

    __slots__ = ()

    @classmethod
    def word(cls) -> str:
        """The name of the step in a schedule's text."""
        return cls.__name__.lower()

    def check(self, stmt: Stmt) -> Refusal | None:
        """Why the step cannot be done on this statement; None if it can."""
        raise CompilerBug(self, "a primitive must say when it may be used")

    def apply(self, stmt: Stmt) -> Stmt:
        """The statement after the step; ``check`` has allowed it."""
        raise CompilerBug(self, "a primitive must say what it does")

    def check_all(self, concrete: Concrete) -> Refusal | None:
        """Why the step cannot be done; most steps need to know the statement alone."""
        return self.check(concrete.stmt)

    def apply_all(self, concrete: Concrete) -> Concrete:
        """Everything after the step; most steps change the statement alone."""
        return replace(concrete, stmt=self.apply(concrete.stmt))

    def new_names(self) -> tuple[str, ...]:
        """What the step calls by names of its own: the variables that its relation makes."""
        relation = getattr(self, "relation", None)
        return () if relation is None else tuple(var.name for var in relation.children)

    def reading(self, names: Mapping[str, str]) -> Self:
        """The step where what it reads has other names; what it makes keeps the names it gives."""
        fresh = self.new_names()
        values = (getattr(self, name) for name in field_names(type(self)))
        return type(self)(*(self._reading(value, names, fresh) for value in values))

    def _reading(self, value: object, names: Mapping[str, str], fresh: tuple[str, ...]) -> object:
        match value:
            case Expr():
                return rename(value, names)
            case IndexVar(name) if name in names and name not in fresh:
                return IndexVar(names[name])
            case tuple():
                return tuple(self._reading(item, names, fresh) for item in value)
        return value

    @classmethod
    def candidates(cls, stmt: Stmt, rng: Random) -> Iterator[Self]:
        """Instances that make sense for this statement, in random order. Some may be refused."""
        raise CompilerBug(cls, "a primitive must give instances of itself")

    def arguments(self) -> tuple[object, ...]:
        """The values of the fields. A set that is the only argument is spread out: ``reorder(i, j)``; what is left out is None."""
        values = tuple(value for name in field_names(type(self)) if (value := getattr(self, name)) is not None)
        match values:
            case (tuple() as only,):
                return only
        return values

    def __str__(self) -> str:
        return f"{self.word()}({', '.join(map(spell, self.arguments()))})"

    @property
    def compact(self) -> str:
        """The step as text without spaces between its arguments."""
        return f"{self.word()}({','.join(spell(value, ',') for value in self.arguments())})"


def spell(value: object, between: str = ", ") -> str:
    """An argument as text: names, numbers, expressions, and sets in braces."""
    match value:
        case Enum():
            return value.name
        case Expr():
            return show(value)
        case object(node=Expr() as written):
            return show(written)
        case (only,):
            return spell(only)
        case tuple() | list() | set() | frozenset():
            return f"{{{between.join(map(spell, value))}}}"
    return str(value)


def no_loop(code: str, stmt: Stmt, *variables: IndexVar) -> Refusal | None:
    """The refusal of the first variable that has no loop; it says what became of it, or which loops there are."""
    there = loops(stmt)
    var = next((var for var in variables if var not in there), None)
    if var is None:
        return None
    relation = provenance(stmt).replacement(var)
    if relation is not None:
        made = [str(child) for child in relation.children]
        why = f"there is no loop over {var} any more: {relation.word} made {' and '.join(made)} of it"
        return Refusal(code, why, f"name {' or '.join(made)}")
    if var.name in tensors(stmt):
        return Refusal(code, f"{var} is a tensor, not a loop", f"there are loops over {listed(there)}")
    return Refusal(code, f"there is no loop over {var}", f"there are loops over {listed(there)}")


_WORDS = frozenset(CONSTANTS).union(*(family.__members__ for family in (Unit, Races, Merge, Assembly, BoundType)))


def reserved_names() -> frozenset[str]:
    """The words of the language, which cannot name a variable or a tensor."""
    return _WORDS.union(PRIMITIVES)


def not_fresh(code: str, stmt: Stmt, *names: str) -> Refusal | None:
    """The refusal of new names that are taken, repeated, words of the language, or no names."""
    taken = taken_names(stmt)
    for k, name in enumerate(names):
        if not name.isidentifier() or keyword.iskeyword(name):
            return Refusal(code, f"{name!r} cannot be a name", "a name is made of letters, digits and _, and is no keyword")
        if name in reserved_names():
            return Refusal(code, f"{name} is a word of the scheduling language, so it cannot be a name", "pick another name")
        if name in names[:k]:
            return Refusal(code, f"{name} is named twice", "pick two names")
        if name in taken:
            return _taken(code, stmt, name)
    return None


def _taken(code: str, stmt: Stmt, name: str) -> Refusal:
    help = f"pick a fresh name, such as {Names(taken_names(stmt)).fresh(name)}"
    if name in tensors(stmt):
        return Refusal(code, f"{name} is already a tensor", help)
    var = IndexVar(name)
    if var in loops(stmt):
        return Refusal(code, f"{name} is already a loop", help, at=var)
    return Refusal(code, f"{name} is already a variable", help)


def is_tagged(code: str, stmt: Stmt, var: IndexVar, step: str, merges: bool = False) -> Refusal | None:
    """The refusal of a step that makes other loops of a tagged one, and leaves open which of them inherits the tag.

    How operands are merged is no matter of one loop: where ``merges`` says so, all loops that the step makes inherit that.
    """
    tag = tag_of(stmt, var)
    if tag == (Tag(merge=tag.merge) if merges else SERIAL):
        return None
    why = f"the loop over {var} is already {describe(tag)}, and {step} would make another loop of it"
    return Refusal(code, why, f"{step} first, then tag the loop that it makes", at=var)


def describe(tag: Tag) -> str:
    """A tag in words."""
    words = []
    if tag.unit is not None and tag.races is not None:
        words.append(f"{tag.unit.name} with {tag.races.name}")
    if tag.unroll:
        words.append(f"unrolled by {tag.unroll}")
    if tag.merge is not None:
        words.append(f"merged by {tag.merge.name}")
    words += [f"prefetching {show(one.access)} {one.distance} ahead" for one in tag.prefetches]
    return ", ".join(words)
