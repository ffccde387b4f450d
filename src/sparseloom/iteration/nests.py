"""Nests: an assignment with its loops, before they are ordered, and the temporaries that feed it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from sparseloom.core import algebra
from sparseloom.core.names import Names
from sparseloom.core.trees import rewrite
from sparseloom.formats.format import Format
from sparseloom.formats.level import Collector, Level
from sparseloom.formats.levels.listed import Listed
from sparseloom.formats.levels.scattered import Scattered
from sparseloom.formats.levels.singleton import Singleton
from sparseloom.formats.levels.spread import Spread
from sparseloom.formats.named import dense
from sparseloom.iteration.assembly import reductions
from sparseloom.iteration.formula import ALWAYS, All, Stored
from sparseloom.iteration.layout import repeats_loosely
from sparseloom.iteration.ordering import Blocks, Edge, hard_edges, level_variables, sparse_variables
from sparseloom.iteration.region import present
from sparseloom.notation.contents import accesses_in
from sparseloom.notation.dtyping import Absence, absence_of, dtype_of, fill_of, reduced_dtype
from sparseloom.notation.nodes import Access, Apply, Assign, Expr, IndexVar, Reduce, TensorVar
from sparseloom.notation.terms import free_variables


@dataclass
class Nest:
    """One assignment with its loops, before they are ordered; ``producers`` fill the temporaries it reads."""

    assign: Assign
    variables: tuple[IndexVar, ...]
    producers: list[Nest] = field(default_factory=list)

    def everything(self) -> Iterator[Nest]:
        """This nest and all nests that feed it."""
        yield self
        for producer in self.producers:
            yield from producer.everything()


def additive_groups(rhs: Expr) -> list[Expr]:
    """The top-level terms of a sum, joined where they are reduced over the same variables."""
    groups: dict[tuple[IndexVar, ...], list[Expr]] = {}
    for negative, term in signed_terms(rhs, False):
        variables, body = (term.variables, term.body) if isinstance(term, Reduce) and term.op == "add" else ((), term)
        key = tuple(sorted(variables, key=str))
        groups.setdefault(key, []).append(Apply("negative", (body,)) if negative else body)
    joined: list[Expr] = []
    for variables, bodies in groups.items():
        total = bodies[0] if len(bodies) == 1 else Apply("add", tuple(bodies))
        joined.append(Reduce("add", variables, total) if variables else total)
    return joined


def signed_terms(expr: Expr, negative: bool) -> Iterator[tuple[bool, Expr]]:
    """The terms of a sum, and whether each is subtracted."""
    match expr:
        case Apply("add", args, None):
            for arg in args:
                yield from signed_terms(arg, negative)
        case Apply("subtract", (left, right), None):
            yield from signed_terms(left, negative)
            yield from signed_terms(right, not negative)
        case Apply("negative", (inner,), None):
            yield from signed_terms(inner, not negative)
        case _:
            yield negative, expr


def build_apart(assign: Assign, names: Names, blocks: Blocks) -> Nest:
    """The loops of what unstored terms make: with a number for what is counted inside of them, or with one for each of their points.

    An operand that stores what is counted along above what stays, such as the rows of csc, is walked as it is stored.
    """
    apart: list[Nest] = []

    def extract(expr: Expr) -> Expr:
        match expr:
            case Reduce(_, variables) if _stands_above(variables, expr, blocks):
                kept = free_variables(expr)
                made = Access(TensorVar(names.fresh("t"), len(kept), dense(len(kept)), dtype_of(expr)), kept)
                apart.append(build_nest(Assign(made, expr), names))
                return made
            case Apply(op, args, zero):
                return Apply(op, tuple(map(extract, args)), zero)
        return expr

    nest = build_nest(replace(assign, rhs=extract(assign.rhs)), names)
    nest.producers += apart
    return nest


def _stands_above(variables: tuple[IndexVar, ...], expr: Expr, blocks: Blocks) -> bool:
    """Whether an operand stores one of these variables above another."""
    edges = (edge for access in accesses_in(expr) for edge in hard_edges(access, blocks))
    return any(above in variables and below not in variables for above, below in edges)


def build_nest(assign: Assign, names: Names) -> Nest:
    """The loops' variables and the temporaries of one assignment."""
    if _is_worth_more(assign):
        made = Access(TensorVar(names.fresh("t"), 0, Format((), ()), dtype_of(assign.rhs)), ())
        return Nest(Assign(assign.lhs, made), tuple(dict.fromkeys(assign.lhs.indices)), [build_nest(Assign(made, assign.rhs), names)])
    lhs, rhs, op = assign.lhs, join_reductions(assign.rhs), assign.op
    variables = list(dict.fromkeys(lhs.indices))
    # A result of another dtype is not reduced into: the reduction would wrap or round differently there.
    while isinstance(rhs, Reduce) and op in (None, rhs.op) and lhs.tensor.dtype == reduced_dtype(rhs.op, rhs.body) and _fits(lhs, rhs):
        variables += rhs.variables
        op, rhs = rhs.op, rhs.body
    producers: list[Nest] = []
    numbers: dict[Reduce, Access] = {}

    def extract(expr: Expr) -> Expr:
        if isinstance(expr, Reduce):
            if expr not in numbers:
                numbers[expr] = make_temporary(expr, names)
                producers.append(build_nest(Assign(numbers[expr], expr), names))
            return numbers[expr]
        if isinstance(expr, Apply):
            return Apply(expr.op, tuple(extract(arg) for arg in expr.args), expr.zero)
        return expr

    return Nest(Assign(lhs, extract(rhs), op), tuple(dict.fromkeys(variables)), producers)


