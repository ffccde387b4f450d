"""What the processor can do, as far as the system tells."""

from __future__ import annotations

from functools import cache


def cpu_flags() -> str:
    """The names of the CPU's features as the system lists them, or nothing where it does not."""
    return _told("flags", "Features")


def _told(*names: str) -> str:
    """What the system says of the first processor under one of these names, or nothing."""
    # Only the first processor is read: on a machine with hundreds of them, the whole file takes the kernel many milliseconds.
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
            for line in lines:
                name, _, value = line.partition(":")
                if name.strip() in names:
                    return value.strip()
    except OSError:
        pass
    return ""


@cache
def far_cache() -> int:
    """The bytes of the largest cache that the first processor has, as the system tells; 32 MB where it does not."""
    found = [_bytes_in(f"/sys/devices/system/cpu/cpu0/cache/index{index}/size") for index in range(5)]
    return max(found) or 1 << 25


def _bytes_in(path: str) -> int:
    """A size such as 32768K, in bytes; 0 if there is none."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            text = file.read().strip()
    except OSError:
        return 0
    number, unit = text.rstrip("KMG"), text[-1:]
    return int(number) << {"K": 10, "M": 20, "G": 30}.get(unit, 0) if number.isdigit() else 0


@cache
def has_masks() -> bool:
    """Whether vectors of 64 bytes can be read in part: short rows are as good as long ones then."""
    return {"avx512f", "avx512vl"} <= {*cpu_flags().split()}


@cache
def gathers_quickly() -> bool:
    """Whether reading a vector from anywhere takes less than reading its elements one by one: not on AMD's processors so far."""
    return _told("vendor_id") != "AuthenticAMD"
