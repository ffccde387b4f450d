"""A schedule for a statement: how threads share the loops, and what runs in vectors.

Choices come best first, as values: decisions with the steps that they add. What the machine has no unit for is left out. Small problems
stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sparseloom.core.names import Names
from sparseloom.core.trees import Node, rewrite
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.foralls import related, relations_of, taken_names
from sparseloom.iteration.inside import put_inside, renamed_apart
from sparseloom.iteration.layout import is_filled
from sparseloom.iteration.making import Inserted
from sparseloom.notation.nodes import Access, IndexVar, Races, Stmt, Unit
from sparseloom.plan.blocks import block_of, choose_blocks
from sparseloom.plan.compose import Steps, composed
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
    """Schedules for a statement, best first; the last one is always that of plain loops. ``ordered``: none adds in any order.

    What unstored terms make has loops of its own, which are shared among threads or units of a GPU where they stay apart.
    """
    found = _apart(concrete, space)
    if found is None:
        yield from _choices(concrete, space, ordered)
        return
    apart, nest = found
    for choice in _choices(*nest, ordered):
        made = composed(concrete, choice.steps)
        if made is not None and renamed_apart(put_inside(made).stmt) is not None:
            yield Choice((*_shared_alone(*apart, ordered), *choice.decisions))
        yield choice


Planned = tuple[Concrete, Space]


def _apart(concrete: Concrete, space: Space) -> tuple[Planned, Planned] | None:
    """What unstored terms make, with its own names for variables, and the nest beside it; None if nothing stands apart."""
    found, relations = renamed_apart(concrete.stmt), relations_of(concrete.stmt)
    names = {r.parents[0]: r.children[0] for r in relations if r.is_local}
    if found is None or not all(var.name in space.sizes for var in names):
        return None

    def own(tree: Node) -> Node | None:
        return names.get(tree) if isinstance(tree, IndexVar) else None

    stmt, assign = rewrite(found[0], own, Stmt), rewrite(concrete.assign, own)
    sizes = {**space.sizes, **{child.name: space.sizes[parent.name] for parent, child in names.items()}}
    alone = replace(space, stmt=stmt, sizes=sizes, statistics=replace(space.statistics, operands=()))
    nest = related(found[1], tuple(r for r in relations if not r.is_local))
    return (replace(concrete, stmt=stmt, assign=assign), alone), (replace(concrete, stmt=nest), replace(space, stmt=nest))


def _shared_alone(concrete: Concrete, space: Space, ordered: bool) -> tuple[Decision, ...]:
    """How loops that stand apart are shared: by units of a GPU, or by threads where there is much to do."""
    if space.machine.has(Unit.GPUBlock):
        return next(_choices(concrete, space, ordered)).decisions
    ways = choose_threads(space, concrete.assign.lhs) if space.machine.shares(space.seconds) else []
    return (ways[-1](Names(taken_names(concrete.stmt))).decision,) if ways else ()


def _choices(concrete: Concrete, space: Space, ordered: bool) -> Iterator[Choice]:
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
