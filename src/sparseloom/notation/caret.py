"""How a fault in a statement is shown: the sentence, the statement, and a caret under the place."""

from __future__ import annotations

from sparseloom.core.errors import NotationError

_BESIDE = 100  # how many characters are shown on either side of a fault in a long statement


def refuse(what: str, text: str, at: int, help: str = "") -> NotationError:
    """The error for a fault at character ``at`` of ``text``.

    A statement may run over several lines; it is shown on one, with every character in its place. Of a very long one, the
    neighbourhood of the fault is shown.
    """
    begin = max(0, at - _BESIDE) if len(text) > 4 * _BESIDE else 0
    end = at + _BESIDE if len(text) > 4 * _BESIDE else len(text)
    shown = f"{'...' if begin else ''}{text[begin:end]}{'...' if end < len(text) else ''}"
    line = "".join(letter if letter.isprintable() else " " for letter in shown)
    at += (3 if begin else 0) - begin
    lines = [what, f"  {line}", f"  {' ' * at}^"]
    if help:
        lines.append(f"help: {help}")
    return NotationError("\n".join(lines))
