"""divide(i, outer, inner, count): cut i into a constant number of equal blocks.

    forall i                forall outer
      y(i) = b(i)    ==>      forall inner      i = outer * ceil(|i| / count) + inner
                                y(i) = b(i)

The number of blocks does not grow with the tensor, so a search at the start of each costs little. With an operand as a fifth argument,
as in divide(i, i0, i1, 4, A(i,j)), the blocks hold equally many entries of it, to within one i, and inner runs through the values of i.
In divide(i, i0, i1, 4, A(i,j), 2) every i weighs as much as two entries more, for walking a row takes time even where it is empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from sparseloom.iteration.foralls import cut_loops, fresh_variables, loops, operands, provenance
from sparseloom.notation.nodes import Access, IndexVar, Stmt
from sparseloom.notation.printer import show
from sparseloom.relations.divide import DivideRelation
from sparseloom.relations.weighted import WeightedRelation
from sparseloom.schedule.primitive import Primitive, is_tagged, no_loop, not_fresh, primitive
from sparseloom.schedule.refusal import Refusal, listed

_MOST = 2**20  # shares of this many entries are counted in 64 bits
_HEAVIEST = 2**10  # entries


@primitive
class Divide(Primitive):
    """``i`` is cut into ``count`` blocks: ``outer`` counts them, ``inner`` the places in one. Each holds equally many entries of
    ``access``. Beside them every ``i`` weighs as much as ``rows`` entries."""

    i: IndexVar
    outer: IndexVar
    inner: IndexVar
    count: int
    access: Access | None = None
    rows: int | None = None

    def check(self, stmt: Stmt) -> Refusal | None:
        if self.count < 1:
            return Refusal("S201", f"count must be at least 1, not {self.count}", "give the number of blocks")
        return (
            no_loop("S202", stmt, self.i)
            or not_fresh("S203", stmt, self.outer.name, self.inner.name)
            or is_tagged("S204", stmt, self.i, "divide", merges=True)
            or (self._unweighed() if self.access is None else self._weighed(stmt, self.access))
        )

    def _unweighed(self) -> Refusal | None:
        """Why blocks of equal size cannot be asked for so."""
        why = f"rows says what one {self.i} weighs beside the entries of an operand, and none is named"
        return None if self.rows is None else Refusal("S208", why, "name an operand, or leave rows out")

    def _weighed(self, stmt: Stmt, access: Access) -> Refusal | None:
        """Why the entries of an operand cannot be shared out."""
        if access not in operands(stmt):
            why = f"{show(access)} is not an operand of the statement"
            return Refusal("S205", why, f"there are {listed(map(show, operands(stmt)))}")
        if self.count > _MOST:
            return Refusal("S201", f"count must be at most {_MOST} where entries are shared out, not {self.count}", "use split")
        if self.rows is not None and not 0 <= self.rows <= _HEAVIEST:
            return Refusal("S208", f"one {self.i} weighs 0 to {_HEAVIEST} entries, not {self.rows}", "leave it out, or give 1 or 2")
        stored = provenance(stmt).stored(access)
        if stored.count(self.i) != 1:
            why = f"{show(access)} has no level of its own for {self.i}; its levels store {listed(stored)}"
            return Refusal("S206", why, "name an operand that has one, or leave the operand out", at=self.i)
        if not access.tensor.format.levels[stored.index(self.i)].ordered:
            why = f"{access.tensor} stores {self.i} in no order, so its entries cannot be shared out"
            return Refusal("S207", why, "convert it first, or leave the operand out", at=self.i)
        return None

    def apply(self, stmt: Stmt) -> Stmt:
        return cut_loops(stmt, self.relation)

    @property
    def relation(self) -> DivideRelation | WeightedRelation:
        """``i = lo + outer * m + inner``, where m is the size of a block; or i = inner, in a piece that is searched."""
        if self.access is None:
            return DivideRelation(self.i, self.outer, self.inner, self.count)
        return WeightedRelation(self.i, self.outer, self.inner, self.count, self.access, self.rows or 0)

    @classmethod
    def candidates(cls, stmt: Stmt, rng: Random) -> Iterator[Divide]:
        for var in rng.sample(loops(stmt), len(loops(stmt))):
            outer, inner = fresh_variables(stmt, f"{var}0", f"{var}1")
            weighed = [access for access in operands(stmt) if var in access.indices and not access.tensor.format.is_dense]
            access = rng.choice(weighed) if weighed and rng.random() < 0.5 else None
            yield cls(var, outer, inner, rng.choice((1, 2, 3, 4, 7)), access, rng.choice((None, 1, 3)) if access else None)
