"""Cutting products into statements where one nest over all factors would do too much.

    y(i) = sum({j,k}, A(i,j) * B(j,k) * x(k))    ==>    t1(j) = sum(k, B(j,k) * x(k))
                                                        y(i) = sum(j, A(i,j) * t1(j))

A product is cut where its operation distributes over the reduction, and where absent entries annihilate as they do in one nest
(docs/decisions/0001): a temporary is as sparse as its product, or dense if all of its factors are. A dense temporary may also stand for a
product with absent entries if the result is dense: it has zeros there, which annihilate all numbers. Beside infinity and NaN they make
a NaN, which reaches the result; so whoever runs the steps must look at the result, and compute it in one nest if there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from sparseloom.core.algebra import Scalar, annihilates, identity
from sparseloom.core.dtypes import DType
from sparseloom.core.errors import NotationError
from sparseloom.core.names import Names
from sparseloom.core.trees import rewrite, walk
from sparseloom.formats.format import Format
from sparseloom.formats.named import dense, entries
from sparseloom.iteration.defaults import default_format
from sparseloom.notation.contents import accesses_in, identifiers_in
from sparseloom.notation.dtyping import constant_of, dtype_of, fill_of, reduced_dtype
from sparseloom.notation.nodes import Access, Apply, Assign, Expr, IndexVar, Literal, Reduce, TensorVar
from sparseloom.notation.terms import free_variables
from sparseloom.plan.inner import InnerSums, decides, temporary
from sparseloom.plan.machine import this_machine
from sparseloom.plan.network import Network, Part, Tree, bits, factors_of, in_order, set_of, union
from sparseloom.plan.plan import share_inside
from sparseloom.plan.problem import Problem
from sparseloom.plan.statistics import Statistics
from sparseloom.schedule.matching import is_distributive

Path = tuple[tuple[int, ...], ...]
"""Which operands to multiply first, as NumPy has it: each step takes some out of the list, by place, and puts their product behind it."""


@dataclass(frozen=True)
class Step:
    """A statement that is one nest, and the format and dtype of what it makes; None is left to the rules for results.

    ``schedule`` is as in a problem: none is the planner's, an empty one the loops as they are.
    """

    statement: Assign
    format: Format | None = None
    schedule: str | None = None
    dtype: DType | None = None

    @property
    def name(self) -> str:
        """What it makes."""
        return self.statement.lhs.tensor.name


@dataclass(frozen=True)
class Contraction:
    """Steps, the last of which makes the result, and what they are thought to do; so, too, what one nest would do.

    ``may_hide``: a dense temporary has zeros for absent entries, so that a NaN in the result may be none of one nest.
    """

    steps: tuple[Step, ...]
    may_hide: bool = False
    work: float = 0.0
    one_nest: float = 0.0


@dataclass(frozen=True)
class Product:
    """A term of a right side that is a reduced product: its factors, and those without variables, which stay where the result is made."""

    term: Expr
    reduction: str
    op: str
    zero: Scalar | None
    variables: tuple[IndexVar, ...]
    factors: tuple[Expr, ...]
    scalars: tuple[Expr, ...]
    dtype: DType

    @property
    def identity(self) -> Scalar:
        """What a sum over nothing is, and an absent entry."""
        found: Scalar = identity(self.reduction, self.dtype)
        return found


def contract(problem: Problem, statistics: Statistics) -> Contraction:
    """The steps in which a problem is best computed: one, where nothing is gained by more, or no more than by a sum inside one nest."""
    if problem.schedule is not None or not problem.is_stored:
        return _uncut(problem)
    found = {id(product.term): product for product in products(problem.assign.rhs)}
    sofar = _Cut(problem, statistics)
    for product in found.values():
        sofar.cut(product)
    if sofar.steps and share_inside(problem, statistics) * sofar.one_nest < sofar.costs.gain * sofar.work:
        sofar = _Cut(problem, statistics)
    sofar.compute_inner_sums_first()
    return sofar.result()


def _uncut(problem: Problem) -> Contraction:
    """A problem in one step."""
    return Contraction((Step(problem.assign, problem.assign.lhs.tensor.format),))


def contract_along(problem: Problem, statistics: Statistics, path: Path) -> Contraction:
    """The steps that a path asks for; it is for a product that is the whole right side."""
    sofar, rhs = _Cut(problem, statistics), problem.assign.rhs
    tree = follow(path, len(accesses_in(rhs)))
    if all(isinstance(part, int) for part in tree):
        return sofar.result()
    product = _product(rhs if isinstance(rhs, Reduce) else Reduce("add", (), rhs), rhs, keeps_scalars=True)
    if product is None:
        why = "absent entries would not annihilate as they do in one nest"
        raise NotationError(f"optimize= gives a path, but {problem.assign.lhs.tensor} cannot be computed in steps: {why}")
    sofar.apply(product, sofar.network(product), tree)
    return sofar.result()


def follow(path: Path, count: int) -> Tree:
    """The tree of a path over so many operands."""
    nodes: list[int | Tree] = list(range(count))
    for step in path:
        if not step or len(set(step)) < len(step) or not all(0 <= place < len(nodes) for place in step):
            raise NotationError(f"the path takes {step}, but the operands are then numbered from 0 to {len(nodes) - 1}")
        taken = [nodes[place] for place in sorted(step)]
        nodes = [node for place, node in enumerate(nodes) if place not in step]
        nodes.append(taken[0] if len(taken) == 1 else in_order(tuple(taken)))
    return nodes[0] if len(nodes) == 1 and not isinstance(nodes[0], int) else in_order(tuple(nodes))


class _Cut:
    """A problem whose products are cut one after another."""

    def __init__(self, problem: Problem, statistics: Statistics) -> None:
        self.problem = problem
        self.costs = this_machine().nests
        self.statistics = statistics
        self.stored = dict(statistics.stored)
        self.names = Names(identifiers_in(problem.assign))
        self.numbered = 0
        self.steps: list[Step] = []
        self.rhs = problem.assign.rhs
        self.may_hide = False
        self.work = self.one_nest = 0.0

    def result(self) -> Contraction:
        if not self.steps:
            return _uncut(self.problem)
        whole = self.problem.assign
        last = Step(Assign(self.problem.statement.lhs, self.rhs, whole.op), whole.lhs.tensor.format)
        return Contraction((*self.steps, last), self.may_hide, self.work, self.one_nest)

    def network(self, product: Product) -> Network:
        """A product as the numbers that decide its order."""
        kept = {*self.problem.assign.lhs.indices}
        made = self.problem.assign.lhs.tensor
        exact = product.dtype.kind not in "fc"
        hides = made.format.is_dense and (exact or self.problem.assign.op is None)
        places = {var: place for place, var in enumerate(product.variables)}
        parts = tuple(self._part(factor, places) for factor in product.factors)
        extents = tuple(self.problem.sizes[var.name] for var in product.variables)
        result = set_of([places[var] for var in product.variables if var in kept])
        return Network(parts, extents, result, hides, not made.format.is_dense, product.dtype.itemsize, self.costs)

    def _part(self, factor: Expr, places: Mapping[IndexVar, int]) -> Part:
        share = density(factor, self.problem.sizes, self.stored)
        is_sparse = fill_of(factor) is not None
        variables = set_of([places[var] for var in free_variables(factor)])
        levels = self._levels(factor, places, share) if is_sparse and isinstance(factor, Access) else {}
        return Part(variables, share, is_sparse, is_sparse, tuple(levels), tuple(levels.values()))

    def _levels(self, access: Access, places: Mapping[IndexVar, int], density: float) -> dict[int, float]:
        """The variables of an operand's levels, with the share of coordinates that each stores; what is not known is in the last one."""
        form, known = access.tensor.format, self.statistics.known(access.tensor.name)
        fans = () if known is None else known.fans
        found: dict[int, float] = {}
        last = -1
        for depth, mode in enumerate(form.modes):
            var = access.indices[mode]
            if var not in places:
                continue
            last = places[var]
            full = form.levels[depth].full or depth >= len(fans)
            share = 1.0 if full else min(1.0, fans[depth] / max(self.problem.sizes[var.name], 1))
            found[last] = found.get(last, 1.0) * share
        above = prod(share for var, share in found.items() if var != last)
        if last >= 0:
            found[last] = min(1.0, density / above) if above else 1.0
        return found

    def cut(self, product: Product) -> None:
        """Cut a product in the best way, if that is much better than not to."""
        network = self.network(product)
        one_nest = network.price(network.one_nest)
        if one_nest < self.costs.least:
            return
        tree = network.cheapest()
        price = network.price(tree)
        if one_nest >= self.costs.gain * price and one_nest - price >= self.costs.least:
            self.apply(product, network, tree)

    def compute_inner_sums_first(self) -> None:
        """Make statements of sums inside that one nest would compute again and again, or against the order of what they read."""
        if not any(isinstance(n, Reduce) for n in walk(self.rhs)):
            return
        inner = InnerSums(self.problem.sizes, self.costs, self._part)
        lhs = self.problem.assign.lhs
        for found in tuple(inner.worthwhile(self.rhs, lhs.indices)):
            made = temporary(found, self._fresh(), lhs.tensor.format.is_dense and not decides(self.rhs, found))
            self.steps.append(Step(Assign(made, found), made.tensor.format, dtype=self._rounded(made.tensor.dtype)))
            self.rhs = rewrite(self.rhs, {found: made}.get)

    def _fresh(self) -> str:
        """The name of one more temporary."""
        self.numbered += 1
        return self.names.fresh(f"t{self.numbered}")

    def _rounded(self, dtype: DType) -> DType | None:
        """The dtype of a temporary, if the rule for results would round it: float16 and bfloat16 are rounded where the result is stored."""
        return dtype if any(access.tensor.stored is not None for access in accesses_in(self.problem.assign.rhs)) else None

    def apply(self, product: Product, network: Network, tree: Tree) -> None:
        """Put the last nest of a tree in the place of the product, and the others before it."""
        self.one_nest += network.price(network.one_nest)
        self.work += network.price(tree)
        parts = [made for part in tree for made in self._made(product, network, part)]
        last = _reduced(product, (*product.scalars, *parts), frozenset(self.problem.assign.lhs.indices))
        self.rhs = _in_place(self.rhs, product.term, last)

    def _made(self, product: Product, network: Network, tree: int | Tree) -> list[Expr]:
        """A factor, or the temporary that stands for a tree; what cannot be stored as it must be is left to the nest that reads it."""
        if isinstance(tree, int):
            return [_with_room(product.factors[tree], product.dtype)]
        below = [made for part in tree for made in self._made(product, network, part)]
        factors = factors_of(tree)
        kept = tuple(product.variables[k] for k in bits(network.kept(factors)))
        if network.temporary(factors) is None and not kept:
            return below
        rhs = _reduced(product, below, frozenset(kept))
        plain = TensorVar(self._fresh(), len(kept), dense(len(kept)), product.dtype, fill=product.identity)
        form = self._format(Assign(Access(plain, kept), rhs), network, factors)
        made = Access(replace(plain, format=form), kept)
        self.steps.append(Step(Assign(made, rhs), form, dtype=self._rounded(product.dtype)))
        return [made]

    def _format(self, assign: Assign, network: Network, factors: int) -> Format:
        """How a temporary is stored: dense if its network says so, or else with the entries that it has and no others."""
        part, order = network.temporary(factors), len(assign.lhs.indices)
        if part is None or part.is_sparse:
            form = default_format(assign)
            return entries(order) if form.blocks or form.levels[-1].full else form
        self.may_hide |= part.may_lack and assign.lhs.tensor.dtype.kind in "fc"
        return dense(order)


