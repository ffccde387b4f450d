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
from sparseloom.notation.nodes import Access, IndexVar, Races, Unit
from sparseloom.notation.printer import show
from sparseloom.plan.compose import Steps
from sparseloom.plan.decision import Decision
from sparseloom.plan.machine import CONSTANT
from sparseloom.plan.space import Space

IN_LANES, IN_WORDS = ("add", "multiply", "minimum", "maximum"), "sums, products, minima and maxima"


class LeafKind(Enum):
    """What an innermost loop does."""

    ROW = "row"  # neighbouring values of a dense result
    DOT = "dot"  # adds up products of neighbouring values
    GATHER = "gather"  # adds up what the entries of one operand find elsewhere


@dataclass(frozen=True)
class Leaf:
    """An innermost loop that can run in vectors."""

    path: Path
    var: IndexVar
    kind: LeafKind
    driver: Access | None = None


def choose_vectors(space: Space, names: Names, may_move: bool = True) -> list[Decision]:
    """What to do with innermost loops, which ``may_move`` out of sums, unless outer loops are fused."""
    leaves = [leaf for path in space.paths if (leaf := leaf_of(space, path)) is not None]
    alone = [leaf for leaf in leaves if sum(leaf.var in path.variables for path in space.paths) == 1 or _is_around_sums(space, leaf)]
    found = [_decide(space, leaf, names, may_move) for leaf in alone]
    return [decision for decision in found if decision is not None]


def choose_lanes(space: Space) -> list[Decision]:
    """Sums of neighbouring values and of entries in vectors, without constants that would take a kernel for every extent."""
    if len(space.paths) != 1 or (leaf := leaf_of(space, space.paths[0])) is None or leaf.kind is LeafKind.ROW:
        return []
    extent, steps = space.extent(leaf.var), Steps(Names())
    if leaf.driver is not None:
        found = _gather(space, leaf, leaf.driver, steps)
        return [] if found is None else [found]
    if extent < space.machine.vectors.shortest_sum:
        return []
    steps.parallelize(leaf.var, Unit.CPUVector, Races.ParallelReduction)
    why = f"{leaf.var} has {extent:,} values side by side, which are added up"
    return [Decision(steps.all(), "vectors that are added up in the end", why)]


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
        return Leaf(path, var, LeafKind.ROW) if not sparse and lhs.tensor.format.levels[-1].full else None
    if path.assign.op is None or len(sparse) > 1:
        return None
    return Leaf(path, var, LeafKind.GATHER if sparse else LeafKind.DOT, driver)


def _is_around_sums(space: Space, leaf: Leaf) -> bool:
    """Whether a loop over neighbouring values of a result has sums inside, into numbers, that read neighbouring values too."""
    sums = [path for path in space.paths if path is not leaf.path]
    if leaf.kind is not LeafKind.ROW or space.spine[-1:] != (leaf.var,) or any(path.assign.lhs.indices for path in sums):
        return False
    read = [access for path in sums for access in accesses(path.assign.rhs) if space.is_over(leaf.var, access)]
    return bool(read) and all(space.is_last(leaf.var, access) and access.tensor.format.levels[-1].full for access in read)


def _decide(space: Space, leaf: Leaf, names: Names, may_move: bool) -> Decision | None:
    steps = Steps(names)
    if leaf.driver is not None:
        return _gather(space, leaf, leaf.driver, steps)
    extent, var = space.extent(leaf.var), leaf.var
    lanes = _few_lanes(space, leaf, may_move)
    if extent < space.machine.vectors.shortest and not lanes:
        return None
    is_constant = extent <= CONSTANT
    if is_constant:
        var = steps.bound(var, extent)
    if leaf.kind is LeafKind.DOT:
        steps.parallelize(var, Unit.CPUVector, Races.ParallelReduction)
        what, why = "vectors that are added up in the end", f"{leaf.var} has {extent:,} values side by side, which are added up"
        if _ask_ahead(space, steps):
            what, why = f"{what}, rows asked for ahead", f"{why}, and rows are found far from each other"
        return Decision(steps.all(), what, why)
    if may_move and not is_constant and (panels := _in_panels(space, leaf, names)) is not None:
        return panels
    why = f"{leaf.var} has {extent:,} values side by side" + (", few enough for a constant" if is_constant else "")
    order = _in_registers(space, leaf, var) if may_move and (is_constant or _walks(space, leaf)) else None
    if order is not None:
        steps.reorder(*order)
    if lanes:
        steps.unroll(var, lanes)
    steps.parallelize(var, Unit.CPUVector, Races.NoRaces)
    return Decision(steps.all(), "vectors" if order is None else "vectors that stay in registers while sums run", why)


def _few_lanes(space: Space, leaf: Leaf, may_move: bool) -> int:
    """How many results there are side by side, if they are fewer than the lanes of a vector, and stay in registers while sums run."""
    extent, size = space.extent(leaf.var), leaf.path.assign.lhs.tensor.dtype.itemsize
    fits = leaf.kind is LeafKind.ROW and may_move and 0 < extent < space.machine.vectors.vector // size
    return extent if fits and _in_registers(space, leaf, leaf.var) is not None else 0


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
    extent, steps = space.extent(row), Steps(names)
    inner = steps.bound(row, extent) if space.machine.vectors.shortest <= extent <= CONSTANT else row
    steps.reorder(*outer, summed, inner)
    why = f"values of {strides[0].tensor} stand side by side along {row}, and apart along {summed}"
    return [Decision(steps.all(), f"{row} runs inside {summed}", why)]


