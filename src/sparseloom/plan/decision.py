"""A decision of the planner: the steps it adds to the schedule, and why, with the numbers that decided it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sparseloom.schedule.primitive import Primitive


@dataclass(frozen=True)
class Decision:
    """``steps`` of a schedule, in words what they do, the reason, and the alternative that was passed over."""

    steps: tuple[Primitive, ...]
    what: str
    why: str
    instead: str = ""

    def __str__(self) -> str:
        return f"{self.what}: {self.why}" + (f"; not {self.instead}" if self.instead else "")


@dataclass(frozen=True)
class Choice:
    """The decisions that make a schedule; without any, loops stay as they are."""

    decisions: tuple[Decision, ...] = ()

    @property
    def steps(self) -> tuple[Primitive, ...]:
        """The steps of all decisions, in order."""
        return tuple(step for decision in self.decisions for step in decision.steps)

    @property
    def schedule(self) -> str:
        """The steps as text."""
        return as_text(self.steps)


def as_text(steps: Iterable[Primitive]) -> str:
    """Steps in the scheduling language, one a line."""
    return "\n".join(step.compact for step in steps)
