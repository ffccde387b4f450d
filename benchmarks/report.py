"""Tables, as Markdown, and how numbers are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A title, a line that says how to read it, a head and rows; the first column is text, the others are numbers.

    The last ``summary`` rows sum up the others.
    """

    title: str
    note: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    summary: int = 0

    def for_markdown(self) -> str:
        """The table as Markdown, under a heading."""
        rule = ["---", *["--:"] * (len(self.head) - 1)]
        bold = [[f"**{cell}**" if cell else "" for cell in row] for row in self.rows[len(self.rows) - self.summary :]]
        lines = [self.head, rule, *self.rows[: len(self.rows) - self.summary], *bold]
        return "\n".join([f"### {self.title}", "", self.note, "", *("| " + " | ".join(line) + " |" for line in lines)])


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def times(ratio: float) -> str:
    """A ratio as a multiple."""
    return f"{ratio:.2f}x"


def plural(count: int, noun: str) -> str:
    """``1 thread``, ``2 threads``."""
    return f"{count} {noun}" + ("" if count == 1 else "s")
