"""What takes part in a race: something to run again and again, and the answer it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Entrant:
    """``run`` is timed; ``answer`` computes once and returns a dense array or a SciPy sparse array to compare."""

    run: Callable[[], object]
    answer: Callable[[], Any]


def returning(run: Callable[[], Any]) -> Entrant:
    """An entrant whose run returns its answer."""
    return Entrant(run, run)


def filling(run: Callable[[], object], out: Any) -> Entrant:
    """An entrant whose run fills an array."""

    def answer() -> Any:
        run()
        return out.copy()

    return Entrant(run, answer)
