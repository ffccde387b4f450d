"""What a forked child finds: locks that nobody holds, and no descriptor whose lock belongs to its parent.

A fork copies the calling thread alone. A lock that another thread holds stays held in the child for ever; a pipe or a lock on a file that
another thread has open stays open as long as the child lives. So the locks of this package are made anew in the child, and a fork waits
for short steps that must be whole: starting a compiler, loading and unloading a library, asking for the folder of temporary files.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress

from sparseloom.core.system import at_fork

# Whoever forks holds it meanwhile, so in the child nobody else does. A handler of signals may fork in the middle of a step of its own
# thread, so the same thread may enter twice.
whole_step = threading.RLock()
_before: list[Callable[[], None]] = []
_in_child: list[Callable[[], None]] = []
_descriptors: set[int] = set()


def before_fork(work: Callable[[], None]) -> None:
    """Do this before every fork, on the thread that forks."""
    _before.append(work)


def in_child(work: Callable[[], None]) -> None:
    """Do this in every forked child, before anything else of the package runs there."""
    _in_child.append(work)


def close_in_child(descriptor: int) -> None:
    """Close this descriptor in children that are forked while it is open."""
    _descriptors.add(descriptor)


def close(descriptor: int) -> None:
    """Close such a descriptor, unless this is a child where it is closed already."""
    if descriptor in _descriptors:
        _descriptors.discard(descriptor)
        os.close(descriptor)


def _prepare() -> None:
    for work in _before:
        work()
    whole_step.acquire()


def _resume_child() -> None:
    whole_step.release()
    for descriptor in _descriptors:
        with suppress(OSError):
            os.close(descriptor)
    _descriptors.clear()
    for work in _in_child:
        work()


at_fork(_prepare, whole_step.release, _resume_child)
