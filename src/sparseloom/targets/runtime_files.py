"""The functions that kernels call, as text: files of C and CUDA in ``runtime/``.

A part of a file begins with a line ``/// name``. Comments at its head are for readers of the file and do not become part of a kernel. Words
in capitals stand for a type, a dtype or a number, which the head of the file explains: ``sort_INDEX`` becomes ``sort_int32``.

The text of a kernel holds the parts that it uses, so that it is complete, and kernels are kept by their text.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).with_name("runtime")


@cache
def parts(file: str) -> dict[str, str]:
    """The parts of a file by their names."""
    text = (FOLDER / file).read_text("utf-8")
    _, *found = re.split(r"^/// (.*)\n", text, flags=re.MULTILINE)
    return {name: _without_comments(part) for name, part in zip(found[::2], found[1::2], strict=True)}


def _without_comments(part: str) -> str:
    """A part without the comments at its head."""
    lines = part.strip("\n").split("\n")
    first = next(k for k, line in enumerate(lines) if not line.startswith("// "))
    return "\n".join(lines[first:])


def spelled(text: str, words: dict[str, str]) -> str:
    """A text with these words in the place of those that stand for them."""
    pattern = "|".join(sorted(words, key=len, reverse=True))
    return re.sub(pattern, lambda found: words[found[0]], text)
