"""How a reduction is split among the iterations of a parallel loop: where partial results live, and how they are combined."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Partial(Enum):
    """Where partial results live."""

    REGISTER = "in registers"
    SLOT = "in a slot for each part of the loop"
    COPY = "in a copy for each part of the loop"
    EDGES = "in places for the first and the last run of each block"
    ROWS = "in registers, row by row,"
    PLACE = "where it is"


class Combined(Enum):
    """How partial results are combined."""

    IN_ORDER = "in order"
    SHUFFLES = "by shuffles"
    SEGMENTS = "by shuffles among those that have one place"
    TARGET = "as the target reduces"
    ATOMICS = "by atomic updates"


@dataclass(frozen=True)
class Split:
    """A reduction into a tensor that the iterations of a loop share out."""

    loop: str
    tensor: str
    partial: Partial
    combined: Combined

    def __str__(self) -> str:
        return f"what goes into {self.tensor} is kept {self.partial.value} and combined {self.combined.value}"
