"""Results that cannot be appended in one ordered pass: what else can be tried, and the refusal where nothing can."""

from __future__ import annotations

from sparseloom.core.errors import NotationError
from sparseloom.formats.named import name_of
from sparseloom.iteration.blocks import can_build_blocks
from sparseloom.notation.nodes import Assign
from sparseloom.notation.printer import show


class BlocksInTheWay(Exception):
    """Blocks would have to be walked, or come, in another order; an operand can be converted, a result built in a workspace."""


def not_in_order(assign: Assign, why: str, keep_blocks: bool = True) -> Exception:
    """Why a sparse result cannot be appended; a blocked one can still be built in a workspace."""
    return BlocksInTheWay() if keep_blocks and can_build_blocks(assign.lhs) else needs_workspace(assign, why)


def unmatched_blocks(assign: Assign, keep_blocks: bool) -> Exception:
    """Why a blocked result cannot be walked beside its operands."""
    if len(set(assign.lhs.indices)) < len(assign.lhs.indices):
        return not_in_order(assign, "a variable stands twice in it, and the diagonal cuts blocks", keep_blocks)
    return not_in_order(assign, "its blocks do not match the operands'", keep_blocks)


def needs_workspace(assign: Assign, why: str) -> NotationError:
    """The refusal of a sparse result whose entries do not come in storage order."""
    form = name_of(assign.lhs.tensor.format)
    return NotationError(
        f"cannot assemble {assign.lhs.tensor.name} as {form} in one ordered pass: {why}.\n"
        f"  in {show(assign)}\n"
        f"  help: ask for a format that can be appended to, such as csr, and convert it with .to(...); or for a dense result"
    )
