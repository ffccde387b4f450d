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
from sparseloom.notation.contents import accesses_in
from sparseloom.notation.nodes import Access, IndexVar
from sparseloom.notation.printer import show
from sparseloom.plan.decision import Decision
from sparseloom.plan.space import Space
from sparseloom.plan.vectors import Kind, Leaf, leaf_of

LANES, WARPS, THREADS = 32, 8, 256
FEW_ROWS = 2_500  # warps, or so, keep a GPU busy
MANY = 512.0  # entries of a row that keep a block busy
SKEW, SLACK = 4, 16  # the longest row may have so many times the entries of the mean one, and so many more
SHORT, MIDDLE = 6.0, 64.0  # entries of rows: below, a thread has one for itself; below, eight lanes
CONSTANT = 256  # the largest extent that is worth a kernel of its own
# By bytes of a value: entries of a block, and of each of its threads, an odd number, so that threads read different banks.
ORDERED_TILES = {4: (3840, 15), 8: (1792, 7)}
TILED = 2048  # entries of a block whose products go through shared memory
OF_A_ROW = ((64.0, 2), (256.0, 8))  # entries of a row there: below, so many lanes add it up
MOST_OF_A_ROW = 16  # lanes otherwise
RUN, SHORT_RUN = 128, 64  # entries that a warp takes, of many and of few
BUSY = 1 << 13  # warps that run at once
LONG = 192  # entries of a row that take a warp longer than runs take to be found
TILE = 4096  # entries that a block adds up
WORD = 16  # bytes that a lane moves at once
GROUPS = (2, 4, 8, 16)  # lanes that are less than a warp
PLACES, FEW_PLACES = 32, 8  # that some lanes add up, one after another, of many and of few
ATOMICS, NO_RACES, TEMPORARY, COVERED, REDUCTION = "Atomics", "NoRaces", "Temporary", "IgnoreRaces", "ParallelReduction"


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

    def names(self) -> Names:
        """Names that are free."""
        return Names(taken_names(self.concrete.stmt))

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
        return known is not None and known.longest > SKEW * self.fan(walked) + SLACK

    def is_uneven(self, walked: Access) -> bool:
        """Whether a warp would be busy with the longest row long after the others are done, or there are few rows."""
        known = self.space.known(walked)
        is_longer = known is not None and known.longest > max(LONG, 2 * self.fan(walked))
        outlasts = known is not None and is_longer and 2 * known.longest * BUSY > self.space.entries(walked)
        return outlasts or self.rows(walked) < FEW_ROWS


def _ways(nest: _Nest) -> Iterator[Decision]:
    """A single nest of loops, by what its innermost loop does."""
    space, walked = nest.space, nest.walked
    leaf = leaf_of(space, space.paths[0])
    first = space.spine[0]
    if leaf is not None and leaf.kind is Kind.ROW and len(space.spine) > 1:
        uneven = walked is not None and nest.is_uneven(walked)
        by_runs = [] if walked is None or walked.indices[-1:] == space.spine[-1:] else [_runs(nest, walked, leaf)]
        by_rows = [_rows_of_results(nest, leaf)] if nest.is_free(first) and leaf.path.assign.op is not None else []
        yield from [*by_runs, *by_rows] if uneven else [*by_rows, *by_runs]
    elif leaf is not None and leaf.kind is Kind.GATHER and walked is not None and nest.is_free(first):
        yield from _gathering(nest, walked, leaf)
    elif leaf is not None and leaf.kind is Kind.DOT and len(space.spine) > 1 and all(map(nest.is_free, space.spine[:-1])):
        yield _dots(nest, walked, leaf)
    if all(map(nest.is_free, space.spine)):
        yield from _each(nest, walked)
    if not nest.is_free(first):
        yield from _meeting(nest, walked)


def _tags(block: tuple[str, str], *others: tuple[str, str, str]) -> list[str]:
    return [f"parallelize({block[0]},GPUBlock,{block[1]})", *(f"parallelize({var},{unit},{races})" for var, unit, races in others)]


def _gathering(nest: _Nest, walked: Access, leaf: Leaf) -> Iterator[Decision]:
    """Sums over the entries of rows."""
    fan, rows = nest.fan(walked), nest.rows(walked)
    about = f"about {fan:,.0f} entries of {walked.tensor} in a row"
    if nest.is_skewed(walked):
        yield _staged(nest, walked)
    if rows < FEW_ROWS and fan >= MANY:
        yield _block_each(nest, walked, leaf, f"{rows:,.0f} rows, {about}")
        yield _staged(nest, walked)
    if fan >= SHORT:
        yield _lanes_each(nest, walked, leaf, 8 if fan < MIDDLE else LANES, about)
    yield from _thread_each(nest, about)


