"""What is known of the data: roughly how much there is, and which operands have less than others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from sparseloom.formats.storage import Storage


class Work(IntEnum):
    """How much there is to do: the least number of entries of sparse operands, together."""

    LITTLE = 0
    LARGE = 1 << 16  # rows that are built in a workspace take half a millisecond or more
    VERY_LARGE = 1 << 19  # entries that are merely merged do

    @staticmethod
    def of(entries: int) -> Work:
        """What so many entries mean."""
        return Work.LITTLE if entries < Work.LARGE else Work.LARGE if entries < Work.VERY_LARGE else Work.VERY_LARGE


@dataclass(frozen=True)
class Statistics:
    """``entries`` is how many entries sparse operands have together, rounded down to a power of two, so that problems of like size are
    planned alike. ``cheapest`` has the operands, from the one with fewest values on."""

    entries: int = 0
    cheapest: tuple[str, ...] = ()

    @staticmethod
    def of(operands: Mapping[str, Storage]) -> Statistics:
        """What the operands tell."""
        entries = sum(len(storage.values) for storage in operands.values() if not storage.format.is_dense)
        cheapest = sorted(operands, key=lambda name: len(operands[name].values))
        return Statistics(1 << entries.bit_length() >> 1, tuple(cheapest))

    @property
    def work(self) -> Work:
        """How much there is to do."""
        return Work.of(self.entries)


NOTHING_KNOWN = Statistics()
