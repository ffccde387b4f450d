"""What a loop can ask for ahead of time: a part of an operand that the coming iteration moves, and that lies in one place."""

from __future__ import annotations

from sparseloom.iteration.foralls import placed, provenance, reads
from sparseloom.iteration.provenance import Provenance
from sparseloom.notation.nodes import Access, Forall, IndexVar, Races, Stmt, Unit
from sparseloom.notation.printer import show
from sparseloom.schedule.refusal import Refusal, listed


def not_ahead(stmt: Stmt) -> Refusal | None:
    """The first operand that a loop cannot ask for ahead of time, although it is told to."""
    graph = provenance(stmt)
    for outer, loop in placed(stmt):
        if isinstance(loop, Forall):
            for one in loop.tag.prefetches:
                if found := _runs_at_once(loop) or _not_read(loop, one.access) or _scattered(graph, outer, loop.var, one.access):
                    return found
    return None


def _runs_at_once(loop: Forall) -> Refusal | None:
    unit = loop.tag.unit
    if unit is None or unit is Unit.CPUThread or (unit is Unit.CPUVector and loop.tag.races is Races.ParallelReduction):
        return None
    why = f"the iterations of {loop.var} run at once, by {unit.name}, so none is ahead of another"
    return Refusal("S1306", why, "prefetch in a serial loop, in one that CPUThread runs, or in a sum of CPUVector", at=loop.var)


def _not_read(loop: Forall, access: Access) -> Refusal | None:
    if access in reads(loop.body):
        return None
    why = f"the loop over {loop.var} prefetches {show(access)}, and would not read it any more"
    return Refusal("S1307", why, "prefetch after this step", at=loop.var)


def _scattered(graph: Provenance, outer: tuple[IndexVar, ...], var: IndexVar, access: Access) -> Refusal | None:
    """The part that an iteration reads must move with the loop, begin at a place that is known, and lie together."""
    before, mine, stored = graph.known(outer), graph.ancestors(var), graph.stored(access)
    free = [level for level in stored if level not in before]
    if not mine.intersection(free):
        why = f"every iteration of {var} reads the same of {show(access)}"
        return Refusal("S1308", why, f"prefetch in a loop over {listed(stored)}", at=var)
    first = free[0]
    if first not in mine:
        why = f"{show(access)} is stored along {first} before {var}, so what one iteration of {var} reads lies apart"
        return Refusal("S1309", why, f"put the loop over {first} outside, or convert the operand", at=var)
    if any(made.pieces is not None and made.pieces.outer == above for above in mine if (made := graph.made_by(above)) is not None):
        why = f"{var} counts pieces, and where a coming one begins is not known yet"
        return Refusal("S1310", why, "prefetch in a loop inside", at=var)
    return _searched(graph, outer, var, access, stored.index(first))


def _searched(graph: Provenance, outer: tuple[IndexVar, ...], var: IndexVar, access: Access, depth: int) -> Refusal | None:
    """A level whose coming position only a search would tell."""
    level, first = access.tensor.format.levels[depth], graph.stored(access)[depth]
    relation = graph.made_by(graph.root(var))
    if relation is not None and relation.positions is not None:
        last = graph.walked(relation.positions)[-1]
        found = relation.positions.access == access or (first in graph.ancestors(last) and (level.full or level.can_locate))
    else:
        found = level.full or first in graph.known((*outer, var))
    if found:
        return None
    why = f"where {show(access)} will be at a coming {var} is known only after a search along {first}"
    return Refusal("S1310", why, "prefetch in another loop, or another operand", at=var)
