"""Arrays as the loop interpreter sees them: every access is checked, and parallel loops are watched for races."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import DType, is_integer, largest
from sparseloom.core.errors import CompilerBug, SparseloomError
from sparseloom.loops.nodes import Array

# More than a test ever needs; larger allocations fail as they would in C.
_MOST_BYTES = 2**32


class RaceFound(SparseloomError):
    """Two iterations of one parallel loop touched one location, and at least one of them wrote it without an atomic."""


class OutOfMemory(Exception):
    """An allocation was refused."""


class Cells:
    """The elements of one array, and which of them have a value.

    An array that is not allocated has no elements, so that every access to it is out of bounds.
    """

    def __init__(self, array: Array, given: NDArray[Any] | None = None, known: bool = False, writable: bool = True) -> None:
        self.name, self.dtype, self.writable = array.name, array.dtype, writable
        self.live = given is not None
        self.data = np.empty(0, array.dtype) if given is None else given
        if self.data.dtype != array.dtype or self.data.ndim != 1:
            raise CompilerBug(array, f"{array.name} is a 1-D array of {array.dtype}, not {self.data.ndim}-D of {self.data.dtype}")
        self.known = bytearray(bytes([known]) * len(self.data))

    def allocate(self, size: int) -> None:
        """Make room for ``size`` elements without a value."""
        if self.live:
            raise CompilerBug(self.name, f"{self.name} is freed before it is allocated again")
        self.data, self.known, self.live = _poisoned(self.dtype, size), bytearray(size), True

    def grow(self, capacity: int, needed: int) -> int:
        """Make room for ``needed`` elements if there is not; the new capacity."""
        if not self.live or capacity != len(self.data):
            raise CompilerBug(self.name, f"the capacity {capacity} of {self.name} is its length, {len(self.data)}")
        if needed <= capacity:
            return capacity
        bigger = _poisoned(self.dtype, max(2 * capacity, needed))
        bigger[:capacity] = self.data
        self.data, self.known = bigger, self.known + bytearray(len(bigger) - capacity)
        return len(bigger)

    def free(self) -> None:
        """Give the memory back."""
        if not self.live:
            raise CompilerBug(self.name, f"{self.name} is allocated when it is freed")
        self.data, self.known, self.live = np.empty(0, self.dtype), bytearray(), False

    def peek(self, place: int) -> Any:
        """The element at ``place``, checked but not watched."""
        if not 0 <= place < len(self.known):
            raise self._outside(place)
        if not self.known[place]:
            raise CompilerBug(self.name, f"no read of uninitialised memory: {self.name}[{place}] was never written")
        return self.data[place]

    def peek_number(self, place: int) -> Any:
        """The same as a Python number, which index arithmetic wants."""
        self.peek(place)
        return self.data.item(place)

    load = peek
    load_number = peek_number

    def store(self, place: int, value: Any) -> None:
        """Set the element at ``place``."""
        if not 0 <= place < len(self.known):
            raise self._outside(place)
        if not self.writable:
            raise CompilerBug(self.name, f"the input {self.name} is never written")
        self.data[place] = value
        self.known[place] = 1

    store_atomic = store

    def fill(self, begin: int, count: int, value: Any) -> None:
        """Set ``count`` elements from ``begin`` on."""
        for place in range(begin, begin + count):
            self.store(place, value)
        if count < 0:
            raise CompilerBug(self.name, f"a fill of {self.name} has a count of at least 0, not {count}")

    def sort(self, count: int) -> None:
        """Sort the first ``count`` elements."""
        ordered = sorted(self.load_number(place) for place in range(count))
        if len(set(ordered)) < count:
            raise CompilerBug(self.name, f"what is sorted in {self.name} is all different")
        for place, value in enumerate(ordered):
            self.store(place, value)

    def search(self, begin: int, end: int, key: int) -> int:
        """The first position in ``[begin, end)`` whose element is at least ``key``, or ``end``."""
        if not 0 <= begin <= end <= len(self.known):
            raise CompilerBug(self.name, f"a search of {self.name} stays in its length {len(self.known)}: [{begin}, {end})")
        seen = [self.load_number(place) for place in range(begin, end)]
        if any(a > b for a, b in pairwise(seen)):
            raise CompilerBug(self.name, f"{self.name} ascends in [{begin}, {end}), where it is searched")
        return begin + sum(1 for one in seen if one < key)

    def _outside(self, place: int) -> CompilerBug:
        state = "" if self.live else " (it is not allocated)"
        return CompilerBug(self.name, f"an index stays in bounds: {self.name}[{place}] has length {len(self.known)}{state}")


def sort_entries(arrays: list[Cells], room: list[Cells], count: int, keys: int, size: int) -> None:
    """Sort the first ``count`` elements of several arrays by the first ``keys`` of them, with room to move entries of ``size`` bytes."""
    for cells in room:
        if len(cells.known) < count * size:
            raise CompilerBug(cells.name, f"{cells.name} has room for {count} entries of {size} bytes, not only {len(cells.known)} bytes")
    entries = [tuple(cells.load(place) for cells in arrays) for place in range(count)]
    entries.sort(key=lambda entry: entry[:keys])
    for place, entry in enumerate(entries):
        for cells, element in zip(arrays, entry, strict=True):
            cells.store(place, element)


def _poisoned(dtype: DType, size: int) -> NDArray[Any]:
    """Elements that are noticed when they show up in a result."""
    if not 0 <= size * dtype.itemsize <= _MOST_BYTES:
        raise OutOfMemory
    poison = largest(dtype) // 2 + 12345 if is_integer(dtype) and dtype.itemsize > 2 else 77 if is_integer(dtype) else np.nan
    return np.full(size, poison, dtype)


class _Touched:
    """Who touched one location of one array: an iteration, or ``_MANY`` of them."""

    __slots__ = ("atomic", "reader", "writer")

    def __init__(self) -> None:
        self.reader: int | None = None
        self.writer: int | None = None
        self.atomic: int | None = None


_MANY = -(2**63)


class _Watch:
    """One running parallel loop: the iteration at hand, and every location touched so far."""

    def __init__(self, variable: str) -> None:
        self.variable, self.iteration = variable, 0
        self.seen: dict[tuple[int, int], _Touched] = {}

    def touch(self, cells: Cells, place: int, how: str) -> None:
        """Note an access: ``reader``, ``writer`` or ``atomic``. Only reads, or only atomics, may be shared."""
        touched = self.seen.setdefault((id(cells), place), _Touched())
        for other in ("reader", "writer", "atomic"):
            who = getattr(touched, other)
            if who is None or who == self.iteration or (how == other != "writer"):
                continue
            earlier = "several iterations" if who == _MANY else f"iteration {self.variable} = {who}"
            later = f"by iteration {self.variable} = {self.iteration} ({how})"
            raise RaceFound(f"{cells.name}[{place}] is touched by {earlier} ({other}) and {later} of one parallel loop")
        before = getattr(touched, how)
        setattr(touched, how, self.iteration if before in (None, self.iteration) else _MANY)


class Tracker:
    """The parallel loops that are running, outermost first."""

    def __init__(self) -> None:
        self.loops: list[_Watch] = []

    def enter(self, variable: str) -> _Watch:
        """Begin a parallel loop."""
        self.loops.append(_Watch(variable))
        return self.loops[-1]

    def leave(self) -> None:
        """End the innermost parallel loop."""
        self.loops.pop()


class WatchedCells(Cells):
    """Cells of a kernel with parallel loops. An array is private to the loops inside which it was allocated."""

    def __init__(
        self, array: Array, tracker: Tracker, given: NDArray[Any] | None = None, known: bool = False, writable: bool = True
    ) -> None:
        super().__init__(array, given, known, writable)
        self.tracker, self.depth = tracker, 0

    def allocate(self, size: int) -> None:
        super().allocate(size)
        self.depth = len(self.tracker.loops)

    def _touch(self, place: int, how: str) -> None:
        for loop in self.tracker.loops[self.depth :]:
            loop.touch(self, place, how)

    def load(self, place: int) -> Any:
        """The element at ``place``."""
        self._touch(place, "reader")
        return self.peek(place)

    def load_number(self, place: int) -> Any:
        """The element at ``place`` as a Python number."""
        self._touch(place, "reader")
        return self.peek_number(place)

    def store(self, place: int, value: Any) -> None:
        self._touch(place, "writer")
        super().store(place, value)

    def store_atomic(self, place: int, value: Any) -> None:
        """Set the element at ``place`` as part of an atomic update."""
        self._touch(place, "atomic")
        super().store(place, value)
