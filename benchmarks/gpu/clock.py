"""Races on a device: everybody in turn, each run with a cold cache, timed by the device's own events."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from random import Random
from statistics import median
from typing import Any, Protocol

FEWEST, MOST = 7, 60  # rounds
SLOW, SLOW_ROUNDS = 0.02, 3  # seconds of one run from which few rounds must do
COPIED = 512 << 20  # bytes
Run = Callable[[], object]


class Clock(Protocol):
    """What measuring needs of CuPy or PyTorch: ``benchmarks/peers/cupy.py`` and ``torch_cuda.py`` have one each."""

    name: str

    def seconds(self, run: Run) -> float:
        """How long one run takes on the device, after other data have filled the cache."""

    def array(self, given: Any) -> Any:
        """A copy on the device."""

    def outer(self, left: Any, right: Any) -> Any:
        """The outer product of two vectors, made on the device."""

    def empty(self, *shape: int, dtype: str) -> Any:
        """Room on the device."""

    def spoil(self, array: Any) -> None:
        """Fill an array with what is no number."""

    def seen(self, array: Any, onto: Any = None) -> Any:
        """An array in main memory; of a matrix, its product with another one, which is made on the device."""

    def values(self, tensor: Any) -> Any:
        """The values of a tensor, in its own memory: all of a dense one, and the stored ones of a sparse one."""

    def copying(self, nbytes: int) -> Run:
        """Something to run that copies so many bytes."""

    def captured(self, start: Run) -> Run:
        """A CUDA graph of what ``start`` launches; running it launches the graph."""

    def wait(self) -> None:
        """Wait until all work is done."""

    def let_go(self) -> None:
        """Give back memory that is kept for later."""


def race(clock: Clock, runners: Mapping[str, Run], budget: float) -> dict[str, float]:
    """The median seconds of everybody: round after round, each time in another order, for about ``budget`` seconds."""
    usual = {name: min(clock.seconds(run) for _ in range(2)) for name, run in runners.items()}  # the first runs warm up
    samples: dict[str, list[float]] = {name: [] for name in runners}
    shuffled, deadline = Random(7), time.perf_counter() + budget
    for number in range(MOST):
        if number >= FEWEST and time.perf_counter() > deadline:
            break
        taking_part = [name for name in runners if number < SLOW_ROUNDS or usual[name] < SLOW]
        for name in shuffled.sample(taking_part, len(taking_part)):
            samples[name].append(clock.seconds(runners[name]))
    return {name: median(found) for name, found in samples.items()}


def copy_bandwidth(clock: Clock, nbytes: int = COPIED) -> float:
    """Bytes a second that a copy moves: what is read and what is written."""
    return 2 * nbytes / race(clock, {"copy": clock.copying(nbytes)}, 0.1)["copy"]
