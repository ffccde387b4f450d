"""Which bound of a schedule does not hold: a kernel only says that one of them did not."""

from __future__ import annotations

from collections.abc import Mapping

from sparseloom.iteration.provenance import Provenance
from sparseloom.lower.ranges import limits_of
from sparseloom.notation.nodes import Stmt
from sparseloom.notation.relations import BoundRelation, BoundType
from sparseloom.schedule.loops import relations_of


def broken_promise(stmt: Stmt, sizes: Mapping[str, int]) -> str:
    """The bounds that a statement promises and that do not hold for these extents; all that may not, where only the data tell."""
    graph = Provenance(relations_of(stmt))
    wrong, unsure = [], []
    for bound in (r for r in graph.relations if isinstance(r, BoundRelation)):
        limits = limits_of(graph, bound.parent, sizes)
        if limits is None:
            unsure.append(_step(bound))
        elif not _holds(bound, *limits):
            wrong.append(f"{_step(bound)}: {bound.parent} runs from {limits[0]} up to {limits[1]}")
    return "; ".join(wrong or unsure)


def _step(bound: BoundRelation) -> str:
    return f"bound({bound.parent}, {bound.bounded}, {bound.value}, {bound.kind.value})"


def _holds(bound: BoundRelation, low: int, high: int) -> bool:
    match bound.kind:
        case BoundType.MinExact:
            return low == bound.value
        case BoundType.MaxExact:
            return high == bound.value
        case BoundType.MinConstraint:
            return low >= bound.value
        case BoundType.MaxConstraint:
            return high <= bound.value
