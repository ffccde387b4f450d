"""The hand-written loops of hand.c, compiled with the very flags that kernels get and called the same way."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sparseloom as sl
from entrants import Entrant, filling
from sparseloom.runtime.calling import Pack, bind
from sparseloom.runtime.library import Entry, load
from timing import sample

Array = NDArray[Any]
NAMES = ("spmv", "spmm", "mttkrp", "tuned_spmm", "tuned_mttkrp", "triad")
TUNED_WIDTH, TUNED_RANK = 32, 16  # as in hand.c


def hand(name: str, out: Array, *inputs: sl.Tensor | Array | int) -> Entrant:
    """A loop of hand.c that fills ``out``. A sparse tensor is handed over as its index arrays, level by level, and its values."""
    return filling(bind(_loops()[name], Pack([out, *(word for given in inputs for word in _words(given))])), out)


def triad_bandwidth(count: int, rounds: int) -> float:
    """Bytes a second that the triad moves on one core, counted as STREAM does: three arrays, each once. The best round counts."""
    out, *inputs = (np.ones(count) for _ in range(3))
    run = hand("triad", out, *inputs, count).run
    run()
    return 3 * out.nbytes / min(sample(run) for _ in range(rounds))


def _words(given: sl.Tensor | Array | int) -> list[Array | int]:
    match given:
        case sl.Tensor():
            return [*(array for level in given.storage.levels for array in level.arrays.values()), given.storage.values]
        case _:
            return [given]


@cache
def _loops() -> dict[str, Entry]:
    return dict(zip(NAMES, load(Path(__file__).with_name("hand.c").read_text(), NAMES), strict=True))
