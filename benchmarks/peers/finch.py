"""finch-tensor, as its users call it: arrays of the array API, computed by Finch."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from benchmarks.entrants import Entrant


@cache
def load() -> Any:
    """Import finch-tensor."""
    import finch

    return finch


def spmv(A: Any, x: Any) -> Entrant:
    """A x."""
    left, right = load().asarray(A), load().asarray(x)
    return _making(lambda: left @ right)


def spmm(A: Any, B: Any) -> Entrant:
    """A B, B dense."""
    left, right = load().asarray(A), load().asarray(B)
    return _making(lambda: left @ right)


def product(A: Any, B: Any) -> Entrant:
    """A B, both sparse."""
    left, right = load().asarray(A), load().asarray(B)
    return _making(lambda: left @ right)


def add(A: Any, B: Any) -> Entrant:
    """A + B."""
    left, right = load().asarray(A), load().asarray(B)
    return _making(lambda: left + right)


def _making(run: Any) -> Entrant:
    return Entrant(run, lambda: np.asarray(run().todense()))
