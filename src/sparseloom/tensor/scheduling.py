"""``y.schedule()``: the schedule of an assignment that was written down, and the kernel it compiles to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sparseloom.execution import Prepared
from sparseloom.formats.storage import Storage
from sparseloom.notation.nodes import Assign
from sparseloom.schedule.schedule import Schedule


@dataclass(frozen=True)
class Pending:
    """A statement with its operands, and who receives the result."""

    statement: Assign
    operands: Mapping[str, Storage]
    sizes: Mapping[str, int]
    receive: Callable[[Storage], None]

    def prepare(self, schedule: str = "") -> Prepared:
        """The statement made definite, under a schedule."""
        result = self.statement.lhs.tensor
        return Prepared(self.statement, self.operands, result.format, result.dtype, self.sizes, schedule)


@dataclass(frozen=True, eq=False)
class TensorSchedule(Schedule):
    """A schedule whose statement has tensors: it can be compiled and run.

    >>> import numpy as np, sparseloom as sl
    >>> i, i0, i1 = sl.indices("i i0 i1")
    >>> x, y = sl.asarray(np.arange(5.0), name="x"), sl.zeros(5, name="y")
    >>> y[i] = 2 * x[i]
    >>> s = y.schedule().split(i, i0, i1, 2)
    >>> s.compile()()
    >>> y.to_numpy()
    array([0., 2., 4., 6., 8.])
    """

    pending: Pending = field(kw_only=True)

    def compile(self, target: str = "c") -> TensorKernel:
        """The kernel of the schedule; calling it fills the tensor."""
        return TensorKernel(self.pending.prepare(self.text), self.pending, target)


class TensorKernel:
    """A compiled assignment. Every call computes it anew from the operands it was written with."""

    def __init__(self, prepared: Prepared, pending: Pending, target: str) -> None:
        self._prepared = prepared
        self._pending = pending
        self._target = target

    def __call__(self) -> None:
        """Compute, and give the tensor its values."""
        operands = self._pending.operands
        self._pending.receive(self._prepared.finish(self._prepared.bind(operands, self._target), operands, self._target))

    @property
    def source(self) -> str:
        """The C, in the user's names."""
        return self.show("c")

    def show(self, stage: str) -> str:
        """The kernel at one stage: notation, concrete, loops or c."""
        return self._prepared.stages.show(stage)

    def explain(self) -> str:
        """Who drives each loop, which races there are, what is converted, and where the result goes."""
        return self._prepared.explain()