def _fits(lhs: Access, reduce: Reduce) -> bool:
    """Whether a reduction may run in the place it goes to, although that does not remember which of its terms were absent."""
    absence, tensor = absence_of(reduce.op, reduce.body), lhs.tensor
    if absence in (None, Absence.LEFT_OUT) or tensor.partial:
        return True
    # One absent factor decides, also beside nan and infinity.
    return not tensor.may_be_absent and not (absence is Absence.ONE_DECIDES and tensor.dtype.kind in "fc")


def _is_worth_more(assign: Assign) -> bool:
    """Whether a sparse result with a repeated variable has another fill than its right side: each place that is reached has an entry."""
    lhs, fill = assign.lhs, fill_of(assign.rhs)
    cut = len(set(lhs.indices)) < len(lhs.indices) and not lhs.tensor.format.is_dense
    return cut and assign.op is None and fill is not None and not algebra.same_value(fill, lhs.tensor.fill)


def build_rows(assign: Assign, names: Names, variables: tuple[IndexVar, ...], kind: Scattered | Listed) -> Nest:
    """The loops of a result whose sums over ``variables`` are put into a workspace; other sums become scalars as ever.

    A right side without such sums is put there as a whole, for it may come in another order than it is stored.
    """
    producers: list[Nest] = []
    rhs = join_reductions(assign.rhs)
    whole = _uses(rhs, variables) and not any(_uses(n, variables) for n in reductions(rhs))

    def extract(expr: Expr) -> Expr:
        match expr:
            case _ if whole or (isinstance(expr, Reduce) and _uses(expr, variables)):
                found = make_workspace(expr, names, variables, kind)
            case Reduce():
                found = make_temporary(expr, names)
            case Apply(op, args, zero):
                return Apply(op, tuple(extract(arg) for arg in args), zero)
            case _:
                return expr
        filling = build_nest(_filling(found, expr), names)
        producers.append(spread_rows(filling, names) if kind == Scattered(kind.ordered) else filling)
        return found

    return Nest(Assign(assign.lhs, extract(rhs)), assign.lhs.indices, producers)


def spread_rows(nest: Nest, names: Names) -> Nest:
    """The same nest, in which a row that its sums would walk again and again beside others is set out once.

    ``w(j) = sum(k, A(i,k) * B(k,j) * M(i,j))``: a row of M is the same for every k, and is met by each row of B.
    """
    own, summed = {*nest.assign.lhs.indices}, {*nest.variables} - {*nest.assign.lhs.indices}
    factors = _factors(nest.assign.rhs)
    summing = [factor for factor in factors if summed & {*factor.indices} and not factor.tensor.format.blocks]
    walked = {var for factor in summing for var in sparse_variables([factor], {})}
    for factor in factors:
        form, inside = factor.tensor.format, [var for var in factor.indices if var in nest.variables]
        is_row = len(inside) == 1 and not form.blocks and form.is_unique and not form.levels[-1].full
        is_row = is_row and factor.indices[form.modes[-1]] == inside[0]
        if is_row and {*inside} <= own & walked:
            nest = _spreading(nest, factor, names)
    return nest


def _spreading(nest: Nest, factor: Access, names: Names) -> Nest:
    """A nest that reads a row of an operand after it was set out."""
    tensor, var = factor.tensor, level_variables(factor, {})[-1]
    row = TensorVar(names.fresh(f"{tensor.name}_row"), 1, Format((Spread(ordered=False),), (0,)), tensor.dtype, fill=tensor.fill)
    spread = Access(row, (var,))
    assign = replace(nest.assign, rhs=rewrite(nest.assign.rhs, lambda n: spread if n == factor else None))
    return Nest(assign, nest.variables, [*nest.producers, Nest(Assign(spread, factor), (var,))])


def _factors(rhs: Expr) -> list[Access]:
    """The sparse operands that all must be there for a term to be."""
    match present(rhs, lambda access: Stored(access) if access.tensor.may_be_absent else ALWAYS):
        case All(parts):
            return [part.access for part in parts if isinstance(part, Stored)]
    return []


