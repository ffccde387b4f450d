"""How threads share the work.

    rows                        every piece has equally many coordinates of the outermost loop
    rows of equal entries       every piece has equally many entries of the operand that is walked
    rows and entries            the same, where a row weighs something, too: it takes time even if it is empty
    positions                   the entries themselves are cut; what a piece shares with its neighbours is joined in order
    private copies              the outermost loop is summed over: every piece has a result of its own, joined in order
    private places              entries are put into rows as they come: every piece has places of its own in every row

There are always equally many pieces, so that results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import prod

from sparseloom.core.names import Names
from sparseloom.iteration.foralls import accesses
from sparseloom.notation.nodes import Access, IndexVar, Races, Unit
from sparseloom.plan.compose import Steps
from sparseloom.plan.decision import Decision
from sparseloom.plan.space import NANOSECOND, Space
from sparseloom.plan.statistics import Evenness, OperandFacts


@dataclass(frozen=True)
class SharedLoop:
    """How threads share the work, and whether outer loops are fused for it."""

    decision: Decision
    in_one_loop: bool = False


def choose_threads(space: Space, result: Access) -> list[Callable[[Names], SharedLoop]]:
    """The ways in which threads can share the outermost loop, best first; each takes the names that it needs."""
    if not space.spine:
        return []
    walked = _walked(space)
    weigh = _weight(space, walked)
    if _is_free(space, result):
        by_positions = _ways_by_positions(space, walked) if walked is not None and _has_heavy_row(space, walked) else []
        return [*by_positions, partial(_by_rows, space, walked, weigh, Races.NoRaces)]
    return [partial(_by_rows, space, walked, weigh, Races.Temporary)] if _affords_copies(space, result) else []


def every_way(space: Space, result: Access) -> list[Callable[[Names], SharedLoop]]:
    """All ways in which threads can share the outermost loop, whatever the statistics say."""
    if not space.spine:
        return []
    walked = _walked(space)
    weights = (None,) if walked is None else (0, space.machine.threads.per_row, None)
    if not _is_free(space, result):
        return [partial(_by_rows, space, walked, weigh, Races.Temporary) for weigh in weights] if result.tensor.format.is_dense else []
    by_rows = [partial(_by_rows, space, walked, weigh, Races.NoRaces) for weigh in weights]
    return [*by_rows, *(_ways_by_positions(space, walked) if walked is not None else [])]


def choose_places(space: Space, result: Access) -> list[Callable[[Names], SharedLoop]]:
    """The ways in which threads can put entries into rows in any order, best first: each piece counts its entries in every row."""
    rows = prod(map(space.extent, space.levels(result)[:-1]))
    entries = sum(space.iterations(path, path.variables) for path in space.paths)
    limits = space.machine.threads
    pieces = next((count for count in limits.placed if count * rows <= limits.places_per_entry * entries), None)
    walked = _walked(space) if space.spine else None
    if pieces is None or walked is None:
        return []
    chain = _chain(space, walked)
    ways = [partial(_by_positions, space, walked, chain, pieces)] if chain else []
    ways.append(partial(_by_rows, space, walked, 0, Races.Temporary, pieces=pieces))
    what = f"threads take {pieces} pieces, each with places of its own in every row of {result.tensor}"
    why = f"about {entries:,.0f} entries go to {rows:,} rows"
    return [partial(_in_words, way, what, why) for way in ways]


def _in_words(way: Callable[[Names], SharedLoop], what: str, why: str, names: Names) -> SharedLoop:
    shared = way(names)
    return replace(shared, decision=replace(shared.decision, what=what, why=why))


def _is_free(space: Space, result: Access) -> bool:
    """Whether the outermost loop runs over the result, and not over what is summed."""
    return space.is_over(space.spine[0], result)


def _ways_by_positions(space: Space, walked: Access) -> list[Callable[[Names], SharedLoop]]:
    chain = _chain(space, walked)
    return [partial(_by_positions, space, walked, chain, space.machine.threads.pieces)] if chain else []


def _walked(space: Space) -> Access | None:
    """The operand whose entries the loops mostly walk: of those that begin with the outermost variable, the one with most entries."""
    var = space.spine[0]
    read = dict.fromkeys(access for path in space.paths for access in accesses(path.assign.rhs))
    sparse = [a for a in read if not a.tensor.format.is_dense and space.levels(a)[:1] == (var,)]
    return max(sparse, key=lambda a: prod(space.fan(a, depth) for depth in range(len(a.indices))), default=None)


def _chain(space: Space, access: Access) -> tuple[IndexVar, ...]:
    """The levels of an operand, if the loops over them stand outermost, in order, around everything; else nothing."""
    levels = space.levels(access)
    fits = space.spine[: len(levels)] == levels and len(levels) > 1 and len(space.paths) == 1
    return levels if fits and not space.graph.relations else ()


def _has_heavy_row(space: Space, access: Access) -> bool:
    """Whether one row of an operand is too much for a thread. Cutting it costs more where every entry makes a row of results."""
    known = space.known(access)
    if known is None or known.spread is not Evenness.HEAVY:
        return False
    return space.spine[-1] == space.levels(access)[-1] or (known.heaviest or 0) >= space.machine.threads.very_heavy


def _by_positions(space: Space, access: Access, chain: tuple[IndexVar, ...], pieces: int, names: Names) -> SharedLoop:
    """The entries of an operand in pieces."""
    steps = Steps(names)
    outer, _ = steps.divide(steps.pos(steps.fuse(*chain), access), pieces, "p0", "p1")
    steps.parallelize(outer, Unit.CPUThread, Races.Temporary)
    known = space.known(access)
    why = f"one {chain[0]} has about {known.heaviest or 0:.0%} of the entries of {access.tensor}" if known else ""
    return SharedLoop(Decision(steps.all(), f"threads take {pieces} pieces of entries", why, "pieces of rows"), in_one_loop=True)


def _by_rows(space: Space, walked: Access | None, weigh: int | None, races: Races, names: Names, pieces: int = 0) -> SharedLoop:
    """The outermost loop in pieces: of equal length, or of equal weight, where a row adds so much to that of its entries."""
    var = space.spine[0]
    limits, steps = space.machine.threads, Steps(names)
    pieces = pieces or (limits.many_pieces if races is Races.NoRaces and space.seconds >= limits.much else limits.pieces)
    known = None if walked is None else space.known(walked)
    weight = None if weigh is None else walked
    outer, _ = steps.divide(var, pieces, f"{var}0", f"{var}1", weight, weigh or None)
    steps.parallelize(outer, Unit.CPUThread, races)
    what = f"threads take {pieces} pieces of {var}" + ("" if weight is None else _of_weight(weight, weigh))
    if races is Races.Temporary:
        what += ", each with its own copy of the result"
    why = _why(space, var, walked, known)
    if walked is not None and weigh:
        why += f", and about {_below(space, walked):.2g} of them in a row"
    return SharedLoop(Decision(steps.all(), what, why, "" if weigh is None else "pieces of equal length"))


def _of_weight(walked: Access, weigh: int | None) -> str:
    return f" with equally many entries of {walked.tensor}" + (f", to which each row adds {weigh}" if weigh else "")


def _weight(space: Space, walked: Access | None) -> int | None:
    """What a row adds to the weight of its entries, in entries; None where pieces of equal length have equally many.

    Pieces of equal length have equally many rows, too. Others may have thousands of empty ones.
    """
    known = None if walked is None else space.known(walked)
    if walked is None or known is None or known.spread is Evenness.EVEN:
        return None
    return space.machine.threads.per_row if _below(space, walked) < space.machine.threads.short_row else 0


def _below(space: Space, access: Access) -> float:
    """How many entries stand below one position of the first level."""
    return prod(space.fan(access, depth) for depth in range(1, len(access.tensor.format.levels)))


def _why(space: Space, var: IndexVar, walked: Access | None, known: OperandFacts | None) -> str:
    if walked is None or known is None:
        return f"{var} has {space.extent(var):,} values"
    if known.spread is Evenness.EVEN:
        return f"entries of {walked.tensor} are spread evenly over {space.extent(var):,} values of {var}"
    return f"of 16 equal pieces of {var} the largest has about {known.imbalance:.1f} times its share of the entries of {walked.tensor}"


def _affords_copies(space: Space, result: Access) -> bool:
    """Whether there is so much to add up that copies of the result do not matter."""
    if not result.tensor.format.is_dense:
        return False
    places, limits = prod(map(space.extent, space.levels(result))), space.machine.threads
    return limits.copies * places * space.machine.costs.per_copied * NANOSECOND <= space.seconds * limits.share_of_copies
