"""Lines of text that say what they stem from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Line(NamedTuple):
    """One line, and the name of the variable or tensor that it stems from; none for what belongs to all of a text."""

    text: str
    origin: str = ""


def lines_of(text: str) -> list[Line]:
    """The lines of a text that stem from nothing in particular."""
    return [Line(line) for line in text.split("\n")]


def text_of(lines: Iterable[Line]) -> str:
    """The text that some lines make."""
    return "\n".join([line.text for line in lines])
