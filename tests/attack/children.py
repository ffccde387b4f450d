"""Work done in a forked child, for what would change or end this process: limits, signals, other users."""

from __future__ import annotations

import faulthandler
import os
import signal
import traceback
from collections.abc import Callable

LONGEST = 15  # seconds; a child that takes longer hangs
NOBODY = 54321


def in_child(work: Callable[[], str]) -> str:
    """The word that some work returns in a forked child. What ends the child otherwise is silently wrong."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        faulthandler.register(signal.SIGALRM, chain=True)  # says where it hangs, and ends it
        signal.alarm(LONGEST)
        try:
            said = "+" + work()
        except BaseException:  # noqa: BLE001 -- the parent tells
            said = "-" + traceback.format_exc(limit=-6)
        os.write(writing, said.encode()[-4000:] if said[0] == "+" else b"-" + said.encode()[-4000:])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status != -signal.SIGALRM, "the child hangs"
    assert status == 0, f"the child ended with status {status}"
    assert said.startswith("+"), said
    return said[1:]


def become_nobody() -> None:
    """Give up the rights of the system's user, who is above most limits."""
    if os.getuid() == 0:
        nobody = NOBODY + os.getpid() % 10_000  # processes are counted for each user
        os.setgroups([])
        os.setresgid(nobody, nobody, nobody)
        os.setresuid(nobody, nobody, nobody)
