"""Ctrl-C while the command ``sparseloom`` is being loaded: it ends without a traceback. Programs that import the package notice nothing."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from itertools import pairwise
from types import FrameType

INTERRUPTED = 128 + signal.SIGINT


def is_command(given: Sequence[str], original: Sequence[str]) -> bool:
    """Whether this process is the command: ``sparseloom``, or ``python -m sparseloom``."""
    name = os.path.basename(given[0]) if given else ""
    return name == "sparseloom" or (name == "-m" and ("-m", "sparseloom") in pairwise(original))  # until a module is found it is called -m


def leave_quietly() -> None:
    """Let Ctrl-C end the process at once, from now on: nothing has begun, or all is done."""
    signal.signal(signal.SIGINT, _leave)


def _leave(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


if is_command(sys.argv, sys.orig_argv):
    leave_quietly()
