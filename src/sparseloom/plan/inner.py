"""Sums inside an expression that one nest would compute again and again, or against the order in which operands are stored: each
becomes a statement of its own.

    C(i,j) = A(i,j) / sqrt(sum(k, A(k,j)**2))    ==>    t1(j) = sum(k, A(k,j)**2)
                                                        C(i,j) = A(i,j) / sqrt(t1(j))

    y(i) = x(i) + A(j,i) * x(j)                  ==>    t1(i) = sum(j, A(j,i) * x(j))
                                                        y(i) = x(i) + t1(i)

The loops of the first nest over i and j come to each j once for every entry of its column. In the second one the loop over i is around the
sum, so a matrix that is stored by its rows j would be converted. A sum that depends on i alone, and is stored so, is computed once in
each row, and stays in the nest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod

from sparseloom.core.trees import walk
from sparseloom.formats.format import Format
from sparseloom.formats.levels.bitmap import Bitmap
from sparseloom.formats.named import dense
from sparseloom.notation.contents import accesses_in
from sparseloom.notation.dtyping import dtype_of, fill_of
from sparseloom.notation.nodes import Access, Apply, Expr, IndexVar, Reduce, TensorVar
from sparseloom.notation.terms import free_variables
from sparseloom.plan.machine import NestCosts
from sparseloom.plan.network import Part, set_of, visits

_TERMWISE = frozenset({"add", "subtract", "negative", "minimum", "maximum", "logical_or"})


@dataclass(frozen=True)
class InnerSums:
    """What decides whether a sum inside is computed first: extents, how operands are stored, and what loops cost."""

    sizes: Mapping[str, int]
    costs: NestCosts
    part: Callable[[Expr, Mapping[IndexVar, int]], Part]

    def worthwhile(self, rhs: Expr, outer: tuple[IndexVar, ...]) -> Iterator[Reduce]:
        """The sums inside a right side that are worth a statement of their own; ``outer`` are the variables of the result."""
        if isinstance(rhs, Reduce):  # its loops are those of the result
            yield from self._inside(rhs.body, tuple(dict.fromkeys((*outer, *rhs.variables))))
        else:
            yield from self._inside(rhs, outer)

    def _inside(self, body: Expr, around: tuple[IndexVar, ...]) -> Iterator[Reduce]:
        """The same of what loops over some variables compute."""
        for inner in dict.fromkeys(_outermost_sums(body)):
            one_nest, alone = self._in_one_nest(body, around, inner), self._alone(inner)
            if one_nest >= self.costs.gain * alone and one_nest - alone >= self.costs.least:
                yield inner
            else:
                yield from self._inside(inner.body, tuple(dict.fromkeys((*around, *inner.variables))))

    def _alone(self, inner: Reduce) -> float:
        """What a statement of its own costs."""
        return self._entries(inner) + self._places(free_variables(inner)) + self.costs.call

    def _in_one_nest(self, body: Expr, around: tuple[IndexVar, ...], inner: Reduce) -> float:
        """What the sum costs inside the loops of the expression around it."""
        free = free_variables(inner)
        again, runs = self._visits(body, around, free)
        entries, places = self._entries(inner), self._places(free)
        if not all(self._leads_down(access, free) for access in accesses_in(inner)):
            return entries * self.costs.convert + (again * min(entries, places) if again > 1.0 else 0.0)
        return runs * (self.costs.start + entries / max(places, 1.0)) if again > 1.0 else 0.0

    def _visits(self, body: Expr, around: tuple[IndexVar, ...], free: tuple[IndexVar, ...]) -> tuple[float, float]:
        """How often loops around a sum that do not belong to it begin it again, and how often it is computed in all."""
        numbers = {var: place for place, var in enumerate(around)}
        wanted = {numbers[var] for var in free if var in numbers}
        parts = [self.part(access, numbers) for access in _read_outside(body) if access.indices]
        again, runs = 1.0, 1.0
        for visit in visits([part.chain for part in parts], set_of([*numbers.values()]), [self.sizes[v.name] for v in around], self.costs):
            if not wanted:
                break
            runs = visit.count
            again = again if visit.variable in wanted else runs
            wanted.discard(visit.variable)
        return again, runs

    def _leads_down(self, access: Access, free: tuple[IndexVar, ...]) -> bool:
        """Whether an operand stores the variables that a sum keeps above those that it is over."""
        kept = [access.indices[mode] in free for mode, level in zip(access.tensor.format.modes, access.tensor.format.levels, strict=True)]
        return access.tensor.format.is_dense or kept == sorted(kept, reverse=True)

    def _entries(self, inner: Reduce) -> float:
        """How many values the sum takes together, in all."""
        reads = [access for access in accesses_in(inner) if access.indices]
        own = dict.fromkeys((*free_variables(inner), *inner.variables))
        numbers = {var: place for place, var in enumerate(dict.fromkeys((*own, *(v for a in reads for v in free_variables(a)))))}
        parts = [self.part(access, numbers) for access in reads]
        size = self._places(tuple(own))
        if fill_of(inner) is None:
            return size
        return max((part.density * self._places(_own(numbers, part)) for part in parts if part.is_sparse), default=size)

    def _places(self, variables: tuple[IndexVar, ...]) -> float:
        return float(prod(self.sizes[var.name] for var in variables))


def _own(numbers: Mapping[IndexVar, int], part: Part) -> tuple[IndexVar, ...]:
    return tuple(var for var, place in numbers.items() if part.variables >> place & 1)


def temporary(inner: Reduce, name: str, is_exact: bool) -> Access:
    """What a sum is computed into: dense where it always has an entry, or where its fill is as good; else a bitmap."""
    free, fill = free_variables(inner), fill_of(inner)
    order = len(free)
    may_be_dense = fill is None or is_exact or not order
    form = dense(order) if may_be_dense else Format((*dense(order - 1).levels, Bitmap()), tuple(range(order)))
    return Access(TensorVar(name, order, form, dtype_of(inner), fill=0 if fill is None else fill), free)


def decides(expr: Expr, inner: Expr) -> bool:
    """Whether an expression may have no entry because one inside it has none: then a fill is not as good as no entry."""
    match expr:
        case _ if expr == inner:
            return False
        case Apply(op, args, zero):
            own = zero is not None or op not in _TERMWISE
            return any((own or decides(arg, inner)) for arg in args if any(n == inner for n in walk(arg)))
        case Reduce(_, _, body):
            return decides(body, inner)
    return False


def _outermost_sums(expr: Expr) -> Iterator[Reduce]:
    """The reductions inside an expression that no other one is around."""
    match expr:
        case Reduce():
            if any(isinstance(n, Access) for n in walk(expr)):
                yield expr
        case Apply(_, args):
            for arg in args:
                yield from _outermost_sums(arg)


def _read_outside(expr: Expr) -> Iterator[Access]:
    """The operands of an expression that no sum inside it reads."""
    match expr:
        case Access():
            yield expr
        case Apply(_, args):
            for arg in args:
                yield from _read_outside(arg)