def products(rhs: Expr) -> Iterator[Product]:
    """The reduced products among the terms of a right side that may be cut."""
    match rhs:
        case Apply("add" | "subtract" | "negative", args, None):
            for arg in args:
                yield from products(arg)
        case Reduce(_, _, Apply()) if _may_gain(rhs):
            found = _product(rhs, rhs)
            if found is not None:
                yield found


def _may_gain(term: Reduce) -> bool:
    """Whether there is more than one order: more than two operands, or a sum over variables that only one of them has."""
    reads = [set(n.indices) for n in accesses_in(term.body)]
    return len(reads) > 2 or not all(var in read for var in term.variables for read in reads)


def _product(reduced: Reduce, term: Expr, keeps_scalars: bool = False) -> Product | None:
    """A reduced product, if it may be cut: the laws hold, all is computed in one dtype, and what is absent annihilates."""
    match reduced:
        case Reduce(reduction, variables, Apply("divide", (Apply() as numerator, divisor), None) as body) if _is_factor(numerator, divisor):
            factor = Literal(1.0 / divisor.value) if isinstance(divisor, Literal) else Apply("divide", (Literal(1.0), divisor))
            found = _product(Reduce(reduction, variables, numerator), term, keeps_scalars)
            return found and (replace(found, scalars=(factor, *found.scalars)) if dtype_of(body) == found.dtype else None)
        case Reduce(reduction, _, Apply(op, _, zero) as body):
            dtype = dtype_of(body)
            if reduced_dtype(reduction, body) != dtype or not is_distributive(op, reduction, dtype):
                return None
            if not annihilates(op, 0, identity(reduction, dtype), zero):
                return None
            bound = list(reduced.variables)
            factors = list(_flat(body, reduction, op, zero, dtype, bound))
            others = tuple(factor for factor in factors if keeps_scalars or free_variables(factor))
            scalars = tuple(factor for factor in factors if not (keeps_scalars or free_variables(factor)))
            known = {var for factor in others for var in free_variables(factor)}
            if len(others) < 2 or not set(bound) <= known or not all(_annihilates(f, op, zero) for f in factors):
                return None
            return Product(term, reduction, op, zero, variable_order(others), others, scalars, dtype)
    return None


