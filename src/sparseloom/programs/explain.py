"""What a kernel does, in words: who drives each loop, which races there are, what is converted, where the result goes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat

from sparseloom.compiler import Stages
from sparseloom.core.trees import walk
from sparseloom.formats.named import name_of
from sparseloom.loops import nodes as ir
from sparseloom.loops.nodes import LoopKind
from sparseloom.lower.trips import trips
from sparseloom.notation import printer
from sparseloom.notation.contents import numbers_in
from sparseloom.notation.nodes import Forall, Unit
from sparseloom.schedule.races import Conflict
from sparseloom.schedule.schedule import Schedule


def explain(stages: Stages, sizes: Mapping[str, int], stored: Mapping[str, Sequence[int]]) -> str:
    """The story of one kernel, on operands of these sizes if there are any yet, with so many positions at the root and every level."""
    tensor = stages.assign.lhs.tensor
    lines = [printer.show(stages.assign)]
    numbers = {var.name for var in numbers_in(stages.assign)}
    if extents := [f"{name}: {size:,}" for name, size in sizes.items() if name not in numbers]:
        lines += ["", "extents", f"  {', '.join(extents)}"]
    lines += ["", "loops", *_loops(stages, sizes, stored)]
    if stages.concrete.closes:
        lines += ["", "unstored entries", "  counted, and applied in closed form: no loop visits their coordinates"]
    if became := list(_tagged(stages)):
        lines += ["", "parallel, vector and unrolled loops", *(f"  {line}" for line in became)]
    if any(loop.tag.unit is not None for loop in walk(stages.concrete.stmt) if isinstance(loop, Forall)):
        conflicts = Schedule(stages.concrete).conflicts
        lines += ["", "races", *([f"  {_resolved(conflict)}" for conflict in conflicts] or ["  none: proved"])]
    lines += ["", "conversions", *([f"  {conversion}" for conversion in stages.concrete.conversions] or ["  none"])]
    how = ("dense" if tensor.format.is_dense else name_of(tensor.format), stages.concrete.making.story, str(tensor.stored_dtype))
    lines += ["", "result", f"  {tensor.name}: {', '.join(filter(None, how))}"]
    if stages.lowered.fill != 0:
        lines.append(f"  where nothing is stored it is {stages.lowered.fill}")
    return "\n".join(lines)


def _loops(stages: Stages, sizes: Mapping[str, int], stored: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """The loop nest: who drives each loop, and how often it runs where the data tell."""
    remarks = stages.lowered.remarks
    counts = trips(stages.concrete.stmt, remarks, sizes, stored) if sizes else repeat(None)
    for remark, count in zip(remarks, counts, strict=False):
        yield f"{'  ' * remark.depth}{remark.text}" + ("" if count is None else f" ({count})")


_UNITS = {
    Unit.CPUThread: (LoopKind.THREADS, "parallel loop, shared out among the cores"),
    Unit.CPUVector: (LoopKind.VECTOR, "vector loop, left to the C compiler"),
    Unit.GPUBlock: (LoopKind.GPU_BLOCK, "parallel loop over blocks"),
    Unit.GPUWarp: (LoopKind.GPU_WARP, "parallel loop over the warps of a block"),
    Unit.GPUThread: (LoopKind.GPU_THREAD, "parallel loop over threads"),
}


_GONE = "; no loop is left, for it has at most one iteration"


def _tagged(stages: Stages) -> Iterator[str]:
    """What became of every loop that the schedule wants in parallel, in vectors or unrolled: passes say so, or the loops that are left."""
    outcomes = {outcome.loop: outcome for outcome in stages.lowered.outcomes}
    left: dict[str, set[LoopKind]] = {}
    for n in walk(stages.lowered.function, ir.Stmt):
        match n:
            case ir.For():
                for name in {n.origin, n.var.name}:
                    left.setdefault(name, set()).add(n.kind)
            case ir.While(factor=factor) if factor:
                left.setdefault(n.origin, set()).add(LoopKind.UNROLLED)
    for loop in dict.fromkeys(n for n in walk(stages.concrete.stmt) if isinstance(n, Forall)):
        name, unit, factor = loop.var.name, loop.tag.unit, loop.tag.unroll
        kinds = left.get(name, set())
        if name in outcomes:
            yield str(outcomes[name])
        elif unit is not None:
            kind, words = _UNITS[unit]
            shared = "".join(f"; {split}" for split in stages.lowered.splits if split.loop == name)
            yield f"{name}: {words}{shared}{'' if kind in kinds else _GONE}"
        elif factor:
            yield f"{name}: unrolled by {factor}{'' if LoopKind.UNROLLED in kinds else _GONE}"


def _resolved(conflict: Conflict) -> str:
    if conflict.resolved is None:
        return f"{conflict}: ignored, as the schedule says"
    var, strategy = conflict.resolved
    return f"{conflict}: resolved by {strategy.name} on {var}"
