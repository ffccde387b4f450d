"""How much memory a format takes whatever the entries are: levels that store every coordinate have a place for each."""

from __future__ import annotations

import math

from sparseloom.core import room
from sparseloom.core.dtypes import width_for
from sparseloom.core.errors import FormatError
from sparseloom.formats.format import Format

_MOST_MODES = 64  # that NumPy can have


def require_room(format: Format, shape: tuple[int, ...], itemsize: int) -> None:
    """Refuse a format in which a tensor of this shape takes more memory than there is, however few entries it has."""
    require_places(format, shape, least_size(format, shape, itemsize, 1, width_for(max(shape, default=0)).itemsize))


def require_places(format: Format, sizes: tuple[int, ...], size: int) -> None:
    """Refuse so many bytes for the places that a format has for these sizes."""
    if size > room.ALWAYS_ALLOWED:
        what = f"{format} has a place for every coordinate of some modes, and those of {' x '.join(map(str, sizes))}"
        room.require_room(size, what, "use a format that stores entries only, such as coo or dcsr")


def require_array(shape: tuple[int, ...], itemsize: int) -> None:
    """Refuse an array that has room for every coordinate of a shape, if there is not as much memory, or NumPy has no such array."""
    shown, help = " x ".join(map(str, shape)), "keep the tensor sparse, or take a part of it"
    if not has_array(shape, itemsize):
        raise FormatError(f"there is no array of the shape {shown}\n  help: {help}")
    room.require_room(math.prod(shape) * itemsize, f"all coordinates of {shown}", help)


def has_array(shape: tuple[int, ...], itemsize: int) -> bool:
    """Whether NumPy can have an array of this shape, which it may not even where nothing is stored."""
    return len(shape) <= _MOST_MODES and math.prod(size for size in shape if size) * itemsize < 2**63


def is_countable(format: Format, shape: tuple[int, ...]) -> bool:
    """Whether 64 bits count every mode, up to the end of its last block."""
    blocks = format.blocks or (1,) * len(shape)
    return all(-(-size // block) * block < 2**63 for size, block in zip(shape, blocks, strict=True))


def least_size(format: Format, shape: tuple[int, ...], itemsize: int, entries: int, width: int) -> int:
    """How many bytes a tensor with so many entries takes at least, with indices of ``width`` bytes."""
    size, positions = 0, 1
    for level, extent in zip(format.levels, format.level_sizes(shape), strict=True):
        taken, positions = level.least(extent, positions, entries, width)
        size += taken
    return size + positions * itemsize