def _is_factor(numerator: Apply, divisor: Expr) -> bool:
    """Whether a quotient is a product with one number: that of real numbers by a number that is not 0."""
    if free_variables(divisor) or dtype_of(numerator).kind not in "fc" or numerator.op != "multiply":
        return False
    return not isinstance(divisor, Literal) or divisor.value != 0


def _flat(expr: Expr, reduction: str, op: str, zero: Scalar | None, dtype: DType, bound: list[IndexVar]) -> Iterator[Expr]:
    """The factors of a product, through products and sums in it; ``bound`` are the variables that are summed over."""
    match expr:
        case Apply(own, args, annihilator) if own == op and annihilator == zero and dtype_of(expr) == dtype:
            for arg in args:
                yield from _flat(arg, reduction, op, zero, dtype, bound)
        case Reduce(own, variables, body) if own == reduction and dtype_of(body) == dtype and not set(variables) & set(bound):
            bound += variables
            yield from _flat(body, reduction, op, zero, dtype, bound)
        case _:
            yield expr


def _annihilates(factor: Expr, op: str, zero: Scalar | None) -> bool:
    """Whether a factor decides the product where it is absent; one that never is will do, too."""
    fill = fill_of(factor)
    return fill is None or constant_of(factor) is not None or annihilates(op, 0, fill, zero)