def _staged(nest: _Nest, walked: Access) -> Decision:
    """Blocks take equally many entries: products go to shared memory, and some lanes add up each of the rows that lie there."""
    if nest.ordered:
        return _staged_in_order(nest, walked)
    names, space, fan = nest.names(), nest.space, nest.fan(walked)
    lanes = next((lanes for below, lanes in OF_A_ROW if fan < below), MOST_OF_A_ROW)
    steps, position = _positions(nest, walked, names)
    block, inside, place, work, turn, thread = map(names.fresh, ("b", "p1", "pw", "work", "m", "tw"))
    warp, rest, entry, lane = map(names.fresh, ("w", "c", "n", "t"))
    product = show(space.paths[0].assign.rhs)
    steps += [
        f"split({position},{block},{inside},{TILED})",
        f"precompute({product},{inside},{place},{work})",
        f"split({place},{turn},{thread},{THREADS})",
        f"unroll({turn},{TILED // THREADS})",
        f"parallelize({thread},GPUThread,{NO_RACES})",
        f"split({inside},{warp},{rest},{TILED * lanes // THREADS})",
        f"split({rest},{entry},{lane},{lanes})",
        f"reorder({warp},{lane},{entry})",
        *_tags((block, ATOMICS), (warp, "GPUWarp", REDUCTION), (lane, "GPUThread", REDUCTION)),
    ]
    why = nest.longest_row(walked)
    done = f"blocks take {TILED} entries each, through shared memory, and {lanes} lanes add up a row"
    return Decision(tuple(steps), done, why, "rows")


def _staged_in_order(nest: _Nest, walked: Access) -> Decision:
    """The same where the order of adding is fixed: threads add up runs of products, and carry those that others have a share in."""
    names = nest.names()
    tile, each = ORDERED_TILES[8 if nest.result.tensor.dtype.itemsize > 4 else 4]
    steps, position = _positions(nest, walked, names)
    block, inside, place, work, turn, lane, thread, entry = map(names.fresh, ("b", "p1", "pw", "work", "m", "tw", "t", "q"))
    steps += [
        f"split({position},{block},{inside},{tile})",
        f"precompute({show(nest.space.paths[0].assign.rhs)},{inside},{place},{work})",
        f"split({place},{turn},{lane},{THREADS})",
        f"unroll({turn},{tile // THREADS})",
        f"parallelize({lane},GPUThread,{NO_RACES})",
        f"split({inside},{thread},{entry},{each})",
        *_tags((block, TEMPORARY), (thread, "GPUThread", TEMPORARY)),
    ]
    return Decision(tuple(steps), f"blocks take {tile} entries each, through shared memory", nest.longest_row(walked), "rows")


def _positions(nest: _Nest, walked: Access, names: Names) -> tuple[list[str], str]:
    """The steps that make one loop over the entries of an operand."""
    chain = nest.space.levels(walked)
    steps, fused = [], str(chain[0])
    for var in chain[1:]:
        into = names.fresh("f")
        steps.append(f"fuse({fused},{var},{into})")
        fused = into
    position = names.fresh("p")
    return [*steps, f"pos({fused},{position},{show(walked)})"], position


def _outer(nest: _Nest, names: Names, size: int) -> tuple[list[str], str, str, list[str]]:
    """Rows in blocks: the loops that stand for them are fused if there are several, and the others are left."""
    first, rest = nest.space.spine[0], [str(var) for var in nest.space.spine[1:]]
    block, inside = names.fresh("b"), names.fresh("w")
    return [f"split({first},{block},{inside},{size})"], block, inside, rest


