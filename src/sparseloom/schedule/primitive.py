"""The contract of a primitive: one step of the scheduling language.

A primitive is a node whose fields are its arguments. It says when it may be used (``check``), what it makes of a statement
(``apply``), and gives instances of itself that make sense for a statement (``candidates``). Its text form follows from
the fields. Every primitive is one file in ``primitives/``.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterator
from enum import Enum
from random import Random
from typing import ClassVar, Self, TypeVar, dataclass_transform

from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import Node, field_names, node
from sparseloom.notation.nodes import SERIAL, Expr, IndexVar, Merge, Races, Stmt, Tag, Unit
from sparseloom.notation.printer import show
from sparseloom.notation.relations import (
    BoundRelation,
    BoundType,
    CoordRelation,
    DivideRelation,
    FuseRelation,
    PosRelation,
    SplitRelation,
)
from sparseloom.notation.syntax import CONSTANTS
from sparseloom.schedule.loops import loops, provenance, tag_of, taken_names, tensors
from sparseloom.schedule.provenance import children
from sparseloom.schedule.refusal import Refusal, listed

P = TypeVar("P", bound="type[Primitive]")

PRIMITIVES: dict[str, type[Primitive]] = {}


@dataclass_transform(frozen_default=True)
def primitive(cls: P) -> P:
    """Declare a primitive: a node, and a word of the language."""
    made = node(cls)
    PRIMITIVES[made.word()] = made
    return made


class Primitive(Node):
    """One step of a schedule."""

    __slots__ = ()
    picture: ClassVar[str] = ""

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

    @classmethod
    def candidates(cls, stmt: Stmt, rng: Random) -> Iterator[Self]:
        """Instances that make sense for this statement, in random order. Some may be refused."""
        raise CompilerBug(cls, "a primitive must give instances of itself")

    def arguments(self) -> tuple[object, ...]:
        """The values of the fields. A set that is the only argument is spread out: ``reorder(i, j)``."""
        values = tuple(getattr(self, name) for name in field_names(type(self)))
        match values:
            case (tuple() as only,):
                return only
        return values

    def __str__(self) -> str:
        return f"{self.word()}({', '.join(map(spell, self.arguments()))})"


def spell(value: object) -> str:
    """An argument as text: names, numbers, expressions, and sets in braces."""
    match value:
        case Enum():
            return value.name
        case Expr():
            return show(value)
        case (only,):
            return spell(only)
        case tuple() | list() | set() | frozenset():
            return f"{{{', '.join(map(spell, value))}}}"
    return str(value)


def no_loop(code: str, stmt: Stmt, var: IndexVar) -> Refusal | None:
    """The refusal of a variable that has no loop; it says what became of it, or which loops there are."""
    there = loops(stmt)
    if var in there:
        return None
    relation = provenance(stmt).replacement(var)
    if relation is not None:
        made = children(relation)
        how = "fuse" if isinstance(relation, FuseRelation) else _WORDS[type(relation)]
        return Refusal(code, f"there is no loop over {var} any more: {how} made {' and '.join(map(str, made))} of it", f"name {_either(made)}")
    if var.name in tensors(stmt):
        return Refusal(code, f"{var} is a tensor, not a loop", f"there are loops over {listed(there)}")
    return Refusal(code, f"there is no loop over {var}", f"there are loops over {listed(there)}")


_WORDS: dict[type, str] = {
    SplitRelation: "split",
    DivideRelation: "divide",
    PosRelation: "pos",
    CoordRelation: "coord",
    BoundRelation: "bound",
}


def _either(variables: tuple[IndexVar, ...]) -> str:
    return " or ".join(map(str, variables))


def reserved_names() -> frozenset[str]:
    """The words of the language, which cannot name a variable or a tensor."""
    units = {member.name for family in (Unit, Races, Merge, BoundType) for member in family}
    return frozenset(PRIMITIVES) | units | frozenset(CONSTANTS)


def not_fresh(code: str, stmt: Stmt, *names: str) -> Refusal | None:
    """The refusal of new names that are taken, repeated, words of the language, or no names."""
    taken = taken_names(stmt)
    for k, name in enumerate(names):
        if not name.isidentifier() or keyword.iskeyword(name):
            return Refusal(code, f"{name!r} is not a name", "a name is made of letters, digits and _")
        if name in reserved_names():
            return Refusal(code, f"{name} is a word of the scheduling language, so it cannot be a name", "pick another name")
        if name in names[:k]:
            return Refusal(code, f"{name} is named twice", "pick two names")
        if name in taken:
            return _taken(code, stmt, name)
    return None


def _taken(code: str, stmt: Stmt, name: str) -> Refusal:
    if name in tensors(stmt):
        return Refusal(code, f"{name} is already a tensor", "pick a fresh name")
    var = IndexVar(name)
    if var in loops(stmt):
        return Refusal(code, f"{name} is already a loop", "pick a fresh name", at=var)
    return Refusal(code, f"{name} is already a variable", "pick a fresh name")


def is_tagged(code: str, stmt: Stmt, var: IndexVar, step: str) -> Refusal | None:
    """The refusal of a step that would leave open which of several loops inherits a tag."""
    tag = tag_of(stmt, var)
    if tag == SERIAL:
        return None
    return Refusal(code, f"the loop over {var} is already {describe(tag)}, and {step} does not say which loop would be", f"{step} first", at=var)


def describe(tag: Tag) -> str:
    """A tag in words."""
    words = [word for word in (tag.unit and f"{tag.unit.name} with {tag.races.name if tag.races else 'NoRaces'}",
                               tag.unroll and f"unrolled by {tag.unroll}", tag.merge and f"merged by {tag.merge.name}") if word]  # fmt: skip
    return ", ".join(words)
