"""A schedule for a statement: how threads share the loops, and what runs in vectors.

Choices come best first, as values: decisions with the steps that they add. What the machine has no unit for is left out. Small problems
stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sparseloom.core.names import Names
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.foralls import taken_names
from sparseloom.iteration.layout import is_filled
from sparseloom.iteration.making import Inserted
from sparseloom.notation.nodes import Access, Races, Unit
from sparseloom.plan.blocks import block_of, choose_blocks
from sparseloom.plan.compose import Steps
from sparseloom.plan.decision import Choice, Decision
from sparseloom.plan.flat import choose_flat
from sparseloom.plan.gpu import choose_on_gpu
from sparseloom.plan.space import Space
from sparseloom.plan.sums import Inside, sum_inside
from sparseloom.plan.threads import choose_places, choose_threads, every_way
from sparseloom.plan.vectors import choose_lanes, choose_rows, choose_vectors
from sparseloom.schedule.laws import appended_result
from sparseloom.schedule.primitive import Primitive
from sparseloom.schedule.primitives import Parallelize


def choices(concrete: Concrete, space: Space, ordered: bool = False) -> Iterator[Choice]:
    """Schedules for a statement, best first; the last one is always that of plain loops. ``ordered``: none adds in any order."""
    if space.machine.has(Unit.GPUBlock):
        found = choose_on_gpu(concrete, space, ordered)
        yield from (Choice((decision,)) for decision in found if not (ordered and any(map(_adds_in_any_order, decision.steps))))
    elif appended_result(concrete) is not None:
        yield from _appended(concrete, space)
    else:
        yield from choose_flat(concrete, space)
        yield from _plainly_placed(concrete, space)
    yield Choice()


def _plainly_placed(concrete: Concrete, space: Space) -> Iterator[Choice]:
    """Loops over rows of a result every place of which is known when they begin."""
    if space.seconds >= space.machine.worth.vectors:
        if inside := _inside(concrete, space):
            yield from _in_place(inside.concrete, inside.space, inside.decision)
            yield _together(space, inside.decision)
        yield from _in_place(concrete, space)
    elif space.seconds >= space.machine.worth.sums:
        yield _together(space, *choose_lanes(space))


def _inside(concrete: Concrete, space: Space) -> Inside | None:
    return sum_inside(concrete, space) if space.machine.has(Unit.CPUVector) else None


def _in_place(concrete: Concrete, space: Space, *before: Decision) -> Iterator[Choice]:
    """A result every place of which is known when the loops begin; some decisions were made ``before``."""
    work = space.seconds
    if work < space.machine.worth.vectors:
        return
    taken = taken_names(concrete.stmt)
    in_threads = space.machine.shares(work)
    if blocks := choose_blocks(space, Names(taken), in_threads):
        yield _together(space, *before, *blocks, *_around(space, concrete, Names(taken), in_threads))
    if in_threads:
        for share in choose_threads(space, concrete.assign.lhs):
            names = Names(taken)
            shared = share(names)
            yield _together(space, *before, *choose_vectors(space, names, not shared.in_one_loop), shared.decision)
            yield _together(space, *before, shared.decision)
    yield _together(space, *before, *choose_vectors(space, Names(taken)))


def _around(space: Space, concrete: Concrete, names: Names, in_threads: bool) -> list[Decision]:
    """How threads share a loop that stands outside of the rows of a block: of several matrices, each takes some."""
    block = block_of(space)
    shared = choose_threads(space, concrete.assign.lhs) if in_threads and block is not None and block.outer else []
    return [shared[-1](names).decision] if shared else []


def variants(concrete: Concrete, space: Space) -> Iterator[Choice]:
    """Schedules that may be better than the first choice, which tuning measures; plain loops are among them."""
    if space.machine.has(Unit.GPUBlock):
        yield from choices(concrete, space)
        return
    yield Choice()
    taken = taken_names(concrete.stmt)
    eager = replace(space, machine=space.machine.eager)
    if appended_result(concrete) is not None:
        yield from _appended(concrete, eager)
        return
    yield from choose_flat(concrete, eager)
    if inside := _inside(concrete, eager):
        yield from _in_place(inside.concrete, inside.space, inside.decision)
    if blocks := choose_blocks(space, Names(taken), in_threads=True):
        yield _together(space, *blocks)
    for share in (None, *every_way(space, concrete.assign.lhs)):
        for may_move in (True, False):
            names = Names(taken)
            shared = None if share is None else share(names)
            vectors = choose_vectors(space, names, may_move and not (shared is not None and shared.in_one_loop))
            yield _together(space, *vectors, *(() if shared is None else (shared.decision,)))
        if shared is not None:
            yield _together(space, shared.decision)


def _appended(concrete: Concrete, space: Space) -> Iterator[Choice]:
    """A result whose entries come in order: parts of it are made by threads and joined."""
    result, taken = concrete.assign.lhs, taken_names(concrete.stmt)
    if is_filled(result.tensor.format) or space.seconds < space.machine.worth.vectors:
        return
    joins = bool(space.spine) and space.machine.joins(space.seconds)
    if joins and isinstance(concrete.making, Inserted) and _meet_in_rows(concrete.making, space, result):
        yield from (_together(space, way(Names(taken)).decision) for way in choose_places(space, result))
    names = Names(taken)
    inside = choose_rows(space, names) or choose_vectors(space, names)
    if joins:
        steps = Steps(names)
        steps.parallelize(space.spine[0], Unit.CPUThread, Races.NoRaces)
        why = f"plain loops take about {space.seconds * 1e3:,.1f} ms"
        threads = Decision(steps.all(), f"threads take parts of {space.spine[0]}", why)
        yield _together(space, *inside, threads)
        yield _together(space, threads)
    yield _together(space, *inside)


def _meet_in_rows(making: Inserted, space: Space, result: Access) -> bool:
    """Whether pieces of the outermost loop meet in rows; or of the entries, where these are only counted, as they stand."""
    return making.takes_leaves or space.spine[0] not in space.levels(result)[:-1]


def _adds_in_any_order(step: Primitive) -> bool:
    return isinstance(step, Parallelize) and step.races is Races.Atomics


def _together(space: Space, *decisions: Decision) -> Choice:
    """What the machine can do of some decisions, as one choice."""
    return Choice(tuple(one for one in decisions if all(map(space.machine.runs, one.steps))))
