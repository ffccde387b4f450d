"""Arrays as the loop interpreter sees them: every access is checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import DType, is_integer, largest
from sparseloom.core.errors import CompilerBug
from sparseloom.loops.nodes import Array

# More than a test ever needs; larger allocations fail as they would in C.
_MOST_BYTES = 2**32


class OutOfMemory(Exception):
    """An allocation failed."""


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
        self.pieces: list[Any] = []  # what threads made
        self._ascending: set[tuple[int, int]] = set()

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

    def hand_over(self) -> NDArray[Any]:
        """The elements; the caller owns them from now on."""
        if not self.live:
            raise CompilerBug(self.name, f"{self.name} is allocated when it is kept")
        data = self.data
        self.free()
        return data

    def make_pieces(self, count: int) -> None:
        """Make room for an array of each thread."""
        self.pieces = [None] * count

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

    def require(self, place: int) -> None:
        """There must be an element at ``place``. This is no access."""
        if not 0 <= place < len(self.known):
            raise self._outside(place)

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

    def search(self, begin: int, end: int, key: int) -> int:
        """The first position in ``[begin, end)`` whose element is at least ``key``, or ``end``."""
        if not 0 <= begin <= end <= len(self.known):
            raise CompilerBug(self.name, f"a search of {self.name} stays in its length {len(self.known)}: [{begin}, {end})")
        if not self._ascends(begin, end):
            raise CompilerBug(self.name, f"{self.name} ascends in [{begin}, {end}), where it is searched")
        low, high = begin, end
        while low < high:
            middle = (low + high) // 2
            if self.load_number(middle) < key:
                low = middle + 1
            else:
                high = middle
        return low

    def _ascends(self, begin: int, end: int) -> bool:
        """Whether a range is in order. A range of an input is checked once."""
        if (begin, end) in self._ascending:
            return True
        part = self.data[begin:end]
        ascends = bool((part[1:] >= part[:-1]).all())
        if ascends and not self.writable:
            self._ascending.add((begin, end))
        return ascends

    def _outside(self, place: int) -> CompilerBug:
        state = "" if self.live else " (it is not allocated)"
        return CompilerBug(self.name, f"an index stays in bounds: {self.name}[{place}] has length {len(self.known)}{state}")


def _poisoned(dtype: DType, size: int) -> NDArray[Any]:
    """Elements that are noticed when they show up in a result."""
    if not 0 <= size * dtype.itemsize <= _MOST_BYTES:
        raise OutOfMemory
    poison = largest(dtype) // 2 + 12345 if is_integer(dtype) and dtype.itemsize > 2 else 77 if is_integer(dtype) else np.nan
    return np.full(size, poison, dtype)
