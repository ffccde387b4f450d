"""How often the loops of a kernel run on given data: told from extents and from how many entries the operands store, without running them.

A loop over all coordinates multiplies; one that an operand drives runs once for every entry that the loops outside reach; where operands
are merged, their entries are a bound. For every operand we know how often each of its positions is visited at most, and whether that is
exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from math import prod

from sparseloom.core.trees import walk
from sparseloom.iteration.foralls import relations_of
from sparseloom.iteration.formula import ALWAYS, All, Any, Formula, Stored, has_flags
from sparseloom.iteration.provenance import Provenance
from sparseloom.notation.contents import numbers_in
from sparseloom.notation.nodes import Access, Fixed, IndexVar, Stmt
from sparseloom.relations.arithmetic import INTEGERS
from sparseloom.relations.relation import FoundAgain, Positions, Ranges
from sparseloom.scope.context import Remark, Runs


@dataclass(frozen=True)
class Count:
    """A number of times: exact, or at most that many."""

    most: int
    exact: bool = True

    def times(self, factor: int, exact: bool = True) -> Count:
        """That many times, ``factor`` times over."""
        return Count(self.most * factor, self.exact and exact)

    def __str__(self) -> str:
        number = "once" if self.most == 1 else f"{self.most:,} times"
        return number if self.exact else f"at most {number}"


@dataclass(frozen=True)
class _At:
    """What is known inside some loops: how often they run, how far down each operand is, and how often each position there is visited.

    ``total`` leaves out the digits of variables that are not settled yet; ``digits`` has those, by the variable that they cut.
    """

    total: Count = Count(1)
    visits: Mapping[Access, tuple[int, Count]] = field(default_factory=dict)
    settled: frozenset[IndexVar] = frozenset()
    digits: Mapping[IndexVar, tuple[IndexVar, ...]] = field(default_factory=dict)


def trips(stmt: Stmt, remarks: Sequence[Remark], sizes: Mapping[str, int], stored: Mapping[str, Sequence[int]]) -> Iterator[Count | None]:
    """For every remark how often the loop runs that it is about, in all.

    ``stored`` has the number of positions at the root and every level of each sparse operand, by name.
    """
    counting = _Counting(stmt, sizes, stored)
    outer: list[tuple[int, _At]] = []
    for remark in remarks:
        if remark.runs is None or not counting.knows(remark.runs):
            yield None
            continue
        while outer and outer[-1][0] >= remark.depth:
            outer.pop()
        inside = counting.enter(remark.runs, outer[-1][1] if outer else counting.start)
        outer.append((remark.depth, inside))
        yield counting.of(inside)


class _Counting(Ranges[int]):
    """Counts the loops of one statement."""

    arithmetic = INTEGERS

    def __init__(self, stmt: Stmt, sizes: Mapping[str, int], stored: Mapping[str, Sequence[int]]) -> None:
        self._graph, self._sizes, self._stored = Provenance(relations_of(stmt)), sizes, stored
        self._again = any(r.found_again is not None for r in self._graph.relations)
        operands = dict.fromkeys(n for n in walk(stmt) if isinstance(n, Access) and n.tensor.name in stored)
        numbers = numbers_in(stmt)
        self.start = _At(visits={access: self._at_numbers(access, numbers) for access in operands}, settled=frozenset(numbers))

    def _at_numbers(self, access: Access, numbers: frozenset[Fixed]) -> tuple[int, Count]:
        """How far down an operand is before the first loop: the levels at numbers, of which one position is visited at most."""
        depth = len(list(takewhile(numbers.__contains__, self._graph.stored(access))))
        return depth, Count(1, not depth)

    def knows(self, runs: Runs) -> bool:
        """Whether a loop is one of the schedule's, and not over private parts of such a one."""
        return runs.settles or self._graph.root(runs.var) != runs.var

    def of(self, at: _At) -> Count:
        """How often the loops so far run."""
        total = at.total
        for root, digits in at.digits.items():
            total = self._with_digits(total, root, digits, at)
        return total

    def _with_digits(self, total: Count, root: IndexVar, digits: tuple[IndexVar, ...], at: _At) -> Count:
        """A count of loops, with further ones over some digits of a variable inside; the last block may be smaller than the others."""
        alone = len(digits) == 1
        product = total.times(prod(map(self.extent, digits)), alone)
        relation, made = self._graph.made_by(root), self._graph.made_by(digits[0])
        counted = None if relation is None else relation.positions
        if counted is None or made is None or self._graph.position_levels(counted)[0] == 0:
            return product
        depth, visits = at.visits.get(counted.access, (0, Count(0)))
        size = made.block_of(digits[0])
        if size is not None and made.whole == root and alone and counted.access in at.visits:
            # Every segment of positions ends with a block that may be smaller.
            return Count(min(product.most, total.most + visits.most * self._positions(counted.access, depth + 1) // size), False)
        return replace(product, exact=False)

    def enter(self, runs: Runs, at: _At) -> _At:
        """What is known inside one more loop."""
        if not runs.settles:
            root = self._graph.root(runs.var)
            return replace(at, digits={**at.digits, root: (*at.digits.get(root, ()), runs.var)})
        new = (runs.var,) if runs.position is None else self._graph.walked(runs.position)
        settled = self._graph.known(at.settled.union(new))
        total = self._total(runs, new, at)
        visits = {access: self._visits(access, runs, new, settled, total, at) for access in at.visits}
        open_digits = {root: digits for root, digits in at.digits.items() if not settled.issuperset(self._graph.covered(root))}
        return _At(total, visits, settled, open_digits)

    def _total(self, runs: Runs, new: tuple[IndexVar, ...], at: _At) -> Count:
        every = at.total.times(prod(map(self.extent, new)))
        if runs.position is not None:
            found = self._entries(runs.position.access, self._graph.position_levels(runs.position)[-1], at)
        else:
            found = self._bound(runs.formula, at)
        if found is None:
            return replace(every, exact=every.exact and runs.formula == ALWAYS and not self._again and not self._is_confined(runs.var, at))
        return Count(min(every.most, found.most), found.exact and not has_flags(runs.formula) and not self._again)

    def _bound(self, formula: Formula, at: _At) -> Count | None:
        """How many coordinates a formula holds for, over all iterations of the loops outside; None if only the extent tells."""
        match formula:
            case Stored(access):
                return self._entries(access, at.visits[access][0], at) if access in at.visits else None
            case All(parts):
                known = [found.most for part in parts if (found := self._bound(part, at)) is not None]
                return Count(min(known), False) if known else None
            case Any(parts):
                bounds = [self._bound(part, at) for part in parts]
                return None if None in bounds else Count(sum(found.most for found in bounds if found is not None), False)
        return None

    def _entries(self, access: Access, level: int, at: _At) -> Count | None:
        """How often entries of a level are met, if each is met whenever its parent is. Unused and repeated ones count as well."""
        if access not in at.visits or level >= len(access.tensor.format.levels):
            return None
        kind = access.tensor.format.levels[level]
        return at.visits[access][1].times(self._positions(access, level + 1), kind.unique and kind.compact)

    def _positions(self, access: Access, depth: int) -> int:
        return self._stored[access.tensor.name][depth]

    def _visits(
        self, access: Access, runs: Runs, new: tuple[IndexVar, ...], settled: frozenset[IndexVar], total: Count, at: _At
    ) -> tuple[int, Count]:
        """How far down an operand is inside a loop, and how often each position there is visited."""
        depth, visits = at.visits[access]
        variables, below = self._graph.stored(access), depth
        while below < len(variables) and variables[below] in settled:
            below += 1
        position = None if runs.position is None else runs.position.access
        driver = position == access or (position is None and runs.formula in (ALWAYS, Stored(access)))
        if below > depth:
            return below, replace(visits, exact=visits.exact and driver and set(variables[depth:below]) == {*new})
        if depth == 0:
            return 0, total
        return depth, visits.times(prod(map(self.extent, new)), position is None and runs.formula == ALWAYS)

    def extent(self, var: IndexVar) -> int:
        """How many values a variable takes, at most."""
        low, high = self.range_of(var)
        relation = self._graph.made_by(var)
        if relation is None or relation.whole is None or var != relation.children[-1]:
            return high - low
        # The last digit ends where the range ends that it was cut from.
        return min(high - low, self.extent(relation.whole)) if relation.guards(relation.whole, self)[1] else high - low

    def range_of(self, var: IndexVar) -> tuple[int, int]:
        """Where the range of a variable begins and ends."""
        relation = self._graph.made_by(var)
        return (0, self._sizes.get(var.name, 1)) if relation is None else relation.range_of(var, self)

    def _is_confined(self, var: IndexVar, at: _At) -> bool:
        """Whether siblings of a variable are known, with which it stands for several others: they may leave it a part of its range."""
        made = self._graph.made_by(var)
        return made is not None and made.whole is None and not at.settled.isdisjoint(made.children)

    def coordinates_of(self, relation: FoundAgain) -> tuple[int, int]:
        """Coordinates that are found again run as far as they did."""
        return self.range_of(self._graph.found_again(relation))

    def positions_of(self, relation: Positions) -> tuple[int, int]:
        """Positions are counted from 0, as if all of them stood below one parent."""
        last, every = self._graph.position_levels(relation)[-1], self.extent(relation.coordinate)
        return 0, min(every, self._positions(relation.access, last + 1)) if relation.access.tensor.name in self._stored else every
