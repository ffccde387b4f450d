"""Where a parallel unit may stand: which loops may be around it, how far it may run, and what it can walk."""

from __future__ import annotations

from collections.abc import Iterator

from sparseloom.iteration.foralls import Path, accesses, paths, provenance, statements
from sparseloom.iteration.provenance import Provenance
from sparseloom.iteration.region import written
from sparseloom.iteration.walked import walked
from sparseloom.notation.nodes import Forall, Stmt, Unit, Where
from sparseloom.notation.printer import show
from sparseloom.schedule.refusal import Refusal, listed
from sparseloom.targets import target
from sparseloom.targets.interpret import with_warps
from sparseloom.targets.target import FACTS, Target, lanes_of_warp

# From the outside in: a unit may contain those behind it.
CPU_UNITS = tuple(one.unit for one in target.CPU_UNITS)
GPU_UNITS = tuple(one.unit for one in target.GPU_UNITS)


def misplaced(stmt: Stmt, on: Target) -> Refusal | None:
    """The first parallel loop that its unit cannot run where it stands, or that is too large for a target."""
    graph = provenance(stmt)
    sizes = with_warps(on)
    for path in paths(stmt):
        for depth, loop in enumerate(path.loops):
            unit = loop.tag.unit
            if unit is None:
                continue
            around = path.loops[:depth]
            around = tuple(outer for outer in around if unit is not Unit.CPUVector or not _shares_lanes(path, outer, depth, graph))
            if found := _nesting(loop, unit, around) or _extent(loop, unit, graph) or _lanes(stmt, loop, unit):
                return found
        if crowded := _block_size(path.loops, graph, sizes):
            return crowded
    return None


def _shares_lanes(path: Path, outer: Forall, depth: int, graph: Provenance) -> bool:
    """Whether the lanes of an outer loop share a number that is computed inside of it, by vectors of its own."""
    made, where = path.assign.lhs, path.temporaries.get(path.assign.lhs.tensor.name, 0)
    if outer.tag.unit is not Unit.CPUVector or made.indices or not path.loops.index(outer) < where <= depth:
        return False
    read = accesses(path.assign.rhs)
    is_known = not any(access.tensor.name in path.temporaries for access in read)
    return is_known and not graph.ancestors(outer.var) & {var for access in read for var in access.indices}


def _nesting(loop: Forall, unit: Unit, outer: tuple[Forall, ...]) -> Refusal | None:
    order = CPU_UNITS if unit in CPU_UNITS else GPU_UNITS
    for around in outer:
        above = around.tag.unit
        if above is None:
            if unit is Unit.GPUBlock:
                why = f"the serial loop over {around.var} is outside the GPUBlock loop over {loop.var}"
                return Refusal("S803", why, "one kernel is launched, so reorder the block loop to the outside", at=around.var)
        elif above not in order:
            why = f"{unit.name} over {loop.var} cannot run inside {above.name} over {around.var}: one is on the CPU, the other on the GPU"
            return Refusal("S804", why, "use units of one device", at=loop.var)
        elif above == unit:
            why = f"the loops over {around.var} and {loop.var} would both be run by {unit.name}"
            return Refusal("S805", why, "fuse them, or use another unit for one", at=loop.var)
        elif order.index(above) > order.index(unit):
            why = f"{unit.name} over {loop.var} cannot run inside {above.name} over {around.var}"
            return Refusal("S806", why, f"from the outside in, the order is {listed(u.name for u in order)}", at=loop.var)
    return None


def _extent(loop: Forall, unit: Unit, graph: Provenance) -> Refusal | None:
    if FACTS[unit].needs_constant and graph.extent(loop.var) is None:
        why = f"the extent of {loop.var} is not a constant, and {unit.name} needs one"
        return Refusal("S807", why, "split the loop and use the inner variable, or give its limit with bound", at=loop.var)
    return None


def _lanes(stmt: Stmt, loop: Forall, unit: Unit) -> Refusal | None:
    """A loop that becomes a merge or a nest has iterations that depend on each other, so they cannot be lanes."""
    if not FACTS[unit].has_lanes:
        return None
    arrays = [made.tensor for n in statements(loop.body) if isinstance(n, Where) and (made := written(n.producer)).indices]
    if arrays and unit is Unit.CPUVector:
        why = f"each iteration of {loop.var} has an array {arrays[0]} of its own, and lanes have only registers"
        return Refusal("S813", why, "vectorize a loop inside of it, or precompute outside of this one", at=loop.var)
    for found in walked(stmt, loop.var):
        if found.merges:
            why = f"the loop over {loop.var} merges {listed(map(show, found.sparse))}: each step depends on the last, so it has no lanes"
            return Refusal("S808", why, "use CPUThread or GPUBlock, which cut the range, or pos on one operand", at=loop.var)
        if found.is_nest:
            why = f"the loop over {loop.var} becomes a nest over the levels of {listed(map(show, found.sparse))}, so it has no lanes"
            return Refusal("S809", why, "use pos first: positions can be lanes", at=loop.var)
    return None


def _block_size(loops: tuple[Forall, ...], graph: Provenance, on: Target) -> Refusal | None:
    """A warp has so many lanes, and a block so many threads."""
    extents = dict(_threads(loops, graph))
    lanes, warps = extents.get(Unit.GPUThread), extents.get(Unit.GPUWarp)
    var = next((loop.var for loop in loops if loop.tag.unit is Unit.GPUThread), None)
    if warps is not None and lanes is not None and lanes > on.lanes:
        return Refusal("S810", f"{var} has {lanes} iterations, but a warp has {on.lanes} lanes", f"split it by {on.lanes}", at=var)
    threads = (warps * lanes_of_warp(lanes or 1, on.lanes) if warps is not None else lanes) or 0
    if threads > on.threads_per_block:
        at = var if warps is None else next(loop.var for loop in loops if loop.tag.unit is Unit.GPUWarp)
        return Refusal("S811", f"a block would have {threads} threads, and {on.threads_per_block} is the most", "use smaller blocks", at=at)
    return None


def _threads(loops: tuple[Forall, ...], graph: Provenance) -> Iterator[tuple[Unit, int]]:
    for loop in loops:
        extent = graph.extent(loop.var)
        if loop.tag.unit is not None and FACTS[loop.tag.unit].needs_constant and extent is not None:
            yield loop.tag.unit, extent