def _filling(workspace: Access, expr: Expr) -> Assign:
    """What fills a workspace. Entries that repeat in no order are added up there: entries alone, for the fill is added to none of them."""
    match expr:
        case Access(tensor, indices) if repeats_loosely(tensor.format):
            return Assign(workspace, Access(replace(tensor, fill=algebra.identity("add", tensor.dtype)), indices), "add")
    return Assign(workspace, expr)


def build_copied(assign: Assign, names: Names) -> Nest:
    """The loops of a result with a repeated variable, ``R(i,j,i)``: entries are listed, then copied to a result of distinct variables."""
    seen: set[IndexVar] = set()
    apart: list[IndexVar] = []
    for var in assign.lhs.indices:
        apart.append(IndexVar(names.fresh(var.name)) if var in seen else var)
        seen.add(var)
    lhs = Access(assign.lhs.tensor, tuple(apart))
    listed = _workspace(assign.rhs, names, level_variables(assign.lhs, {}), Listed())
    made = Access(replace(listed.tensor, fill=assign.lhs.tensor.fill), listed.indices)
    return Nest(Assign(lhs, Access(made.tensor, level_variables(lhs, {}))), lhs.indices, [build_nest(Assign(made, assign.rhs), names)])


def _uses(expr: Expr, variables: tuple[IndexVar, ...]) -> bool:
    return not {*free_variables(expr)}.isdisjoint(variables)


def make_workspace(expr: Expr, names: Names, variables: tuple[IndexVar, ...], kind: Scattered | Listed) -> Access:
    """A workspace over those of the variables that an expression has; it is absent where nothing was written."""
    return _workspace(expr, names, tuple(v for v in variables if v in free_variables(expr)), kind)


def _workspace(expr: Expr, names: Names, used: tuple[IndexVar, ...], kind: Scattered | Listed) -> Access:
    dtype, fill = dtype_of(expr), fill_of(expr)
    levels: tuple[Level, ...] = (kind,)
    if kind.collector is Collector.LIST and len(used) > 1:
        levels = (Listed(unique=False), *(Singleton(unique=False),) * (len(used) - 2), Singleton())
    form = Format(levels, tuple(range(len(used))))
    return Access(TensorVar(names.fresh("w"), len(used), form, dtype, fill=0 if fill is None else fill), used)


def join_reductions(rhs: Expr) -> Expr:
    """Write a sum of sums over the same variables as one sum, so that it becomes one loop nest.

    They must have one dtype: a sum of narrow integers wraps before it is added to a wider one. And what fills them may not cancel out, for
    where nothing is stored each of them has a value.
    """
    terms = list(signed_terms(rhs, False))
    if len(terms) < 2 or not all(isinstance(term, Reduce) and term.op == "add" for _, term in terms):
        return rhs
    if any(dtype_of(term) != dtype_of(rhs) for _, term in terms):
        return rhs
    groups = additive_groups(rhs)
    joined = groups[0]
    if len(groups) > 1 or not isinstance(joined, Reduce):
        return rhs
    cancels = fill_of(joined) is not None and fill_of(rhs) is None
    return rhs if cancels else joined


def make_temporary(reduce: Reduce, names: Names) -> Access:
    """A scalar to reduce into; it is absent where the reduction is."""
    dtype, fill = dtype_of(reduce), fill_of(reduce)
    return Access(TensorVar(names.fresh("t"), 0, Format((), ()), dtype, fill=0 if fill is None else fill, partial=fill is not None), ())


def accesses(nest: Nest) -> list[Access]:
    """What a nest and all that feed it read and write."""
    found = (n for part in nest.everything() for n in accesses_in(part.assign))
    return list(dict.fromkeys(found))


def visible_edges(nest: Nest, operands: list[Access], blocks: Blocks) -> dict[Access, set[Edge]]:
    """The storage order of operands as the loops of a nest see it: a producer runs loops over its own variables itself."""
    own = {*accesses_in(nest.assign)}
    produced = [({*accesses(producer)}, {*producer.variables}) for producer in nest.producers]

    def edges(access: Access) -> set[Edge]:
        if access in own:
            return hard_edges(access, blocks)
        hidden = set.intersection(*(variables for read, variables in produced if access in read))
        return {(x, y) for x, y in hard_edges(access, blocks) if x not in hidden and y not in hidden}

    return {access: edges(access) for access in operands}


def depth_of(producer: Nest, order: tuple[IndexVar, ...], blocks: Blocks) -> int:
    """How many loops must be open before the producer can run."""
    used = {v for a in accesses(producer) for v in (*a.indices, *level_variables(a, blocks))}
    own = {v for part in producer.everything() for v in part.variables}
    bound = {part: var for var, cut in blocks.items() for part in cut.children}
    own |= {part for part, var in bound.items() if var in own}
    needed = {v for v in used if v not in own}
    return max((n + 1 for n, v in enumerate(order) if v in needed or bound.get(v) in needed), default=0)
