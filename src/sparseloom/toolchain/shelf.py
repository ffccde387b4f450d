"""Memory of results that are gone, kept for the next ones.

Kernels allocate what they return. Large arrays are mapped, and touching mapped pages for the first time costs as much as computing what
goes there; so mappings that are given back are kept on a shelf, up to a limit. The kernels of all libraries with one allocator share it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from sparseloom.core.settings import kept_memory
from sparseloom.targets.toolchain import Allocator, ShelfSize
from sparseloom.toolchain.ending import keep_for_ever
from sparseloom.toolchain.loading import TAKES_ADDRESS, TAKES_NOTHING, Library


class Shelf:
    """The shelf of one allocator in this process."""

    def __init__(self, facts: ShelfSize) -> None:
        # As kernels see it: an address and a number of pages in one word for every mapping.
        fields = [("limit", ctypes.c_int64), ("next", ctypes.c_int64), ("kept", ctypes.c_size_t * facts.places)]
        self._words = type("_Words", (ctypes.Structure,), {"_fields_": fields})()
        keep_for_ever(self._words)  # kernels may give memory back until the process ends
        self._page = facts.page
        self._empty: Callable[[], None] | None = None

    def connect(self, library: Library) -> None:
        """Hand the shelf to a library of kernels, if it has any that allocate."""
        use = library.function("use_shelf", TAKES_ADDRESS)
        if use is None:
            return
        self.renew_limit()
        use(ctypes.addressof(self._words))
        self._empty = library.function("empty_shelf", TAKES_NOTHING)  # which keeps one library loaded

    def renew_limit(self) -> None:
        """Keep as much as the settings say now."""
        self._words.limit = kept_memory()

    def empty(self) -> None:
        """Give everything that is kept back to the system."""
        if self._empty is not None:
            self._empty()

    @property
    def kept(self) -> int:
        """How many bytes are kept now."""
        return self._page * sum(int(word) % self._page for word in self._words.kept)


_shelves: dict[Allocator, Shelf] = {}


def shelf_of(allocator: Allocator) -> Shelf | None:
    """The shelf of an allocator, if it has one: the same as long as this process runs."""
    if allocator.shelf is None:
        return None
    return _shelves.get(allocator) or _shelves.setdefault(allocator, Shelf(allocator.shelf))


def connect(library: Library, allocator: Allocator | None) -> None:
    """Let a library share the shelf of its allocator, if that has one."""
    shelf = None if allocator is None else shelf_of(allocator)
    if shelf is not None:
        shelf.connect(library)


def release_memory() -> int:
    """Give the memory of freed results, which is kept for the next ones, back to the system. Returns how many bytes it was.

    ``SPARSELOOM_KEEP_MEMORY`` says how much is kept at most; 0 keeps nothing.

    >>> import sparseloom as sl
    >>> sl.release_memory() >= 0
    True
    """
    kept = sum(shelf.kept for shelf in _shelves.values())
    for shelf in _shelves.values():
        shelf.empty()
    return kept
