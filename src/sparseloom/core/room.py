"""How much memory is free, and a refusal of what would take more than half of it."""

from __future__ import annotations

from sparseloom.core.errors import FormatError

ALWAYS_ALLOWED = 64 << 20  # bytes; asking how much memory is free takes longer than many a kernel runs
_ADDRESSES = 2**47  # bytes; what no address space exceeds


def free_memory() -> int | None:
    """The bytes that can be had without swapping, or ``None`` where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def require_room(size: int, what: str, help: str) -> None:
    """Refuse arrays of so many bytes if they would take more than half of the free memory. ``what`` says of which they are."""
    if size <= ALWAYS_ALLOWED:
        return
    if size >= _ADDRESSES:
        raise FormatError(f"{what} take {size / 1e9:.3g} GB, more than any memory has\n  help: {help}")
    room = free_memory() or _ADDRESSES
    if 2 * size > room:
        raise FormatError(
            f"{what} take {size / 1e9:.3g} GB, more than half of the {room / 1e9:.3g} GB of memory that are free\n  help: {help}"
        )
