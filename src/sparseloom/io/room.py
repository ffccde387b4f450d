"""How much memory a file may ask for: its few bytes can declare, or unpack to, more than there is."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sparseloom.core.errors import StorageError
from sparseloom.core.room import free_memory
from sparseloom.formats.format import Format
from sparseloom.formats.pack import convert
from sparseloom.formats.room import has_array, least_size
from sparseloom.formats.storage import Storage
from sparseloom.formats.text import as_format
from sparseloom.io.source import fault

_UNASKED = 1 << 26  # bytes that are not worth a look at the free memory
_INDEX = 8  # bytes of a position, at most


class Room:
    """Memory that is taken bit by bit while a file is read."""

    def __init__(self, path: Path) -> None:
        """Begin with nothing."""
        self._path = path
        self._taken = 0
        self._asked = 0

    def take(self, size: int) -> None:
        """Take some more. To store what was read takes about as much again, so that must still be free."""
        self._taken += size
        if self._taken - self._asked < _UNASKED:
            return
        self._asked = self._taken
        free = free_memory()
        if free is not None and self._taken > free:
            taken, left = f"{self._taken / 1e9:.3g} GB", f"{free / 1e9:.3g} GB"
            raise fault(self._path, f"its entries take more than {taken}, and only {left} of memory are left")


def require_free(path: Path, size: int, what: str) -> None:
    """Refuse arrays that take more than the free memory."""
    free = free_memory() if size > _UNASKED else None
    if free is not None and size > free:
        raise fault(path, f"{what} takes {size / 1e9:.3g} GB, and only {free / 1e9:.3g} GB of memory are free")


def require_storable(path: Path, format: Format, shape: tuple[int, ...], entries: int, itemsize: int) -> None:
    """Refuse a format whose arrays would take more than half of the free memory, whatever the entries are."""
    if format.order != len(shape):
        return  # who stores them says so
    size = least_size(format, shape, itemsize, entries, _INDEX)
    free = free_memory() if size > _UNASKED else None
    if free is not None and 2 * size > free:
        raise StorageError(
            f"cannot read {path}: {' x '.join(map(str, shape))} with {entries} entries takes {size / 1e9:.3g} GB as {format}, "
            f"more than half of the {free / 1e9:.3g} GB of memory that are free\n"
            f"  help: ask for a format that stores entries only, as in sl.read({path.name!r}, format='coo')"
        )


def in_format(path: Path, storage: Storage, format: Format | str | None) -> Storage:
    """What was read, in the format that was asked for, if any was."""
    if format is None:
        return storage
    wanted = as_format(format, len(storage.shape))
    entries = np.count_nonzero(storage.values) if storage.format.is_dense else len(storage.values)
    require_storable(path, wanted, storage.shape, int(entries), storage.values.itemsize)
    return convert(storage, wanted)


def require_array(path: Path, shape: tuple[int, ...], itemsize: int) -> None:
    """Refuse a shape that NumPy has no array for, which it may not have even where nothing is stored."""
    if not has_array(shape, itemsize):
        raise fault(path, f"there is no array of the shape {shape}")
