"""Values that are worked out once, at the first question, without a lock.

``functools.cached_property`` holds one lock per property for all objects while it computes, up to Python 3.11. A process that forks
meanwhile leaves the lock held for ever in the child. Here two threads that ask at once may both compute; the first answer stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


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
