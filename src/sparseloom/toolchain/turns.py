"""One process makes a kernel, the others wait for it.

The lock is on a file beside the cache's entries, and dies with its owner. Waiting ends after a while, and where files cannot be locked
nobody waits: then a kernel is compiled twice, which does no harm.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sparseloom.core.system import WARILY
from sparseloom.toolchain.filelocks import lock, unlock
from sparseloom.toolchain.forks import close, close_in_child, in_child

SUFFIX = ".sparseloom-lock"
PATIENCE = 60.0  # seconds; a kernel takes less than one, on a machine that does nothing else
_held: set[tuple[Path, int]] = set()
in_child(_held.clear)


@contextmanager
def turn(folder: Path | None, key: str) -> Iterator[None]:
    """Wait until no other process makes what has this key. Look whether it is there, then."""
    mine = None if folder is None else (folder / f".{key}{SUFFIX}", threading.get_ident())
    if mine is None or mine in _held:  # a handler of signals may ask for what its own thread is making
        yield
        return
    descriptor = _wait(mine[0])
    _held.add(mine)
    try:
        yield
    finally:
        _held.discard(mine)
        if descriptor is not None:
            with suppress(OSError):
                mine[0].unlink()
            unlock(descriptor)
            close(descriptor)


def _wait(path: Path) -> int | None:
    """A descriptor that holds the lock, or ``None`` if it could not be had."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | WARILY, 0o600)
    except OSError:
        return None
    close_in_child(descriptor)
    end, pause = time.monotonic() + PATIENCE, 0.002
    try:
        while True:
            if lock(descriptor):
                return descriptor
            if time.monotonic() > end:
                break
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
    except OSError:
        pass
    except BaseException:
        close(descriptor)
        raise
    close(descriptor)
    return None
