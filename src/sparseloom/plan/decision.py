"""A decision of the planner: the steps it adds to the schedule, and why, with the numbers that decided it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Decision:
    """``steps`` of a schedule, in words what they do, the reason, and the alternative that was passed over."""

    steps: tuple[str, ...]
    what: str
    why: str
    instead: str = ""

    def __str__(self) -> str:
        return f"{self.what}: {self.why}" + (f"; not {self.instead}" if self.instead else "")
