"""What the explorer's processes may use, and how they say that something went wrong."""

from __future__ import annotations

import mmap
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

resource: Any = None
with suppress(ImportError):  # Windows has none
    import resource


@dataclass(frozen=True)
class Limits:
    """What a process may take of the machine. ``memory`` is beside what it has when the limits begin, its operands among it.

    Memory is counted as data and not as addresses, of which a GPU's driver reserves more than any machine has. The number of processes
    is not bounded, since the system counts all those of the user. How long a request may take is watched by the parent.
    """

    memory: int = 6 << 30
    file: int = 1 << 30
    open_files: int = 1024

    def begin(self) -> None:
        """Bound this process, and every compiler that it starts, on systems that can."""
        if resource is None:
            return
        bounds = {
            resource.RLIMIT_DATA: _data() + self.memory,
            resource.RLIMIT_FSIZE: self.file,
            resource.RLIMIT_NOFILE: self.open_files,
            resource.RLIMIT_CORE: 0,
        }
        for kind, most in bounds.items():
            _, hard = resource.getrlimit(kind)
            bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (bound, bound))


def failure(text: str, help: str) -> dict[str, Any]:
    """An answer that says what went wrong and what to do."""
    return {"ok": False, "error": {"text": text, "help": help}}


def _data() -> int:
    """How many bytes of data this process has now; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[5]) * mmap.PAGESIZE
    except OSError:
        return 0
