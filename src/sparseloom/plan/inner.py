"""Sums inside an expression that one nest would compute again and again: each becomes a statement of its own.

    C(i,j) = A(i,j) / sqrt(sum(k, A(k,j)**2))    ==>    t1(j) = sum(k, A(k,j)**2)
                                                        C(i,j) = A(i,j) / sqrt(t1(j))

The sum above depends on j alone, and the loops over i and j come to each j once for every entry of its column. A sum that depends on i alone
is computed once in each row, and stays where it is. What a sum has no entry for has none in the temporary: it is a bitmap then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sparseloom.core.trees import rewrite
from sparseloom.notation.contents import accesses_in
from sparseloom.notation.dtyping import fill_of
from sparseloom.notation.nodes import Access, Apply, Expr, IndexVar, Literal, Reduce
from sparseloom.notation.terms import free_variables

from sparseloom.plan.machine import NestCosts
from sparseloom.plan.network import Part, bits, loop_order, set_of, walk


@dataclass(frozen=True)
class InnerSum:
    """A reduction inside an expression, and what one nest and a statement of its own would do for it."""

    reduce: Reduce
    one_nest: float
    alone: float


@dataclass(frozen=True)
class Prices:
    """What sums inside an expression cost: ``part`` tells how an operand is stored, by the numbers of variables."""

    sizes: Mapping[str, int]
    costs: NestCosts
    part: Callable[[Expr, Mapping[IndexVar, int]], Part]

    def repeated(self, rhs: Expr, outer: tuple[IndexVar, ...]) -> Iterator[InnerSum]:
        """The sums inside a right side that are worth a statement of their own; ``outer`` are the variables of the result."""
        for term in _terms(rhs):
            variables, body = (term.variables, term.body) if isinstance(term, Reduce) else ((), term)
            around = dict.fromkeys((*outer, *variables))
            for inner in dict.fromkeys(_inner(body)):
                found = self._priced(body, tuple(around), inner)
                if found.one_nest >= self.costs.gain * found.alone and found.one_nest - found.alone >= self.costs.least:
                    yield found

    def _priced(self, body: Expr, around: tuple[IndexVar, ...], inner: Reduce) -> InnerSum:
        free = [var for var in around if var in free_variables(inner)]
        rest = rewrite(body, lambda n: Literal(1.0) if n == inner else None)
        order, visits = self._loops(rest, around)
        runs = visits[max((order.index(var) for var in free), default=-1) + 1]
        places = 1.0
        for var in free:
            places *= self.sizes[var.name]
        own = tuple(dict.fromkeys((*free, *inner.variables)))
        alone = self._price(inner.body, own, ())
        once = self._price(inner.body, own, free) / max(places, 1.0)
        return InnerSum(inner, runs * once, alone + places + self.costs.call)
