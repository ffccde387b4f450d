"""How much memory there is."""

from __future__ import annotations


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
