"""What a kernel does, in words: who drives each loop, which races there are, what is converted, where the result goes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat

from sparseloom.compiler import Stages
from sparseloom.core.trees import walk
from sparseloom.formats.named import name_of
from sparseloom.lower.trips import trips
from sparseloom.notation import printer
from sparseloom.notation.contents import numbers_in
from sparseloom.notation.nodes import Forall
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


def _resolved(conflict: Conflict) -> str:
    if conflict.resolved is None:
        return f"{conflict}: ignored, as the schedule says"
    var, strategy = conflict.resolved
    return f"{conflict}: resolved by {strategy.name} on {var}"
