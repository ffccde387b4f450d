"""Schedules for a GPU: which units take the loops, best first.

    one lane, several or a warp for every row     sums over the entries of even rows; lanes add up what they find by shuffles
    a block for every row                         few long rows
    positions                                     rows of very different length: blocks take equally many entries
    lanes over a row of results                   a warp for every row, or for so many entries; results stay in registers
    a thread for everything else

Loops that sum outermost meet in places of the result, which they update atomically. Where the order of adding must be fixed, units have
places of their own instead, which are joined afterwards; what could not be done so is left out by whoever asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from sparseloom.core.names import Names
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.foralls import taken_names
from sparseloom.iteration.unstored import where_stored
from sparseloom.notation.contents import accesses_in
from sparseloom.notation.nodes import Access, IndexVar, Races, Unit
from sparseloom.plan.compose import Steps
from sparseloom.plan.decision import Decision
from sparseloom.plan.machine import CONSTANT, GpuLimits
from sparseloom.plan.space import Space
from sparseloom.plan.vectors import Leaf, LeafKind, leaf_of

BLOCK, WARP, THREAD = Unit.GPUBlock, Unit.GPUWarp, Unit.GPUThread


def choose_on_gpu(concrete: Concrete, space: Space, ordered: bool = False) -> Iterator[Decision]:
    """Ways to run a statement on a GPU, best first; some may not be legal. ``ordered``: in places of their own rather than atomically."""
    if not space.spine:
        return
    nest = _Nest(concrete, space, ordered)
    if len(space.paths) == 1 and space.spine == space.paths[0].variables and not space.graph.relations:
        yield from _ways(nest)
    yield from _thread_each(nest)


@dataclass(frozen=True)
class _Nest:
    """The loops of a statement."""

    concrete: Concrete
    space: Space
    ordered: bool

    @property
    def result(self) -> Access:
        """What is computed."""
        return self.concrete.assign.lhs

    @property
    def limits(self) -> GpuLimits:
        """What pays on the machine."""
        return self.space.machine.gpu

    @property
    def lanes(self) -> int:
        """How many lanes a warp has."""
        return self.space.machine.lanes

    @property
    def word(self) -> int:
        """How many values of the result a lane moves at once."""
        return max(1, self.limits.word // self.result.tensor.dtype.itemsize)

    def steps(self) -> Steps:
        """The steps of a decision, none so far."""
        return Steps(Names(taken_names(self.concrete.stmt)))

    def positions(self, steps: Steps, walked: Access) -> IndexVar:
        """One loop over the entries of an operand."""
        return steps.pos(steps.fuse(*self.space.levels(walked)), walked)

    @property
    def walked(self) -> Access | None:
        """The sparse operand whose levels the outermost loops run over, in order."""
        read = accesses_in(self.space.paths[0].assign.rhs)
        levels = {a: self.space.levels(a) for a in read if a.indices and not a.tensor.format.is_dense}
        fitting = [a for a, variables in levels.items() if self.space.spine[: len(variables)] == variables]
        return max(fitting, key=self.space.entries, default=None)

    def is_free(self, var: IndexVar) -> bool:
        """Whether iterations of a loop write different places."""
        return self.space.is_over(var, self.result)

    def rows(self, walked: Access) -> float:
        """How many rows an operand has: positions above its last level."""
        return prod(self.space.fan(walked, depth) for depth in range(len(walked.indices) - 1))

    def fan(self, walked: Access) -> float:
        """How many entries a row has, on average."""
        return self.space.fan(walked, len(walked.indices) - 1)

    def longest_row(self, walked: Access) -> str:
        """How long rows are, in words."""
        known = self.space.known(walked)
        longest = 0 if known is None else known.longest
        return f"the longest row of {walked.tensor} has about {longest:,.0f} entries, and the mean {self.fan(walked):,.0f}"

    def is_skewed(self, walked: Access) -> bool:
        """Whether some rows are much longer than others."""
        known = self.space.known(walked)
        return known is not None and known.longest > self.limits.skew * self.fan(walked) + self.limits.slack

    def is_uneven(self, walked: Access) -> bool:
        """Whether a warp would be busy with the longest row long after the others are done, or there are few rows."""
        known, limits = self.space.known(walked), self.limits
        is_longer = known is not None and known.longest > max(limits.long, 2 * self.fan(walked))
        outlasts = known is not None and is_longer and 2 * known.longest * limits.busy > self.space.entries(walked)
        return outlasts or self.rows(walked) < limits.few_rows


def _ways(nest: _Nest) -> Iterator[Decision]:
    """A single nest of loops, by what its innermost loop does."""
    space, walked = nest.space, nest.walked
    leaf = leaf_of(space, space.paths[0])
    first = space.spine[0]
    if leaf is not None and leaf.kind is LeafKind.ROW and len(space.spine) > 1:
        uneven = walked is not None and nest.is_uneven(walked)
        by_runs = [] if walked is None or walked.indices[-1:] == space.spine[-1:] else [_runs(nest, walked, leaf)]
        by_rows = [_rows_of_results(nest, leaf)] if nest.is_free(first) and leaf.path.assign.op is not None else []
        yield from [*by_runs, *by_rows] if uneven else [*by_rows, *by_runs]
    elif leaf is not None and leaf.kind is LeafKind.GATHER and walked is not None and nest.is_free(first):
        yield from _gathering(nest, walked, leaf)
    elif leaf is not None and leaf.kind is LeafKind.DOT and len(space.spine) > 1 and all(map(nest.is_free, space.spine[:-1])):
        yield _dots(nest, walked, leaf)
    if all(map(nest.is_free, space.spine)):
        yield from _each(nest, walked)
    if not nest.is_free(first):
        yield from _meeting(nest, walked)


def _gathering(nest: _Nest, walked: Access, leaf: Leaf) -> Iterator[Decision]:
    """Sums over the entries of rows."""
    fan, rows, limits = nest.fan(walked), nest.rows(walked), nest.limits
    about = f"about {fan:,.0f} entries of {walked.tensor} in a row"
    if nest.is_skewed(walked):
        yield _staged(nest, walked)
    if rows < limits.few_rows and fan >= limits.many:
        yield _block_each(nest, walked, leaf, f"{rows:,.0f} rows, {about}")
        yield _staged(nest, walked)
    if fan >= limits.short:
        yield _lanes_each(nest, walked, leaf, limits.few_lanes if fan < limits.middle else nest.lanes, about)
    yield from _thread_each(nest, about)


def _staged(nest: _Nest, walked: Access) -> Decision:
    """Blocks take equally many entries: products go to shared memory, and some lanes add up each of the rows that lie there.

    Where the order of adding is fixed, threads add up runs of products instead, and carry those that others have a share in.
    """
    limits, steps, each = nest.limits, nest.steps(), 0
    tile = limits.tiled
    if nest.ordered:
        tile, each = limits.ordered_tiles[nest.result.tensor.dtype.itemsize > 4]
    block, inside = steps.split(nest.positions(steps, walked), tile, "b", "p1")
    place = steps.fresh("pw")
    steps.precompute(where_stored(nest.space.paths[0].assign.rhs), (inside,), (place,), "work")
    turn, thread = steps.split(place, limits.threads, "m", "tw")
    steps.unroll(turn, tile // limits.threads)
    steps.parallelize(thread, THREAD, Races.NoRaces)
    done, why = f"blocks take {tile} entries each, through shared memory", nest.longest_row(walked)
    if nest.ordered:
        thread, _ = steps.split(inside, each, "t", "q")
        steps.parallelize(block, BLOCK, Races.Temporary)
        steps.parallelize(thread, THREAD, Races.Temporary)
        return Decision(steps.all(), done, why, "rows")
    lanes = next((lanes for below, lanes in limits.of_a_row if nest.fan(walked) < below), limits.most_of_a_row)
    warp, rest = steps.split(inside, tile * lanes // limits.threads, "w", "c")
    entry, lane = steps.split(rest, lanes, "n", "t")
    steps.reorder(warp, lane, entry)
    steps.parallelize(block, BLOCK, Races.Atomics)
    steps.parallelize(warp, WARP, Races.ParallelReduction)
    steps.parallelize(lane, THREAD, Races.ParallelReduction)
    return Decision(steps.all(), f"{done}, and {lanes} lanes add up a row", why, "rows")


def _lanes_each(nest: _Nest, walked: Access, leaf: Leaf, lanes: int, why: str) -> Decision:
    """So many lanes for every row."""
    steps, (first, *rest) = nest.steps(), nest.space.spine
    block, warp = steps.split(first, nest.limits.threads // lanes, "b", "w")
    turn, lane = steps.split(steps.pos(leaf.var, walked), lanes, "n", "t")
    steps.reorder(block, warp, *rest[:-1], lane, turn)
    steps.parallelize(block, BLOCK, Races.NoRaces)
    steps.parallelize(warp, WARP, Races.NoRaces)
    steps.parallelize(lane, THREAD, Races.Temporary)
    return Decision(steps.all(), f"{lanes} lanes for every row", why)


def _block_each(nest: _Nest, walked: Access, leaf: Leaf, why: str) -> Decision:
    """A block for every row; its warps have a part of the row each."""
    steps, (first, *rest) = nest.steps(), nest.space.spine
    warp, part = steps.divide(steps.pos(leaf.var, walked), nest.lanes, "w", "p1")
    turn, lane = steps.split(part, nest.lanes, "n", "t")
    steps.reorder(first, *rest[:-1], warp, lane, turn)
    steps.parallelize(first, BLOCK, Races.NoRaces)
    steps.parallelize(warp, WARP, Races.Temporary)
    steps.parallelize(lane, THREAD, Races.Temporary)
    return Decision(steps.all(), "a block for every row", why, "a warp for every row")


def _dots(nest: _Nest, walked: Access | None, leaf: Leaf) -> Decision:
    """Sums of neighbouring values: some lanes for some places of the result, one after another."""
    steps, limits, outer, extent = nest.steps(), nest.limits, nest.space.spine[:-1], nest.space.extent(leaf.var)
    is_walked = walked is not None and nest.space.levels(walked) == outer
    places = nest.positions(steps, walked) if walked is not None and is_walked else steps.fuse(*outer)
    lanes = _lanes_over(nest, leaf, steps, max(1, min(nest.lanes, extent // (2 * nest.word))), nest.word)  # two words for a lane
    number = nest.space.entries(walked) if walked is not None else prod(map(nest.space.extent, outer))
    each = limits.places if number * lanes.count >= limits.busy * nest.lanes * limits.places else limits.few_places
    block, inside = steps.split(places, each * limits.threads // lanes.count, "b", "p1")
    warp, turn = steps.split(inside, each, "w", "n")
    steps.reorder(block, warp, turn, lanes.lane, *lanes.values)
    lanes.unroll(steps)
    steps.unroll(turn, limits.together)
    steps.parallelize(block, BLOCK, Races.NoRaces)
    steps.parallelize(warp, WARP, Races.NoRaces)
    steps.parallelize(lanes.lane, THREAD, Races.Temporary)
    return Decision(steps.all(), f"{lanes} for {each} places", f"{leaf.var} has {extent:,} values side by side, which are added up")


@dataclass(frozen=True)
class _Lanes:
    """Lanes over values side by side: the lane, how many there are, and what counts the values of each, some of a ``fixed`` number."""

    lane: IndexVar
    count: int
    is_warp: bool
    values: tuple[IndexVar, ...] = ()
    fixed: tuple[tuple[IndexVar, int], ...] = ()

    def unroll(self, steps: Steps) -> None:
        """Write out the values of a lane that have a fixed number."""
        for var, count in self.fixed:
            steps.unroll(var, count)

    def __str__(self) -> str:
        return "a warp" if self.is_warp else f"{self.count} lanes"


def _lanes_over(nest: _Nest, leaf: Leaf, steps: Steps, lanes: int = 0, each: int = 1) -> _Lanes:
    """So many lanes at most over a row, each of which takes so many neighbours at once, where that comes out even; else a warp."""
    extent, warp = nest.space.extent(leaf.var), nest.lanes
    if extent > CONSTANT:
        value, lane = steps.split(leaf.var, warp, "v", "t")
        return _Lanes(lane, warp, True, (value,))
    var, values, fixed = steps.bound(leaf.var, extent), list[IndexVar](), list[tuple[IndexVar, int]]()
    if lanes not in (*nest.limits.groups, warp) or extent % (lanes * each):
        lanes, each = warp, 1
    if extent > lanes * each:
        outer, var = steps.split(var, lanes * each, "u", "c")
        values = [outer]
        fixed = [(outer, extent // (lanes * each))] if extent % (lanes * each) == 0 else []
    if each == 1:
        return _Lanes(var, lanes, lanes == warp, tuple(values), tuple(fixed))
    lane, value = steps.split(var, each, "t", "v")
    return _Lanes(lane, lanes, lanes == warp, (*values, value), (*fixed, (value, each)))


def _rows_of_results(nest: _Nest, leaf: Leaf) -> Decision:
    """Some lanes for every row of results, whose values stay in registers while sums run."""
    steps, limits, (first, *rest) = nest.steps(), nest.limits, nest.space.spine
    extent = nest.space.extent(leaf.var)
    count = max(1, min(nest.lanes, extent // nest.word))
    is_busy = nest.space.extent(first) * count >= limits.busy * nest.lanes // 4
    lanes = _lanes_over(nest, leaf, steps, count, nest.word) if is_busy else _lanes_over(nest, leaf, steps)
    block, warp = steps.split(first, limits.threads // lanes.count, "b", "w")
    free, sums = (tuple(var for var in rest[:-1] if nest.is_free(var) is wanted) for wanted in (True, False))
    steps.reorder(block, warp, *free, lanes.lane, *lanes.values, *sums)
    lanes.unroll(steps)
    if sums and lanes.fixed:
        steps.unroll(sums[-1], limits.together)
    steps.parallelize(block, BLOCK, Races.NoRaces)
    steps.parallelize(warp, WARP, Races.NoRaces)
    steps.parallelize(lanes.lane, THREAD, Races.NoRaces)
    return Decision(steps.all(), f"{lanes} for every row of results", f"{leaf.var} has {extent:,} values side by side")


def _runs(nest: _Nest, walked: Access, leaf: Leaf) -> Decision:
    """A warp for so many entries; a row of results stays in registers while a run of them lasts."""
    steps, limits = nest.steps(), nest.limits
    position = nest.positions(steps, walked)
    lanes = _lanes_over(nest, leaf, steps)
    run = limits.run if nest.space.entries(walked) >= limits.run * limits.busy else limits.short_run
    block, inside = steps.split(position, run * limits.warps, "b", "p1")
    warp, entry = steps.split(inside, run, "w", "n")
    steps.reorder(block, warp, lanes.lane, *lanes.values, entry)
    lanes.unroll(steps)
    steps.unroll(entry, limits.together)
    steps.parallelize(block, BLOCK, Races.IgnoreRaces)
    steps.parallelize(warp, WARP, Races.IgnoreRaces)
    steps.parallelize(lanes.lane, THREAD, Races.Atomics)
    known = nest.space.known(walked)
    longest = f"the longest row of {walked.tensor} has about {known.longest:,.0f} entries" if known is not None else "rows may differ"
    why = f"{longest}, which would keep a warp busy after the others are done"
    return Decision(steps.all(), f"a warp for every {run} entries", why, "a warp for every row")


def _in_one_loop(nest: _Nest, steps: Steps, walked: Access | None, may_fuse: bool) -> IndexVar | None:
    """All loops as one: over the entries of an operand that has all of them, or fused where they may be; None if there is no such loop."""
    spine = nest.space.spine
    if walked is not None and nest.space.levels(walked) == spine and len(spine) > 1:
        return nest.positions(steps, walked)
    return steps.fuse(*spine) if walked is None and may_fuse else None


def _each(nest: _Nest, walked: Access | None) -> Iterator[Decision]:
    """A thread for every place of the result."""
    steps = nest.steps()
    places = _in_one_loop(nest, steps, walked, may_fuse=True)
    if places is not None:
        yield _threads_over(nest, steps, places, Races.NoRaces, "a thread for every place", "nothing is summed")


def _meeting(nest: _Nest, walked: Access | None) -> Iterator[Decision]:
    """Sums whose outermost loop is summed over: a thread for every entry, which meets others in the result."""
    steps, spine, limits = nest.steps(), nest.space.spine, nest.limits
    places = _in_one_loop(nest, steps, walked, may_fuse=not any(map(nest.is_free, spine)))
    if places is None:
        return
    what, why = "threads take entries wherever they stand", f"{spine[0]} is summed over"
    if nest.result.indices:
        yield _threads_over(nest, steps, places, Races.Atomics, what, why)
        return
    block, inside = steps.split(places, limits.tile, "b", "p1")
    # Of several loops that are fused a thread has neighbours, for then rows simply follow.
    if walked is None and len(spine) > 1:
        thread, turn = steps.split(inside, limits.tile // limits.threads, "t", "n")
    else:
        turn, thread = steps.split(inside, limits.threads, "n", "t")
    steps.reorder(block, thread, turn)
    steps.parallelize(block, BLOCK, Races.Temporary if nest.ordered else Races.Atomics)
    steps.parallelize(thread, THREAD, Races.Temporary)
    yield Decision(steps.all(), what, why)


def _thread_each(nest: _Nest, why: str = "") -> Iterator[Decision]:
    """A thread for every iteration of the outermost loop."""
    first = nest.space.spine[0]
    races = Races.NoRaces if nest.is_free(first) else Races.Atomics
    why = why or f"{first} has {nest.space.extent(first):,} values"
    yield _threads_over(nest, nest.steps(), first, races, f"a thread for every {first}", why)


def _threads_over(nest: _Nest, steps: Steps, var: IndexVar, races: Races, what: str, why: str) -> Decision:
    """A thread for every iteration of a loop."""
    block, thread = steps.split(var, nest.limits.threads, "b", "t")
    steps.parallelize(block, BLOCK, races)
    steps.parallelize(thread, THREAD, races)
    return Decision(steps.all(), what, why)
