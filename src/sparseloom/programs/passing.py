"""How operands are passed to a kernel: by position, by name, or in a dict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sparseloom.core.errors import NotationError


def name_is_an_option(name: str, text: str) -> NotationError:
    """The error for an operand that was passed by a name which says something else in a call."""
    help = f"pass the operands by position, or in a dict: {{{name!r}: ..., ...}}"
    return NotationError(f"{name}= is an option of the call, so it cannot pass the operand {name} of {text}\n  help: {help}")


def holds_operands(value: Any) -> bool:
    """Whether an argument is a dict of operands. SciPy's dok arrays are dicts too, of the entries of one operand.

    >>> holds_operands({"A": 1})
    True
    """
    return isinstance(value, dict) and not hasattr(value, "shape")


def from_dict(args: Sequence[Any], named: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Operands that came in one dict, and perhaps some by name beside it."""
    given, *others = args
    if not holds_operands(given):
        return tuple(args), dict(named)
    if others:
        raise NotationError("operands go in one dict, or by position, but not both\n  help: put them all into the dict, under their names")
    for name in given:
        if not isinstance(name, str):
            raise NotationError(f"operands in a dict go by their names, and {name!r} is a {type(name).__name__}")
        if name in named:
            raise NotationError(f"{name} was given twice, in the dict and by name")
    return (), {**given, **named}
