"""What systems do differently: counting cores, users, and careful opening of files. Everything that differs is asked here.

Kernels are compiled and run on Linux and macOS. On other systems the package can be imported, and statements run in the interpreter.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from math import floor
from pathlib import Path

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
        return min(len(os.sched_getaffinity(0)) or 1, quota_cores())
    return min((asked or os.cpu_count)() or 1, quota_cores())


@cache
def quota_cores(root: Path = Path("/")) -> int:
    """How many cores the time that the process's control groups grant it can fill, at least 1: containers limit time, not cores.

    A thread beyond the quota makes a whole team wait until the next period. Both versions of control groups are read below ``root``.
    """
    quotas = [cores for folder in _groups(root) if (cores := _quota(folder)) is not None]
    return max(1, floor(min(quotas))) if quotas else sys.maxsize


def _groups(root: Path) -> Iterator[Path]:
    """The folders of the control groups that limit this process, innermost first."""
    mounted = root / "sys/fs/cgroup"
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers == "" or "cpu" in controllers.split(","):
            folder = mounted / controllers / group.lstrip("/")
            while folder != mounted and mounted in folder.parents:
                yield folder
                folder = folder.parent
    yield from (mounted, mounted / "cpu", mounted / "cpu,cpuacct")


def _quota(folder: Path) -> float | None:
    """The cores that a control group grants; None if it does not limit them."""
    limit, period = [*_text(folder / "cpu.max").split(), "", ""][:2]
    if not limit:
        limit, period = _text(folder / "cpu.cfs_quota_us").strip(), _text(folder / "cpu.cfs_period_us").strip()
    if not (limit.isdecimal() and period.isdecimal() and int(limit) and int(period)):
        return None
    return int(limit) / int(period)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


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
