"""Formats as text: ``csr``, ``coo(3)``, ``ds``, ``d,s``, ``sss:1,2,0``, ``bcsr(2,3)``, ``u~q~``.

The letters name the levels from the root down, then ``:`` and the mode of each level when that is not the natural
order, then ``/`` and the block size of each mode when the format is blocked.
"""

from __future__ import annotations

import re
from functools import lru_cache

from sparseloom.core.errors import FormatError
from sparseloom.formats.format import Format
from sparseloom.formats.level import Level
from sparseloom.formats.levels import LEVELS
from sparseloom.formats.named import bcsr, coo, csc, csf, csr, dcsc, dcsr, dense, dia, ell

_MATRICES = {"csr": csr, "csc": csc, "dcsr": dcsr, "dcsc": dcsc, "ell": ell, "dia": dia}
_FAMILIES = {"dense": dense, "coo": coo, "csf": csf}
_DEFAULT_ORDERS = {"coo": 2, "csf": 3}
_NAMED = re.compile(rf"\s*({'|'.join((*_MATRICES, *_FAMILIES, 'bcsr'))})\s*(?:\(([^()]*)\))?\s*", re.IGNORECASE)
_KNOWN = "named formats are dense(n), csr, csc, dcsr, dcsc, coo(n), csf(n), bcsr(b,c), ell, dia"


@lru_cache(maxsize=256)
def parse_format(text: str, order: int | None = None) -> Format:
    """Read a format. ``order``, when known, completes ``dense``, ``coo`` and ``csf`` and is checked for all others."""
    named = _NAMED.fullmatch(text)
    format = _parse_named(text, named[1].lower(), named[2], order) if named else _parse_levels(text)
    if order is not None and format.order != order:
        raise FormatError(f"the format {text!r} is for tensors of order {format.order}, but this tensor has order {order}")
    return format


def as_format(wanted: Format | str, order: int | None = None) -> Format:
    """A format from its text, or the format itself, checked against the order of the tensor."""
    match wanted:
        case Format():
            if order is not None and wanted.order != order:
                raise FormatError(f"the format {wanted} is for tensors of order {wanted.order}, but this tensor has order {order}")
            return wanted
        case str():
            return parse_format(wanted, order)
    raise FormatError(f"a format is a sl.Format or a text such as 'csr' or 'ds:1,0', not {wanted!r}")


def _parse_named(text: str, name: str, arguments: str | None, order: int | None) -> Format:
    """A named format with the numbers in its parentheses."""
    numbers = None if arguments is None else _numbers(arguments, text)
    match name, numbers:
        case "bcsr", (size,):
            return bcsr(size)
        case "bcsr", (rows, columns):
            return bcsr((rows, columns))
        case "bcsr", _:
            raise FormatError(f"{text!r}: bcsr needs its block size, one number or two; write bcsr(2,3)")
        case _, None if name in _MATRICES:
            return _MATRICES[name]
        case _, (given,) if name in _FAMILIES:
            return _FAMILIES[name](given)
        case _, None:
            known = order if order is not None else _DEFAULT_ORDERS.get(name)
            if known is None:
                raise FormatError(f"{text!r} does not say how many modes there are; write {name}(2)")
            return _FAMILIES[name](known)
    raise FormatError(f"{text!r}: {name} takes {'one number, the order' if name in _FAMILIES else 'no numbers'}; {_KNOWN}")


def _parse_levels(text: str) -> Format:
    """Letters, mode order and block sizes."""
    letters, slash, blocks = text.partition("/")
    letters, colon, modes = letters.partition(":")
    levels = _levels(letters, text)
    order = _numbers(modes, text) if colon else tuple(range(len(levels)))
    if len(order) != len(levels):
        raise FormatError(f"{text!r} has {len(levels)} levels but names {len(order)} modes; name one mode per level")
    return Format(levels, order, _numbers(blocks, text) if slash else ())


def _levels(letters: str, text: str) -> tuple[Level, ...]:
    """The levels that the letters name. The last q is unique and the others are not, unless marks say otherwise."""
    spelled = re.findall(r"[^\s,~+!][~+!]*|[~+!]+", letters.lower())
    last = max((k for k, word in enumerate(spelled) if word[0] in LEVELS and LEVELS[word[0]].branchless), default=-1)
    return tuple(_level(word, k == last, text) for k, word in enumerate(spelled))


def _level(word: str, is_last_singleton: bool, text: str) -> Level:
    """One letter and its marks."""
    level, marks = LEVELS.get(word[0]), word[1:]
    if level is None:
        known = ", ".join(f"{letter} ({_describe(level)})" for letter, level in LEVELS.items())
        raise FormatError(f"there is no level {word[0]!r} in the format {text!r}; levels are {known}; {_KNOWN}")
    chooses = level.branchless and level.lets_choose("unique")
    if not re.fullmatch(("~?" if level.lets_choose("ordered") else "") + ("[+!]?" if chooses else ""), marks):
        raise FormatError(f"{word!r} in the format {text!r}: ~ (unordered) may stand behind {_unordered()}, then + or ! behind q")
    unique = level.unique if not chooses else is_last_singleton if marks in ("", "~") else marks[-1] == "!"
    return level.promising(ordered="~" not in marks, unique=unique)


def _unordered() -> str:
    """The letters of the levels that may be in no order."""
    *others, last = (letter for letter, level in LEVELS.items() if level.lets_choose("ordered"))
    return f"{', '.join(others)} and {last}"


def _describe(level: Level) -> str:
    """A level in words."""
    name = type(level).__name__.lower()
    return name if level.unique else f"{name}, coordinates may repeat"


def _numbers(listed: str, text: str) -> tuple[int, ...]:
    """Whole numbers between commas."""
    words = [word.strip() for word in listed.split(",")]
    for word in words:
        if not re.fullmatch(r"[0-9]{1,9}", word):
            raise FormatError(f"{word!r} in the format {text!r} is not a whole number; write for example ds:1,0 or bcsr(2,3)")
    return tuple(map(int, words))
