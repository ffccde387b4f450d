"""The end of the interpreter while kernels still run, in threads that nobody waits for.

Such a thread goes on until the process ends, and meanwhile Python takes its modules apart. So what kernels use of this process is never
freed, and from the exit hook on no kernel asks Python anything: a thread that asks then would be ended inside the kernel.
"""

from __future__ import annotations

import atexit
import ctypes
import time
from typing import Any

from sparseloom.toolchain.forks import in_child

_PATIENCE = 1.0  # seconds; a question takes a few microseconds once the thread has the interpreter


class _Caller(ctypes.Structure):
    """As kernels see it: ``struct caller_state`` of the C prelude."""

    _fields_ = [("ask", ctypes.c_void_p), ("ending", ctypes.c_int32), ("asking", ctypes.c_int32)]


def keep_for_ever(thing: object) -> None:
    """Never free this object, whatever becomes of the module that holds it."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def caller_for(ask: Any) -> int:
    """The address of what kernels get to know their caller by. ``ask`` is a ctypes callback that says whether to stop."""
    caller = _Caller(ctypes.cast(ask, ctypes.c_void_p))
    keep_for_ever(ask)
    keep_for_ever(caller)
    atexit.register(_end, caller)
    in_child(lambda: setattr(caller, "asking", 0))  # the threads that asked are not here
    return ctypes.addressof(caller)


def _end(caller: _Caller) -> None:
    """Let no kernel ask from now on, and wait for those that do."""
    caller.ending = 1
    end = time.monotonic() + _PATIENCE
    time.sleep(0)  # whoever waits for the interpreter gets it here
    while caller.asking > 0 and time.monotonic() < end:
        time.sleep(0.001)
