"""pos(i, p, A(..i..)): run over the stored entries of A instead of coordinates.

    forall i                       forall i
      forall j              ==>      forall p                 j = coordinate of A(i,j) at p
        y(i) += A(i,j) * x(j)          y(i) += A(i,j) * x(j)

A fused variable runs over the entries of all its levels at once. A must be there wherever the loop has something to do:
its entries then cover the space. From now on A's structure drives the loop, whatever the expression becomes.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from sparseloom.iteration.foralls import accesses, fresh_variables, loops, operands, places, provenance, reads, replace_loops, tag_of
from sparseloom.iteration.provenance import Provenance, Span
from sparseloom.iteration.walked import implies, lost_without, presence
from sparseloom.notation.dtyping import dtype_of
from sparseloom.notation.nodes import Access, Apply, Assign, Expr, Forall, IndexVar, Stmt
from sparseloom.notation.printer import show
from sparseloom.relations.pos import PosRelation
from sparseloom.schedule.primitive import Primitive, no_loop, not_fresh, primitive
from sparseloom.schedule.refusal import Refusal, listed


@primitive
class Pos(Primitive):
    """``p`` takes the place of ``i`` and counts the entries of ``access``."""

    i: IndexVar
    p: IndexVar
    access: Access

    def check(self, stmt: Stmt) -> Refusal | None:
        return no_loop("S401", stmt, self.i) or not_fresh("S402", stmt, self.p.name) or self._operand(stmt) or self._levels(stmt)

    def _operand(self, stmt: Stmt) -> Refusal | None:
        if self.access not in operands(stmt):
            why = f"{show(self.access)} is not an operand of the statement"
            return Refusal("S403", why, f"there are {listed(map(show, operands(stmt)))}")
        if provenance(stmt).position(self.i) is not None:
            return Refusal("S404", f"{self.i} counts positions already", "turn it back with coord first", at=self.i)
        if tag_of(stmt, self.i).merge is not None:
            return Refusal("S405", f"the loop over {self.i} merges operands, and positions of one operand are not merged", at=self.i)
        return None

    def _levels(self, stmt: Stmt) -> Refusal | None:
        """The run of levels that ``i`` stands for must exist, below parents that are known, and cover what the loop visits."""
        graph = provenance(stmt)
        stored = graph.stored(self.access)
        span = graph.span(self.i, stored)
        if span is None:
            lost = next((r for r in map(graph.made_by, graph.line(self.i)) if r is not None and not r.keeps_order), None)
            how = "skips from block to block" if lost is None else f"was made by {lost.word}, in no order of {listed(lost.parents)}"
            why = f"{self.i} {how}, so it stands for no interval of coordinates"
            return Refusal("S406", why, "use pos on the inner variable, or before the split", at=self.i)
        levels = graph.stored_levels(self.access, span.variables)
        if levels is None:
            return self._not_stored(span, stored)
        if len(set(stored)) < len(stored) and any(stored.count(v) > 1 for v in span.variables):
            why = f"{show(self.access)} uses {listed(dict.fromkeys(v for v in stored if stored.count(v) > 1))} at two levels"
            return Refusal("S408", why, "the entries on a diagonal are no interval of positions", at=self.i)
        first, last = levels
        if span.needs and not all(level.ordered for level in self.access.tensor.format.levels[first : last + 1]):
            why = f"{self.access.tensor} stores {span.variables[-1]} in no order, so a block of coordinates cannot be searched"
            return Refusal("S409", why, "use pos before split, or convert the operand", at=self.i)
        return self._places(stmt, graph, span, first, last)

    def _not_stored(self, span: Span, stored: tuple[IndexVar, ...]) -> Refusal:
        """Why no run of levels stores what ``i`` stands for."""
        name, absent = show(self.access), [v for v in span.variables if v not in stored]
        if absent:
            why = f"{name} has no level for {listed(absent)}; its levels store {listed(stored)}"
            return Refusal("S407", why, "name an operand that has one", at=self.i)
        why = f"{self.i} runs over {listed(span.variables)}, but {name} stores {listed(stored)} in that order"
        return Refusal("S407", why, "reorder before fuse, or convert the operand", at=self.i)

    def _places(self, stmt: Stmt, graph: Provenance, span: Span, first: int, last: int) -> Refusal | None:
        stored, levels = graph.stored(self.access), self.access.tensor.format.levels
        for outer, loop in places(stmt, self.i):
            if self.access not in reads(loop.body):
                why = f"{show(self.access)} is not read inside the loop over {self.i}"
                return Refusal("S414", why, f"it reads {listed(map(show, reads(loop.body)))}", at=self.i)
            before, after = graph.known(outer), graph.known((*outer, self.i))
            missing, unfixed = [v for v in stored[:first] if v not in before], sorted(span.needs - before, key=str)
            if late := unfixed or missing:
                where = f"{self.i} is a place in a block of" if unfixed else f"{show(self.access)} is stored below"
                why = f"{where} {listed(late)}, which is not known outside the loop over {self.i}"
                return Refusal("S411", why, f"put the loop over {listed(late)} outside", at=self.i)
            is_full = all(level.full for level in levels[: last + 1])
            if not is_full and not implies(presence(graph, loop.body, after), self.access):
                return self._uncovered(loop)
            if not levels[last].unique and not _visits_once(loop.body, self.access, last):
                why = f"{self.access.tensor} repeats coordinates of {span.variables[-1]}, and all entries of one are needed together"
                return Refusal("S413", why, "convert the operand to a format without repetitions", at=self.i)
        return None

    def _uncovered(self, loop: Forall) -> Refusal:
        """The refusal of a union: entries that ``access`` lacks would never be visited."""
        lost = lost_without(loop.body, self.access)
        others = f"{listed(map(show, lost))} alone would be lost" if lost else "the value of absent entries would be lost"
        why = f"{show(self.access)} is not present wherever the loop has something to do: {others}"
        return Refusal("S412", why, "positions of one operand cover an intersection, not a union", at=self.i)

    def apply(self, stmt: Stmt) -> Stmt:
        return replace_loops(stmt, self.i, lambda loop: Forall(self.p, loop.body, loop.tag), self.relation)

    @property
    def relation(self) -> PosRelation:
        """``i`` is the coordinate that ``access`` stores at ``p``."""
        return PosRelation(self.i, self.p, self.access)

    @classmethod
    def candidates(cls, stmt: Stmt, rng: Random) -> Iterator[Pos]:
        graph = provenance(stmt)
        pairs = [(var, access) for var in loops(stmt) for access in operands(stmt) if {*graph.originals(var)} & {*access.indices}]
        for var, access in rng.sample(pairs, len(pairs)):
            (position,) = fresh_variables(stmt, f"{var}p")
            step = cls(var, position, access)
            if step.check(stmt) is None or rng.random() < 0.5:  # operands of a union, of which there are many, are mostly refused
                yield step


def _visits_once(body: Stmt, access: Access, last: int) -> bool:
    """Whether entries with equal coordinates may be visited apart: a chain goes on below, or they are added up linearly."""
    while isinstance(body, Forall):
        body = body.body
    if not isinstance(body, Assign):
        return False
    levels = access.tensor.format.levels
    ends_apart = last + 1 < len(levels) and levels[last + 1].branchless and access.tensor.format.is_unique
    return ends_apart or (body.op == "add" and is_linear(body.rhs, access))


def is_linear(expr: Expr, access: Access) -> bool:
    """Whether an expression of a sum of entries is the sum of the expression of each.

    Truth values and integers are added within their dtype, so one that becomes wider must be added up first.
    """
    dtype = access.tensor.dtype
    if dtype.kind not in "fc" and dtype_of(expr) != dtype:
        return False
    match expr:
        case Access():
            return expr == access
        case Apply("negative", (inner,), _):
            return is_linear(inner, access)
        case Apply("divide", (above, below), _):
            return is_linear(above, access) and access not in accesses(below)
        case Apply("multiply", args, _):
            holding = [arg for arg in args if access in accesses(arg)]
            return len(holding) == 1 and is_linear(holding[0], access)
    return False
