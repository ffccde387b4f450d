"""Which bound of a schedule does not hold: a kernel only says that one of them did not."""

from __future__ import annotations

import operator
from collections.abc import Mapping

from sparseloom.iteration.foralls import relations_of
from sparseloom.iteration.provenance import Provenance
from sparseloom.lower.extents import Extents
from sparseloom.notation.nodes import Stmt
from sparseloom.relations.bound import BoundRelation


def broken_promise(stmt: Stmt, sizes: Mapping[str, int]) -> str:
    """The bounds that a statement promises and that do not hold for these extents; all that may not, where only the data tell."""
    graph = Provenance(relations_of(stmt))
    wrong, unsure, extents = [], [], Extents(graph, sizes)
    for bound in (r for r in graph.relations if isinstance(r, BoundRelation)):
        (low, high), (broken, limit, promised) = extents.range_of(bound.parent), bound.broken(extents)
        if limit is None or promised is None:
            unsure.append(_step(bound))
        elif _BROKEN[broken](limit, promised):
            wrong.append(f"{_step(bound)}: {bound.parent} runs from {low} up to {high}")
    return "; ".join(wrong or unsure)


_BROKEN = {"not_equal": operator.ne, "less": operator.lt, "greater": operator.gt}


def _step(bound: BoundRelation) -> str:
    return f"bound({bound.parent}, {bound.child}, {bound.value}, {bound.kind.value})"
