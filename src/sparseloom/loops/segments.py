"""Lanes of a warp that update an array together: adjacent lanes with the same index combine first.

lane       0  1  2  3  4  5  6  7
place      3  3  3  4  5  5  5  -       lanes 2, 3 and 6 update places 3, 4 and 5, each with what its neighbours have in common
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any

from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import node
from sparseloom.loops.memory import Cells
from sparseloom.loops.nodes import Store


@node
class Segments(Store):
    """``array[index] op= value`` by every lane; a lane whose index is negative has nothing to add.

    It is the last statement of the loop over lanes, which reach it in lock step. Values of lanes with one index combine, in a fixed
    order, and the last of them updates the place. The first and the last of these segments may go on in another warp, or later in this one,
    and are ``atomic``; those between them are atomic only if ``scattered``: if a place may come again, here or anywhere.
    """

    scattered: bool = False


Brought = tuple[int, Any]  # an index and a value


def update_in_segments(
    cells: Cells,
    brought: list[Brought],
    count: int,
    most: int | None,
    scattered: bool,
    combine: Callable[[Any, Any], Any],
    peek: Callable[[int], Any],
) -> None:
    """What lanes do together, as shuffles do it; ``most``: of one warp."""
    if len(brought) != count:
        raise CompilerBug("segments", f"segments are reached by all {count} lanes in lock step, not by {len(brought)} of them")
    if most is not None and count > most:
        raise CompilerBug("segments", f"a warp has {most} lanes, not {count}")
    found = [(place, [value for _, value in lanes]) for place, lanes in groupby(brought, key=lambda one: one[0]) if place >= 0]
    if not scattered and len({place for place, _ in found}) < len(found):
        raise CompilerBug("segments", f"each place has one segment: {[place for place, _ in found]}")
    for number, (place, values) in enumerate(found):
        at_edge = number in (0, len(found) - 1)
        (cells.store_atomic if at_edge or scattered else cells.store)(place, combine(peek(place), _scanned(values, combine)))


def _scanned(values: list[Any], combine: Callable[[Any, Any], Any]) -> Any:
    """The last of the sums of a segment: each lane adds what the one before it has, then what the one two before has, and so on."""
    step = 1
    while step < len(values):
        values = [value if k < step else combine(values[k - step], value) for k, value in enumerate(values)]
        step *= 2
    return values[-1]
