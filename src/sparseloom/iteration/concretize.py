"""Concretisation: from index notation to loops.

    y(i) = A(i,j)*x(j) + b(i)        forall i
                               ==>     where
                                         y(i) = t + b(i)
                                       with
                                         forall j
                                           t += A(i,j)*x(j)

A reduction at the root runs in the loops of its statement; every other one becomes a scalar temporary, filled as far out as its
variables allow. When storage orders conflict, the cheapest operands are converted, and the conversion is recorded. A sparse result is
assembled in the way that costs least (``assembly``), with a workspace where its entries come in no order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import partial

from sparseloom.core.algebra import INTERNAL
from sparseloom.core.errors import NotationError
from sparseloom.core.names import Names
from sparseloom.core.once import once_for_each
from sparseloom.core.trees import rewrite, walk
from sparseloom.formats.levels.listed import Listed
from sparseloom.iteration.assembly import (
    Order,
    can_copy,
    can_fill,
    can_insert,
    can_list,
    can_scatter,
    is_alone,
    is_loose,
    lists_many,
    meets_late,
)
from sparseloom.iteration.blocks import build_blocks, can_build_blocks, names_in, without_blocks
from sparseloom.iteration.foralls import body_of, loops, related, relations_of
from sparseloom.iteration.in_order import BlocksInTheWay
from sparseloom.iteration.layout import can_append, has_row_places, has_rows_in_blocks, walks_blocks
from sparseloom.iteration.making import Appended, Counted, Inserted, Making, Refilled, Shared, choose_making
from sparseloom.iteration.nests import Nest, additive_groups, build_apart, build_copied, build_nest, build_rows, signed_terms
from sparseloom.iteration.orderer import Conversion, Converter, Orderer, walked_blocks
from sparseloom.iteration.ordering import (
    Blocks,
    cut_into_blocks,
    level_variables,
)
from sparseloom.iteration.rows import SHORT_ROWS, RowChoice
from sparseloom.iteration.sharing import shared_pattern
from sparseloom.iteration.unstored import Apart, Closed, close_reductions
from sparseloom.notation.contents import accesses_in, identifiers_in, variables_in
from sparseloom.notation.dtyping import dtype_of, fill_of
from sparseloom.notation.nodes import (
    Access,
    Apply,
    Assign,
    Expr,
    Forall,
    IndexVar,
    Sequence,
    Stmt,
    SuchThat,
)
from sparseloom.relations.rename import RenameRelation

MOST_VARIABLES = 24  # twice as many take minutes to compile


@dataclass(frozen=True)
class Concrete:
    """Loops, and what must be converted before they run.

    ``assign`` is the statement in index notation with converted operands in place.
    """

    stmt: Stmt
    assign: Assign
    making: Making
    conversions: tuple[Conversion, ...] = ()
    rows: RowChoice = SHORT_ROWS  # what rows are built in, where their entries come in no order
    drops: bool = False  # whether entries of the result that equal its fill are left out
    initial: str | None = None  # the name of what a sparse result held before
    made: frozenset[str] = frozenset()  # names that are the compiler's own, and give way to the user's

    def __hash__(self) -> int:
        return _digest(self)

    @property
    def shared(self) -> Access | None:
        """The operand whose structure the result takes over."""
        return self.making.operand if isinstance(self.making, Shared) else None

    @property
    def closes(self) -> bool:
        """Whether unstored terms are applied in closed form."""
        return any(isinstance(n, Apply) and n.op in INTERNAL for n in walk(self.stmt))

    @property
    def inserted(self) -> tuple[IndexVar, ...]:
        """The variables of a result whose rows are filled in any order, in the order of their loops."""
        return self.making.order if isinstance(self.making, Inserted) else ()


@once_for_each
def _digest(concrete: Concrete) -> int:
    """The hash of all that may differ where the statement is the same; it is asked for often."""
    facts = concrete.making, concrete.conversions, concrete.rows, concrete.drops, concrete.initial, concrete.made
    return hash((concrete.stmt, *facts))


def refilled(concrete: Concrete) -> Concrete:
    """The same loops for a result whose structure is known: what was appended, or counted in order, only gets its values.

    Threads that find entries only in order, where rows have no places of their own, make the result anew.
    """
    if not isinstance(concrete.making, Appended | Counted):
        return concrete
    in_threads = any(isinstance(n, Forall) and n.tag.unit is not None for n in walk(concrete.stmt))
    return concrete if in_threads and not has_row_places(concrete.assign.lhs.tensor.format) else replace(concrete, making=Refilled())


def concretize(assign: Assign, costs: Mapping[str, float] | None = None, share: bool = True, rows: RowChoice = SHORT_ROWS) -> Concrete:
    """Choose the loops of a statement.

    ``costs`` says how many entries each operand has, where that is known. ``share`` is not set if something is reduced over nothing: else
    the result may take over the structure of an operand, and unstored terms are applied in closed form. ``rows`` is the workspace for rows
    whose entries come in no order.
    """
    _check_depth(assign)
    closed = close_reductions(assign) if share else Closed(assign)
    try:
        chosen = _best(closed, costs or {}, share, rows, keep_blocks=True)
    except BlocksInTheWay:
        if can_build_blocks(assign.lhs):
            chosen = _in_blocks(closed.assign, costs or {}, rows)
        else:
            chosen = _best(closed, costs or {}, share, rows, keep_blocks=False)
    return replace(chosen, made=identifiers_in(chosen.stmt) - identifiers_in(assign))


def _check_depth(assign: Assign) -> None:
    """Refuse more loops than can be ordered, lowered and compiled in a second."""
    count = len(variables_in(assign))
    if count > MOST_VARIABLES:
        raise NotationError(
            f"a statement has at most {MOST_VARIABLES} variables, and this one has {count}\n"
            "  help: join modes that always stand together into one, or compute it in steps that have fewer"
        )


def _in_blocks(assign: Assign, costs: Mapping[str, float], rows: RowChoice) -> Concrete:
    """Make the entries of a blocked result as if it had no blocks, and put them into blocks a row at a time."""
    plain_result = without_blocks(assign)
    made = _assembled(_Attempt(Closed(plain_result), costs, False, rows, keep_blocks=False, in_order=True), by_rows_only=True)
    stmt = build_blocks(assign, made.stmt, names_in(made.stmt, assign))
    making = choose_making(assign.lhs.tensor.format)
    return Concrete(stmt, Assign(assign.lhs, made.assign.rhs, assign.op), making, made.conversions, rows)


def _best(closed: Closed, costs: Mapping[str, float], share: bool, rows: RowChoice, keep_blocks: bool) -> Concrete:
    assign = closed.assign
    start = _Attempt(closed, costs, share, rows, keep_blocks)
    together = start.again()
    if not together.is_assembled:
        made = together.in_one_nest()
        if made.shared is not None and made.shared in together.replaced:
            return _best(closed, costs, False, rows, keep_blocks)
        if together.replaced and can_run_in_sequence(assign):
            apart = start.again()
            sequence = apart.in_sequence()
            if len(apart.replaced) < len(together.replaced):
                return sequence
        return made
    return _assembled(start)


def _assembled(start: _Attempt, by_rows_only: bool = False) -> Concrete:
    """The best way to assemble a sparse result: one that walks nothing in vain, then one that converts least, then the simplest."""
    best: tuple[tuple[bool, bool, int], Concrete] | None = None
    refusals: list[NotationError | BlocksInTheWay] = []
    for way, is_wide in start.ways_by_rows() if by_rows_only else start.ways():
        if best is not None and best[0] <= (False, is_wide, 0):
            continue  # it cannot do better
        try:
            made = way(start.again())
        except (NotationError, BlocksInTheWay) as refusal:
            refusals.append(refusal)
            continue
        cost = (meets_late(made.stmt), is_wide, len(made.conversions))
        if best is None or cost < best[0]:
            best = cost, made
    if best is None:
        raise refusals[0]
    return best[1]


class _Attempt:
    """One way to run a statement, with the conversions it takes."""

    def __init__(
        self, closed: Closed, costs: Mapping[str, float], share: bool, rows: RowChoice, keep_blocks: bool, in_order: bool = False
    ) -> None:
        assign = closed.assign
        self._apart = closed.apart
        self._rows = rows
        self._names = Names(identifiers_in(assign))
        self._converter = Converter(self._names, costs, in_order, assign.lhs.tensor.index_dtype, rows.long)
        self._assign = self._converter.prepare(assign, keep_blocks)
        self._blocks = cut_into_blocks(accesses_in(self._assign), self._names)
        self._shared = shared_pattern(self._assign) if share else None
        self.replaced: dict[Access, Access] = {}

    def again(self) -> _Attempt:
        """One more attempt from here, which leaves this one as it is: what every way begins with is done once."""
        other = copy(self)
        other._names = self._names.copy()
        other._converter = self._converter.again(other._names)
        other.replaced = {}
        return other

    @property
    def _stored(self) -> tuple[IndexVar, ...]:
        """The variables of the result's levels."""
        return level_variables(self._assign.lhs, self._blocks)

    @property
    def is_assembled(self) -> bool:
        """Whether the result is sparse, with a structure of its own."""
        return not self._assign.lhs.tensor.format.is_dense and self._shared is None

    def ways_by_rows(self) -> list[tuple[Callable[[_Attempt], Concrete], bool]]:
        """The ways in which the loops over the result stand outermost, one row after another."""
        rows = [(_Attempt.by_rows, False)] if can_scatter(self._assign) else []
        return [(_Attempt.in_one_nest, False), *rows, (_Attempt.with_sums_inside, False)]

    def ways(self) -> list[tuple[Callable[[_Attempt], Concrete], bool]]:
        """The ways to assemble a sparse result, simplest first, and whether each lists many more entries than operands have."""
        if is_loose(self._assign) and not can_fill(self._assign):
            return [(partial(_Attempt.by_lists, depth=0), False)]
        ways: list[tuple[Callable[[_Attempt], Concrete], bool]] = [(_Attempt.in_one_nest, False)]
        if can_copy(self._assign):
            return [*ways, (_Attempt.by_copies, False)]
        if can_insert(self._assign):
            ways.append((_Attempt.by_insertion, False))
        if can_scatter(self._assign):
            ways += [(_Attempt.by_rows, False), (partial(_Attempt.by_rows, kind=Order.SUMS_FIRST), False)]
        if can_list(self._assign):
            many = lists_many(self._assign)
            ways += [(partial(_Attempt.by_lists, depth=depth), many) for depth in reversed(range(len(self._assign.lhs.indices)))]
        return [*ways, (_Attempt.with_sums_inside, False)]

    def in_one_nest(self) -> Concrete:
        """All terms together; what unstored terms make may have a nest of its own, before or after that of the others."""
        match self._assign.rhs:
            case Apply(_, (stored, others)) if self._apart is not None:
                nest = self._order(build_nest(replace(self._assign, rhs=stored), self._names))
                apart = self._order(build_apart(replace(self._assign, rhs=self._converted(others)), self._names, self._blocks))
                return self._concrete(Sequence((apart, nest) if self._apart is Apart.FIRST else (nest, apart)), apart=apart)
        return self._concrete(self._order(build_nest(self._assign, self._names)))

    def in_sequence(self) -> Concrete:
        """One nest per group of terms, each in its own loop order, added up in the result."""
        first, *rest = additive_groups(self._assign.rhs)
        steps = [Assign(self._assign.lhs, first, self._assign.op)]
        steps += [Assign(self._assign.lhs, group, "add") for group in rest]
        return self._concrete(Sequence(tuple(self._order(build_nest(step, self._names)) for step in steps)))

    def by_insertion(self) -> Concrete:
        """In whatever order the operands have: entries are counted first, and then each is put where its row goes on."""
        stmt = self._order(build_nest(self._assign, self._names), Order.FREE)
        return self._concrete(stmt, tuple(n.var for n in walk(stmt) if isinstance(n, Forall) and n.var in self._assign.lhs.indices))

    def by_rows(self, kind: Order = Order.STORED) -> Concrete:
        """Each sum is scattered into a workspace, a row at a time, and the result appended from there."""
        row = self._rows.level(self._assign.lhs.tensor.format.levels[-1].ordered or not is_alone(self._assign.rhs))
        return self._concrete(self._order(build_rows(self._assign, self._names, self._stored[-1:], row), kind))

    def by_lists(self, depth: int) -> Concrete:
        """Below ``depth`` levels of the result, entries are listed as they come, sorted, and appended from there."""
        return self._concrete(self._order(build_rows(self._assign, self._names, self._stored[depth:], Listed())))

    def by_copies(self) -> Concrete:
        """A result in which a variable repeats: its entries are listed, sorted, and appended with a variable for each level."""
        nest = build_copied(self._assign, self._names)
        self._assign = replace(self._assign, lhs=nest.assign.lhs)
        return self._concrete(self._order(nest))

    def with_sums_inside(self) -> Concrete:
        """All terms together, and operands converted until every sum runs inside the loops over the result."""
        return self._concrete(self._order(build_nest(self._assign, self._names), Order.STRICT))

    def _order(self, nest: Nest, kind: Order = Order.STORED) -> Stmt:
        orderer = Orderer(self._converter, self._assign, self._blocks, self._shared is not None, kind)
        stmt = orderer.order(nest)
        self.replaced.update(orderer.replaced)
        return stmt

    def _converted(self, expr: Expr) -> Expr:
        return rewrite(expr, lambda n: self.replaced.get(n) if isinstance(n, Access) else None)

    def _concrete(self, stmt: Stmt, inserted: tuple[IndexVar, ...] = (), apart: Stmt | None = None) -> Concrete:
        """The choice of these loops; the variables of a part that is ``apart`` get names of their own, for a schedule means the others."""
        assign = rewrite(self._assign, lambda n: self.replaced.get(n) if isinstance(n, Access) else None)
        bound = bind_blocks(stmt, assign, self._blocks)
        if apart is not None:
            names = {var: IndexVar(self._names.fresh(f"{var}_rest")) for var in loops(apart)}
            renamed = rewrite(apart, lambda n: Forall(names[n.var], n.body) if isinstance(n, Forall) else None)
            body = rewrite(body_of(bound), lambda n: renamed if n is apart else None)
            bound = related(body, (*relations_of(bound), *(RenameRelation(var, name) for var, name in names.items())))
        making = choose_making(assign.lhs.tensor.format, self._shared, inserted)
        return Concrete(bound, assign, making, tuple(self._converter.conversions), self._rows)


