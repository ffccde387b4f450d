"""Which iterations of a parallel loop write one place, and what resolves it.

An assignment that reduces nothing writes every place once. Otherwise two iterations write different places if the loop's variable
follows from the place: from the variables that index it, and from the loops outside, which are the same for both. A position follows
from its coordinates unless they repeat. A temporary that is declared inside the loop is private.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import prod

from sparseloom.iteration.foralls import Path, paths, provenance
from sparseloom.iteration.provenance import Provenance
from sparseloom.notation.nodes import Access, Assign, Forall, IndexVar, Races, Stmt, TensorVar, Unit
from sparseloom.notation.printer import show
from sparseloom.relations.arithmetic import INTEGERS
from sparseloom.relations.relation import FoundAgain, Pieces, Positions, Ranges
from sparseloom.schedule.refusal import Refusal, listed

_COMBINING = (Races.Atomics, Races.Temporary, Races.ParallelReduction)


@dataclass(frozen=True)
class Example:
    """Two iterations that meet: the values of the parallel variable, of the original variables, and the place."""

    values: tuple[int, int]
    points: tuple[str, str]
    place: str


@dataclass(frozen=True)
class Conflict:
    """Iterations of ``var`` that write one place of ``assign``; ``resolved`` names the loop and the strategy that covers it.

    What shows it is an example, or an operand that repeats coordinates, or that entries are appended, or inserted into rows.
    """

    var: IndexVar
    races: Races
    assign: Assign
    resolved: tuple[IndexVar, Races] | None
    example: Example | None = None
    repeats: Access | None = None
    appends: bool = False
    inserts: bool = False

    def __str__(self) -> str:
        var, verb = self.var, "add to" if self.assign.op == "add" else "write"
        if self.appends:
            return f"iterations of {var} append to {self.assign.lhs.tensor} at one end, and the order would be lost"
        if self.inserts:
            return f"iterations of {var} put entries into the same rows of {self.assign.lhs.tensor}, and their order would be lost"
        if self.repeats is not None:
            return f"{show(self.repeats)} may repeat a coordinate, so two iterations of {var} {verb} one place of {self.assign.lhs.tensor}"
        if self.example is None:
            return f"two iterations of {var} may {verb} one place of {self.assign.lhs.tensor}"
        (first, second), points = self.example.values, self.example.points
        meeting = f"iterations {var} = {first} and {var} = {second} both {verb} {self.example.place}"
        return meeting if points[0] == f"{var} = 0" else f"{meeting}, one at {points[0]} and the other at {points[1]}"


@lru_cache(maxsize=256)
def analyse(stmt: Stmt, appended: TensorVar | None = None, rows: frozenset[IndexVar] | None = None) -> tuple[Conflict, ...]:
    """Return every conflict of every parallel loop, resolved or not.

    The conflicts of a statement are found once and remembered: the laws of a schedule, the passes over notation, lowering and ``explain``
    all ask for them.

    Args:
        stmt: a scheduled statement.
        appended: a result whose entries are appended.
        rows: the variables of the loops whose iterations insert into rows of their own.
    """
    graph = provenance(stmt)
    found = []
    for path in paths(stmt):
        private = path.temporaries.get(path.assign.lhs.tensor.name, 0)
        for depth, loop in enumerate(path.loops):
            races = loop.tag.races
            if loop.tag.unit is None or races is None or depth < private:
                continue
            if path.assign.lhs.tensor == appended and _is_cut_into_parts(graph, path, depth, rows):
                continue
            if path.assign.lhs.tensor == appended:
                own = depth == 0 and rows is not None and has_own_places(loop, graph, path.assign.lhs)
                resolved = (loop.var, races) if own else None
                found.append(Conflict(loop.var, races, path.assign, resolved, appends=rows is None, inserts=rows is not None))
            elif path.assign.op is not None and loop.var not in follows(graph, {*path.assign.lhs.indices, *path.variables[:depth]}):
                example, repeats = _example(graph, path, depth), _repeats(graph, loop.var)
                found.append(Conflict(loop.var, races, path.assign, _resolution(path, depth), example, None if example else repeats))
    return tuple(found)


def _is_cut_into_parts(graph: Provenance, path: Path, depth: int, rows: frozenset[IndexVar] | None) -> bool:
    """Whether threads may append rows of their own, to be joined: the outermost loop runs over one variable, each value once."""
    loop, position = path.loops[depth], graph.position(path.variables[depth])
    covered = graph.covered(loop.var, graph.stored(path.assign.lhs))
    distinct = position is None or graph.is_distinct(position)
    apart = rows is None or rows.issuperset(covered)
    return depth == 0 and loop.tag.unit is Unit.CPUThread and len(covered) == 1 and distinct and apart


def has_own_places(loop: Forall, graph: Provenance, inserted: Access) -> bool:
    """Whether iterations that insert into the same rows are to count for themselves, so that each has places of its own in every row."""
    stored = graph.stored(inserted)
    apart = {*graph.covered(loop.var, stored)} <= {*stored[:-1]}
    return loop.tag.unit is Unit.CPUThread and loop.tag.races is Races.Temporary and not apart


def unresolved(stmt: Stmt, appended: TensorVar | None = None, rows: frozenset[IndexVar] | None = None) -> Refusal | None:
    """The refusal of the first conflict that nothing covers. What IgnoreRaces leaves open is a warning, not a refusal."""
    for conflict in analyse(stmt, appended, rows):
        var, tensor = conflict.var, conflict.assign.lhs.tensor
        if conflict.appends or (conflict.inserts and conflict.resolved is None):
            advice = "parallelize the outermost loop, over rows of their own, on CPUThread; or ask for a dense result"
            if conflict.inserts:
                advice = "parallelize the outermost loop on CPUThread: with Temporary, or over rows of their own"
            return Refusal("S852", str(conflict), advice, at=var)
        if conflict.races is Races.NoRaces:
            advice = "use Atomics, Temporary or ParallelReduction, or parallelize a loop over the result's own variables"
            return Refusal("S851", str(conflict), advice, at=var)
        by = None if conflict.resolved is None else conflict.resolved[1]
        if by is Races.Atomics and tensor.dtype.kind == "c" and conflict.assign.op != "add":
            why = f"there is no atomic {conflict.assign.op} of {tensor.dtype}, which {tensor} needs"
            return Refusal("S853", why, "use Temporary or ParallelReduction", at=var)
    return _without_lanes(stmt)


def _without_lanes(stmt: Stmt) -> Refusal | None:
    """Lanes that meet in places which change inside their loop: one register per lane cannot hold what they add."""
    graph = provenance(stmt)
    for path in paths(stmt):
        lhs = path.assign.lhs
        for depth, loop in enumerate(path.loops):
            if loop.tag.unit is not Unit.CPUVector or loop.tag.races not in (Races.Temporary, Races.ParallelReduction):
                continue
            outside = path.variables[:depth]
            is_private = depth < path.temporaries.get(lhs.tensor.name, 0)
            meets = path.assign.op is not None and loop.var not in follows(graph, {*lhs.indices, *outside})
            if meets and not is_private and not graph.known(outside).issuperset(lhs.indices):
                why = f"lanes of {loop.var} would add to places of {lhs.tensor} that change inside the loop, and each lane holds one value"
                advice = "use CPUThread, which has a copy for each thread, or vectorize a loop over the result's own variables"
                return Refusal("S854", why, advice, at=loop.var)
    return None


def ignored(stmt: Stmt) -> list[Conflict]:
    """The conflicts that nothing covers because the user said to ignore them: each deserves a warning."""
    return [conflict for conflict in analyse(stmt) if conflict.resolved is None and conflict.races is Races.IgnoreRaces]


def _resolution(path: Path, depth: int) -> tuple[IndexVar, Races] | None:
    """Its own strategy, or Atomics further in: those cover every loop outside them."""
    own = path.loops[depth].tag.races
    if own in _COMBINING:
        return path.loops[depth].var, own
    inside = next((loop for loop in path.loops[depth:] if loop.tag.races is Races.Atomics), None)
    return None if inside is None else (inside.var, Races.Atomics)


def follows(graph: Provenance, known: set[IndexVar]) -> set[IndexVar]:
    """Every variable whose value is a function of those in ``known``, in either direction along the relations."""
    found, before = set(known), -1
    while len(found) != before:
        before = len(found)
        for relation in graph.relations:
            above, below = relation.parents, relation.children
            if all(v in found for v in below):
                found.update(above)
            # A coordinate has one position unless the operand may repeat it.
            if all(v in found for v in above) and (relation.positions is None or graph.is_distinct(relation.positions)):
                found.update(below)
    return found


def _repeats(graph: Provenance, var: IndexVar) -> Access | None:
    """The operand whose positions a variable counts, if it may hold a coordinate twice."""
    relation = graph.position(var)
    return None if relation is None or graph.is_distinct(relation) else relation.access


def _example(graph: Provenance, path: Path, depth: int) -> Example | None:
    """Look for two points that differ in one summed variable, are alike in the outer loops, and meet in the place written."""
    var, outer, lhs = path.variables[depth], path.variables[:depth], path.assign.lhs
    roots = sorted(graph.originals(var), key=str)
    small = _Small(graph)
    origin = dict.fromkeys(roots, 0)
    watched, first = (*outer, *lhs.indices), small.value(var, origin)
    for root in roots:
        for step in small.steps:
            point = origin | {root: step}
            if all(small.value(v, origin) == small.value(v, point) for v in watched) and small.value(var, point) != first:
                place = f"{lhs.tensor}({','.join(str(small.value(v, point)) for v in lhs.indices)})" if lhs.indices else str(lhs.tensor)
                return Example((first, small.value(var, point)), (_point(origin), _point(point)), place)
    return None


def _point(point: Mapping[IndexVar, int]) -> str:
    return listed(f"{var} = {value}" for var, value in point.items())


class _Small(Ranges[int]):
    """A small example of the statement in which every entry is stored, so that positions equal coordinates."""

    arithmetic = INTEGERS

    def __init__(self, graph: Provenance) -> None:
        self._graph = graph
        sizes = [size for relation in graph.relations[:6] for size in relation.constants]
        self._extent = 2 * prod(sizes)
        # The distances at which a split variable moves on: one, every product of block sizes, and every part of the extent.
        products = (prod(some) for k in range(1, len(sizes) + 1) for some in combinations(sizes, k))
        self.steps = sorted({1, *products, *(-(-self._extent // size) for size in sizes)})

    def extent(self, var: IndexVar) -> int:
        """How far a variable runs."""
        low, high = self.range_of(var)
        return max(1, high - low)

    def range_of(self, var: IndexVar) -> tuple[int, int]:
        """Where the range of a variable begins and ends. Nothing is promised of an example."""
        relation = self._graph.made_by(var)
        if relation is None:
            return 0, self._extent
        return relation.range_of(var, self) if relation.alias is None else self.range_of(relation.parents[0])

    def positions_of(self, relation: Positions) -> tuple[int, int]:
        """Positions equal coordinates."""
        return self.range_of(relation.coordinate)

    def coordinates_of(self, relation: FoundAgain) -> tuple[int, int]:
        """Coordinates equal positions."""
        return self.range_of(relation.position)

    def position_at(self, relation: Positions, values: Mapping[IndexVar, int]) -> int:
        """Positions equal coordinates."""
        return values[relation.coordinate]

    def coordinate_at(self, relation: FoundAgain, values: Mapping[IndexVar, int]) -> int:
        """Coordinates equal positions."""
        return values[relation.position]

    def piece_at(self, relation: Pieces, values: Mapping[IndexVar, int]) -> int:
        """Pieces of equal weight are blocks of equal size."""
        return values[relation.parent] // INTEGERS.share(self.extent(relation.parent), relation.count)

    def value(self, var: IndexVar, point: Mapping[IndexVar, int]) -> int:
        """The value of a variable at a point of the original space."""
        relation = self._graph.made_by(var)
        if relation is None:
            return point.get(var, 0)
        values = {parent: self.value(parent, point) for parent in relation.parents}
        return relation.derive(values, self)[relation.children.index(var)]
