"""Locks on open files, which end with their process: ``flock`` where the system has it, ``msvcrt`` on Windows, else none.

Without locks no process waits for another one. Work may then be done twice, which does no harm.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

fcntl: Any = None
msvcrt: Any = None
with suppress(ImportError):
    import fcntl
if fcntl is None:
    with suppress(ImportError):
        import msvcrt


def lock(descriptor: int) -> bool:
    """Lock an open file; False if another process has locked it. An ``OSError`` means that this file cannot be locked at all."""
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    elif msvcrt is not None:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
    else:
        raise OSError("this system has no locks on files")
    return True


def unlock(descriptor: int) -> None:
    """Give a lock back now, also for children that another thread forked meanwhile."""
    with suppress(OSError):
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        elif msvcrt is not None:
            msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
