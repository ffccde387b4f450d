"""Concretisation: from index notation to loops.

    y(i) = A(i,j)*x(j) + b(i)        forall i
                               ==>     where
                                         y(i) = t + b(i)
                                       with
                                         forall j
                                           t += A(i,j)*x(j)

A reduction at the root runs in the loops of its statement; every other one becomes a scalar temporary, filled as far out as its
variables allow. When storage orders conflict, the cheapest operands are converted, and the conversion is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sparseloom.core import algebra
from sparseloom.core.errors import CompilerBug
from sparseloom.core.names import Names
from sparseloom.core.trees import rewrite, walk
from sparseloom.formats.format import Format
from sparseloom.formats.levels.scattered import Scattered
from sparseloom.formats.named import name_of
from sparseloom.iteration.blocks import build_blocks, can_build_blocks, names_in, without_blocks
from sparseloom.iteration.in_order import BlocksInTheWay, RowsOutOfOrder, needs_workspace, not_in_order, unmatched_blocks
from sparseloom.iteration.layout import block_sizes, can_append, modes_in_order, plain, reordered, streams, walks_blocks
from sparseloom.iteration.ordering import Edges, block_variables, hard_edges, level_variables, loop_order, soft_edges, sparse_variables
from sparseloom.iteration.region import is_skippable
from sparseloom.iteration.sharing import shared_pattern
from sparseloom.notation.dtyping import dtype_of, fill_of, reduced_dtype
from sparseloom.notation.nodes import (
    Access,
    Apply,
    Assign,
    Expr,
    Forall,
    IndexVar,
    Reduce,
    Sequence,
    Stmt,
    SuchThat,
    TensorVar,
    Where,
)
from sparseloom.notation.relations import SplitRelation
from sparseloom.notation.terms import free_variables


@dataclass(frozen=True)
class Conversion:
    """An operand that is stored another way before the loops run."""

    source: TensorVar
    target: TensorVar
    reason: str

    def __str__(self) -> str:
        return f"{self.source.name} is converted from {name_of(self.source.format)} to {name_of(self.target.format)}: {self.reason}"


@dataclass(frozen=True)
class Concrete:
    """Loops, and what must be converted before they run.

    ``assign`` is the statement in index notation with converted operands in place; ``shared`` is the operand whose structure
    the result takes over.
    """

    stmt: Stmt
    assign: Assign
    shared: Access | None = None
    conversions: tuple[Conversion, ...] = ()


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


def concretize(assign: Assign, costs: Mapping[str, float] | None = None, share: bool = True) -> Concrete:
    """Choose the loops of a statement.

    ``costs`` says how many entries each operand has, where that is known. ``share`` allows the result to take over the structure
    of an operand with the same pattern.
    """
    try:
        return _best(assign, costs or {}, share, keep_blocks=True)
    except BlocksInTheWay:
        if can_build_blocks(assign.lhs):
            return _in_blocks(assign, costs or {})
        return _best(assign, costs or {}, share, keep_blocks=False)


def _in_blocks(assign: Assign, costs: Mapping[str, float]) -> Concrete:
    """Make the entries of a blocked result as if it had no blocks, and put them into blocks a row at a time."""
    made = _best(without_blocks(assign), costs, share=False, keep_blocks=False)
    stmt = build_blocks(assign, made.stmt, names_in(made.stmt, assign))
    return Concrete(stmt, Assign(assign.lhs, made.assign.rhs, assign.op), None, made.conversions)


def _best(assign: Assign, costs: Mapping[str, float], share: bool, keep_blocks: bool) -> Concrete:
    together = _Attempt(assign, costs, share, keep_blocks)
    scattered = _Attempt(assign, costs, share, keep_blocks)
    if scattered.can_scatter():
        # In order without a workspace if that takes no conversion; else a row at a time, in any order.
        try:
            made = together.in_one_nest()
        except RowsOutOfOrder:
            return scattered.by_rows()
        if not together.replaced:
            return made
        rows = scattered.by_rows()
        return rows if len(scattered.replaced) < len(together.replaced) else made
    made = together.in_one_nest()
    if made.shared is not None and made.shared in together.replaced:
        return _best(assign, costs, share=False, keep_blocks=keep_blocks)
    if together.replaced and can_run_in_sequence(assign):
        apart = _Attempt(assign, costs, share, keep_blocks)
        sequence = apart.in_sequence()
        if len(apart.replaced) < len(together.replaced):
            return sequence
    return made


class _Attempt:
    """One way to run a statement, with the conversions it takes."""

    def __init__(self, assign: Assign, costs: Mapping[str, float], share: bool, keep_blocks: bool) -> None:
        self._names = Names({n.name for n in walk(assign) if isinstance(n, TensorVar | IndexVar)})
        self._converter = _Converter(self._names, costs)
        self._assign = self._converter.prepare(assign, keep_blocks)
        self._shared = shared_pattern(self._assign) if share else None
        self.replaced: dict[Access, Access] = {}

    def in_one_nest(self) -> Concrete:
        """All terms together."""
        return self._concrete(self._order(self._assign))

    def in_sequence(self) -> Concrete:
        """One nest per group of terms, each in its own loop order, added up in the result."""
        first, *rest = additive_groups(self._assign.rhs)
        steps = [Assign(self._assign.lhs, first, self._assign.op)]
        steps += [Assign(self._assign.lhs, group, "add") for group in rest]
        return self._concrete(Sequence(tuple(self._order(step) for step in steps)))

    def can_scatter(self) -> bool:
        """Whether the rows of a sparse result can be built in a workspace: they are appended, and each sum skips absent terms."""
        lhs, form = self._assign.lhs, self._assign.lhs.tensor.format
        if form.is_dense or form.blocks or self._shared is not None or self._assign.op is not None or not can_append(form):
            return False
        last = lhs.indices[form.modes[-1]]
        sums = [n for n in _reductions(self._assign.rhs) if last in free_variables(n)]
        return (
            not form.levels[-1].full
            and len(set(lhs.indices)) == len(lhs.indices)
            and bool(sums)
            and all(is_skippable(n.body, n.op) for n in sums)
        )

    def by_rows(self) -> Concrete:
        """Each sum is scattered into a workspace, a row at a time, and the result appended from there."""
        last = self._assign.lhs.indices[self._assign.lhs.tensor.format.modes[-1]]
        return self._concrete(self._order(self._assign, last))

    def _order(self, assign: Assign, scattered: IndexVar | None = None) -> Stmt:
        orderer = _Orderer(self._converter, assign, self._shared is not None, self.can_scatter() and scattered is None)
        nest = build_nest(assign, self._names) if scattered is None else build_rows(assign, self._names, scattered)
        stmt = orderer.order(nest)
        self.replaced.update(orderer.replaced)
        return stmt

    def _concrete(self, stmt: Stmt) -> Concrete:
        assign = rewrite(self._assign, lambda n: self.replaced.get(n) if isinstance(n, Access) else None)
        return Concrete(bind_blocks(stmt), assign, self._shared, tuple(self._converter.conversions))


def can_run_in_sequence(assign: Assign) -> bool:
    """Whether terms may be added to the result one after another: it is dense, all are of its dtype, and each fills with 0."""
    dtype = assign.lhs.tensor.dtype
    if not assign.lhs.tensor.format.is_dense or assign.op not in (None, "add") or dtype.kind == "b":
        return False
    if any(dtype_of(term) != dtype for _, term in _signed_terms(assign.rhs, False)):
        return False
    groups = additive_groups(assign.rhs)
    return len(groups) > 1 and all(fill_of(part) in (0, None) for part in groups)


def additive_groups(rhs: Expr) -> list[Expr]:
    """The top-level terms of a sum, joined where they are reduced over the same variables."""
    groups: dict[tuple[IndexVar, ...], list[Expr]] = {}
    for negative, term in _signed_terms(rhs, False):
        variables, body = (term.variables, term.body) if isinstance(term, Reduce) and term.op == "add" else ((), term)
        key = tuple(sorted(variables, key=str))
        groups.setdefault(key, []).append(Apply("negative", (body,)) if negative else body)
    joined: list[Expr] = []
    for variables, bodies in groups.items():
        total = bodies[0] if len(bodies) == 1 else Apply("add", tuple(bodies))
        joined.append(Reduce("add", variables, total) if variables else total)
    return joined


def _signed_terms(expr: Expr, negative: bool) -> Iterator[tuple[bool, Expr]]:
    match expr:
        case Apply("add", args, None):
            for arg in args:
                yield from _signed_terms(arg, negative)
        case Apply("subtract", (left, right), None):
            yield from _signed_terms(left, negative)
            yield from _signed_terms(right, not negative)
        case Apply("negative", (inner,), None):
            yield from _signed_terms(inner, not negative)
        case _:
            yield negative, expr


def build_nest(assign: Assign, names: Names) -> Nest:
    """The loops' variables and the temporaries of one assignment."""
    lhs, rhs, op = assign.lhs, join_reductions(assign.rhs), assign.op
    variables = list(dict.fromkeys(lhs.indices))
    # A result of another dtype is not reduced into: the reduction would wrap or round differently there.
    while isinstance(rhs, Reduce) and op in (None, rhs.op) and lhs.tensor.dtype == reduced_dtype(rhs.op, rhs.body):
        variables += rhs.variables
        op, rhs = rhs.op, rhs.body
    producers: list[Nest] = []

    def extract(expr: Expr) -> Expr:
        if isinstance(expr, Reduce):
            temporary = make_temporary(expr, names)
            producers.append(build_nest(Assign(temporary, expr), names))
            return temporary
        if isinstance(expr, Apply):
            return Apply(expr.op, tuple(extract(arg) for arg in expr.args), expr.zero)
        return expr

    return Nest(Assign(lhs, extract(rhs), op), tuple(dict.fromkeys(variables)), producers)


