"""Index arrays that a caller can change: found valid once, and looked at again before each use, at the speed of memory.

What decides where entries stand (``pos``) is kept as a copy and compared. Then coordinates need only be in range and in order, which one
pass over them tells. Arrays that were read-only when they were checked are not read again while they are read-only.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from struct import Struct
from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.errors import StorageError, ToolchainError
from sparseloom.formats.level import Mask, Outline
from sparseloom.formats.storage import Storage
from sparseloom.formats.validate import check
from sparseloom.programs.calling import address_of
from sparseloom.targets.c_guard import guard_source
from sparseloom.toolchain.libraries import load
from sparseloom.toolchain.loading import EntryPoint

_EQUAL, _ASCENDING, _IN_ROWS, _END = 1, 2, 3, 0
_UNORDERED = -1


class Guard:
    """What was found true of the index arrays of one storage. It knows where they are, but does not keep the caller's alive."""

    __slots__ = ("_address", "_frozen", "_holds", "_kept", "_words")

    def __init__(self, storage: Storage) -> None:
        """Check a storage, and raise a StorageError where it breaks a promise of its format."""
        check(storage)
        indices = storage.indices
        is_frozen = storage.device == "cpu" and all(not array.flags.writeable and array.base is None for array in indices)
        self._frozen = tuple(map(ref, indices)) if is_frozen else ()
        self._kept: list[NDArray[Any]] = []
        words = self._claims(storage)
        self._words = None if words is None else array("q", [*words, _END])
        self._address = 0 if self._words is None else self._words.buffer_info()[0]
        self._holds: EntryPoint | None = None

    @classmethod
    def of_copies(cls, arrays: Sequence[NDArray[Any]]) -> Guard:
        """What tells whether arrays still hold what they hold now."""
        made = cls.__new__(cls)
        made._kept, made._frozen = [], ()
        made._words = array("q", [*made._equal(arrays), _END])
        made._address, made._holds = made._words.buffer_info()[0], None
        return made

    def holds(self) -> bool:
        """Whether all of it is still true. ``False`` may also mean that it takes a whole check to tell."""
        if self._frozen:
            if not any(array is None or array.flags.writeable for array in (known() for known in self._frozen)):
                return True
            self._frozen = ()  # it was or is open to writing
        if self._holds is not None:
            return self._holds(self._address) == 1
        if self._words is None:
            return False
        self._holds = _guard_entry()
        if self._holds is None:
            self._words = None
            return False
        return self.holds()

    def _claims(self, storage: Storage) -> list[int] | None:
        """The claims as the words that the C code reads; None where a level has no quick check."""
        format, sizes = storage.format, storage.format.level_sizes(storage.shape)
        words: list[int] = []
        positions = 1
        for head, end in format.chains:
            outlines: list[Outline] = []
            for k in range(head, end + 1):
                outline = format.levels[k].outline(storage.levels[k], sizes[k], positions)
                if outline is None:
                    return None
                words += self._equal([storage.levels[k].arrays[name] for name in outline.fixed])
                outlines.append(outline)
                positions = outline.positions
            found = self._ordered(storage, head, end, outlines[0].starts, positions, sizes)
            if found is None:
                return None
            words += found
        return words

    def _equal(self, arrays: Sequence[NDArray[Any]]) -> list[int]:
        words = []
        for given in arrays:
            words += [_EQUAL, given.nbytes, address_of(given), self.keep(given.copy())]
        return words

    def _ordered(self, storage: Storage, head: int, end: int, starts: Mask | None, count: int, sizes: Sequence[int]) -> list[int] | None:
        """Coordinates of a chain: in range all of them, and in order as far as the levels promise."""
        levels = storage.format.levels[head : end + 1]
        stored = [k for k in range(head, end + 1) if storage.format.levels[k].coordinate_array is not None]
        if not stored or not count:
            return []
        ordered = next((n for n, level in enumerate(levels) if not level.ordered), len(levels))
        if any(level.unique for level in levels[ordered:]):
            return None  # only sorting tells whether coordinates in no order repeat
        unique = next((n for n, level in enumerate(levels) if level.unique), None)
        tied = ordered if unique is None else min(ordered, unique + 1)
        words = []
        if tied:
            marks = 0 if starts is None else self.keep(_between(starts))
            words += self.ascending(storage, stored[:tied], count, unique is not None and unique < tied, marks, sizes)
        for k in stored[tied:]:
            words += self.ascending(storage, [k], count, False, _UNORDERED, sizes)
        return words

    @staticmethod
    def ascending(storage: Storage, levels: Sequence[int], count: int, strict: bool, marks: int, sizes: Sequence[int]) -> list[int]:
        """The claim that the coordinates of some levels ascend, all but those that are marked."""
        arrays = [storage.levels[k].arrays[str(storage.format.levels[k].coordinate_array)] for k in levels]
        columns = [(address_of(array), sizes[k]) for array, k in zip(arrays, levels, strict=True)]
        return [_ASCENDING, arrays[0].itemsize, count, strict, marks, len(columns), *(word for column in columns for word in column)]

    def keep(self, array: NDArray[Any]) -> int:
        """Keep an array alive that no caller keeps; returns where it is."""
        self._kept.append(array)
        return address_of(array)


def _between(starts: Mask) -> NDArray[np.uint8]:
    """One bit per pair of neighbours: whether the second of them starts anew. Whole words of 64 bits, for a reader that takes them so."""
    bits = np.packbits(starts[1:], bitorder="little")
    return np.concatenate((bits, np.zeros(-len(bits) % 8 + 8, np.uint8)))


_ROWS = Struct("8q").pack


def are_rows(width: int, rows: int, pos: int, crd: int, count: int, size: int) -> bool:
    """Whether arrays at these addresses, with indices of ``width`` bytes, hold the rows of a CSR matrix with ``count`` entries.

    ``False`` may also mean that it takes a whole check to tell. Nothing is kept, so it is for arrays that may never come again.
    """
    holds = _guard_entry()
    return holds is not None and holds(_ROWS(_IN_ROWS, width, rows, pos, crd, count, size, _END)) == 1


def ascends(entries: Storage) -> bool:
    """Whether entries that are listed in no order known yet come in order, and all differ. ``False`` may also mean that it is not known."""
    holds, count = _guard_entry(), len(entries.values)
    if holds is None or not count:
        return False
    words = array("q", [*Guard.ascending(entries, range(len(entries.shape)), count, True, 0, entries.shape), _END])
    return holds(words.buffer_info()[0]) == 1


_loaded: list[EntryPoint] = []


def _guard_entry() -> EntryPoint | None:
    """The compiled check; None where there is no compiler."""
    if not _loaded:
        try:
            _loaded.extend(load(guard_source(), ("holds",)))
        except ToolchainError:
            return None
    return _loaded[0]


def still_valid(storage: Storage, guard: Guard | None) -> Guard:
    """Look at a storage again whose index arrays a caller can change: by its guard if it has one and that is enough, else as a whole."""
    if guard is not None and guard.holds():
        return guard
    try:
        return Guard(storage)
    except StorageError as fault:
        raise StorageError(
            f"{fault}\n  the arrays were changed after they became a tensor\n"
            "  help: make the tensor again with sl.asarray, or keep it apart from its arrays with copy=True"
        ) from None
