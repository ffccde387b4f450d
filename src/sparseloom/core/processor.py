"""What the processor can do, as far as the system tells."""

from __future__ import annotations

from functools import cache


def cpu_flags() -> str:
    """The names of the CPU's features as the system lists them, or nothing where it does not."""
    # Only the first processor is read: on a machine with hundreds of them, the whole file takes the kernel many milliseconds.
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
            for line in lines:
                name, _, value = line.partition(":")
                if name.strip() in ("flags", "Features"):
                    return value.strip()
    except OSError:
        pass
    return ""


@cache
def has_masks() -> bool:
    """Whether vectors of 64 bytes can be read in part: short rows are as good as long ones then."""
    return {"avx512f", "avx512vl"} <= {*cpu_flags().split()}