def build_rows(assign: Assign, names: Names, last: IndexVar) -> Nest:
    """The loops of a result whose sums over ``last`` are scattered into rows; other sums become scalars as ever."""
    producers: list[Nest] = []
    ordered = assign.lhs.tensor.format.levels[-1].ordered or not _is_alone(assign.rhs)

    def extract(expr: Expr) -> Expr:
        match expr:
            case Reduce() if last in free_variables(expr):
                dtype = dtype_of(expr)
                form = Format((Scattered(ordered),), (0,))
                row = TensorVar(names.fresh("w"), 1, form, dtype, fill=algebra.identity(expr.op, dtype))
                found = Access(row, (last,))
            case Reduce():
                found = make_temporary(expr, names)
            case Apply(op, args, zero):
                return Apply(op, tuple(extract(arg) for arg in args), zero)
            case _:
                return expr
        producers.append(build_nest(Assign(found, expr), names))
        return found

    rhs = extract(join_reductions(assign.rhs))
    return Nest(Assign(assign.lhs, rhs), assign.lhs.indices, producers)


def _is_alone(rhs: Expr) -> bool:
    """Whether nothing stands beside a single sum, with whose entries it would have to be merged."""
    reductions = list(_reductions(rhs))
    outside = {n for n in walk(rhs) if isinstance(n, Access)} - {n for sum_ in reductions for n in walk(sum_) if isinstance(n, Access)}
    return len(reductions) == 1 and all(access.tensor.format.is_dense for access in outside)


