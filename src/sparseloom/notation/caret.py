"""How a fault in a statement is shown: the sentence, the statement, and a caret under the place."""

from __future__ import annotations

from sparseloom.core.errors import NotationError


def refuse(what: str, text: str, at: int, help: str = "") -> NotationError:
    """The error for a fault at character ``at`` of ``text``.

    A statement may run over several lines; it is shown on one, with every character in its place.
    """
    line = "".join(" " if letter.isspace() else letter for letter in text)
    lines = [what, f"  {line}", f"  {' ' * at}^"]
    if help:
        lines.append(f"help: {help}")
    return NotationError("\n".join(lines))