def _lanes_each(nest: _Nest, walked: Access, leaf: Leaf, lanes: int, why: str) -> Decision:
    """So many lanes for every row."""
    names = nest.names()
    steps, block, warp, rest = _outer(nest, names, THREADS // lanes)
    position, turn, lane = map(names.fresh, ("p", "n", "t"))
    steps += [f"pos({leaf.var},{position},{show(walked)})", f"split({position},{turn},{lane},{lanes})"]
    steps.append(f"reorder({','.join([block, warp, *rest[:-1], lane, turn])})")
    steps += _tags((block, NO_RACES), (warp, "GPUWarp", NO_RACES), (lane, "GPUThread", TEMPORARY))
    return Decision(tuple(steps), f"{lanes} lanes for every row", why)


def _block_each(nest: _Nest, walked: Access, leaf: Leaf, why: str) -> Decision:
    """A block for every row; its warps have a part of the row each."""
    names = nest.names()
    first, *rest = map(str, nest.space.spine)
    position, warp, part, turn, lane = map(names.fresh, ("p", "w", "p1", "n", "t"))
    steps = [f"pos({leaf.var},{position},{show(walked)})", f"divide({position},{warp},{part},{LANES})"]
    steps += [f"split({part},{turn},{lane},{LANES})", f"reorder({','.join([first, *rest[:-1], warp, lane, turn])})"]
    steps += _tags((first, NO_RACES), (warp, "GPUWarp", TEMPORARY), (lane, "GPUThread", TEMPORARY))
    return Decision(tuple(steps), "a block for every row", why, "a warp for every row")


def _dots(nest: _Nest, walked: Access | None, leaf: Leaf) -> Decision:
    """Sums of neighbouring values: some lanes for some places of the result, one after another."""
    names, outer, each = nest.names(), nest.space.spine[:-1], _word(nest)
    lanes = _lanes_over(nest, leaf, names, max(1, min(LANES, nest.space.extent(leaf.var) // (2 * each))), each)  # two words for a lane
    if walked is not None and nest.space.levels(walked) == outer:
        steps, places = _positions(nest, walked, names)
    else:
        steps, places = _fused(outer, names)
    block, inside, warp, turn = map(names.fresh, ("b", "p1", "w", "n"))
    number = nest.space.entries(walked) if walked is not None else prod(map(nest.space.extent, outer))
    each = PLACES if number * lanes.count >= BUSY * LANES * PLACES else FEW_PLACES
    steps += [*lanes.steps, f"split({places},{block},{inside},{each * THREADS // lanes.count})", f"split({inside},{warp},{turn},{each})"]
    steps += [f"reorder({','.join([block, warp, turn, lanes.lane, *lanes.values])})", *lanes.unrolled, f"unroll({turn},4)"]
    steps += _tags((block, NO_RACES), (warp, "GPUWarp", NO_RACES), (lanes.lane, "GPUThread", TEMPORARY))
    why = f"{leaf.var} has {nest.space.extent(leaf.var):,} values side by side, which are added up"
    return Decision(tuple(steps), f"{_said(lanes)} for {each} places", why)


def _fused(variables: tuple[IndexVar, ...], names: Names) -> tuple[list[str], str]:
    """The steps that make one loop of several."""
    steps, fused = [], str(variables[0])
    for var in variables[1:]:
        into = names.fresh("f")
        steps.append(f"fuse({fused},{var},{into})")
        fused = into
    return steps, fused


@dataclass(frozen=True)
class _Lanes:
    """Lanes over values side by side: the steps, the lane, how many lanes there are, and what counts the values of a lane."""

    steps: tuple[str, ...]
    lane: str
    count: int
    values: tuple[str, ...] = ()
    unrolled: tuple[str, ...] = ()


def _lanes_over(nest: _Nest, leaf: Leaf, names: Names, lanes: int = LANES, each: int = 1) -> _Lanes:
    """So many lanes at most over a row, each of which takes so many neighbours at once, where that comes out even."""
    extent, var = nest.space.extent(leaf.var), str(leaf.var)
    if extent > CONSTANT:
        value, lane = names.fresh("v"), names.fresh("t")
        return _Lanes((f"split({var},{value},{lane},{LANES})",), lane, LANES, (value,))
    var = names.fresh(f"{leaf.var}b")
    steps = [f"bound({leaf.var},{var},{extent},MaxExact)"]
    lanes, each = (lanes, each) if lanes in (*GROUPS, LANES) and extent % (lanes * each) == 0 else (LANES, 1)
    values, unrolled = list[str](), list[str]()
    if extent > lanes * each:
        outer, inner = names.fresh("u"), names.fresh("c")
        steps.append(f"split({var},{outer},{inner},{lanes * each})")
        var = inner
        values, unrolled = [outer], [f"unroll({outer},{extent // (lanes * each)})"] if extent % (lanes * each) == 0 else []
    if each == 1:
        return _Lanes(tuple(steps), var, lanes, tuple(values), tuple(unrolled))
    lane, value = names.fresh("t"), names.fresh("v")
    steps.append(f"split({var},{lane},{value},{each})")
    return _Lanes(tuple(steps), lane, lanes, (*values, value), (*unrolled, f"unroll({value},{each})"))


def _word(nest: _Nest) -> int:
    """How many values of the result a lane moves at once."""
    return max(1, WORD // nest.result.tensor.dtype.itemsize)


def _rows_of_results(nest: _Nest, leaf: Leaf) -> Decision:
    """Some lanes for every row of results, whose values stay in registers while sums run."""
    names = nest.names()
    extent, each = nest.space.extent(leaf.var), _word(nest)
    count = max(1, min(LANES, extent // each))
    is_busy = nest.space.extent(nest.space.spine[0]) * count >= BUSY * LANES // 4
    lanes = _lanes_over(nest, leaf, names, count, each) if is_busy else _lanes_over(nest, leaf, names)
    split, block, warp, rest = _outer(nest, names, THREADS // lanes.count)
    free = [var for var in rest[:-1] if nest.is_free(_named(nest, var))]
    sums = [var for var in rest[:-1] if var not in free]
    steps = [*lanes.steps, *split, f"reorder({','.join([block, warp, *free, lanes.lane, *lanes.values, *sums])})", *lanes.unrolled]
    steps += [f"unroll({sums[-1]},4)"] if sums and lanes.unrolled else []
    steps += _tags((block, NO_RACES), (warp, "GPUWarp", NO_RACES), (lanes.lane, "GPUThread", NO_RACES))
    why = f"{leaf.var} has {nest.space.extent(leaf.var):,} values side by side"
    return Decision(tuple(steps), f"{_said(lanes)} for every row of results", why)


def _said(lanes: _Lanes) -> str:
    return "a warp" if lanes.count == LANES else f"{lanes.count} lanes"


def _named(nest: _Nest, name: str) -> IndexVar:
    return next(var for var in nest.space.spine if str(var) == name)


def _runs(nest: _Nest, walked: Access, leaf: Leaf) -> Decision:
    """A warp for so many entries; a row of results stays in registers while a run of them lasts."""
    names = nest.names()
    lanes = _lanes_over(nest, leaf, names)
    steps, position = _positions(nest, walked, names)
    block, inside, warp, entry = map(names.fresh, ("b", "p1", "w", "n"))
    run = RUN if nest.space.entries(walked) >= RUN * BUSY else SHORT_RUN
    steps += [*lanes.steps, f"split({position},{block},{inside},{run * WARPS})", f"split({inside},{warp},{entry},{run})"]
    steps += [f"reorder({','.join([block, warp, lanes.lane, *lanes.values, entry])})", *lanes.unrolled, f"unroll({entry},4)"]
    steps += _tags((block, COVERED), (warp, "GPUWarp", COVERED), (lanes.lane, "GPUThread", ATOMICS))
    known = nest.space.known(walked)
    longest = f"the longest row of {walked.tensor} has about {known.longest:,.0f} entries" if known is not None else "rows may differ"
    why = f"{longest}, which would keep a warp busy after the others are done"
    return Decision(tuple(steps), f"a warp for every {run} entries", why, "a warp for every row")


def _each(nest: _Nest, walked: Access | None) -> Iterator[Decision]:
    """A thread for every place of the result."""
    names, spine = nest.names(), nest.space.spine
    if walked is not None and nest.space.levels(walked) == spine and len(spine) > 1:
        steps, places = _positions(nest, walked, names)
    elif walked is None:
        steps, places = _fused(spine, names)
    else:
        return
    block, thread = names.fresh("b"), names.fresh("t")
    steps += [f"split({places},{block},{thread},{THREADS})", *_tags((block, NO_RACES), (thread, "GPUThread", NO_RACES))]
    yield Decision(tuple(steps), "a thread for every place", "nothing is summed")


def _meeting(nest: _Nest, walked: Access | None) -> Iterator[Decision]:
    """Sums whose outermost loop is summed over: a thread for every entry, which meets others in the result."""
    names, spine = nest.names(), nest.space.spine
    if walked is not None and nest.space.levels(walked) == spine and len(spine) > 1:
        steps, places = _positions(nest, walked, names)
    elif walked is None and not any(map(nest.is_free, spine)):
        steps, places = _fused(spine, names)
    else:
        return
    block, inside, turn, thread = map(names.fresh, ("b", "p1", "n", "t"))
    if nest.result.indices:
        steps += [f"split({places},{block},{thread},{THREADS})", *_tags((block, ATOMICS), (thread, "GPUThread", ATOMICS))]
    else:
        # Of several loops that are fused a thread has neighbours, for then rows simply follow.
        cut = f"{thread},{turn},{TILE // THREADS}" if walked is None and len(spine) > 1 else f"{turn},{thread},{THREADS}"
        steps += [f"split({places},{block},{inside},{TILE})", f"split({inside},{cut})"]
        meeting = TEMPORARY if nest.ordered else ATOMICS
        steps += [f"reorder({block},{thread},{turn})", *_tags((block, meeting), (thread, "GPUThread", TEMPORARY))]
    yield Decision(tuple(steps), "threads take entries wherever they stand", f"{spine[0]} is summed over")


def _thread_each(nest: _Nest, why: str = "") -> Iterator[Decision]:
    """A thread for every iteration of the outermost loop."""
    names, first = nest.names(), nest.space.spine[0]
    block, thread = names.fresh("b"), names.fresh("t")
    why = why or f"{first} has {nest.space.extent(first):,} values"
    for races in (NO_RACES,) if nest.is_free(first) else (ATOMICS,):
        steps = [f"split({first},{block},{thread},{THREADS})", *_tags((block, races), (thread, "GPUThread", races))]
        yield Decision(tuple(steps), f"a thread for every {first}", why)