def _reductions(expr: Expr) -> Iterator[Reduce]:
    """The outermost reductions of an expression."""
    if isinstance(expr, Reduce):
        yield expr
    elif isinstance(expr, Apply):
        for arg in expr.args:
            yield from _reductions(arg)


def join_reductions(rhs: Expr) -> Expr:
    """Write a sum of sums over the same variables as one sum, so that it becomes one loop nest.

    They must have one dtype: a sum of narrow integers wraps before it is added to a wider one.
    """
    terms = list(_signed_terms(rhs, False))
    if len(terms) < 2 or not all(isinstance(term, Reduce) and term.op == "add" for _, term in terms):
        return rhs
    if any(dtype_of(term) != dtype_of(rhs) for _, term in terms):
        return rhs
    groups = additive_groups(rhs)
    return groups[0] if len(groups) == 1 else rhs


def make_temporary(reduce: Reduce, names: Names) -> Access:
    """A scalar to reduce into; it is absent when nothing was."""
    dtype = dtype_of(reduce)
    partial = is_skippable(reduce.body, reduce.op)
    return Access(TensorVar(names.fresh("t"), 0, Format((), ()), dtype, fill=algebra.identity(reduce.op, dtype), partial=partial), ())


class _Converter:
    """Replaces operands by converted ones and remembers it."""

    def __init__(self, names: Names, costs: Mapping[str, float]) -> None:
        self._names = names
        self._costs = costs
        self.conversions: list[Conversion] = []

    def cost(self, access: Access) -> float:
        return self._costs.get(access.tensor.name, 0.0)

    def convert(self, access: Access, form: Format, reason: str) -> Access:
        """The same access to the same tensor in another format."""
        tensor = access.tensor
        for known in self.conversions:
            if known.source == tensor and known.target.format == form:
                return Access(known.target, access.indices)
        name = self._names.fresh(f"{tensor.name}_{_identifier(name_of(form))}")
        target = TensorVar(name, tensor.order, form, tensor.dtype, tensor.index_dtype, tensor.fill)
        self.conversions.append(Conversion(tensor, target, reason))
        return Access(target, access.indices)

    def prepare(self, assign: Assign, keep_blocks: bool) -> Assign:
        """Convert what no loop order could walk: unordered levels beside others, blocks that do not match."""
        while True:
            sizes = block_sizes([n for n in walk(assign) if isinstance(n, Access)]) if keep_blocks else {}
            found = {n: self._prepared(n, assign, sizes) for n in walk(assign.rhs) if isinstance(n, Access)}
            if not any(found.values()):
                break
            assign = Assign(assign.lhs, rewrite(assign.rhs, found.get), assign.op)
        lhs = assign.lhs
        if lhs.tensor.format.blocks and not walks_blocks(lhs, sizes):
            raise unmatched_blocks(assign, keep_blocks)
        return assign

    def _prepared(self, access: Access, assign: Assign, sizes: dict[IndexVar, int]) -> Access | None:
        form = access.tensor.format
        if form.blocks and not walks_blocks(access, sizes):
            return self.convert(access, plain(form), "its blocks do not match the other operands'")
        if not streams(access, assign):
            return self.convert(access, plain(form), "its entries must be in order and unique to be merged")
        return None


