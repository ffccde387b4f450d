"""Trees of facts: how nodes are declared, walked and rewritten.

A node is a frozen, slotted dataclass, equal by structure. Its children are the nodes in its fields, in order;
tuples of nodes count as fields of nodes. Passes are written with ``match`` and one ``rewrite``.

A note is a field that says something about a node and does not make it another one: ``field(default=..., kw_only=True, compare=False)``.
It is given by keyword, kept by ``replace``, ``rewrite`` and pickling, and left out of ``==``, the hash, ``match`` and the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from functools import partial
from operator import attrgetter, is_
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")
N = TypeVar("N", bound="Node")


class Node:
    """The root of every IR node. It keeps its hash, which is asked for again and again."""

    __slots__ = ("_hash",)

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to {name!r}: a node is a fact")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete {name!r}: a node is a fact")

    def __reduce__(self) -> tuple[Any, ...]:
        cls = type(self)
        notes = {name: getattr(self, name) for name in note_names(cls)}
        return partial(cls, **notes) if any(notes.values()) else cls, tuple(getattr(self, name) for name in field_names(cls))

    def __repr__(self) -> str:
        inside = ", ".join(repr(getattr(self, name)) for name in field_names(type(self)))
        return f"{type(self).__name__}({inside})"


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def node(cls: type[T]) -> type[T]:
    """Declare a node: frozen, slotted, equal by structure.

    A frozen dataclass would compile five functions for each class, and that made a fifth of the package's import time. Here only the
    constructor is compiled.
    """
    made: Any = dataclass(init=False, eq=False, repr=False, slots=True)(cls)
    made.__init__ = _constructor(made)
    if "__eq__" not in vars(cls):
        made.__eq__, made.__hash__ = _comparison(made)
    return made  # type: ignore[no-any-return]


def _constructor(cls: Any) -> Callable[..., None]:
    """``__init__`` of a node class, field by field, as a frozen dataclass has it."""
    hidden = [f.name for f in fields(cls) if isinstance(f.default, property)]
    if hidden:
        raise TypeError(f"the field {hidden[0]} of {cls.__qualname__} hides a property that its class inherits: pick another name")
    defaults = {f"{f.name}_default": f.default for f in fields(cls) if f.default is not MISSING}
    parameters = [f"{name}={name}_default" if f"{name}_default" in defaults else name for name in field_names(cls)]
    if notes := note_names(cls):
        parameters += ["*", *(f"{name}={name}_default" for name in notes)]
    body = [f"put(self, {f.name!r}, {f.name})" for f in fields(cls)]
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    made: dict[str, Any] = {}
    head = f"def __init__({', '.join(['self', *parameters])}):"
    exec("\n  ".join([head, *(body or ["pass"])]), {**defaults, "put": object.__setattr__}, made)
    made["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    return made["__init__"]  # type: ignore[no-any-return]


def _comparison(cls: Any) -> tuple[Callable[[Any, object], bool], Callable[[Any], int]]:
    """``__eq__`` and ``__hash__`` of a node class: by the values of its fields."""
    names = field_names(cls)
    contents = attrgetter(*names) if names else attrgetter("__class__")

    def equal(self: Any, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented  # type: ignore[no-any-return]  # an expression says what it makes of an index variable
        return self is other or contents(self) == contents(other)

    return equal, kept_hash(contents)


def kept_hash(contents: Callable[[Any], object]) -> Callable[[Any], int]:
    """``__hash__`` of a node: that of what it contains, worked out once, for nothing in it changes."""

    def digest(self: Any) -> int:
        try:
            return self._hash  # type: ignore[no-any-return]
        except AttributeError:
            put(self, "_hash", made := hash(contents(self)))
            return made

    put = object.__setattr__
    return digest


_FIELD_NAMES: dict[type, tuple[str, ...]] = {}
_NOTE_NAMES: dict[type, tuple[str, ...]] = {}


def field_names(cls: type) -> tuple[str, ...]:
    """The names of the fields that make a node of a class what it is, in order."""
    names = _FIELD_NAMES.get(cls)
    if names is None:
        names = _FIELD_NAMES[cls] = tuple(f.name for f in fields(cls) if f.compare)
    return names


def note_names(cls: type) -> tuple[str, ...]:
    """The names of a node class's notes."""
    names = _NOTE_NAMES.get(cls)
    if names is None:
        names = _NOTE_NAMES[cls] = tuple(f.name for f in fields(cls) if not f.compare)
    return names


