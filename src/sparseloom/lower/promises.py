"""Which bound of a schedule does not hold: a kernel only says that one of them did not."""

from __future__ import annotations

from collections.abc import Mapping

from sparseloom.iteration.provenance import Provenance
from sparseloom.notation.nodes import IndexVar, Stmt
from sparseloom.notation.relations import BoundRelation, BoundType, DivideRelation, FuseRelation, RenameRelation, SplitRelation
from sparseloom.schedule.loops import relations_of


def broken_promise(stmt: Stmt, sizes: Mapping[str, int]) -> str:
    """The bounds that a statement promises and that do not hold for these extents; all that may not, where only the data tell."""
    graph = Provenance(relations_of(stmt))
    wrong, unsure = [], []
    for bound in (r for r in graph.relations if isinstance(r, BoundRelation)):
        limits = _limits(graph, bound.parent, sizes)
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


def _limits(graph: Provenance, var: IndexVar, sizes: Mapping[str, int]) -> tuple[int, int] | None:
    """Where the range of a variable begins and ends; None for positions, which depend on the data."""
    match graph.made_by(var):
        case None:
            return 0, sizes[var.name]
        case SplitRelation(_, _, inner, size) if var == inner:
            return 0, size
        case DivideRelation(_, outer, _, count) if var == outer:
            return 0, count
        case SplitRelation(parent, _, _, part) | DivideRelation(parent, _, _, part):
            limits = _limits(graph, parent, sizes)
            return None if limits is None else (0, -(-(limits[1] - limits[0]) // part))
        case FuseRelation(outer, inner):
            first, second = _limits(graph, outer, sizes), _limits(graph, inner, sizes)
            return None if first is None or second is None else (0, (first[1] - first[0]) * (second[1] - second[0]))
        case RenameRelation(original):
            return _limits(graph, original, sizes)
        case BoundRelation(parent, _, value, kind):
            limits = _limits(graph, parent, sizes)
            if limits is None:
                return None
            return value if kind is BoundType.MinExact else limits[0], value if kind is BoundType.MaxExact else limits[1]
    return None
