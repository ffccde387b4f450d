"""Examples as a reader wants them: in fences, and without the marks that doctest needs."""

from __future__ import annotations

import re
from collections.abc import Iterator

_MARK = re.compile(r"^[ \t]*<BLANKLINE>[ \t]*$", re.MULTILINE)


def fenced(docstring: str) -> str:
    """A docstring in Markdown: every example between fences, and code between single quotes."""
    return "\n".join(_lines(docstring))


def unmarked(text: str) -> str:
    """A page on which an empty line of output is empty."""
    return _MARK.sub("", text)


def _lines(docstring: str) -> Iterator[str]:
    inside = False
    for line in docstring.split("\n"):
        if line.lstrip().startswith(">>>") and not inside:
            inside = True
            yield "```pycon"
        elif inside and not line.strip():
            inside = False
            yield "```"
        yield unmarked(line) if inside else line.replace("``", "`")
    if inside:
        yield "```"
