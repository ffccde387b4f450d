"""Values that are worked out once, at the first question, without a lock.

``functools.cached_property`` holds one lock per property for all objects while it computes, up to Python 3.11. A process that forks
meanwhile leaves the lock held for ever in the child. Here two threads that ask at once may both compute; the first answer stays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")
A = TypeVar("A")


class cached_property(Generic[T]):
    """An attribute that a method computes when it is first read. ``del`` forgets it."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> cached_property[T]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> T | cached_property[T]:
        if instance is None:
            return self
        # What stands in the object's own dictionary hides this method from then on.
        made: T = instance.__dict__.setdefault(self._name, self._compute(instance))
        return made


def once_for_each(compute: Callable[[A], T], most: int = 512) -> Callable[[A], T]:
    """A function of one frozen object that remembers what it said of those it was asked about lately.

    Objects are told apart by identity: to compare whole trees would take longer than most answers. What is remembered is kept alive, so
    that no other object gets its address.
    """
    known: dict[int, tuple[A, T]] = {}

    def ask(root: A) -> T:
        found = known.get(id(root))
        if found is not None:
            return found[1]
        made = compute(root)
        if len(known) >= most:
            known.clear()
        known[id(root)] = root, made
        return made

    return update_wrapper(ask, compute)
