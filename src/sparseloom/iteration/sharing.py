"""What operands tell of a sparse result: whose structure it shares (scaling, copying, SDDMM), and how many entries it can have."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sparseloom.core.trees import walk
from sparseloom.formats.level import Level
from sparseloom.iteration.formula import ALWAYS, All, Any, Formula, Stored
from sparseloom.iteration.layout import can_append, takes_anything
from sparseloom.iteration.making import Shared
from sparseloom.iteration.region import is_skippable, present, region
from sparseloom.notation.contents import reductions_in
from sparseloom.notation.nodes import Access, Assign, Expr, Fixed, IndexVar, Reduce, Stmt


def shared_pattern(assign: Assign) -> Shared | None:
    """The operand whose stored entries are exactly those of the sparse result, or make its first levels, if there is one.

    A reduction keeps the pattern when presence does not depend on its variables, and they have an extent; or when they stand at the last
    levels of the operand: what is stored above has entries below it.
    """
    lhs, rhs = assign.lhs, assign.rhs
    if lhs.tensor.format.is_dense or assign.op is not None or len(set(lhs.indices)) < len(lhs.indices):
        return None
    while isinstance(rhs, Reduce):
        if not is_skippable(rhs.body, rhs.op):
            return None
        rhs = rhs.body
    if reductions_in(rhs):
        return None
    match _pattern(rhs):
        case Stored(access) if access.indices == lhs.indices and access.tensor.format == lhs.tensor.format:
            levels = access.tensor.format.levels
            return Shared(access, len(levels)) if _is_canonical(levels) else None
        case Stored(access):
            depth = _first_levels(lhs, access)
            return Shared(access, depth) if depth else None
    return None


def _first_levels(lhs: Access, access: Access) -> int:
    """How many levels a result has in common with an operand, counted from the first, if full ones are all that it has below them.

    An operand that is read at a number need not have an entry there below every one above.
    """
    mine, theirs = lhs.tensor.format, access.tensor.format
    at_number = any(
        isinstance(access.indices[mode], Fixed) and not level.full for mode, level in zip(theirs.modes, theirs.levels, strict=False)
    )
    if mine.blocks or theirs.blocks or at_number or len({*access.indices}) < len(access.indices):
        return 0
    depth = 1 + max(k for k, level in enumerate(mine.levels) if not level.full)
    first = zip(mine.levels, theirs.levels, mine.modes, theirs.modes, strict=False)
    same = [a == b and lhs.indices[m] == access.indices[n] for a, b, m, n in list(first)[:depth]]
    levels = theirs.levels[:depth]
    return depth if len(same) == depth and all(same) and _is_canonical(levels) and all(level.compact for level in levels) else 0


def is_made_apart(assign: Assign) -> bool:
    """Whether a sparse result is made in another format first: entries cannot be appended to its own, nor is that of the one sparse
    operand shared."""
    form, rhs = assign.lhs.tensor.format, assign.rhs
    if form.is_dense or can_append(form) or not takes_anything(form):
        return False
    shared = shared_pattern(assign)
    lender = None if shared is None else shared.operand
    others = any(isinstance(n, Reduce) or (isinstance(n, Access) and n != lender and not n.tensor.format.is_dense) for n in walk(rhs))
    return shared is None or others


def is_bounded(assign: Assign, stmt: Stmt) -> bool:
    """Whether a sparse result never has more entries than its operands have together: each comes from an entry of one of them.

    Both must say so: what the statement means, and the loops that were made of it, which may visit more than they need to.
    """
    rhs, variables = assign.rhs, {*assign.lhs.indices}
    while isinstance(rhs, Reduce) and is_skippable(rhs.body, rhs.op):
        rhs = rhs.body
    if assign.op is not None or reductions_in(rhs):
        return False
    return _counts(_pattern(rhs), variables) and _counts(region(stmt, _stored), variables)


def _counts(formula: Formula, variables: set[IndexVar]) -> bool:
    match formula:
        case Stored(access):
            return variables <= {*access.indices}
        case All(parts):
            return any(_counts(part, variables) for part in parts)
        case Any(parts):
            return all(_counts(part, variables) for part in parts)
    return False


def _pattern(rhs: Expr) -> Formula:
    return present(rhs, _stored)


def _stored(access: Access) -> Formula:
    return Stored(access) if access.tensor.may_be_absent else ALWAYS


def _is_canonical(levels: Sequence[Level]) -> bool:
    """Whether loops walk these levels as they are, in order, and what repeats coordinates stands above a singleton; and whether each entry
    has a place for its value."""
    walked = all(level.unique or below.branchless for level, below in pairwise(levels))
    return walked and all(level.ordered and not level.shares_values for level in levels) and levels[-1].unique
