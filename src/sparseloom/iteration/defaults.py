"""What a result is when the user does not say: its format and its dtype."""

from __future__ import annotations

from dataclasses import replace

from sparseloom.formats.format import Format
from sparseloom.formats.level import Level
from sparseloom.formats.levels.compressed import Compressed
from sparseloom.formats.levels.dense import Dense
from sparseloom.formats.named import dense
from sparseloom.iteration.layout import block_sizes, can_append, plain, walks_blocks
from sparseloom.iteration.sharing import shared_pattern
from sparseloom.notation.contents import accesses_in
from sparseloom.notation.dtyping import fill_of
from sparseloom.notation.nodes import Access, Apply, Assign, Expr, IndexVar, Reduce


def default_format(assign: Assign) -> Format:
    """The result's format by the rule of the surface.

    Dense, unless the result has two or more modes, stays zero where nothing is stored, and every term stores the innermost variable
    sparsely; then it is stored as the operands that drive it.
    """
    if assign.op is not None:
        # What the result held before is a term like the others.
        assign = Assign(assign.lhs, Apply("add", (assign.lhs, assign.rhs)))
    indices = assign.lhs.indices
    fallback = dense(len(indices))
    if len(indices) < 2 or len(set(indices)) < len(indices) or fill_of(assign.rhs) != 0:
        return fallback
    drivers = [driver for term in terms(assign.rhs) for driver in [_driver(term, indices)]]
    if any(driver is None for driver in drivers):
        return fallback
    whole = [d for d in drivers if d is not None and set(d.indices) == set(indices) and len(d.indices) == len(indices)]
    if len(whole) == len(drivers):
        first = whole[0]
        same = all(d.indices == first.indices and d.tensor.format == first.tensor.format for d in whole)
        form = first.tensor.format if same else plain(first.tensor.format)
        modes = tuple(indices.index(first.indices[mode]) for mode in form.modes)
        kept = Format(form.levels, modes, tuple(form.blocks[first.indices.index(v)] for v in indices) if form.blocks else ())
        if _can_be_assembled(assign, kept):
            return kept
    return Format(tuple(_kind(assign, var) for var in indices), tuple(range(len(indices))))


def _can_be_assembled(assign: Assign, form: Format) -> bool:
    """Whether a result can be stored this way: entries can be appended, block by block if it has blocks; or it shares a structure."""
    lhs = Access(replace(assign.lhs.tensor, format=form), assign.lhs.indices)
    accesses = [lhs, *accesses_in(assign.rhs)]
    if can_append(form) and (not form.blocks or walks_blocks(lhs, block_sizes(accesses))):
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
    """The operand that stores the result's innermost variable sparsely, one with all of the variables if there is one."""
    accesses = accesses_in(term)
    sparse = [a for a in accesses if _stores_sparsely(a, indices[-1]) or (set(a.indices) == set(indices) and not a.tensor.format.is_dense)]
    return next((a for a in sparse if set(a.indices) == set(indices)), sparse[0] if sparse else None)


def _stores_sparsely(access: Access, var: IndexVar) -> bool:
    form = access.tensor.format
    return any(not level.full and access.indices[mode] == var for level, mode in zip(form.levels, form.modes, strict=True))


def _kind(assign: Assign, var: IndexVar) -> Level:
    accesses = accesses_in(assign.rhs)
    return Compressed() if any(_stores_sparsely(a, var) for a in accesses) else Dense()