class _Orderer:
    """Orders the loops of a nest, converting operands that stand in the way."""

    def __init__(self, converter: _Converter, assign: Assign, shared: bool, may_scatter: bool = False) -> None:
        self._converter = converter
        self._assign = assign
        self._shared = shared
        self._may_scatter = may_scatter
        self.replaced: dict[Access, Access] = {}

    def order(self, nest: Nest) -> Stmt:
        """The statement of a nest with its loops in a legal order."""
        return self._emit(nest, ())

    def _emit(self, nest: Nest, outer: tuple[IndexVar, ...]) -> Stmt:
        accesses = _accesses(nest)
        own = self._with_blocks(tuple(v for v in nest.variables if v not in outer), accesses)
        order = self._loop_order(nest, own, outer, accesses)
        self._check_result(nest, outer + order)
        depths = [(_depth(producer, order), producer) for producer in nest.producers]
        body: Stmt = self._substitute(nest.assign)
        for depth in range(len(order), -1, -1):
            for wanted, producer in depths:
                if wanted == depth:
                    body = Where(body, self._emit(producer, outer + order[:depth]))
            if depth:
                body = Forall(order[depth - 1], body)
        return body

    def _with_blocks(self, variables: tuple[IndexVar, ...], accesses: list[Access]) -> tuple[IndexVar, ...]:
        blocked = block_sizes(accesses)
        expanded: list[IndexVar] = []
        for var in variables:
            expanded += block_variables(var) if var in blocked else (var,)
        return tuple(expanded)

    def _loop_order(
        self, nest: Nest, own: tuple[IndexVar, ...], outer: tuple[IndexVar, ...], accesses: list[Access]
    ) -> tuple[IndexVar, ...]:
        lhs, current = nest.assign.lhs, list(accesses)
        converted: list[Access] = []
        while True:
            edges = self._edges(nest, current)
            late = {a for a in current if a != lhs and _is_late(a, own, outer)}
            found = loop_order(own, edges)
            if isinstance(found, tuple) and not late:
                for access in converted:
                    # One that has variables of deeper loops is converted there, where they are in order too.
                    if access.tensor.format.blocks or {*access.indices} <= {*outer, *found}:
                        self._reorder(access, outer + found)
                return found
            stuck = late or {
                a for a in current if a != lhs and any(isinstance(found, set) and x in found and y in found for x, y in hard_edges(a))
            }
            if not stuck:
                raise not_in_order(self._assign, "its storage order conflicts with itself")
            # What keeps a sparse result out of order goes first: whether it can be assembled must not depend on the data.
            out_of_order = {a for a in stuck if any((y, x) in edges.firm for x, y in hard_edges(a))}
            among = [a for a in current if a in (out_of_order or stuck)]
            cheapest = min(among, key=lambda a: (self._converter.cost(a), -current.index(a)))
            converted.append(cheapest)
            current.remove(cheapest)

    def _edges(self, nest: Nest, accesses: list[Access]) -> Edges:
        lhs = nest.assign.lhs
        operands = [a for a in accesses if a != lhs]
        sparse = sparse_variables(operands)
        edges = Edges()
        for access in accesses:
            edges.hard |= hard_edges(access)
            edges.soft |= soft_edges(access, sparse)
        if not lhs.tensor.format.is_dense and not self._shared and lhs == self._assign.lhs:
            results = level_variables(lhs)
            edges.hard |= {(a, b) for n, a in enumerate(results) for b in results[n + 1 :] if a != b}
            edges.firm |= {(a, b) for a in results for b in nest.variables if b not in lhs.indices}
        return edges

    def _reorder(self, access: Access, order: tuple[IndexVar, ...]) -> None:
        if access.tensor.format.blocks:
            raise BlocksInTheWay
        modes = modes_in_order(access, order)
        target = reordered(plain(access.tensor.format), modes)
        shown = ", ".join(str(access.indices[m]) for m in modes)
        self.replaced[access] = self._converter.convert(access, target, f"the loops need its modes in the order {shown}")

    def _substitute(self, assign: Assign) -> Assign:
        return rewrite(assign, lambda n: self.replaced.get(n) if isinstance(n, Access) else None)

    def _check_result(self, nest: Nest, path: tuple[IndexVar, ...]) -> None:
        lhs = nest.assign.lhs
        if lhs.tensor.format.is_dense or self._shared or lhs != self._assign.lhs:
            return
        if self._assign.op is not None:
            raise CompilerBug(self._assign, "what a sparse result held before should be an operand")
        wanted = level_variables(lhs)
        last = max(k for k, level in enumerate(lhs.tensor.format.levels) if not level.full)
        ends = path.index(wanted[last])
        early = [v for v in path[:ends] if v not in wanted]
        if early and self._may_scatter:
            raise RowsOutOfOrder
        if early:
            why = f"the loop over {early[0]} reduces outside the loop over {wanted[last]}, so entries come out of order"
            raise not_in_order(self._assign, why)
        if not can_append(lhs.tensor.format):
            raise needs_workspace(self._assign, f"a {name_of(lhs.tensor.format)} level cannot be appended to")


