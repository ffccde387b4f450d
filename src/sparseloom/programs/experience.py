"""What calls of a kernel teach those that follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Experience(Generic[T]):
    """What earlier calls taught: how many entries the last result had, and how many were read; what operands stored; and whether positions
    outgrew 32 bits, so that calls after it run the specialization ``wide``. Each is one value, set at once."""

    def __init__(self) -> None:
        self.room = (0, 1)
        self.stored: Mapping[str, Sequence[int]] = {}
        self.wide: T | None = None

    def expect(self, entries: int) -> int:
        """For how many entries of a result to make room, where so many are read."""
        made, read = self.room
        return max(entries, min(made, made * entries // read + 1))

    def learn(self, made: int, entries: int) -> None:
        """Keep in mind how many entries a result had."""
        self.room = made, max(1, entries)
