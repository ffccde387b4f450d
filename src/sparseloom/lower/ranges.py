"""How far the variables of a schedule run on real extents, and whether 64 bits count that far.

    split(i,i0,i1,4) fuse(i1,j,f)        f runs to 4 * |j|, however long i is
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sparseloom.core.errors import ShapeError
from sparseloom.iteration.provenance import Provenance, children
from sparseloom.notation.nodes import IndexVar, Relation, Stmt
from sparseloom.notation.relations import (
    BoundRelation,
    BoundType,
    CoordRelation,
    DivideRelation,
    FuseRelation,
    PosRelation,
    RenameRelation,
    SplitRelation,
)
from sparseloom.schedule.loops import relations_of

LARGEST = 2**63 - 1
LONGEST_LOOP = 2**62  # leaves room for what is added to a counter before it is compared


def limits_of(graph: Provenance, var: IndexVar, sizes: Mapping[str, int]) -> tuple[int, int] | None:
    """Where the range of a variable begins and ends; None for positions, which depend on the data, and for what the compiler made."""
    match graph.made_by(var):
        case None:
            return (0, sizes[var.name]) if var.name in sizes else None
        case SplitRelation(_, _, inner, size) if var == inner:
            return 0, size
        case DivideRelation(_, outer, _, count) if var == outer:
            return 0, count
        case SplitRelation(parent, _, _, part) | DivideRelation(parent, _, _, part):
            extent = _extent(graph, parent, sizes)
            return None if extent is None else (0, -(-extent // part))
        case FuseRelation(outer, inner):
            first, second = _extent(graph, outer, sizes), _extent(graph, inner, sizes)
            return None if first is None or second is None else (0, first * second)
        case RenameRelation(original):
            return limits_of(graph, original, sizes)
        case BoundRelation(parent, _, value, kind):
            limits = limits_of(graph, parent, sizes)
            if limits is None:
                return None
            return value if kind is BoundType.MinExact else limits[0], value if kind is BoundType.MaxExact else limits[1]
        case CoordRelation() as relation:
            return limits_of(graph, graph.found_again(relation), sizes)
    return None


def _extent(graph: Provenance, var: IndexVar, sizes: Mapping[str, int]) -> int | None:
    limits = limits_of(graph, var, sizes)
    return None if limits is None else limits[1] - limits[0]


def check_ranges(stmt: Stmt, sizes: Mapping[str, int]) -> None:
    """Refuse loops that a schedule makes longer than 64-bit counters reach. Loops over positions are as short as the storage."""
    graph = Provenance(relations_of(stmt))
    for relation in graph.relations:
        reach = next((reach for reach, most in _reaches(graph, relation, sizes) if reach > most), None)
        if reach is not None:
            raise ShapeError(
                f"the schedule runs {', '.join(map(str, children(relation)))} over {reach} coordinates, more than 64 bits count\n"
                "  help: turn a fused loop over coordinates into one over positions with pos(...), or leave the step out"
            )


def _reaches(graph: Provenance, relation: Relation, sizes: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    """How far the numbers go that a relation computes with, and may go: what it makes, and what is recovered from that."""
    if isinstance(relation, PosRelation) or any(isinstance(graph.used_by(v), PosRelation) for v in children(relation)):
        return
    for made in children(relation):
        yield (limits_of(graph, made, sizes) or (0, 0))[1], LONGEST_LOOP
    match relation:
        case SplitRelation(parent, _, _, size):
            yield (_extent(graph, parent, sizes) or 0) + size, LARGEST
        case DivideRelation(parent, _, _, count):
            yield (_extent(graph, parent, sizes) or 0) + count, LARGEST
