"""What a result is when the user does not say: its format and its dtype."""

from __future__ import annotations

from dataclasses import replace

from sparseloom.core.trees import Node, rewrite
from sparseloom.formats.format import Format
from sparseloom.formats.level import Level
from sparseloom.formats.levels.compressed import Compressed
from sparseloom.formats.levels.dense import Dense
from sparseloom.formats.named import dense
from sparseloom.iteration.layout import block_sizes, can_append, compressed, plain, streams, walks_blocks
from sparseloom.iteration.sharing import shared_pattern
from sparseloom.notation.contents import accesses_in
from sparseloom.notation.dtyping import fill_of
from sparseloom.notation.nodes import Access, Apply, Assign, Expr, Fixed, IndexVar, Reduce


def default_format(assign: Assign) -> Format:
    """The result's format by the rule of the surface.

    Dense, unless the result has two or more modes, is zero wherever the sparse operands that one of its variables indexes store nothing,
    for each of them, and no dense operand joins two of them over a sum: ``F(i,j) * P(j,k) * F(l,k)`` is dense if P is. Then it is stored
    as the operands that have all of its variables, if they are stored alike; else by rows, or by columns where all sparse operands are.
    Levels above the innermost are compressed only where an operand without dense ones has them.

    If at least two variables index sparse operands and the others only dense ones, as in ``T(i,j,k) * C(k,r)``, the levels of the others
    are dense and innermost.
    """
    if assign.op is not None:
        # What the result held before is a term like the others.
        assign = Assign(assign.lhs, Apply("add", (assign.lhs, assign.rhs)))
    indices = assign.lhs.indices
    sparse = tuple(var for var in indices if _vanishes_without(assign.rhs, var)) if len(indices) > 1 else ()
    if len(sparse) < 2 or len(set(indices)) < len(indices) or any(_joins_over_sum(term, indices) for term in terms(assign.rhs)):
        return dense(len(indices))
    if len(sparse) < len(indices):
        form = _by_rows_or_columns(assign, sparse)
        return form if _can_be_assembled(assign, form) else dense(len(indices))
    return _as_operands(assign) or _by_rows_or_columns(assign, sparse)


def _joins_over_sum(term: Expr, indices: tuple[IndexVar, ...]) -> bool:
    """Whether a dense operand alone joins variables of the result over a sum: no sparse operands lead from one to the other."""
    accesses = [access for access in accesses_in(term) if len(access.indices) > 1]
    groups: list[set[IndexVar | Fixed]] = []
    for access in (access for access in accesses_in(term) if not access.tensor.format.is_dense):
        met = [group for group in groups if not group.isdisjoint(access.indices)]
        groups = [group for group in groups if group not in met]
        groups.append({*access.indices}.union(*met))
    groups = [group for group in groups if not group.isdisjoint(indices)]
    for access in accesses:
        joined = [group & {*access.indices} for group in groups if not group.isdisjoint(access.indices)]
        if access.tensor.format.is_dense and len(joined) > 1 and not set().union(*joined) <= {*indices}:
            return True
    return False


def _vanishes_without(rhs: Expr, var: IndexVar) -> bool:
    """Whether an expression is zero where every sparse operand that ``var`` indexes is absent, whatever the others hold."""

    def rule(found: Node) -> Node | None:
        if isinstance(found, Access) and var not in found.indices and not found.tensor.format.is_dense:
            return Access(replace(found.tensor, format=dense(len(found.indices)), fill=0, partial=False), found.indices)
        return None

    return fill_of(rewrite(rhs, rule)) == 0


def _as_operands(assign: Assign) -> Format | None:
    """The format of the operands that drive the terms, if each of them has all of the result's variables and they are stored alike."""
    indices = assign.lhs.indices
    drivers = [_driver(term, indices) for term in terms(assign.rhs)]
    first = drivers[0]
    if first is None or any(d is None or d.indices != first.indices or d.tensor.format != first.tensor.format for d in drivers):
        return None
    form = first.tensor.format
    for candidate in (form, plain(form)):
        modes = tuple(indices.index(first.indices[mode]) for mode in candidate.modes)
        kept = Format(candidate.levels, modes, tuple(candidate.blocks[first.indices.index(v)] for v in indices) if candidate.blocks else ())
        if _can_be_assembled(assign, kept):
            return kept
    return None


def _can_be_assembled(assign: Assign, form: Format) -> bool:
    """Whether a result can be stored this way: entries can be appended, block by block if it has blocks; or it shares a structure."""
    lhs = Access(replace(assign.lhs.tensor, format=form), assign.lhs.indices)
    accesses = [lhs, *accesses_in(assign.rhs)]
    # An operand whose entries must be put in order first loses its blocks, and the result would have none to follow.
    keeps_blocks = all(streams(access, assign) for access in accesses[1:] if access.tensor.format.blocks)
    is_made = all(level.full or level.can_append or level.queries for level in form.levels)
    if is_made and can_append(compressed(form)) and (not form.blocks or (keeps_blocks and walks_blocks(lhs, block_sizes(accesses)))):
        return True
    return shared_pattern(Assign(lhs, assign.rhs, assign.op)) is not None


def terms(expr: Expr) -> list[Expr]:
    """The additive terms of an expression, through signs and sums."""
    match expr:
        case Apply("add" | "subtract" | "negative", args, None):
            return [term for arg in args for term in terms(arg)]
        case Reduce("add", _, body):
            return terms(body)
    return [expr]


def _driver(term: Expr, indices: tuple[IndexVar, ...]) -> Access | None:
    """The first sparse operand that has all of the result's variables and no others, if there is one."""
    return next((a for a in _sparse(term) if len(a.indices) == len(indices) and set(a.indices) == set(indices)), None)


def _sparse(expr: Expr) -> list[Access]:
    """The accesses to operands that are not dense."""
    return [access for access in accesses_in(expr) if not access.tensor.format.is_dense]


def _by_rows_or_columns(assign: Assign, sparse: tuple[IndexVar, ...]) -> Format:
    """A result with a compressed level for the last of its ``sparse`` variables, in the order of its modes, or by columns where all sparse
    operands are. The levels of other variables are dense and innermost.
    """
    indices, operands = assign.lhs.indices, _sparse(assign.rhs)
    votes = [_is_by_columns(access, sparse) for access in operands] if len(sparse) == 2 else []
    order = sparse[::-1] if votes and any(votes) and not any(vote is False for vote in votes) else sparse
    outer: list[Level] = [_outer(var, operands) for var in order[:-1]]
    rest = tuple(var for var in indices if var not in sparse)
    return Format((*outer, Compressed(), *(Dense() for _ in rest)), tuple(indices.index(var) for var in (*order, *rest)))


def _is_by_columns(access: Access, indices: tuple[IndexVar, ...]) -> bool | None:
    """Whether an operand has the result's columns outside its rows; None if it does not say."""
    stored = list(dict.fromkeys(access.indices[mode] for mode in access.tensor.format.modes))
    row, column = (stored.index(var) if var in stored else None for var in indices)
    if len(stored) < 2 or (row is None and column is None):
        return None
    if row is None or column is None:
        return column == 0 if row is None else row > 0
    return column < row


def _outer(var: IndexVar, operands: list[Access]) -> Level:
    """A level above the innermost: compressed where an operand that has no dense level stores it so, as in DCSR and CSF."""
    hypersparse = [a for a in operands if not any(level.full for level in a.tensor.format.levels)]
    return Compressed() if any(var in access.indices for access in hypersparse) else Dense()
