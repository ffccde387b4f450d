"""Memory of results that are gone, kept for the next ones.

Kernels allocate what they return. Large arrays are mapped, and touching mapped pages for the first time costs as much as computing what
goes there; so mappings that are given back stand on a shelf that the kernels of all libraries share, up to a limit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from sparseloom.core.settings import kept_memory
from sparseloom.targets.c import C
from sparseloom.toolchain.ending import keep_for_ever
from sparseloom.toolchain.loading import TAKES_ADDRESS, TAKES_NOTHING, Library


class _Words(ctypes.Structure):
    """As kernels see it: an address and a number of huge pages in one word for every mapping."""

    _fields_ = [("limit", ctypes.c_int64), ("next", ctypes.c_int64), ("kept", ctypes.c_size_t * C.shelf.places)]


class Shelf:
    """The shelf of this process. It takes back what any kernel allocated."""

    def __init__(self) -> None:
        self._words = _Words()
        keep_for_ever(self._words)  # kernels may give memory back until the process ends
        self._give_back: Callable[[int], None] | None = None
        self._empty: Callable[[], None] | None = None

    def connect(self, library: Library) -> None:
        """Hand the shelf to a library of kernels, if it has any that allocate."""
        use = library.function("use_shelf", TAKES_ADDRESS)
        if use is None:
            return
        self.renew_limit()
        use(ctypes.addressof(self._words))
        # These two keep one library loaded.
        self._give_back, self._empty = library.function("give_back", TAKES_ADDRESS), library.function("empty_shelf", TAKES_NOTHING)

    def renew_limit(self) -> None:
        """Keep as much as the settings say now."""
        self._words.limit = kept_memory()

    def empty(self) -> None:
        """Give everything that is kept back to the system."""
        if self._empty is not None:
            self._empty()

    def give_back(self, address: int) -> None:
        """Free an array that a kernel allocated. All libraries have the same allocator, so any of them can."""
        if address and self._give_back is not None:
            self._give_back(address)

    @property
    def kept(self) -> int:
        """How many bytes are kept now."""
        return C.shelf.page * sum(int(word) % C.shelf.page for word in self._words.kept)


shelf = Shelf()


def release_memory() -> int:
    """Give the memory of freed results, which is kept for the next ones, back to the system. Returns how many bytes it was.

    ``SPARSELOOM_KEEP_MEMORY`` says how much is kept at most; 0 keeps nothing.

    >>> import sparseloom as sl
    >>> sl.release_memory() >= 0
    True
    """
    kept = shelf.kept
    shelf.empty()
    return kept