_PLAIN = frozenset({"str", "int", "bool", "float", "complex", "None", "DType", "Scalar", "Format"})


def branches(cls: type) -> tuple[str, ...]:
    """The names of the fields in which a node of a class may hold others: all but those that are declared to hold text and numbers,
    and formats, of which no pass makes anything else."""
    return tuple(f.name for f in fields(cls) if not _PLAIN.issuperset(re.findall(r"\w+", str(f.type))))


class _Branches(dict[type, tuple[str, ...]]):
    """The branches of each class, in order."""

    def __missing__(self, cls: type) -> tuple[str, ...]:
        names = self[cls] = branches(cls)
        return names


class _Backwards(dict[type, tuple[str, ...]]):
    """The branches of each class, last ones first."""

    def __missing__(self, cls: type) -> tuple[str, ...]:
        names = self[cls] = branches(cls)[::-1]
        return names


class _All(dict[type, tuple[str, ...]]):
    """The fields and notes of each class."""

    def __missing__(self, cls: type) -> tuple[str, ...]:
        names = self[cls] = (*field_names(cls), *note_names(cls))
        return names


_FORWARDS = _Branches()
_BACKWARDS = _Backwards()
_ALL = _All()


def children(parent: Node) -> list[Node]:
    """Return the nodes directly below ``parent``."""
    found: list[Node] = []
    for name in _FORWARDS[type(parent)]:
        value = getattr(parent, name)
        if isinstance(value, Node):
            found.append(value)
        elif type(value) is tuple:
            for item in value:
                if isinstance(item, Node):
                    found.append(item)
    return found


def walk(root: Node, kind: type[Node] = Node) -> list[Node]:
    """Return ``root`` and every node below it, parents first, left to right; below the root only nodes of one ``kind``, if one is given.

    It is a list, not a generator: to resume a generator for every node takes longer than the walk.
    """
    stack, found = [root], []
    while stack:
        current = stack.pop()
        found.append(current)
        for name in _BACKWARDS[type(current)]:
            value = getattr(current, name)
            if isinstance(value, kind):
                stack.append(value)
            elif type(value) is tuple and value:
                for item in reversed(value):
                    if isinstance(item, kind):
                        stack.append(item)
    return found


def rewrite(root: N, rule: Callable[[Any], Node | None], kind: type[Node] = Node) -> N:
    """Apply ``rule`` to every node, children first. ``None`` means "leave it".

    A tree in which nothing changed comes back as the same object. Below the root, only nodes of one ``kind`` are looked at, if one is
    given: a rule for statements need not see expressions.
    """
    changed: dict[str, Any] = {}
    for name in _FORWARDS[type(root)]:
        value = getattr(root, name)
        if isinstance(value, kind):
            new: Any = rewrite(value, rule, kind)
        elif type(value) is tuple and value:
            items = list(value)
            for k, item in enumerate(value):
                if isinstance(item, kind):
                    items[k] = rewrite(item, rule, kind)
            new = value if all(map(is_, items, value)) else tuple(items)
        else:
            continue
        if new is not value:
            changed[name] = new
    current = root
    if changed:
        current = type(root)(**{name: changed.get(name, getattr(root, name)) for name in _ALL[type(root)]})
    replaced = rule(current)
    return current if replaced is None else replaced  # type: ignore[return-value]
