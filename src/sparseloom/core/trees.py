"""Trees of facts: how nodes are declared, walked and rewritten.

A node is a frozen, slotted dataclass, equal by structure. Its children are the nodes in its fields, in order;
tuples of nodes count as fields of nodes. Passes are written with ``match`` and one ``rewrite``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")
N = TypeVar("N", bound="Node")


@dataclass_transform(frozen_default=True)
def node(cls: type[T]) -> type[T]:
    """Declare a node: frozen, slotted, equal by structure."""
    return dataclass(frozen=True, slots=True, repr=False)(cls)


class Node:
    """The root of every IR node."""

    __slots__ = ()

    def __repr__(self) -> str:
        inside = ", ".join(repr(getattr(self, name)) for name in field_names(type(self)))
        return f"{type(self).__name__}({inside})"


_FIELD_NAMES: dict[type, tuple[str, ...]] = {}


def field_names(cls: type) -> tuple[str, ...]:
    """The names of a node class's fields, in order."""
    names = _FIELD_NAMES.get(cls)
    if names is None:
        names = _FIELD_NAMES[cls] = tuple(f.name for f in fields(cls))
    return names


def children(parent: Node) -> Iterator[Node]:
    """Yield the nodes directly below ``parent``."""
    for name in field_names(type(parent)):
        value = getattr(parent, name)
        if isinstance(value, Node):
            yield value
        elif type(value) is tuple:
            for item in value:
                if isinstance(item, Node):
                    yield item


def walk(root: Node) -> Iterator[Node]:
    """Yield ``root`` and every node below it, parents first, left to right."""
    stack = [root]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(tuple(children(current))))


def rewrite(root: N, rule: Callable[[Any], Node | None]) -> N:
    """Apply ``rule`` to every node, children first. ``None`` means "leave it".

    A tree in which nothing changed comes back as the same object.
    """
    changed: dict[str, Any] = {}
    for name in field_names(type(root)):
        value = getattr(root, name)
        if isinstance(value, Node):
            new = rewrite(value, rule)
            if new is not value:
                changed[name] = new
        elif type(value) is tuple and value:
            items = tuple(rewrite(item, rule) if isinstance(item, Node) else item for item in value)
            if any(a is not b for a, b in zip(items, value, strict=True)):
                changed[name] = items
    current = root
    if changed:
        current = type(root)(**{name: changed.get(name, getattr(root, name)) for name in field_names(type(root))})
    replaced = rule(current)
    return current if replaced is None else replaced  # type: ignore[return-value]
