"""The command as a process: Ctrl-C ends it without a traceback at any time, also while it starts and while it ends."""

from __future__ import annotations

import signal
import sys

from sparseloom.core.starting import INTERRUPTED, leave_quietly


def command() -> None:
    """Run ``sparseloom`` and end the process."""
    leave_quietly()
    from sparseloom.cli.main import main

    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        status = main()
    except KeyboardInterrupt:
        status = INTERRUPTED
    leave_quietly()
    sys.exit(status)
