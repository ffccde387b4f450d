"""Block: the split that blocked formats make of a variable.

    A(i,j) in bcsr(2,2)        i = i_block * 2 + i_within

Levels are walked, or appended to, block by block, so the halves stay apart even where they are fused again.
"""

from __future__ import annotations

from typing import ClassVar

from sparseloom.core.trees import node
from sparseloom.relations.split import SplitRelation


@node
class BlockRelation(SplitRelation):
    """``outer`` counts the blocks of a format, and ``inner`` the places in one."""

    word: ClassVar[str] = "the blocked format"
    is_block: ClassVar[bool] = True
    counts_up: ClassVar[bool] = False  # its halves stay apart
