"""Relations between index variables: how an original variable is recovered from those derived from it."""

from __future__ import annotations

from sparseloom.core.trees import node
from sparseloom.notation.nodes import IndexVar, Relation


@node
class SplitRelation(Relation):
    """``parent = outer * size + inner``, with ``inner`` in ``[0, size)``."""

    parent: IndexVar
    outer: IndexVar
    inner: IndexVar
    size: int

    def __str__(self) -> str:
        return f"{self.parent} = {self.outer} * {self.size} + {self.inner}"
