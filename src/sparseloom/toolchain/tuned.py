"""Schedules that were measured to be best, kept with the compiled kernels: for this process, and on disk for others.

An entry of the kernel cache that holds text: the same folder, the same checks, the same limit.
"""

from __future__ import annotations

import hashlib

from sparseloom.toolchain.cache import kernel_cache
from sparseloom.toolchain.compilers import cpu_features
from sparseloom.toolchain.teams import get_threads

_HERE: dict[str, str | None] = {}
_MOST = 4096


def known_schedule(problem: str) -> str | None:
    """The best schedule for a problem, given as text, on this machine; None if it was not measured."""
    key = _key(problem)
    if key not in _HERE:
        found = kernel_cache().read(key)
        _keep_here(key, None if found is None else found.decode("utf-8", "replace"))
    return _HERE[key]


def keep_schedule(problem: str, schedule: str) -> None:
    """Remember the schedule that was best."""
    key = _key(problem)
    _keep_here(key, schedule)
    kernel_cache().put(key, schedule.encode()).close()


def forget_schedules() -> None:
    """Look on disk again."""
    _HERE.clear()


def _keep_here(key: str, schedule: str | None) -> None:
    if len(_HERE) >= _MOST:
        _HERE.clear()
    _HERE[key] = schedule


def _key(problem: str) -> str:
    parts = ("sparseloom schedule 1", problem, cpu_features(), get_threads())
    return hashlib.sha256(repr(parts).encode()).hexdigest()
