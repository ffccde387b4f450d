"""What unstored terms make, inside the loops over the result, where both are near.

    sequence                          forall i
      forall i_rest                     sequence
        y(i) = ...             ==>        y(i) = ...
      forall i                            forall j
        forall j                            y(i) max= ...
          y(i) max= ...

The loops over the result may have been cut and shared by a schedule: what stands apart goes into the innermost of them. It stays apart
where variables of the reduction stand outside, or in one loop with those of the result, as in a loop over positions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.foralls import body_of, loops, provenance, related, relations_of
from sparseloom.iteration.provenance import Provenance
from sparseloom.notation.nodes import SERIAL, Forall, IndexVar, Sequence, Stmt, Unit

_Join = Callable[[Stmt, Stmt], Stmt]


def renamed_apart(stmt: Stmt) -> tuple[Stmt, Stmt, _Join] | None:
    """What unstored terms make, the loops that it stands apart from, and what puts the two together again; None if there is no such."""
    names = {r.children[0] for r in relations_of(stmt) if r.is_local}
    match body_of(stmt):
        case Sequence((first, last)) if not names.isdisjoint(loops(first)):
            return first, last, lambda apart, nest: Sequence((apart, nest))
        case Sequence((first, last)) if not names.isdisjoint(loops(last)):
            return last, first, lambda apart, nest: Sequence((nest, apart))
    return None


def put_inside(concrete: Concrete) -> Concrete:
    """Put loops that rename those over a result inside of these."""
    stmt = concrete.stmt
    if (found := renamed_apart(stmt)) is None:
        return concrete
    apart, nest, join = found
    names = {r.children[0]: r.parents[0] for r in relations_of(stmt) if r.is_local}
    own = tuple(r for r in relations_of(stmt) if not r.is_local)
    made = _inside(apart, nest, join, names, provenance(related(nest, own)))
    gone = {*loops(stmt)} - {*loops(made)}
    kept = tuple(r for r in relations_of(stmt) if not r.is_local or r.children[0] not in gone)
    return replace(concrete, stmt=related(made, kept)) if gone else concrete


def _inside(apart: Stmt, nest: Stmt, join: _Join, names: Mapping[IndexVar, IndexVar], graph: Provenance) -> Stmt:
    """Both statements in the loops that they have in common."""
    if not isinstance(apart, Forall) or apart.var not in names or apart.tag != SERIAL:
        return join(apart, nest)
    shared: list[Forall] = []
    inner = nest
    while names[apart.var] not in graph.known(loop.var for loop in shared):
        if not isinstance(inner, Forall) or not _is_over(names[apart.var], inner, graph):
            return join(apart, nest)
        shared.append(inner)
        inner = inner.body
    made = _inside(apart.body, inner, join, names, graph)
    for loop in reversed(shared):
        made = Forall(loop.var, made, loop.tag)
    return made


def _is_over(var: IndexVar, loop: Forall, graph: Provenance) -> bool:
    """Whether a loop runs over nothing but a variable or digits of it, coordinate by coordinate."""
    counts = any(graph.position(above) is not None for above in graph.ancestors(loop.var))
    return graph.originals(loop.var) == (var,) and not counts and loop.tag.unit is not Unit.CPUVector
