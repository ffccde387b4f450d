"""The hand-written loops of hand.c, compiled with the very flags that kernels get and called the same way."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sparseloom as sl
from entrants import Entrant, filling
from sparseloom.runtime.calling import Pack, bind
from sparseloom.runtime.library import EntryPoint, load
from timing import WALL, sample

Array = NDArray[Any]
NAMES = ("spmv", "spmm", "mttkrp", "tuned_spmm", "tuned_mttkrp", "triad")
TUNED_WIDTH, TUNED_RANK = 32, 16  # as in hand.c
TRIAD_COUNT = 8_000_000  # doubles in each of three arrays: far beyond any cache


def hand(name: str, out: Array, *inputs: sl.Tensor | Array | int) -> Entrant:
    """A loop of hand.c that fills ``out``. A sparse tensor is handed over as its index arrays, level by level, and its values."""
    return filling(bind(_loops()[name], Pack([out, *(word for given in inputs for word in _words(given))])), out)


def triad_bandwidth(count: int, rounds: int, threads: int = 1) -> float:
    """Bytes a second that the triad moves, counted as STREAM does: three arrays, each once. The best round counts.

    ``count`` is the length of the arrays of one thread.
    """
    runs = [hand("triad", *(np.ones(count) for _ in range(3)), count).run for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        seconds = min(sample(lambda: list(pool.map(_call, runs)), 1, WALL) for _ in range(rounds))
    return 3 * 8 * count * threads / seconds


def _call(run: Callable[[], object]) -> object:
    return run()


def _words(given: sl.Tensor | Array | int) -> list[Array | int]:
    match given:
        case sl.Tensor():
            return [*(array for level in given.storage.levels for array in level.arrays.values()), given.storage.values]
        case _:
            return [given]


@cache
def _loops() -> dict[str, EntryPoint]:
    return dict(zip(NAMES, load(Path(__file__).with_name("hand.c").read_text(), NAMES), strict=True))
