"""What it costs to multiply several tensors in an order: sizes and densities in, the cheapest tree of nests out.

    A(i,j) * B(j,k) * x(k)      factors 0, 1, 2
    (0, 1, 2)                   one nest over all of them
    (0, (1, 2))                 first B*x, then A times that

The cost of a nest is that of its loops and of what it writes; the cost of a tree is that of its nests together. A loop that a sparse
factor drives visits the entries of that factor; a loop that no sparse factor drives visits every coordinate:

    y(i) = A(i,j) * A(k,j) * x(k)       A:csr of 3,000 rows with 4 entries each

    i    3,000 times                    every row of csr is there
    k    9,000,000 times                k is a row of the second A, which j does not lead to
    j    72,000,000 steps               the entries of two rows are merged
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import expm1, inf, log1p, prod

from sparseloom.core.once import cached_property
from sparseloom.plan.machine import NestCosts

Tree = tuple["int | Tree", ...]
"""A nest over factors, by number, and over what other nests made."""

Best = dict[int, tuple[float, int, bool]]
"""For sets of factors: the price, the factors of a temporary to make first, and whether the others are made into one too."""

Chain = tuple[tuple[int, float], ...]
"""The variable and the share of stored coordinates of each level, outermost first."""

@dataclass(frozen=True)
class Visit:
    """A loop of a nest: its variable, how many coordinates it visits in all, and what that costs."""

    variable: int
    count: float
    cost: float


MOST_EXACT = 7  # up to so many factors every tree is weighed; more are paired greedily


@dataclass(frozen=True)
class Part:
    """Something that a nest reads: the set of its variables, as bits, and the share of its places that are stored.

    ``levels`` are the variables of a sparse part from the root of its tree down, and ``shares`` how many of the coordinates of each level
    are stored below one position of the level above. Without them the variables come in order, and all gaps are in the last level.
    """

    variables: int
    density: float = 1.0
    is_sparse: bool = False  # whether loops visit stored places only
    may_lack: bool = False  # whether some place may have no entry, though all are stored
    levels: tuple[int, ...] = ()
    shares: tuple[float, ...] = ()

    @property
    def chain(self) -> Chain:
        """The levels that loops must take in this order, each with its share; none of a dense part."""
        if not self.is_sparse:
            return ()
        if self.levels:
            return tuple(zip(self.levels, self.shares, strict=True))
        inner = list(bits(self.variables))
        return tuple((var, self.density if var == inner[-1] else 1.0) for var in inner)

    def entries(self, size: float) -> float:
        """How many entries loops must pass, at least."""
        return size * self.density if self.is_sparse else 0.0


@dataclass(frozen=True)
class Network:
    """The factors of a product, how far each variable runs, and which variables the result has.

    ``hides`` allows dense temporaries of products in which entries may be absent; others are exact in what they store.
    """

    factors: tuple[Part, ...]
    extents: tuple[int, ...]
    result: int
    hides: bool = True
    is_sparse: bool = False  # whether the result is
    itemsize: int = 8
    costs: NestCosts = field(default_factory=NestCosts)
    _sizes: dict[int, float] = field(default_factory=dict, compare=False, repr=False)
    _temporaries: dict[int, Part | None] = field(default_factory=dict, compare=False, repr=False)
    _walks: dict[tuple[int, tuple[Part, ...]], float] = field(default_factory=dict, compare=False, repr=False)

    @property
    def everything(self) -> int:
        """The set of all factors, as bits."""
        return (1 << len(self.factors)) - 1

    def size(self, variables: int) -> float:
        """How many places a set of variables spans."""
        known = self._sizes.get(variables)
        if known is None:
            known = self._sizes[variables] = float(prod(self.extents[k] for k in bits(variables)))
        return known

    @cached_property
    def spanned(self) -> tuple[int, ...]:
        """The variables of every set of factors."""
        found = [0]
        for part in self.factors:
            found += [before | part.variables for before in found]
        return tuple(found)

    @cached_property
    def _densities(self) -> tuple[float, ...]:
        """The share of places at which every factor of a set has an entry, for every set."""
        found = [1.0]
        for part in self.factors:
            found += [before * part.density for before in found]
        return tuple(found)

    @cached_property
    def _passed(self) -> tuple[float, ...]:
        """How many entries the loops over a set of factors must pass at least, for every set: those of the largest sparse one.

        What survives innermost may be far less, as in a cyclic join.
        """
        found = [0.0]
        for part in self.factors:
            own = part.entries(self.size(part.variables))
            found += [max(before, own) for before in found]
        return tuple(found)

    def kept(self, factors: int) -> int:
        """The variables of some factors that are needed outside."""
        return self.spanned[factors] & (self.result | self.spanned[self.everything & ~factors])

    def density(self, factors: int) -> float:
        """The share of places at which the product of some factors, summed over what is not needed outside, has an entry.

        A sum over a variable that no sparse factor has makes no more entries.
        """
        stored = 0
        for k in bits(factors):
            if self.factors[k].density < 1.0 or self.factors[k].is_sparse:
                stored |= self.factors[k].variables
        return union(self._densities[factors], self.size(stored & self.spanned[factors] & ~self.kept(factors)))

    def temporary(self, factors: int) -> Part | None:
        """What a nest over some factors leaves for the next; None if it cannot be stored as it must be."""
        try:
            return self._temporaries[factors]
        except KeyError:
            made = self._temporaries[factors] = self._temporary(factors)
            return made

    def _temporary(self, factors: int) -> Part | None:
        kept, density = self.kept(factors), self.density(factors)
        may_lack = any(self.factors[k].is_sparse or self.factors[k].may_lack for k in bits(factors))
        bytes_dense = self.size(kept) * self.itemsize
        if not may_lack:
            return Part(kept) if bytes_dense <= self.costs.largest else None
        is_matrix = kept.bit_count() >= 2
        may_hide = self.hides and bytes_dense <= self.costs.largest
        if may_hide and (density > self.costs.full or bytes_dense <= self.costs.cache or not is_matrix):
            return Part(kept, may_lack=True)
        fits = is_matrix and bytes_dense * density * 2 <= self.costs.largest
        return Part(kept, density, is_sparse=True, may_lack=True) if fits else None

    def written(self, factors: int) -> float:
        """What writing the result of a nest costs."""
        size = self.size(self.kept(factors))
        if factors == self.everything:
            return size * self.density(factors) * self.costs.sparse_write if self.is_sparse else size
        made = self.temporary(factors)
        return inf if made is None else size * made.density * self.costs.sparse_write if made.is_sparse else size

    def nest(self, leaves: int, made: Sequence[Part] = (), limit: float = inf) -> float:
        """How much the loops of one nest over factors and temporaries do. What costs more than the limit may be priced too low."""
        least = self._least(leaves, made)
        if least >= limit:
            return least
        key = leaves, tuple(made)
        known = self._walks.get(key)
        if known is None:
            parts = [*(self.factors[k] for k in bits(leaves)), *made]
            walked = walk([part.chain for part in parts if part.is_sparse], self.spanned_by(leaves, made), self.extents, self.costs)
            known = self._walks[key] = max(walked * self._per_run(len(parts)), least)
        return known

    def _least(self, leaves: int, made: Sequence[Part]) -> float:
        """What the innermost loop does, and no less than passing the entries of the largest sparse part."""
        density, passed = self._densities[leaves], self._passed[leaves]
        for part in made:
            density *= part.density
            passed = max(passed, part.entries(self.size(part.variables)))
        count = leaves.bit_count() + len(made)
        return max(self.size(self.spanned_by(leaves, made)) * density, passed) * self._per_run(count)

    def spanned_by(self, leaves: int, made: Sequence[Part]) -> int:
        """The variables of factors and temporaries."""
        variables = self.spanned[leaves]
        for part in made:
            variables |= part.variables
        return variables

    def _per_run(self, count: int) -> float:
        """What a run of the innermost loop costs that multiplies so many values."""
        return 1 + self.costs.factor * max(count - 2, 0)

    def price(self, tree: Tree) -> float:
        """What a tree costs altogether."""
        leaves = set_of([part for part in tree if isinstance(part, int)])
        below = [part for part in tree if not isinstance(part, int)]
        made = [self.temporary(factors_of(part)) for part in below]
        read = [part for part in made if part is not None]
        if len(read) < len(made):
            return inf
        return self.nest(leaves, read) + self.written(factors_of(tree)) + self.costs.call + sum(map(self.price, below))

    @cached_property
    def one_nest(self) -> Tree:
        """All factors in one nest."""
        return tuple(range(len(self.factors)))

    def cheapest(self) -> Tree:
        """The tree that costs least: found exactly for few factors, by pairing for many."""
        return self._exactly() if len(self.factors) <= MOST_EXACT else self._greedily()

    def _exactly(self) -> Tree:
        """The best tree of every set of factors, from small sets to large ones.

        A nest reads factors alone, factors and one temporary, or two temporaries.
        """
        best: Best = {}
        for factors in range(1, self.everything + 1):
            best[factors] = self._best(best, factors)
        return _unfold(best, self.everything)

    def _best(self, best: Best, factors: int) -> tuple[float, int, bool]:
        written = self.written(factors) + self.costs.call
        least, chosen, is_pair = self.nest(factors) + written, 0, False
        part = factors  # every set of factors that may be made first
        while part := (part - 1) & factors:
            sofar = best[part][0] + written
            if sofar >= least or not self._reduces(part) or (made := self.temporary(part)) is None:
                continue
            others = factors ^ part
            price = sofar + self.nest(others, (made,), least - sofar)
            if price < least:
                least, chosen, is_pair = price, part, False
            sofar += best[others][0]
            if part > others and sofar < least and self._reduces(others) and (other := self.temporary(others)) is not None:
                price = sofar + self.nest(0, (made, other), least - sofar)
                if price < least:
                    least, chosen, is_pair = price, part, True
        return least, chosen, is_pair

    def _reduces(self, factors: int) -> bool:
        """Whether a temporary of these factors would be anything but a copy."""
        return factors & (factors - 1) != 0 or self.kept(factors) != self.spanned[factors]

    def _greedily(self) -> Tree:
        """Pair whatever costs least to pair, again and again. Sums over variables of one factor come first, where there is a gain."""
        nodes: list[tuple[int, int | Tree]] = [(1 << k, k) for k in range(len(self.factors))]
        nodes = [(own, (tree,) if isinstance(tree, int) and self._sums_early(own) else tree) for own, tree in nodes]
        while len(nodes) > 2:
            one, other = min(combinations(nodes, 2), key=lambda pair: self._paired(*pair))
            nodes = [*(node for node in nodes if node not in (one, other)), (one[0] | other[0], (one[1], other[1]))]
        return tuple(tree for _, tree in nodes)

    def _sums_early(self, own: int) -> bool:
        return self._reduces(own) and self.temporary(own) is not None

    def _paired(self, one: tuple[int, int | Tree], other: tuple[int, int | Tree]) -> float:
        """What the nest over two nodes costs."""
        leaves = set_of([tree for _, tree in (one, other) if isinstance(tree, int)])
        made = [self.temporary(factors) for factors, tree in (one, other) if not isinstance(tree, int)]
        read = [part for part in made if part is not None]
        return inf if len(read) < len(made) else self.nest(leaves, read) + self.written(one[0] | other[0])


def walk(chains: Sequence[Chain], variables: int, extents: Sequence[int], costs: NestCosts) -> float:
    """What the loops over some variables (as bits) cost, in runs of an innermost loop."""
    return sum(visit.cost for visit in visits(chains, variables, extents, costs))


def visits(chains: Sequence[Chain], variables: int, extents: Sequence[int], costs: NestCosts) -> Iterator[Visit]:
    """The loops of a nest, outermost first. Of the variables whose operands allow it, the one with the fewest coordinates is next, and
    variables that no sparse operand has come last.
    """
    waiting = list(bits(variables))
    left: list[Sequence[tuple[int, float]]] = list(chains)
    converted: list[tuple[set[int], float]] = []  # they follow whatever order there is, and store their share below the last variable
    count, cost = 1.0, 0.0
    while waiting:
        ready = [var for var in waiting if all(_is_next(var, chain) for chain in left)]
        if not ready:
            price, own, share = _convert(left, extents, costs)
            converted.append((own, share))
            cost += price
            continue
        sparse = {var for levels in left for var, _ in levels}
        var = min(ready, key=lambda one: (one not in sparse, extents[one] * prod(_shares(one, left))))
        driving = [share for share in _shares(var, left) if share < 1.0]
        waiting.remove(var)
        left = [[level for level in chain if level[0] != var] for chain in left]
        driving += [share for own, share in converted if var in own and own.isdisjoint(waiting)]
        inside = count * extents[var] * prod(driving)
        if driving:
            cost += count * costs.start
        cost += count * extents[var] * sum(driving) * costs.merge if len(driving) > 1 else inside
        yield Visit(var, inside, cost)
        count, cost = inside, 0.0


def _shares(var: int, chains: Iterable[Sequence[tuple[int, float]]]) -> list[float]:
    """The shares of the levels that a loop over a variable would reach."""
    return [chain[0][1] for chain in chains if chain and chain[0][0] == var]


def _is_next(var: int, chain: Sequence[tuple[int, float]]) -> bool:
    """Whether a loop over a variable may run before what a chain still waits for. A level that stores every coordinate needs no parent."""
    return all(var != other or share >= 1.0 for other, share in chain[1:])


def _convert(left: list[Sequence[tuple[int, float]]], extents: Sequence[int], costs: NestCosts) -> tuple[float, set[int], float]:
    """Take the chain with the fewest entries out of those that decide the order: the price, its variables, and the share that it stores."""
    blocking = [k for k, chain in enumerate(left) if len(chain) > 1]
    entries = {k: prod(extents[var] * share for var, share in left[k]) for k in blocking}
    least = min(blocking, key=lambda k: (entries[k], -k))
    taken = left.pop(least)
    return entries[least] * costs.convert, {var for var, _ in taken}, prod(share for _, share in taken)


def _unfold(best: Best, factors: int) -> Tree:
    _, part, is_pair = best[factors]
    if not part:
        return tuple(bits(factors))
    others = factors & ~part
    rest: tuple[int | Tree, ...] = (_unfold(best, others),) if is_pair else tuple(bits(others))
    return in_order((*rest, _unfold(best, part)))


def in_order(tree: Tree) -> Tree:
    """The parts of a nest by their first factors."""
    return tuple(sorted(tree, key=lambda part: part if isinstance(part, int) else min(bits(factors_of(part)))))


def factors_of(tree: int | Tree) -> int:
    """The factors of a tree, as bits."""
    return 1 << tree if isinstance(tree, int) else set_of_sets(factors_of(part) for part in tree)


def set_of(numbers: Sequence[int]) -> int:
    """Numbers as bits."""
    return set_of_sets(1 << number for number in numbers)


def set_of_sets(sets: Iterator[int] | Sequence[int]) -> int:
    """The union of sets of bits."""
    found = 0
    for one in sets:
        found |= one
    return found


def bits(numbers: int) -> Iterator[int]:
    """The numbers in a set, from the smallest on."""
    while numbers:
        lowest = numbers & -numbers
        yield lowest.bit_length() - 1
        numbers ^= lowest


def union(density: float, count: float) -> float:
    """The share of places at which at least one of ``count`` terms of this density has an entry."""
    return density if count <= 1.0 or density >= 1.0 else -expm1(count * log1p(-density))
