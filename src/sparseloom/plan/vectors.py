"""Innermost loops: which run in vectors, which get a constant extent, and where a vector of results stays in registers.

C(i,k) = A(i,j) * B(j,k)        i, j, k   ==>   i, kb, j        kb in vectors, 32 values: a row of C is in registers while j runs
                                          or    k0, i, k1, j    panels of columns, where B is too large for a cache, and they are not
C(i,k) = A(i,j) * B(j,k) + D(i,k)         i, kb, j              the sum is a number inside of kb, of which every lane has its own
A(i,j) = B(i,j) * C(i,k) * D(j,k)                               k in vectors that are added up in the end
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod

from sparseloom.core.names import Names
from sparseloom.iteration.foralls import Path, accesses
from sparseloom.notation.nodes import Access, IndexVar
from sparseloom.notation.printer import show
from sparseloom.plan.decision import Decision
from sparseloom.plan.space import Space

CONSTANT = 256  # the largest extent that is worth a kernel of its own
SHORTEST, SHORTEST_SUM = 4, 16  # values; fewer do not fill a vector, or take as long as adding up its lanes
FAR = 1 << 18  # bytes of rows that are found anywhere; asking ahead for them pays from here on
LARGE = 1 << 20  # bytes of entries, as much as a core has close by
STREAMED = 1 << 25  # bytes of entries, more than all cores have close by; asking ahead for them pays from here on
AHEAD = 4  # entries
LONG_ROW, MASKED_ROW = 32.0, 8.0  # entries; gathers into vectors pay from here on, also with masks where much is read
STEADY_ROW = 128.0  # entries, of rows that are all as long, where gathers are slow
VECTOR = 64  # bytes; with masks, rows that fill a vector pay wherever they are
STREAM, STREAM_OF_SHORT = 256, 128  # entries ahead, where rows are long and where they are short
PANELS, MOST_PANELS = (256, 128), 4  # columns, the larger ones first; and how often entries may be walked again
REUSED = 8  # how often a row of an operand is read, at least, for a panel to be worth it
CLOSE = 1 << 14  # bytes that are still in the nearest cache when they are read again
FEW = 16  # how often they may be read again
TOGETHER = 4  # entries
IN_LANES, IN_WORDS = ("add", "multiply", "minimum", "maximum"), "sums, products, minima and maxima"


class Kind(Enum):
    """What an innermost loop does."""

    ROW = "row"  # neighbouring values of a dense result
    DOT = "dot"  # adds up products of neighbouring values
    GATHER = "gather"  # adds up what the entries of one operand find elsewhere


@dataclass(frozen=True)
class Leaf:
    """An innermost loop that can run in vectors."""

    path: Path
    var: IndexVar
    kind: Kind
    driver: Access | None = None


def choose_vectors(space: Space, names: Names, may_move: bool = True) -> list[Decision]:
    """What to do with innermost loops, which ``may_move`` out of sums, unless outer loops are fused."""
    leaves = [leaf for path in space.paths if (leaf := leaf_of(space, path)) is not None]
    alone = [leaf for leaf in leaves if sum(leaf.var in path.variables for path in space.paths) == 1 or _is_around_sums(space, leaf)]
    found = [_decide(space, leaf, names, may_move) for leaf in alone]
    return [decision for decision in found if decision is not None]


def choose_lanes(space: Space) -> list[Decision]:
    """Sums of neighbouring values and of entries in vectors, without constants that would take a kernel for every extent."""
    if len(space.paths) != 1 or (leaf := leaf_of(space, space.paths[0])) is None or leaf.kind is Kind.ROW:
        return []
    if leaf.driver is not None:
        found = _gather(space, leaf, leaf.driver)
        return [] if found is None else [found]
    extent = space.extent(leaf.var)
    why = f"{leaf.var} has {extent:,} values side by side, which are added up"
    steps = (f"parallelize({leaf.var},CPUVector,ParallelReduction)",)
    return [Decision(steps, "vectors that are added up in the end", why)] if extent >= SHORTEST_SUM else []


def leaf_of(space: Space, path: Path) -> Leaf | None:
    """The innermost loop of an assignment, if all it reads and writes there stands side by side or is found by one operand."""
    if not path.loops:
        return None
    var, lhs = path.variables[-1], path.assign.lhs
    read = accesses(path.assign.rhs)
    if any(not space.is_last(var, access) for access in (lhs, *read)):
        return None
    sparse = [access for access in read if var in access.indices and not access.tensor.format.levels[-1].full]
    driver = sparse[0] if len(sparse) == 1 else None
    if space.is_over(var, lhs):
        return Leaf(path, var, Kind.ROW) if not sparse and lhs.tensor.format.levels[-1].full else None
    if path.assign.op is None or len(sparse) > 1:
        return None
    return Leaf(path, var, Kind.GATHER if sparse else Kind.DOT, driver)


def _is_around_sums(space: Space, leaf: Leaf) -> bool:
    """Whether a loop over neighbouring values of a result has sums inside, into numbers, that read neighbouring values too."""
    sums = [path for path in space.paths if path is not leaf.path]
    if leaf.kind is not Kind.ROW or space.spine[-1:] != (leaf.var,) or any(path.assign.lhs.indices for path in sums):
        return False
    read = [access for path in sums for access in accesses(path.assign.rhs) if space.is_over(leaf.var, access)]
    return bool(read) and all(space.is_last(leaf.var, access) and access.tensor.format.levels[-1].full for access in read)


def _decide(space: Space, leaf: Leaf, names: Names, may_move: bool) -> Decision | None:
    if leaf.driver is not None:
        return _gather(space, leaf, leaf.driver)
    extent = space.extent(leaf.var)
    if extent < SHORTEST:
        return None
    steps: tuple[str, ...] = ()
    var = leaf.var.name
    if extent <= CONSTANT:
        var = names.fresh(f"{leaf.var}b")
        steps = (f"bound({leaf.var},{var},{extent},MaxExact)",)
    if leaf.kind is Kind.DOT:
        why = f"{leaf.var} has {extent:,} values side by side, which are added up"
        ahead = _asked_ahead(space)
        if ahead:
            why += ", and rows are found far from each other"
        tag = f"parallelize({var},CPUVector,ParallelReduction)"
        return Decision((*steps, tag, *ahead), "vectors that are added up in the end" + (", rows asked for ahead" if ahead else ""), why)
    if may_move and not steps and (panels := _in_panels(space, leaf, names)) is not None:
        return panels
    why = f"{leaf.var} has {extent:,} values side by side" + (", few enough for a constant" if steps else "")
    order = _in_registers(space, leaf, var) if may_move and (steps or _walks(space, leaf)) else None
    moved = () if order is None else (f"reorder({','.join(order)})",)
    what = "vectors" if order is None else "vectors that stay in registers while sums run"
    return Decision((*steps, *moved, f"parallelize({var},CPUVector,NoRaces)"), what, why)


def choose_rows(space: Space, names: Names) -> list[Decision]:
    """Move a loop over neighbouring values inside the sum around which it stands, where entries would be read in strides instead."""
    if len(space.paths) != 1 or len(space.spine) < 2 or space.spine != space.paths[0].variables:
        return []
    (*outer, row, summed), assign = space.spine, space.paths[0].assign
    read = accesses(assign.rhs)
    along = [a for a in (assign.lhs, *read) if row in space.levels(a)]
    is_row = all(space.levels(a)[-1] == row and a.tensor.format.levels[-1].full for a in along)
    strides = [a for a in read if summed in space.levels(a)[:-1] and space.levels(a)[-1] == row]
    if not is_row or not strides or summed in space.levels(assign.lhs) or assign.op is None:
        return []
    extent, name, steps = space.extent(row), row.name, list[str]()
    if SHORTEST <= extent <= CONSTANT:
        name = names.fresh(f"{row}b")
        steps.append(f"bound({row},{name},{extent},MaxExact)")
    steps.append(f"reorder({','.join(map(str, (*outer, summed, name)))})")
    why = f"values of {strides[0].tensor} stand side by side along {row}, and apart along {summed}"
    return [Decision(tuple(steps), f"{row} runs inside {summed}", why)]


def _asked_ahead(space: Space) -> tuple[str, ...]:
    """Ask ahead for rows of dense operands that scattered entries find, if those are large together."""
    read = list(dict.fromkeys(access for path in space.paths for access in accesses(path.assign.rhs)))
    finding = {space.levels(a)[-1] for a in read if a.indices and (known := space.known(a)) is not None and known.scattered}
    rows = [a for a in read if a.tensor.format.is_dense and len(a.indices) > 1 and finding & {*space.levels(a)[:-1]}]
    if sum(prod(map(space.extent, a.indices)) * a.tensor.dtype.itemsize for a in rows) <= FAR:
        return ()
    return tuple(f"prefetch({show(a)},{var},{AHEAD})" for a in rows for var in sorted(finding & {*space.levels(a)[:-1]}, key=str))


def _gather(space: Space, leaf: Leaf, driver: Access) -> Decision | None:
    """A vector of entries, where rows are long enough. Those of a large operand are asked for ahead: one row follows the other."""
    fan, bytes = space.fan(driver, len(driver.tensor.format.levels) - 1), space.entries(driver) * driver.tensor.dtype.itemsize
    if fan < _shortest_row(space, leaf, driver, bytes) or space.levels(driver)[-1] != leaf.var:
        return None
    why, what = f"about {fan:,.0f} entries of {driver.tensor} in a row", "vectors that are added up in the end"
    if leaf.path.assign.op not in IN_LANES:
        turns = Decision((f"unroll({leaf.var},{TOGETHER})",), f"{TOGETHER} entries in a turn", why, f"vectors, which have {IN_WORDS} alone")
        return turns if fan >= LONG_ROW else None
    steps = [f"parallelize({leaf.var},CPUVector,ParallelReduction)"]
    if bytes > STREAMED:
        steps.append(f"prefetch({show(driver)},{leaf.var},{STREAM if fan >= LONG_ROW else STREAM_OF_SHORT})")
        what += ", entries asked for ahead"
    return Decision(tuple(steps), what, why)


def _shortest_row(space: Space, leaf: Leaf, driver: Access, bytes: int) -> float:
    """From how many entries in a row on vectors pay. Lanes of minima and maxima, which keep what is no number, take longer to join.

    Where processors foresee the end of a row, since it is as long as the one before, entries one by one are as quick as a slow gather.
    """
    op = leaf.path.assign.op
    if op in IN_LANES and not space.gathers and (known := space.known(driver)) is not None and known.steady:
        return STEADY_ROW
    if not space.masks or op not in ("add", "multiply"):
        return LONG_ROW
    return MASKED_ROW if bytes >= LARGE else VECTOR / driver.tensor.dtype.itemsize


def _in_registers(space: Space, leaf: Leaf, name: str) -> tuple[str, ...] | None:
    """The order of loops in which the row of a result is moved out of the sums over it; None if there are none.

    Sums may stand around short loops over the result, as in blocks; those leave them too, where what is summed is near when read again.
    """
    variables = leaf.path.variables
    if leaf.path.assign.op is None or space.spine != variables:
        return None
    lhs, (*rest, _) = leaf.path.assign.lhs, variables
    sums = _taken(rest, lambda var: not space.is_over(var, lhs))
    free = _taken(rest, lambda var: space.is_over(var, lhs))
    outer_sums = _taken(rest, lambda var: not space.is_over(var, lhs))
    if rest and outer_sums and _may_leave(space, leaf, free, (*rest, *free)):
        return (*map(str, (*rest, *free)), name, *map(str, (*outer_sums, *sums)))
    return (*map(str, (*rest, *outer_sums, *free)), name, *map(str, sums)) if sums else None


def _walks(space: Space, leaf: Leaf) -> bool:
    """Whether sums run over the entries of an operand: what they find is far apart in any case, and strips of rows cost nothing more."""
    sums = [var for var in leaf.path.variables if not space.is_over(var, leaf.path.assign.lhs)]
    read = [a for a in accesses(leaf.path.assign.rhs) if not a.tensor.format.is_dense]
    return any(var in space.levels(a) for a in read for var in sums)


def _in_panels(space: Space, leaf: Leaf, names: Names) -> Decision | None:
    """Panels of a row of results, one after another, where scattered entries find rows of an operand that is too large for a cache."""
    order, extent = _in_registers(space, leaf, leaf.var.name), space.extent(leaf.var)
    found = [(a, by) for a in accesses(leaf.path.assign.rhs) if leaf.var in a.indices and (by := _finder(space, leaf, a)) is not None]
    if order is None or len(found) != 1:
        return None
    (access, finder) = found[0]
    rows, size = prod(map(space.extent, access.indices)) // max(extent, 1), access.tensor.dtype.itemsize
    width = next((count for count in PANELS if count * rows * size <= space.cache // 8 and extent <= MOST_PANELS * count), None)
    if width is None or extent * rows * size <= space.cache // 4 or space.entries(finder) < REUSED * rows:
        return None
    panel, inside = names.fresh(f"{leaf.var}0"), names.fresh(f"{leaf.var}1")
    inner = ",".join(inside if var == leaf.var.name else var for var in order)
    steps = (f"split({leaf.var},{panel},{inside},{width})", f"reorder({panel},{inner})", f"parallelize({inside},CPUVector,NoRaces)")
    large, small = (f"{count * rows * size / 2**20:.1f} MB" for count in (extent, width))
    why = f"{show(access)} has {large}, a panel of it {small}, and a quarter and an eighth of the cache are {space.cache / 2**22:.1f} and "
    why += f"{space.cache / 2**23:.1f} MB; each row is read about {space.entries(finder) / max(rows, 1):.0f} times"
    return Decision(steps, f"panels of {width} columns, in vectors that stay in registers while sums run", why, "whole rows")


def _finder(space: Space, leaf: Leaf, access: Access) -> Access | None:
    """The operand whose scattered entries find the rows of a dense one."""
    if not access.tensor.format.is_dense or len(access.indices) != 2:
        return None
    read = (a for a in accesses(leaf.path.assign.rhs) if (known := space.known(a)) is not None and known.scattered)
    return next((a for a in read if space.levels(a)[-1] in space.levels(access)[:-1]), None)


def _taken(variables: list[IndexVar], holds: Callable[[IndexVar], bool]) -> list[IndexVar]:
    """The last variables of which something holds; they are taken off the others."""
    found: list[IndexVar] = []
    while variables and holds(variables[-1]):
        found.insert(0, variables.pop())
    return found


def _may_leave(space: Space, leaf: Leaf, free: Sequence[IndexVar], outside: Sequence[IndexVar]) -> bool:
    """Whether loops over the result may leave the sums around them: no operand walks entries there, and rereading is cheap."""
    read = accesses(leaf.path.assign.rhs)
    walked = [var for a in read for var, level in zip(space.levels(a), a.tensor.format.levels, strict=True) if not level.full]
    values = space.iterations(leaf.path, leaf.path.variables) / max(space.iterations(leaf.path, outside), 1.0)
    is_near = values * leaf.path.assign.lhs.tensor.dtype.itemsize <= CLOSE
    return is_near and prod(map(space.extent, free)) <= FEW and not set(free) & set(walked)