def _accesses(nest: Nest) -> list[Access]:
    found = (n for part in nest.everything() for n in walk(part.assign) if isinstance(n, Access))
    return list(dict.fromkeys(found))


def _is_late(access: Access, own: tuple[IndexVar, ...], outer: tuple[IndexVar, ...]) -> bool:
    """Whether loops that are open already stand against the storage order of an operand."""
    place = {var: n for n, var in enumerate((*outer, *own))}
    return any(y in outer and x in place and (x in own or place[x] > place[y]) for x, y in hard_edges(access))


def _depth(producer: Nest, order: tuple[IndexVar, ...]) -> int:
    """How many loops must be open before the producer can run."""
    used = {v for a in _accesses(producer) for v in (*a.indices, *level_variables(a))}
    own = {v for part in producer.everything() for v in part.variables}
    own |= {b for v in own for b in block_variables(v)}
    bound = {b: v for v in used for b in block_variables(v)}
    needed = {v for v in used if v not in own}
    return max((n + 1 for n, v in enumerate(order) if v in needed or bound.get(v) in needed), default=0)


def bind_blocks(stmt: Stmt) -> Stmt:
    """State how the variables of blocked operands make up the original ones."""
    sizes = block_sizes([n for n in walk(stmt) if isinstance(n, Access)])
    relations = tuple(SplitRelation(var, *block_variables(var), size) for var, size in sizes.items() if size)
    return SuchThat(stmt, relations) if relations else stmt


def _identifier(text: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in text).strip("_")
