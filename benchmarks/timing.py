"""Time several ways to compute the same thing so that the machine's moods reach all of them.

The usual clock is the thread's own, so what other processes take does not count; what runs on several threads goes by ``WALL``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random
from statistics import median

SHORTEST = 0.3e-3  # seconds of one sample: shorter calls are repeated, so that the clock does not count
LONG = 5e-3  # seconds after which it no longer counts what the caches held before
SLOWEST = 1.0  # seconds after which few rounds must do
FEWEST, MOST = 5, 300  # rounds
Clock = Callable[[], float]
OWN, WALL = time.thread_time, time.perf_counter


@dataclass(frozen=True)
class Race:
    """Seconds per call of every runner, one sample a round."""

    samples: Mapping[str, list[float]]

    def seconds(self, name: str) -> float:
        """The median time of a runner."""
        return median(self.samples[name])

    def ratio(self, name: str, to: str) -> float:
        """The time of one runner over another's: the median over rounds, so that a slow moment reaches both sides.

        Whoever was too slow for all rounds is compared by medians.
        """
        theirs, ours = self.samples[name], self.samples[to]
        if len(theirs) != len(ours):
            return median(theirs) / median(ours)
        return median(a / b for a, b in zip(theirs, ours, strict=True))


def race(runners: Mapping[str, Callable[[], object]], budget: float, clock: Clock = OWN) -> Race:
    """Run all in turn, round after round and each time in another order, for about ``budget`` seconds.

    Whoever is quick runs once more before it is timed, so that it finds its own data in the caches and not another's. Whoever takes
    far longer than the budget runs twice in all.
    """
    usual = {name: _usual(run, clock) for name, run in runners.items()}
    slow = {name for name in runners if usual[name] > max(SLOWEST, 2 * budget)}
    samples: dict[str, list[float]] = {name: [usual[name], sample(runners[name], 1, clock)] if name in slow else [] for name in runners}
    shuffled, timed = Random(7), [name for name in runners if name not in slow]
    deadline = time.perf_counter() + budget
    for number in range(MOST):
        if number >= FEWEST and time.perf_counter() > deadline:
            break
        for name in shuffled.sample(timed, len(timed)):
            if usual[name] < LONG:
                runners[name]()
            samples[name].append(sample(runners[name], max(1, math.ceil(SHORTEST / max(usual[name], 1e-9))), clock))
    return Race(samples)


def geometric_mean(values: Iterable[float]) -> float:
    """The mean for ratios."""
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms))


def _usual(run: Callable[[], object], clock: Clock) -> float:
    """About how long a call takes. The first calls also warm up."""
    first = sample(run, 1, clock)
    return first if first > LONG else min(sample(run, 1, clock) for _ in range(3))


def sample(run: Callable[[], object], repeats: int = 1, clock: Clock = OWN) -> float:
    """Seconds per call."""
    start = clock()
    for _ in range(repeats):
        run()
    return (clock() - start) / repeats
