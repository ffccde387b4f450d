"""A refusal: why a step of a schedule cannot be done, as a value. ``Schedule`` raises it, once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sparseloom.notation.nodes import IndexVar


@dataclass(frozen=True)
class Refusal:
    """What stands in the way.

    ``at`` is the loop to point at. ``argument`` counts to the argument that cannot be read, ``column`` to the place in it.
    """

    code: str
    why: str
    help: str = ""
    at: IndexVar | None = None
    argument: int | None = None
    column: int = 0


def listed(items: Iterable[object]) -> str:
    """Things with commas between them, for a sentence such as "there are i, j"."""
    return ", ".join(map(str, items)) or "none"
