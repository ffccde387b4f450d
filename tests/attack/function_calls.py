"""Calls of the array functions: any of them."""

from __future__ import annotations

from collections.abc import Callable

from attack.arrays import pick
from attack.function_call import Call
from attack.function_elementwise import binary, others, unary, with_options
from attack.function_moves import joined, parts, placed, shaped
from attack.function_operands import Rng
from attack.function_reductions import linear, ordered, reduction

FAMILIES: tuple[Callable[[Call], None], ...] = (
    *(unary, binary) * 2, binary, with_options, *(reduction,) * 3, ordered, *(shaped, linear, others) * 2, joined, parts, placed,
)  # fmt: skip


def draw_call(rng: Rng) -> Call:
    """Any of them."""
    call = Call(rng)
    pick(rng, FAMILIES)(call)
    return call