def makes_blocks(assign: Assign) -> bool:
    """Whether loops can make a blocked result as it is stored: they follow its blocks, or build rows of blocks."""
    lhs = assign.lhs
    if can_build_blocks(lhs):
        return True
    if assign.op is not None and not lhs.tensor.format.is_dense:
        return False  # what the result held before is one more operand, with or without blocks
    if not (lhs.tensor.format.is_dense or can_append(lhs.tensor.format)):
        return False
    accesses = accesses_in(assign)
    blocked = [access.tensor.format for access in accesses if access.tensor.format.blocks]
    if not all(form.is_unique and all(level.ordered for level in form.levels) for form in blocked):
        return False  # operands may have to be converted, and lose their blocks then
    return walks_blocks(lhs, walked_blocks(accesses, assign)) and not has_rows_in_blocks(lhs.tensor.format)


def can_run_in_sequence(assign: Assign) -> bool:
    """Whether terms may be added to the result one after another: it is dense, all are of its dtype, and each fills with 0."""
    dtype = assign.lhs.tensor.dtype
    if not assign.lhs.tensor.format.is_dense or assign.op not in (None, "add") or dtype.kind == "b":
        return False
    if any(dtype_of(term) != dtype for _, term in signed_terms(assign.rhs, False)):
        return False
    groups = additive_groups(assign.rhs)
    return len(groups) > 1 and all(fill_of(part) in (0, None) for part in groups)


def bind_blocks(stmt: Stmt, assign: Assign, blocks: Blocks) -> Stmt:
    """State how the variables of blocked operands make up the original ones."""
    sizes = walked_blocks(accesses_in(stmt), assign)
    relations = tuple(blocks[var] for var, size in sizes.items() if size)
    return SuchThat(stmt, relations) if relations else stmt
