"""Presence formulas: which operands must be present for a loop body to have something to do.

A formula is monotone: more operands present never makes it false. ``A*x`` gives ``Stored(A)``, ``A+B`` gives
``Any(A, B)``, ``(A+B)*C`` gives ``All(Any(A, B), C)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sparseloom.core.trees import Node, node
from sparseloom.loops import nodes as ir
from sparseloom.notation.nodes import Access


class Formula(Node):
    """A monotone formula over what is stored."""

    __slots__ = ()


@node
class Constant(Formula):
    """Always, or never."""

    value: bool


@node
class Stored(Formula):
    """The operand has an entry at this coordinate of the current loop."""

    access: Access


@node
class Flag(Formula):
    """Known only when the code runs: an operand that an outer loop found, or did not find."""

    condition: ir.Expr


@node
class All(Formula):
    """Every part holds."""

    parts: tuple[Formula, ...]


@node
class Any(Formula):
    """Some part holds."""

    parts: tuple[Formula, ...]


ALWAYS = Constant(True)
NEVER = Constant(False)


def all_of(parts: Iterator[Formula] | tuple[Formula, ...] | list[Formula]) -> Formula:
    """The conjunction, flattened and with what is known folded."""
    return _join(All, parts, neutral=ALWAYS, absorbing=NEVER)


def any_of(parts: Iterator[Formula] | tuple[Formula, ...] | list[Formula]) -> Formula:
    """The disjunction, flattened and with what is known folded."""
    return _join(Any, parts, neutral=NEVER, absorbing=ALWAYS)


def _join(
    cls: type[All] | type[Any], parts: Iterator[Formula] | tuple[Formula, ...] | list[Formula], neutral: Formula, absorbing: Formula
) -> Formula:
    flat: dict[Formula, None] = {}
    for part in parts:
        for item in part.parts if isinstance(part, cls) else (part,):
            if item == absorbing:
                return absorbing
            if item != neutral:
                flat[item] = None
    dual = Any if cls is All else All
    # Absorption: a and (a or b) is a; a or (a and b) is a.
    kept = [f for f in flat if not (isinstance(f, dual) and any(g in f.parts for g in flat if g is not f))]
    if not kept:
        return neutral
    return kept[0] if len(kept) == 1 else cls(tuple(kept))


def stored(formula: Formula) -> tuple[Access, ...]:
    """The operands a formula mentions, in order."""
    match formula:
        case Stored(access):
            return (access,)
        case All(parts) | Any(parts):
            return tuple(dict.fromkeys(access for part in parts for access in stored(part)))
    return ()


def has_flags(formula: Formula) -> bool:
    """Whether something is known only when the code runs."""
    match formula:
        case Flag():
            return True
        case All(parts) | Any(parts):
            return any(has_flags(part) for part in parts)
    return False


def substitute(formula: Formula, value: Callable[[Formula], Formula | None]) -> Formula:
    """Replace the leaves for which ``value`` answers, and fold."""
    match formula:
        case All(parts):
            return all_of([substitute(part, value) for part in parts])
        case Any(parts):
            return any_of([substitute(part, value) for part in parts])
    replaced = value(formula)
    return formula if replaced is None else replaced


def condition(formula: Formula, leaf: Callable[[Access], ir.Expr]) -> ir.Expr:
    """The formula as a loop-IR condition; ``leaf`` says when an operand counts as present."""
    match formula:
        case Constant(value):
            return ir.TRUE if value else ir.FALSE
        case Stored(access):
            return leaf(access)
        case Flag(known):
            return known
        case All(parts):
            return ir.both(*(condition(part, leaf) for part in parts))
        case Any(parts):
            return ir.either(*(condition(part, leaf) for part in parts))
    raise TypeError(formula)
