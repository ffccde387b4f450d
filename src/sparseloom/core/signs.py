"""Text on streams that cannot carry every sign: what Python shows of us can be printed wherever Python prints.

A sign that the encoding lacks is spelled in ASCII if it is one of ours, dots of braille by how many of them are set; any other letter,
such as one in a name of the user's, as Python escapes it.
"""

from __future__ import annotations

import codecs
import io
import sys
from typing import TextIO

_SPELLED = {
    "\N{MULTIPLICATION SIGN}": "x", "\N{HORIZONTAL ELLIPSIS}": "...", "\N{RIGHTWARDS ARROW}": "->", "\N{DOWNWARDS ARROW}": "v",
    "\N{INTERSECTION}": "and", "\N{UNION}": "or", "\N{MICRO SIGN}": "u", "\N{EN DASH}": "-", "\N{EM DASH}": "-", "\N{MINUS SIGN}": "-",
    "\N{MIDDLE DOT}": ".", "\N{BULLET}": "*", "\N{LESS-THAN OR EQUAL TO}": "<=", "\N{GREATER-THAN OR EQUAL TO}": ">=",
}  # fmt: skip
_DARKNESS = " .:-=+*#@"  # by the number of dots that are set in a character of braille
_BRAILLE = range(0x2800, 0x2900)
_HANDLER = "sparseloom.signs"


def printable(text: str) -> str:
    """The text, in letters that ``sys.stdout`` can carry.

    >>> printable("3 x 4")
    '3 x 4'
    """
    if text.isascii():
        return text
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        return text.encode(encoding, _HANDLER).decode(encoding)
    except (LookupError, UnicodeError):  # an encoding that Python does not know, or one that is made for something else
        return text.encode("ascii", _HANDLER).decode("ascii")


def spell_signs(*streams: TextIO) -> None:
    """Let these streams spell what they cannot carry, rather than fail."""
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)


def _spell(problem: UnicodeError) -> tuple[str, int]:
    """Spell the letters that could not be encoded."""
    if not isinstance(problem, UnicodeEncodeError):
        raise problem
    return "".join(map(_spelled, problem.object[problem.start : problem.end])), problem.end


def _spelled(sign: str) -> str:
    if ord(sign) in _BRAILLE:
        return _DARKNESS[(ord(sign) - _BRAILLE.start).bit_count()]
    return _SPELLED.get(sign) or sign.encode("ascii", "backslashreplace").decode("ascii")


codecs.register_error(_HANDLER, _spell)
