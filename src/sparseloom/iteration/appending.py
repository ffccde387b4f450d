"""Whether loops meet the entries of a sparse result in storage order, so that they can be appended."""

from __future__ import annotations

from sparseloom.iteration.ordering import level_variables
from sparseloom.iteration.provenance import Provenance, children
from sparseloom.notation.nodes import Access, Forall, IndexVar, Stmt, SuchThat, Where
from sparseloom.notation.relations import BoundRelation, DivideRelation, SplitRelation


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


def path_variables(stmt: Stmt) -> list[IndexVar]:
    """The loops around the assignment to the result, outermost first."""
    found = []
    while True:
        match stmt:
            case Forall(var, body):
                found.append(var)
                stmt = body
            case Where(body, _) | SuchThat(body, _):
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
    return any(v in variables and variables.index(v) < last and not form.levels[variables.index(v)].full for v in covered[:-1])
