"""What became of the loops that a schedule wants in vectors, unrolled or in parallel: one value for each, which ``explain`` prints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sparseloom.loops.nodes import For


@dataclass(frozen=True)
class Outcome:
    """What a pass made of a loop. ``done``: what the schedule asks for; else ``what`` says why not."""

    loop: str
    what: str
    done: bool = True

    def __str__(self) -> str:
        return f"{self.loop}: {self.what}"


def of(loop: For, what: str, done: bool = True) -> Outcome:
    """What became of a loop, which is known by the variable that it stems from."""
    return Outcome(loop.origin or loop.var.name, what, done)


def settled(outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """One outcome for each loop. A loop that was made several times, as blocks and what is left over, counts by its best part."""
    best: dict[str, Outcome] = {}
    for one in outcomes:
        if one.loop not in best or (one.done and not best[one.loop].done):
            best[one.loop] = one
    return tuple(best.values())
