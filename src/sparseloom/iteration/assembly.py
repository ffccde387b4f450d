"""Which ways there are to assemble a sparse result, and which of them do more than they need to.

appended     the loops stand in storage order
inserted     rows are counted, then filled in any order: only the last level is sparse, and each entry comes once
scattered    a row at a time, in any order, into a workspace of some kind (``rows``)
listed       coordinates and values of several levels in any order, sorted and combined afterwards
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from itertools import combinations

from sparseloom.core.trees import walk
from sparseloom.iteration.layout import can_append, is_filled, is_placed
from sparseloom.iteration.ordering import Blocks, blocks_among, sparse_variables
from sparseloom.iteration.region import is_skippable
from sparseloom.notation.contents import accesses_in, reductions_in
from sparseloom.notation.nodes import Access, Apply, Assign, Expr, Forall, IndexVar, Reduce, Sequence, Stmt, SuchThat, Where
from sparseloom.notation.terms import free_variables
from sparseloom.relations.relation import carried


class Order(Enum):
    """What a sparse result asks of the loops over its variables."""

    STORED = "stored"  # as its levels are stored, and outside of the sums where operands allow it
    STRICT = "strict"  # the same, and outside of the sums in any case
    FREE = "free"  # outside of the sums
    SUMS_FIRST = "sums first"  # as stored, but a workspace is filled inside of the sums


def reductions(expr: Expr) -> Iterator[Reduce]:
    """The outermost reductions of an expression."""
    match expr:
        case Reduce():
            yield expr
        case Apply(_, args, _):
            for arg in args:
                yield from reductions(arg)


def _is_plain(assign: Assign) -> bool:
    """Whether a sparse result has neither blocks nor a repeated variable, and no first value."""
    lhs, form = assign.lhs, assign.lhs.tensor.format
    return not form.blocks and assign.op is None and len(set(lhs.indices)) == len(lhs.indices)


def can_fill(assign: Assign) -> bool:
    """Whether every entry has a place of its own before the loops run, and comes once: nothing is summed, and no operand has blocks."""
    blocked = any(n.tensor.format.blocks for n in accesses_in(assign))
    sums = bool(reductions_in(assign.rhs))
    return is_filled(assign.lhs.tensor.format) and _is_plain(assign) and not blocked and not sums


def can_insert(assign: Assign) -> bool:
    """Whether every row has a place of its own before the loops run, if not every entry, and the last level takes entries in any order; and
    no operand has blocks."""
    *upper, last = assign.lhs.tensor.format.levels
    blocked = any(n.tensor.format.blocks for n in accesses_in(assign))
    return can_fill(assign) or (
        _is_plain(assign) and not blocked and bool(upper) and all(map(is_placed, upper)) and bool(last.queries) and last.ordered
    )  # fmt: skip


def is_put_in_place(assign: Assign) -> bool:
    """Whether a result can be inserted, and little is done twice: nothing must be known before, or one operand tells it."""
    sparse = [n for n in accesses_in(assign.rhs) if not n.tensor.format.is_dense]
    return can_fill(assign) or (can_insert(assign) and not reductions_in(assign.rhs) and len(sparse) <= 1)


def can_scatter(assign: Assign) -> bool:
    """Whether the rows of a sparse result can be built in a workspace: they are appended, and each sum skips absent terms."""
    form = assign.lhs.tensor.format
    if not _is_plain(assign) or not can_append(form) or form.levels[-1].full:
        return False
    last = assign.lhs.indices[form.modes[-1]]
    sums = [n for n in reductions(assign.rhs) if last in free_variables(n)]
    return bool(sums) and all(is_skippable(n.body, n.op) for n in sums)


def can_list(assign: Assign) -> bool:
    """Whether the entries of a sparse result can be listed first: they are appended, and each sum skips absent terms."""
    return _is_plain(assign) and can_append(assign.lhs.tensor.format) and all(is_skippable(n.body, n.op) for n in reductions(assign.rhs))


def can_copy(assign: Assign) -> bool:
    """Whether a result with a repeated variable can be listed first, under the same conditions."""
    lhs, form = assign.lhs, assign.lhs.tensor.format
    skips = all(is_skippable(n.body, n.op) for n in reductions(assign.rhs))
    return len(set(lhs.indices)) < len(lhs.indices) and not form.blocks and assign.op is None and can_append(form) and skips


def is_alone(rhs: Expr) -> bool:
    """Whether nothing sparse stands beside a single sum, with whose entries it would have to be merged."""
    sums = list(reductions(rhs))
    inside = {n for one in sums for n in accesses_in(one)}
    beside = {*accesses_in(rhs)} - inside
    return len(sums) == 1 and all(access.tensor.format.is_dense for access in beside)


def is_loose(assign: Assign) -> bool:
    """Whether an operand is copied whose entries come in no order at all."""
    match assign.rhs:
        case Access(tensor, _):
            return not all(level.ordered for level in tensor.format.levels)
    return False


def lists_many(assign: Assign) -> bool:
    """Whether a list may hold many more entries than the operands: no sparse one has all variables of a sum."""
    for term in reductions(assign.rhs):
        needed = {*free_variables(term.body), *term.variables}
        if not any(not n.tensor.format.is_dense and needed <= {*n.indices} for n in accesses_in(term.body)):
            return True
    return False


def meets_late(stmt: Stmt) -> bool:
    """Whether two sparse operands are brought together by a sum inside of loops over both: each pair of rows is tried.

    ``C(i,j) = sum(k, A(i,k) * B(j,k))`` in the order i, j, k takes rows times rows, however few of them have a k in common;
    not so where a further sparse operand has both i and j.
    """
    assigns = [n for n in walk(stmt) if isinstance(n, Assign)]
    made = {assign.lhs.tensor for assign in assigns}
    everything = [n for assign in assigns for n in accesses_in(assign.rhs) if n.tensor not in made]
    blocks = blocks_among(r for n in walk(stmt) for r in carried(n))
    return any(_is_late(order, assign, everything, blocks) for order, assign in _orders(stmt, ()))


def _orders(stmt: Stmt, outer: tuple[IndexVar, ...]) -> Iterator[tuple[tuple[IndexVar, ...], Assign]]:
    """Every assignment with the loops around it."""
    match stmt:
        case Forall(var, body):
            yield from _orders(body, (*outer, var))
        case SuchThat(body, _):
            yield from _orders(body, outer)
        case Where(consumer, producer):
            yield from _orders(consumer, outer)
            yield from _orders(producer, outer)
        case Sequence(stmts):
            for part in stmts:
                yield from _orders(part, outer)
        case Assign():
            yield outer, stmt


def _is_late(order: tuple[IndexVar, ...], assign: Assign, everything: list[Access], blocks: Blocks) -> bool:
    operands = accesses_in(assign.rhs)
    for a, b in combinations(operands, 2):
        for var in sparse_variables([a], blocks) & sparse_variables([b], blocks) - {*assign.lhs.indices}:
            before = {*order[: order.index(var)]} if var in order else set()
            only_a, only_b = ({*x.indices} & before - {*y.indices} for x, y in ((a, b), (b, a)))
            bound = any(only_a & {*n.indices} and only_b & {*n.indices} for n in everything if not n.tensor.format.is_dense)
            if only_a and only_b and not bound:
                return True
    return False
