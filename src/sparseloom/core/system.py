"""What systems do differently: counting cores, users, and careful opening of files. Everything that differs is asked here.

Kernels are compiled and run on Linux and macOS. On other systems the package can be imported, and statements run in the interpreter.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

# Flags of open(2). A system that lacks one opens without that care.
DIRECTORY: int = getattr(os, "O_DIRECTORY", 0)
WARILY: int = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # a link is not followed, and a pipe does not block
# For what a user names: a link is followed. The file does not become a terminal, is not inherited, and its bytes are as they are.
TO_READ: int = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))


def usable_cores() -> int:
    """How many cores this process may run on; all of the machine's where the system does not restrict or tell them.

    ``process_cpu_count`` came with Python 3.13, and ``sched_getaffinity`` is missing on macOS and Windows.
    """
    asked: Callable[[], int | None] | None = getattr(os, "process_cpu_count", None)
    if asked is None and hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return (asked or os.cpu_count)() or 1


def user() -> int | None:
    """The number of the user who runs this process; None where users have no numbers, as on Windows."""
    ask: Callable[[], int] | None = getattr(os, "getuid", None)
    return None if ask is None else ask()


def is_ours(status: os.stat_result) -> bool:
    """Whether a file belongs to the user who runs this process, as far as the system tells."""
    return user() in (None, status.st_uid)


def at_fork(before: Callable[[], None], in_parent: Callable[[], None], in_child: Callable[[], None]) -> None:
    """Call these around every fork. A system that cannot fork needs none."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before, after_in_parent=in_parent, after_in_child=in_child)


def runs_kernels() -> bool:
    """Whether compiled kernels can be loaded on this system: libraries are loaded with ``dlopen``, and threads are POSIX threads."""
    return sys.platform != "win32"
