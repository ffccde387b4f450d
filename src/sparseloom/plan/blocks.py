"""Blocks of results in registers, where an operand does not depend on the rows: it is read once for several of them.

    C(i,k) = A(i,j) * B(j,k)      i, j, k   ==>   i0, k, i1, j       six values of i1 and a vector of k stay in registers while j runs
                                            or    k0: w(j,k1) = B(j,k); i0, k1, i1, j      where B is large: a panel of it is laid out

Nothing is recognised by its name: some operand must have the row of results and not what is repeated around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from sparseloom.core.names import Names
from sparseloom.iteration.foralls import accesses
from sparseloom.loops.lanes import has_vectors
from sparseloom.notation.nodes import Access, IndexVar, Races, Unit
from sparseloom.notation.printer import show
from sparseloom.plan.compose import Steps
from sparseloom.plan.decision import Decision
from sparseloom.plan.space import Space
from sparseloom.plan.vectors import LeafKind, leaf_of


@dataclass(frozen=True)
class RegisterBlock:
    """Loops over ``outer``, ``row``, the ``sums`` and ``lane``; ``shared`` is an operand that all rows read."""

    outer: tuple[IndexVar, ...]
    row: IndexVar
    sums: tuple[IndexVar, ...]
    lane: IndexVar
    shared: Access


def choose_blocks(space: Space, names: Names, in_threads: bool) -> list[Decision]:
    """Several rows of results in registers, and threads that share them; nothing where no operand is read again for every row."""
    block = block_of(space)
    if block is None:
        return []
    width, bytes, limits, steps = _width(space, block), _bytes(space, block), space.machine.blocks, Steps(names)
    is_packed = bytes > limits.near and space.extent(block.lane) >= limits.panels * width and len(block.shared.indices) > 1
    shared_by = (_packed if is_packed else _in_place)(steps, block, width, limits.rows)
    why = f"{show(block.shared)} is the same for all {space.extent(block.row):,} values of {block.row}"
    what = f"{limits.rows} rows of {width} results stay in registers"
    if is_packed:
        what += f", and panels of {width} columns of {block.shared.tensor} are laid out first"
        why += f", and its {bytes / 1024:,.0f} KB are more than the {limits.near >> 10} KB that stay near"
    found = [Decision(steps.all(), what, why, "one row at a time")]
    if in_threads and not block.outer:
        threads = Steps(names)
        threads.parallelize(shared_by, Unit.CPUThread, Races.NoRaces)
        found.append(Decision(threads.all(), f"threads take {'panels' if is_packed else 'blocks of rows'}", f"there are many {shared_by}"))
    return found


def block_of(space: Space) -> RegisterBlock | None:
    """The loops, if rows of results outside of sums share an operand: all that is read is dense, and of one dtype."""
    path = space.paths[0]
    if len(space.paths) != 1 or space.spine != path.variables or space.graph.relations or path.assign.op is None:
        return None
    leaf, lhs, read = leaf_of(space, path), path.assign.lhs, accesses(path.assign.rhs)
    if leaf is None or leaf.kind is not LeafKind.ROW or not _are_plain((lhs, *read)):
        return None
    around = [var for var in path.variables[:-1] if var in lhs.indices]
    sums = tuple(var for var in path.variables[:-1] if var not in lhs.indices)
    if not around or not sums:
        return None
    *outer, row = around
    shared = next(_shared(read, row, leaf.var, sums), None)
    block = None if shared is None else RegisterBlock(tuple(outer), row, sums, leaf.var, shared)
    return block if block is not None and _is_large(space, block) else None


def _shared(read: tuple[Access, ...], row: IndexVar, lane: IndexVar, sums: tuple[IndexVar, ...]) -> Iterator[Access]:
    """The operands that have the lane and not the row, beside others that have the row and not the lane."""
    if any(row in a.indices and lane not in a.indices for a in read):
        yield from (a for a in read if lane in a.indices and row not in a.indices and {*sums} & {*a.indices})


def _are_plain(tensors: tuple[Access, ...]) -> bool:
    """Whether all are dense, of one dtype of which there are vectors, and without a variable that repeats."""
    dtypes = {access.tensor.dtype for access in tensors}
    plain = all(a.tensor.format.is_dense and not a.tensor.format.blocks and len({*a.indices}) == len(a.indices) for a in tensors)
    return plain and len(dtypes) == 1 and all(map(has_vectors, dtypes))


def _is_large(space: Space, block: RegisterBlock) -> bool:
    return space.extent(block.row) >= space.machine.blocks.rows and space.extent(block.lane) >= _width(space, block)


def _width(space: Space, block: RegisterBlock) -> int:
    """How many results of a row stay in registers."""
    size, extent, limits = block.shared.tensor.dtype.itemsize, space.extent(block.lane), space.machine.blocks
    wide = limits.wide_bytes // size
    return wide if space.machine.masks and (extent % wide == 0 or extent >= limits.many * wide) else limits.lane_bytes // size


def _bytes(space: Space, block: RegisterBlock) -> int:
    """How much of the operand all rows read."""
    return prod(space.extent(var) for var in block.shared.indices if var not in block.outer) * block.shared.tensor.dtype.itemsize


def _in_place(steps: Steps, block: RegisterBlock, width: int, rows: int) -> IndexVar:
    """Blocks of rows, with the operand as it is; and the loop that threads share."""
    outer, inner = steps.split(block.row, rows, f"{block.row}0", f"{block.row}1")
    steps.reorder(*block.outer, outer, block.lane, inner, *block.sums)
    _keep(steps, inner, rows, block.lane, width)
    return outer


def _packed(steps: Steps, block: RegisterBlock, width: int, rows: int) -> IndexVar:
    """The same for panels of the lane, of which each is laid out first; and the loop that threads share."""
    panel, lane = steps.split(block.lane, width, f"{block.lane}0", f"{block.lane}1")
    own = (*(var for var in block.sums if var in block.shared.indices), lane)
    steps.reorder(*block.outer, panel, *block.sums, lane, block.row)
    steps.precompute(block.shared, own, tuple(steps.fresh(f"{var}w") for var in own), "w")
    outer, inner = steps.split(block.row, rows, f"{block.row}0", f"{block.row}1")
    steps.reorder(outer, lane, inner, *block.sums)
    _keep(steps, inner, rows, lane, width)
    return panel


def _keep(steps: Steps, inner: IndexVar, rows: int, lane: IndexVar, width: int) -> None:
    """Write out rows and lanes, so that each result has a place in a register."""
    steps.unroll(inner, rows)
    steps.unroll(lane, width)
    steps.parallelize(lane, Unit.CPUVector, Races.NoRaces)
