"""How much memory is free, and a refusal of what would take more than half of it."""

from __future__ import annotations

import mmap

from sparseloom.core.errors import FormatError

ALWAYS_ALLOWED = 64 << 20  # bytes; asking how much memory is free takes longer than many a kernel runs
_PAGE = mmap.PAGESIZE
_ADDRESSES = 2**47  # bytes; what no address space exceeds
_BEYOND = 2**60  # bytes; what no machine comes near


def free_memory() -> int | None:
    """The bytes that can be had without swapping and within the limit of this process, or ``None`` where the system does not say."""
    known = [size for size in (_available(), _left_to_this_process()) if size is not None]
    return min(known, default=None)


def _available() -> int | None:
    words = _words("/proc/meminfo", "MemAvailable:")
    return int(words[1]) * 1024 if words else None


def _left_to_this_process() -> int | None:
    """What the limit on addresses (``ulimit -v``) leaves, if there is one."""
    limit, used = _words("/proc/self/limits", "Max address space"), _words("/proc/self/statm")
    if not limit or limit[3] == "unlimited" or not used:
        return None
    return max(0, int(limit[3]) - int(used[0]) * _PAGE)


def _words(path: str, beginning: str = "") -> list[str]:
    """The words of the first line of a file that begins so; none where the system has no such file or line."""
    try:
        with open(path, encoding="ascii") as lines:
            return next((line.split() for line in lines if line.startswith(beginning)), [])
    except OSError:
        return []


def has_room(size: int) -> bool:
    """Whether arrays of so many bytes take at most half of the free memory."""
    return size <= ALWAYS_ALLOWED or 2 * size <= (free_memory() or _ADDRESSES)


def require_room(size: int, what: str, help: str) -> None:
    """Refuse arrays of so many bytes if they would take more than half of the free memory. ``what`` says of which they are."""
    if size <= ALWAYS_ALLOWED:
        return
    if size >= _BEYOND:
        raise FormatError(f"{what} take {size / 1e9:.3g} GB, more than any memory has\n  help: {help}")
    room = free_memory() or _ADDRESSES
    if 2 * size > room:
        raise FormatError(
            f"{what} take {size / 1e9:.3g} GB, more than half of the {room / 1e9:.3g} GB of memory that are free\n  help: {help}"
        )
