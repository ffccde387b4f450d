"""A schedule for a statement: how threads share the loops, and what runs in vectors.

What is returned is text in the scheduling language, with the decisions behind it. Small problems stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from sparseloom.core.names import Names
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.foralls import taken_names
from sparseloom.iteration.layout import is_filled
from sparseloom.iteration.making import Inserted
from sparseloom.notation.nodes import Access
from sparseloom.plan.blocks import block_of, choose_blocks
from sparseloom.plan.decision import Decision
from sparseloom.plan.gpu import ATOMICS, choose_on_gpu
from sparseloom.plan.space import Space
from sparseloom.plan.sums import sum_inside
from sparseloom.plan.threads import choose_places, choose_threads, every_way
from sparseloom.plan.vectors import choose_lanes, choose_rows, choose_vectors
from sparseloom.schedule.laws import appended_result


@dataclass(frozen=True)
class Worth:
    """How many seconds of work there must be: for threads, for vectors, for threads whose parts of a result are joined, and for sums in
    vectors. Whether there are threads at all is asked only if there is work for them."""

    threads: float = 50e-6  # a team takes some 10 us to start
    vectors: float = 20e-6  # for a kernel of its own
    parts: float = 300e-6  # entries are copied once more
    sums: float = 1e-6  # which no compiler makes of plain loops
    has_threads: Callable[[], bool] = field(default=lambda: True, compare=False)

    def shares(self, seconds: float) -> bool:
        """Whether so much work is shared by threads."""
        return seconds >= self.threads and self.has_threads()

    def joins(self, seconds: float) -> bool:
        """Whether threads make parts of a result of so much work, which are then joined."""
        return seconds >= self.parts and self.has_threads()


WORTH = Worth()
AT_ONCE = Worth(0, 0, 0)  # plan even what is small, as tests do


@dataclass(frozen=True)
class Choice:
    """A schedule, and the decisions that make it."""

    schedule: str = ""
    decisions: tuple[Decision, ...] = ()


def choices_on_gpu(concrete: Concrete, space: Space, ordered: bool = False) -> Iterator[Choice]:
    """Schedules for a GPU, best first; the last one is that of plain loops, which one thread runs. ``ordered``: none adds in any order."""
    for decision in choose_on_gpu(concrete, space, ordered):
        if not ordered or not any(ATOMICS in step for step in decision.steps):
            yield _together(decision)
    yield Choice()


def choices(concrete: Concrete, space: Space, worth: Worth = WORTH) -> Iterator[Choice]:
    """Schedules for a statement, best first; the last one is always that of plain loops."""
    if appended_result(concrete) is not None:
        yield from _appended(concrete, space, worth)
    elif space.seconds >= worth.vectors:
        if inside := sum_inside(concrete, space):
            yield from _in_place(inside.concrete, inside.space, worth, inside.decision)
            yield _together(inside.decision)
        yield from _in_place(concrete, space, worth)
    elif space.seconds >= worth.sums:
        yield _together(*choose_lanes(space))
    yield Choice()


def _in_place(concrete: Concrete, space: Space, worth: Worth, *before: Decision) -> Iterator[Choice]:
    """A result every place of which is known when the loops begin; some decisions were made ``before``."""
    work = space.seconds
    if work < worth.vectors:
        return
    taken = taken_names(concrete.stmt)
    in_threads = worth.shares(work)
    if blocks := choose_blocks(space, Names(taken), in_threads):
        yield _together(*before, *blocks, *_around(space, concrete, Names(taken), in_threads))
    if in_threads:
        for share in choose_threads(space, concrete.assign.lhs):
            names = Names(taken)
            shared = share(names)
            yield _together(*before, *choose_vectors(space, names, not shared.in_one_loop), shared.decision)
            yield _together(*before, shared.decision)
    yield _together(*before, *choose_vectors(space, Names(taken)))


def _around(space: Space, concrete: Concrete, names: Names, in_threads: bool) -> list[Decision]:
    """How threads share a loop that stands outside of the rows of a block: of several matrices, each takes some."""
    block = block_of(space)
    shared = choose_threads(space, concrete.assign.lhs) if in_threads and block is not None and block.outer else []
    return [shared[-1](names).decision] if shared else []


def variants(concrete: Concrete, space: Space) -> Iterator[Choice]:
    """Schedules that may be better than the first choice, for whoever has the time to measure them; plain loops among them."""
    yield Choice()
    taken = taken_names(concrete.stmt)
    if appended_result(concrete) is not None:
        yield from _appended(concrete, space, AT_ONCE)
        return
    if inside := sum_inside(concrete, space):
        yield from _in_place(inside.concrete, inside.space, AT_ONCE, inside.decision)
    if blocks := choose_blocks(space, Names(taken), in_threads=True):
        yield _together(*blocks)
    for share in (None, *every_way(space, concrete.assign.lhs)):
        for may_move in (True, False):
            names = Names(taken)
            shared = None if share is None else share(names)
            vectors = choose_vectors(space, names, may_move and not (shared is not None and shared.in_one_loop))
            yield _together(*vectors, *(() if shared is None else (shared.decision,)))
        if shared is not None:
            yield _together(shared.decision)


def _appended(concrete: Concrete, space: Space, worth: Worth) -> Iterator[Choice]:
    """A result whose entries come in order: parts of it are made by threads and joined."""
    if is_filled(concrete.assign.lhs.tensor.format):
        return
    if space.seconds < worth.vectors:
        return
    result = concrete.assign.lhs
    if isinstance(concrete.making, Inserted) and space.spine and _meet_in_rows(concrete.making, space, result):
        ways = choose_places(space, result) if worth.joins(space.seconds) else []
        yield from (_together(way(Names(taken_names(concrete.stmt))).decision) for way in ways)
    names = Names(taken_names(concrete.stmt))
    rows = choose_rows(space, names)
    inside = rows or choose_vectors(space, names)
    if space.spine and worth.joins(space.seconds):
        why = f"plain loops take about {space.seconds * 1e3:,.1f} ms"
        steps = (f"parallelize({space.spine[0]},CPUThread,NoRaces)",)
        threads = Decision(steps, f"threads take parts of {space.spine[0]}", why)
        yield _together(*inside, threads)
        yield _together(threads)
    yield _together(*inside)


def _meet_in_rows(making: Inserted, space: Space, result: Access) -> bool:
    """Whether pieces of the outermost loop meet in rows; or of the entries, where these are only counted, as they stand."""
    return making.takes_leaves or space.spine[0] not in space.levels(result)[:-1]


def _together(*decisions: Decision) -> Choice:
    steps = [step for decision in decisions for step in decision.steps]
    return Choice("\n".join(steps), decisions)
