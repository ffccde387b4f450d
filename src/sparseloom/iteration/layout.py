"""Questions about how the operands of one statement are stored."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sparseloom.formats.format import Format
from sparseloom.formats.level import Level
from sparseloom.formats.levels.compressed import Compressed
from sparseloom.iteration.formula import ALWAYS, Stored
from sparseloom.iteration.region import is_skippable, present
from sparseloom.notation.contents import accesses_in, reductions_in
from sparseloom.notation.nodes import Access, Assign, Fixed, IndexVar, Reduce


def block_sizes(accesses: Sequence[Access]) -> dict[IndexVar, int]:
    """The block size of every variable that blocked operands agree on; 0 where another sparse operand walks it unblocked."""
    sizes: dict[IndexVar, int] = {}
    for access in accesses:
        form = access.tensor.format
        if form.is_dense and not form.blocks:
            continue
        for mode, var in enumerate(access.indices):
            size = form.blocks[mode] if form.blocks else 0
            sizes[var] = size if sizes.get(var, size) == size and access.indices.count(var) == 1 else 0
    return {var: size for var, size in sizes.items() if size or any(a.tensor.format.blocks and var in a.indices for a in accesses)}


def follows_blocks(assign: Assign) -> bool:
    """Whether a sparse result without blocks is a copy of an operand with blocks: it is made block by block, row by row within."""
    lhs, rhs, form = assign.lhs, assign.rhs, assign.lhs.tensor.format
    distinct = len(set(lhs.indices)) == len(lhs.indices)
    return distinct and not (form.is_dense or form.blocks) and isinstance(rhs, Access) and {*rhs.indices} == {*lhs.indices}


def walks_blocks(access: Access, sizes: dict[IndexVar, int]) -> bool:
    """Whether a blocked operand can be walked block by block beside the others."""
    blocks = access.tensor.format.blocks
    return all(sizes.get(var, 0) == blocks[mode] and not isinstance(var, Fixed) for mode, var in enumerate(access.indices))


def has_rows_in_blocks(form: Format) -> bool:
    """Whether a level that is not full stands below a full one within blocks.

    Loops end at the edge of the tensor, so rows of a block beyond it would have no positions.
    """
    within = [level.full and mode in form.modes[:k] for k, (level, mode) in enumerate(zip(form.levels, form.modes, strict=True))]
    return any(not level.full and any(within[:k]) for k, level in enumerate(form.levels))


def plain(form: Format) -> Format:
    """The nearest format without blocks whose entries are ordered and unique."""
    levels, modes = form.levels, form.modes
    if form.blocks:
        levels, modes = _without_blocks(form)
    followed = [k + 1 < len(levels) and levels[k + 1].branchless for k in range(len(levels))]
    return Format(tuple(level.promising(ordered=True, unique=not followed[k]) for k, level in enumerate(levels)), modes)


def _without_blocks(form: Format) -> tuple[tuple[Level, ...], tuple[int, ...]]:
    """The levels of the blocks. What they alone would fill up, where levels within the blocks are sparse, is compressed.

        ds:0,0/2   dense blocks, sparse within    ==>   s
    """
    first = [form.modes.index(mode) for mode in dict.fromkeys(form.modes)]
    levels, modes = [form.levels[k] for k in first], tuple(form.modes[k] for k in first)
    last = max((k for k, level in enumerate(form.levels) if not level.full), default=-1)
    filled = [k for k in range(len(levels)) if all(level.full for level in levels[k:]) and form.modes.index(modes[k]) < last]
    if filled:
        levels[filled[-1]] = Compressed()
    return tuple(levels), modes


def repeats_loosely(form: Format) -> bool:
    """Whether one coordinate may be met again after others: entries repeat, and come in no order."""
    return not form.is_unique and not all(level.ordered for level in form.levels)


def reordered(form: Format, modes: tuple[int, ...], long: Collection[int] = ()) -> Format:
    """The same levels over another mode order, where entries can be appended to them; else compressed ones.

    Full levels become compressed if they would fill up other modes than before: at the end always, else where those are ``long``.
    """
    last = max((k for k, level in enumerate(form.levels) if not level.full), default=-1)
    levels = form.levels
    if {*form.modes[last + 1 :]} != {*modes[last + 1 :]}:
        levels = (*levels[: last + 1], *(Compressed() for _ in levels[last + 1 :]))
    full = {mode for mode, level in zip(form.modes, form.levels, strict=True) if level.full}
    levels = tuple(
        Compressed() if level.full and mode in long and mode not in full else level for mode, level in zip(modes, levels, strict=True)
    )
    return Format(tuple(level if level.full or level.can_append else Compressed() for level in levels), modes)


def streams(access: Access, assign: Assign) -> bool:
    """Whether the levels of an operand can be walked as they are.

    An unordered level can be streamed when it drives the loops alone, or is all that a sparse result takes its entries from; a
    level that repeats coordinates must end the tensor or stand above a singleton, which then walks the run of equal coordinates.
    """
    form = access.tensor.format
    for k, level in enumerate(form.levels):
        if not level.unique and k + 1 < len(form.levels) and not form.levels[k + 1].branchless:
            return False
    if all(level.ordered for level in form.levels) or is_copied(access, assign):
        return True
    alone = all(n == access or n.tensor.format.is_dense for n in accesses_in(assign))
    unique = all(level.unique for level in form.levels)
    return alone and unique and len(set(access.indices)) == len(access.indices) and _drives(access, assign)


def is_copied(access: Access, assign: Assign) -> bool:
    """Whether a sparse result holds the entries of one operand and nothing else, so that they may come in any order."""
    lhs = assign.lhs
    distinct = len(set(access.indices)) == len(access.indices) == len(lhs.indices)
    return assign.rhs == access and assign.op is None and distinct and not lhs.tensor.format.is_dense and can_append(lhs.tensor.format)


def _drives(access: Access, assign: Assign) -> bool:
    """Whether the loops run over the entries of one operand and nothing else, in whatever order they come."""
    rhs = assign.rhs
    while isinstance(rhs, Reduce):
        if not is_skippable(rhs.body, rhs.op):
            return False
        rhs = rhs.body
    if reductions_in(rhs) or (assign.op is not None and not is_skippable(assign.rhs, assign.op)):
        return False
    return present(rhs, lambda found: Stored(found) if found.tensor.may_be_absent else ALWAYS) == Stored(access)


def modes_in_order(access: Access, order: tuple[IndexVar, ...]) -> tuple[int, ...]:
    """The modes of an access sorted by where their loops stand; those at numbers, which have none, come first."""
    place = {var: k for k, var in enumerate(order)}
    return tuple(sorted(range(len(access.indices)), key=lambda mode: place.get(access.indices[mode], -1)))


def compressed(form: Format) -> Format:
    """The nearest format to which entries can be appended, in the same order of modes and with the same blocks."""
    near = form if form.blocks else plain(form)
    return Format(tuple(level if level.full else Compressed() for level in near.levels), near.modes, near.blocks)


def is_filled(form: Format) -> bool:
    """Whether entries can be put in in any order: sparse, and every level is full or takes insertions."""
    return not (form.is_dense or form.blocks) and all(map(is_placed, form.levels))


def is_placed(level: Level) -> bool:
    """Whether every coordinate has a place below every parent before the loops run."""
    return level.full or (level.can_insert and not level.queries)


def has_row_places(form: Format) -> bool:
    """Whether every row of the last compressed level has a place before it is filled: all levels above are full."""
    last = max((k for k, level in enumerate(form.levels) if level.can_append and not level.branchless), default=0)
    return last > 0 and all(level.full for level in form.levels[:last])


def takes_anything(form: Format) -> bool:
    """Whether every tensor can be stored: a singleton has one entry per parent, so what stands above it must be allowed to repeat."""
    return not any(level.branchless and form.levels[k - 1].unique for k, level in enumerate(form.levels))


def can_append(form: Format) -> bool:
    """Whether entries that come in order can be appended: every level is full or appends.

    What comes in order may be stored where no order is promised.
    """
    return all(level.full or level.can_append for level in form.levels) and takes_anything(form)
