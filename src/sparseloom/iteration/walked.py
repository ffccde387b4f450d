"""What a loop walks: the original variables it settles, and which sparse operands it must follow there."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from sparseloom.iteration.foralls import places, provenance, reads
from sparseloom.iteration.formula import ALWAYS, NEVER, Formula, Stored, substitute
from sparseloom.iteration.provenance import Provenance
from sparseloom.iteration.region import Leaf, region
from sparseloom.notation.nodes import Access, IndexVar, Stmt
from sparseloom.relations.relation import Positions


@dataclass(frozen=True)
class Walked:
    """One loop: the variables it settles, when its body has something to do, and the sparse operands it goes along.

    ``position`` is set when the loop counts stored entries of one operand; the others are then looked up.
    """

    variables: frozenset[IndexVar]
    region: Formula
    sparse: tuple[Access, ...]
    position: Positions | None

    @property
    def merges(self) -> bool:
        """Whether several operands must be followed at once: two sparse ones, or a sparse one beside all coordinates."""
        return self.position is None and (len(self.sparse) > 1 or (len(self.sparse) == 1 and self.region == ALWAYS))

    @property
    def is_nest(self) -> bool:
        """Whether one loop over coordinates becomes several: a fused one over sparse levels."""
        return self.position is None and len(self.variables) > 1 and bool(self.sparse)


def walked(stmt: Stmt, var: IndexVar) -> list[Walked]:
    """What each loop over ``var`` walks."""
    graph = provenance(stmt)
    found, mine = [], {*graph.covered(graph.root(var))}
    for outer, loop in places(stmt, var):
        before, after = graph.known(outer), graph.known((*outer, var))
        # What follows from several variables in no order is looked up.
        ordered = {v for v in after - before if mine.issuperset(graph.covered(v))}
        leaf = _follows(graph, ordered, after)
        sparse = tuple(access for access in reads(loop.body) if leaf(access) != ALWAYS)
        settled = frozenset(v for v in ordered if graph.made_by(v) is None)
        found.append(Walked(settled, region(loop.body, leaf), sparse, graph.position(var)))
    return found


def _follows(graph: Provenance, settled: Set[IndexVar], known: Set[IndexVar]) -> Leaf:
    """An operand is followed if a level that is not full stores a variable that is settled now, below parents that are known."""

    def leaf(access: Access) -> Formula:
        stored = graph.stored(access)
        for k, level in enumerate(access.tensor.format.levels):
            if not level.full and stored[k] in settled and all(v in known for v in stored[:k]):
                return Stored(access)
        return ALWAYS

    return leaf


def presence(graph: Provenance, body: Stmt, known: Set[IndexVar]) -> Formula:
    """When a loop's body has something to do, as far as the known variables tell: the merge lattice's points as one formula."""

    def leaf(access: Access) -> Formula:
        stored = graph.stored(access)
        sparse = any(not level.full and stored[k] in known for k, level in enumerate(access.tensor.format.levels))
        return Stored(access) if sparse else ALWAYS

    return region(body, leaf)


def implies(formula: Formula, access: Access) -> bool:
    """Whether the formula holds only where ``access`` has an entry."""
    return substitute(formula, lambda leaf: NEVER if leaf == Stored(access) else None) == NEVER


def lost_without(body: Stmt, access: Access) -> tuple[Access, ...]:
    """The operands that are present on their own, where ``access`` is not: what its positions would miss.

    There are none if the body has something to do where no operand is stored at all.
    """
    if region(body, lambda _: NEVER) != NEVER:
        return ()
    return tuple(other for other in reads(body) if other != access and _is_present_alone(body, other))


def _is_present_alone(body: Stmt, access: Access) -> bool:
    return region(body, lambda other: ALWAYS if other == access else NEVER) != NEVER
