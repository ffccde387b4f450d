"""Rename: a variable of a consumer under its name in the producer of a temporary."""

from __future__ import annotations

from typing import ClassVar

from sparseloom.core.trees import node
from sparseloom.notation.nodes import IndexVar
from sparseloom.relations.alias import Alias


@node
class RenameRelation(Alias):
    """``child`` stands for ``parent`` in the producer of a temporary."""

    parent: IndexVar
    child: IndexVar

    word: ClassVar[str] = "rename"
    is_local: ClassVar[bool] = True

    def __str__(self) -> str:
        return f"{self.child} stands for {self.parent}"