def _reduced(product: Product, factors: Sequence[Expr], kept: Iterable[IndexVar]) -> Expr:
    """The product of some factors, summed over what is not kept."""
    body = factors[0] if len(factors) == 1 else Apply(product.op, tuple(factors), product.zero)
    # In the order in which a statement without a written sum has them: a sum that is written is a wide one.
    summed = tuple(var for var in free_variables(body) if var not in kept)
    return Reduce(product.reduction, summed, body) if summed else body


def _with_room(factor: Expr, dtype: DType) -> Expr:
    """A factor in the dtype in which all are multiplied."""
    return factor if dtype_of(factor) == dtype else Apply(f"as_{dtype.name}", (factor,))


def _in_place(expr: Expr, term: Expr, other: Expr) -> Expr:
    """An expression with another one in the place of one of its terms."""
    match expr:
        case _ if expr is term:
            return other
        case Apply("add" | "subtract" | "negative" as op, args, None):
            return Apply(op, tuple(_in_place(arg, term, other) for arg in args))
    return expr


def variable_order(factors: Sequence[Expr]) -> tuple[IndexVar, ...]:
    """The variables of a product in an order for loops and temporaries: as sparse factors store them, then the others.

    Where two sparse factors disagree, the first to come in the statement decides.
    """
    accesses = [n for factor in factors for n in accesses_in(factor)]
    free = {var for factor in factors for var in free_variables(factor)}
    sparse = [a for a in accesses if not a.tensor.format.is_dense]
    chains = [[a.indices[mode] for mode in dict.fromkeys(a.tensor.format.modes)] for a in sparse]
    waiting = [var for a in (*sparse, *accesses) for var in a.indices if var in free]
    waiting = list(dict.fromkeys(waiting))
    order: list[IndexVar] = []
    while waiting:
        ready = (var for var in waiting if not any(_comes_before(other, var, chains) for other in waiting if other != var))
        order.append(next(ready, waiting[0]))
        waiting.remove(order[-1])
    return tuple(order)


def _comes_before(one: IndexVar, other: IndexVar, chains: Sequence[Sequence[IndexVar]]) -> bool:
    return any(one in chain and other in chain and chain.index(one) < chain.index(other) for chain in chains)


def density(expr: Expr, sizes: Mapping[str, int], stored: Mapping[str, int]) -> float:
    """The share of places at which an expression has an entry, from how many entries operands have."""
    match expr:
        case Access(tensor, indices) if tensor.may_be_absent:
            places = prod(sizes[var.name] for var in indices)
            return min(1.0, stored.get(tensor.name, places) / places) if places else 1.0
        case Reduce(_, variables, body) if fill_of(expr) is not None:
            walked = {v for n in accesses_in(body) if n.tensor.may_be_absent for v in n.indices}
            return union(density(body, sizes, stored), prod(sizes[var.name] for var in variables if var in walked))
        case Apply(op, args, zero) if fill_of(expr) is not None:
            own = [density(arg, sizes, stored) for arg in args if not isinstance(arg, Literal)]
            is_product = zero is not None or op in ("multiply", "divide", "logical_and")
            return prod(own) if is_product else min(1.0, sum(own))
    return 1.0
