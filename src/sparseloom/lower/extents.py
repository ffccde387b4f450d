"""How far the variables of a schedule run on real extents, and whether 64 bits count that far.

split(i,i0,i1,4) fuse(i1,j,f)        f runs to 4 * |j|, however long i is
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sparseloom.core.errors import ShapeError
from sparseloom.iteration.foralls import relations_of
from sparseloom.iteration.provenance import Provenance
from sparseloom.notation.nodes import IndexVar, Stmt
from sparseloom.relations.arithmetic import UNKNOWNS, Arithmetic
from sparseloom.relations.relation import FoundAgain, Pieces, Positions, Ranges, Relation

LARGEST = 2**63 - 1
LONGEST_LOOP = 2**62  # leaves room for what is added to a counter before it is compared


@dataclass(frozen=True)
class Extents(Ranges[int | None]):
    """How far variables run on real extents; None for positions, which depend on the data, and for what the compiler made."""

    graph: Provenance
    sizes: Mapping[str, int]
    arithmetic: Arithmetic[int | None] = UNKNOWNS

    def range_of(self, var: IndexVar) -> tuple[int | None, int | None]:
        """Where the range of a variable begins and ends."""
        relation = self.graph.made_by(var)
        return (0, self.sizes.get(var.name)) if relation is None else relation.range_of(var, self)

    def extent(self, var: IndexVar) -> int | None:
        """How many values a variable takes."""
        relation = self.graph.made_by(var)
        return self.sizes.get(var.name) if relation is None else relation.extent_of(var, self)

    def positions_of(self, relation: Positions) -> tuple[int | None, int | None]:
        return None, None

    def coordinates_of(self, relation: FoundAgain) -> tuple[int | None, int | None]:
        """Coordinates that are found again run as far as they did."""
        return self.range_of(self.graph.found_again(relation))

    def piece_of(self, relation: Pieces) -> tuple[int | None, int | None]:
        return None, None


def check_ranges(stmt: Stmt, sizes: Mapping[str, int]) -> None:
    """Refuse loops that a schedule makes longer than 64-bit counters reach. Loops over positions are as short as the storage."""
    graph = Provenance(relations_of(stmt))
    for relation in graph.relations:
        reach = next((reach for reach, most in _reaches(graph, relation, sizes) if reach > most), None)
        if reach is not None:
            raise ShapeError(
                f"the schedule runs {', '.join(map(str, relation.children))} over {reach} coordinates, more than 64 bits count\n"
                "  help: turn a fused loop over coordinates into one over positions with pos(...), or leave the step out"
            )


def _reaches(graph: Provenance, relation: Relation, sizes: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    """How far the numbers go that a relation computes with, and may go: what it makes, and what is recovered from that."""
    used = (graph.used_by(var) for var in relation.children)
    if any(found is not None and found.positions is not None for found in (relation, *used)):
        return
    extents = Extents(graph, sizes)
    for made in relation.children:
        yield extents.range_of(made)[1] or 0, LONGEST_LOOP
    yield from ((number or 0, LARGEST) for number in relation.reaches(extents))
