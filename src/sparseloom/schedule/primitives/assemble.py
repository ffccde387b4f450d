"""assemble(T, way): choose how the entries of a sparse result are put together.

    forall i                          forall i
      forall j                          forall j
        C(i,j) = A(i,j) + B(i,j)          C(i,j) = A(i,j) + B(i,j)     counted, then filled in

Append puts one entry behind the other, into arrays that grow; threads append rows of their own, which are then joined. Insert runs the
loops twice: to count the entries, and, once it is known where each row begins, to fill them in. It allocates exactly what is needed, and
threads fill in rows of their own; that works for any number of compressed levels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from sparseloom.formats.named import name_of
from sparseloom.iteration.assembly import can_insert
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.foralls import provenance, result, tensors
from sparseloom.iteration.making import Appended, Counted, Inserted
from sparseloom.notation.nodes import Assembly, Stmt
from sparseloom.notation.printer import show
from sparseloom.schedule.primitive import Primitive, primitive
from sparseloom.schedule.refusal import Refusal, listed


@primitive
class Assemble(Primitive):
    """The entries of ``tensor``, the result, are put together by ``way``."""

    tensor: str
    way: Assembly

    def check(self, stmt: Stmt) -> Refusal | None:
        made = result(stmt).tensor
        if self.tensor not in tensors(stmt):
            return Refusal("S1201", f"the statement has no tensor {self.tensor}", f"there are {listed(tensors(stmt))}")
        if self.tensor != made.name:
            return Refusal("S1202", f"{self.tensor} is not the result of the statement", f"the result is {made}")
        if made.format.is_dense:
            return Refusal("S1203", f"{made} is dense, so every place is there before the loops run")
        return None

    def check_all(self, concrete: Concrete) -> Refusal | None:
        """Beside the statement, it matters whose structure the result has, and whether rows have places of their own."""
        if refused := self.check(concrete.stmt):
            return refused
        if concrete.shared is not None:
            return Refusal("S1204", f"{self.tensor} takes over the structure of {show(concrete.shared)}, so nothing is assembled")
        form = concrete.assign.lhs.tensor.format
        if self.way is Assembly.Insert and not all(level.compact for level in form.levels):
            why = f"{name_of(form)} keeps as much room for every row, so there is nothing to count"
            return Refusal("S1205", why, "use Append, or ask for a format such as csr")
        return None

    def apply(self, stmt: Stmt) -> Stmt:
        return stmt

    def apply_all(self, concrete: Concrete) -> Concrete:
        """The loops stay as they are; an order in which they insert already is kept."""
        order = concrete.inserted or tuple(dict.fromkeys(provenance(concrete.stmt).stored(concrete.assign.lhs)))
        match concrete.making, self.way:
            case Appended() | Counted() | Inserted(), Assembly.Append:
                return replace(concrete, making=Appended())
            case Appended() | Counted() | Inserted(), Assembly.Insert:
                return replace(concrete, making=Inserted(order=order) if can_insert(concrete.assign) else Counted())
        return concrete

    @classmethod
    def candidates(cls, stmt: Stmt, rng: Random) -> Iterator[Assemble]:
        if not result(stmt).tensor.format.is_dense:
            for way in rng.sample(tuple(Assembly), 2):
                yield cls(result(stmt).tensor.name, way)