def _ask_ahead(space: Space, steps: Steps) -> bool:
    """Ask ahead for rows of dense operands that scattered entries find, if those are large together."""
    read = list(dict.fromkeys(access for path in space.paths for access in accesses(path.assign.rhs)))
    finding = {space.levels(a)[-1] for a in read if a.indices and (known := space.known(a)) is not None and known.scattered}
    rows = [a for a in read if a.tensor.format.is_dense and len(a.indices) > 1 and finding & {*space.levels(a)[:-1]}]
    if sum(prod(map(space.extent, a.indices)) * a.tensor.dtype.itemsize for a in rows) <= space.machine.vectors.far:
        return False
    for access in rows:
        for var in sorted(finding & {*space.levels(access)[:-1]}, key=str):
            steps.prefetch(access, var, space.machine.vectors.ahead)
    return bool(rows)


def _gather(space: Space, leaf: Leaf, driver: Access, steps: Steps) -> Decision | None:
    """A vector of entries, where rows are long enough. Those of a large operand are asked for ahead: one row follows the other."""
    fan, bytes = space.fan(driver, len(driver.tensor.format.levels) - 1), space.entries(driver) * driver.tensor.dtype.itemsize
    if fan < _shortest_row(space, leaf, driver, bytes) or space.levels(driver)[-1] != leaf.var:
        return None
    what, limits = "vectors that are added up in the end", space.machine.vectors
    why = f"about {fan:,.0f} entries of {driver.tensor} in a row"
    if leaf.path.assign.op not in IN_LANES:
        steps.unroll(leaf.var, limits.together)
        turns = Decision(steps.all(), f"{limits.together} entries in a turn", why, f"vectors, which have {IN_WORDS} alone")
        return turns if fan >= limits.long_row else None
    steps.parallelize(leaf.var, Unit.CPUVector, Races.ParallelReduction)
    if bytes > limits.streamed:
        steps.prefetch(driver, leaf.var, limits.stream if fan >= limits.long_row else limits.stream_of_short)
        what += ", entries asked for ahead"
    return Decision(steps.all(), what, why)


def _shortest_row(space: Space, leaf: Leaf, driver: Access, bytes: int) -> float:
    """From how many entries in a row on vectors pay. Lanes of minima and maxima, which keep what is no number, take longer to join.

    Where processors foresee the end of a row, since it is as long as the one before, entries one by one are as quick as a slow gather.
    """
    op, limits = leaf.path.assign.op, space.machine.vectors
    if op in IN_LANES and not space.machine.gathers and (known := space.known(driver)) is not None and known.steady:
        return limits.steady_row
    if not space.machine.masks or op not in ("add", "multiply"):
        return limits.long_row
    return limits.masked_row if bytes >= limits.large else limits.vector / driver.tensor.dtype.itemsize


def _in_registers(space: Space, leaf: Leaf, lanes: IndexVar) -> tuple[IndexVar, ...] | None:
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
        return (*rest, *free, lanes, *outer_sums, *sums)
    return (*rest, *outer_sums, *free, lanes, *sums) if sums else None


def _walks(space: Space, leaf: Leaf) -> bool:
    """Whether sums run over the entries of an operand: what they find is far apart in any case, and strips of rows cost nothing more."""
    sums = [var for var in leaf.path.variables if not space.is_over(var, leaf.path.assign.lhs)]
    read = [a for a in accesses(leaf.path.assign.rhs) if not a.tensor.format.is_dense]
    return any(var in space.levels(a) for a in read for var in sums)


def _in_panels(space: Space, leaf: Leaf, names: Names) -> Decision | None:
    """Panels of a row of results, one after another, where scattered entries find rows of an operand that is too large for a cache."""
    order, extent, limits = _in_registers(space, leaf, leaf.var), space.extent(leaf.var), space.machine.vectors
    found = [(a, by) for a in accesses(leaf.path.assign.rhs) if leaf.var in a.indices and (by := _finder(space, leaf, a)) is not None]
    if order is None or len(found) != 1:
        return None
    (access, finder) = found[0]
    rows, size = prod(map(space.extent, access.indices)) // max(extent, 1), access.tensor.dtype.itemsize
    cache = space.machine.cache
    width = next((count for count in limits.panels if count * rows * size <= cache // 8 and extent <= limits.most_panels * count), None)
    if width is None or extent * rows * size <= cache // 4 or space.entries(finder) < limits.reused * rows:
        return None
    steps = Steps(names)
    panel, inside = steps.split(leaf.var, width, f"{leaf.var}0", f"{leaf.var}1")
    steps.reorder(panel, *(inside if var == leaf.var else var for var in order))
    steps.parallelize(inside, Unit.CPUVector, Races.NoRaces)
    large, small = (f"{count * rows * size / 2**20:.1f} MB" for count in (extent, width))
    why = f"{show(access)} has {large}, a panel of it {small}, and a quarter and an eighth of the cache are {cache / 2**22:.1f} and "
    why += f"{cache / 2**23:.1f} MB; each row is read about {space.entries(finder) / max(rows, 1):.0f} times"
    return Decision(steps.all(), f"panels of {width} columns, in vectors that stay in registers while sums run", why, "whole rows")


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
    is_near = values * leaf.path.assign.lhs.tensor.dtype.itemsize <= space.machine.vectors.close
    return is_near and prod(map(space.extent, free)) <= space.machine.vectors.few and not set(free) & set(walked)
