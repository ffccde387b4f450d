"""Which bound of a schedule does not hold: a kernel only says that one of them did not."""

from __future__ import annotations

import operator
from collections.abc import Mapping

from sparseloom.iteration.foralls import relations_of
from sparseloom.iteration.provenance import Provenance
from sparseloom.lower.extents import Extents
from sparseloom.notation.nodes import Stmt


def broken_promise(stmt: Stmt, sizes: Mapping[str, int]) -> str:
    """The bounds that a statement promises and that do not hold for these extents; all that may not, where only the data tell."""
    graph = Provenance(relations_of(stmt))
    wrong, unsure, extents = [], [], Extents(graph, sizes)
    for relation in graph.relations:
        broken = relation.broken(extents)
        if broken is None:
            continue
        comparison, limit, promised = broken
        if limit is None or promised is None:
            unsure.append(relation.as_step)
        elif _BROKEN[comparison](limit, promised):
            (parent,) = relation.parents
            low, high = extents.range_of(parent)
            wrong.append(relation.as_step if low is None else f"{relation.as_step}: {parent} runs from {low} up to {high}")
    return "; ".join(wrong or unsure)


_BROKEN = {"not_equal": operator.ne, "less": operator.lt, "greater": operator.gt}
