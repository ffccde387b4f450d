"""Whether loops can run in the order they stand: sparse results are appended in storage order, positions walked below known parents."""

from __future__ import annotations

from sparseloom.core.trees import walk
from sparseloom.iteration.ordering import level_variables
from sparseloom.iteration.provenance import Provenance, children
from sparseloom.iteration.region import written
from sparseloom.notation.nodes import Access, Forall, IndexVar, Stmt, SuchThat, Where
from sparseloom.notation.relations import (
    BoundRelation,
    CoordRelation,
    DivideRelation,
    FuseRelation,
    PosRelation,
    RenameRelation,
    SplitRelation,
)


def out_of_order(stmt: Stmt, lhs: Access) -> str | None:
    """Why entries of the result would not come in storage order; None if they do.

    The loops up to the last appended level must bind the result's variables one after another, each from its leading digit on.
    """
    form, provenance = lhs.tensor.format, Provenance.of(stmt)
    variables = level_variables(lhs)
    last = max(k for k, level in enumerate(form.levels) if not level.full)
    waiting = list(dict.fromkeys(variables[: last + 1]))
    for var in path_variables(stmt):
        if not waiting:
            return None
        expected = _next_digits(provenance, waiting, var)
        if isinstance(expected, str):
            return expected
        covered = provenance.covered(provenance.root(var))
        if [v for v in variables if v in covered] != list(covered):
            return f"the loop over {var} does not follow the storage order of {lhs.tensor}"
        if _revisits(provenance, var, lhs, last):
            return f"the loop over {var} cuts rows in two, and {waiting[0]} would be appended twice"
        waiting = expected
    return None


def out_of_reach(stmt: Stmt) -> str | None:
    """Why positions would be walked before what stands above them is known; None if they are not.

    A loop over positions of an operand stands inside the loops over its upper levels, and inside those over the leading digits
    of the coordinate that the positions replace.
    """
    provenance = Provenance.of(stmt)
    for n in walk(stmt):
        if not isinstance(n, Where):
            continue
        found = _reach(provenance.within(n.producer), stmt, n.producer) or _sized(provenance.within(stmt), stmt, n)
        if found is not None:
            return found
    return _reach(provenance, stmt, None)


def _sized(provenance: Provenance, stmt: Stmt, where: Where) -> str | None:
    """Why a workspace over positions could not be made where it is needed: their number is not known there."""
    workspace = written(where.producer)
    inner = set(path_variables(where.producer))
    known = provenance.known(v for v in path_variables(stmt, where.producer) if v not in inner)
    for var in workspace.indices:
        relation = provenance.made_by(provenance.root(var))
        while isinstance(relation, CoordRelation):
            relation = provenance.made_by(provenance.root(relation.position))
        if isinstance(relation, PosRelation) and (needed := _needed(provenance, relation) - known):
            return f"{workspace.tensor} runs over {var}, whose extent depends on {min(needed, key=str)}, which is not known where it is made"
    return None


def _reach(provenance: Provenance, stmt: Stmt, producer: Stmt | None) -> str | None:
    known: set[IndexVar] = set()
    for var in path_variables(stmt, producer):
        relation = provenance.made_by(provenance.root(var))
        while isinstance(relation, CoordRelation):
            relation = provenance.made_by(provenance.root(relation.position))
        if isinstance(relation, PosRelation):
            needed = _needed(provenance, relation) - provenance.known(known)
            if needed:
                return f"the loop over {var} walks positions of {relation.access.tensor} below {min(needed, key=str)}, which is not known yet"
        known.add(var)
    return None


def _needed(provenance: Provenance, relation: PosRelation) -> set[IndexVar]:
    """What must be known before the positions of a relation can be walked."""
    levels = level_variables(relation.access)
    above = set(levels[: provenance.position_levels(relation)[0]])
    var = relation.coordinate
    while True:
        made = provenance.made_by(var)
        match made:
            case SplitRelation(parent, outer, inner, _) | DivideRelation(parent, outer, inner, _):
                above |= {outer} if var == inner else set()
                var = parent
            case BoundRelation(parent, _, _, _) | RenameRelation(parent, _):
                var = parent
            case FuseRelation(outer, _, _):
                var = outer
            case _:
                return above


def path_variables(stmt: Stmt, producer: Stmt | None = None) -> list[IndexVar]:
    """The loops around the assignment to the result, or around the one that ends a producer, outermost first."""
    found = []
    while True:
        match stmt:
            case Forall(var, body):
                found.append(var)
                stmt = body
            case Where(body, made):
                stmt = made if producer is not None and any(n is producer for n in walk(made)) else body
            case SuchThat(body, _):
                stmt = body
            case _:
                return found


def _next_digits(provenance: Provenance, waiting: list[IndexVar], var: IndexVar) -> list[IndexVar] | str:
    """What is left to bind after the loop over ``var``, or why it comes too early."""
    parts = _parts(provenance, waiting)
    return parts[1:] if parts[0] == var else f"the loop over {var} stands where one over {parts[0]} is needed"


def _parts(provenance: Provenance, waiting: list[IndexVar]) -> list[IndexVar]:
    """The loops that bind these variables in order: digits from the leading one on, and fused variables as one."""
    parts: list[IndexVar] = []
    for var in waiting:
        for part in _expand(provenance, var):
            if part not in parts:
                parts.append(part)
    return parts


def _expand(provenance: Provenance, var: IndexVar) -> list[IndexVar]:
    relation = provenance.used_by(var)
    match relation:
        case None:
            return [var]
        case SplitRelation(_, outer, inner, _) | DivideRelation(_, outer, inner, _):
            return [*_expand(provenance, outer), *_expand(provenance, inner)]
        case BoundRelation(_, bounded, _, _):
            return _expand(provenance, bounded)
    return [part for child in children(relation) for part in _expand(provenance, child)]


def _revisits(provenance: Provenance, var: IndexVar, lhs: Access, last: int) -> bool:
    """Whether a digit of several fused variables is looped over, above a level that appends one coordinate per row."""
    root = provenance.root(var)
    covered = provenance.covered(root)
    if var == root or len(covered) == 1:
        return False
    variables, form = level_variables(lhs), lhs.tensor.format
    return any(v in variables and variables.index(v) <= last and not form.levels[variables.index(v)].full for v in covered[:-1])
