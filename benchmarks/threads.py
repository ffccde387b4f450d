"""How many threads compute: for our kernels, and for every peer that can use more than one."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from contextlib import suppress
from types import ModuleType

from sparseloom.toolchain.teams import set_threads


def wait_quietly() -> None:
    """Let idle threads sleep: a thread that spins after its turn takes the core from whoever is measured next.

    OpenMP reads this when it is loaded, so call it before the first parallel kernel and before the peers are imported.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def use_threads(count: int, peers: Iterable[ModuleType] = ()) -> None:
    """Let our parallel loops, and these peers, run on so many threads from now on."""
    set_threads(count)
    with suppress(OSError):  # where gcc's OpenMP is not installed, no loop uses it
        ctypes.CDLL("libgomp.so.1").omp_set_num_threads(count)  # for loops that are not ours
    for peer in peers:
        if hasattr(peer, "use_threads"):
            peer.use_threads(count)
