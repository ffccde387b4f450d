"""``y.schedule()``: the schedule of an assignment that was written down, and the kernel it compiles to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sparseloom.formats.storage import Storage
from sparseloom.schedule.schedule import Schedule
from sparseloom.targets.registry import DEFAULT, find_target
from sparseloom.targets.target import Target
from sparseloom.tensor.assignment import Assignment


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

    assignment: Assignment = field(kw_only=True)
    receive: Callable[[Storage], None] = field(kw_only=True)

    def compile(self, target: str = DEFAULT) -> TensorKernel:
        """The kernel of the schedule; calling it fills the tensor."""
        return TensorKernel(self.assignment, self.text, find_target(target), self.receive)


class TensorKernel:
    """A compiled assignment. Every call computes it anew from the operands it was written with."""

    def __init__(self, assignment: Assignment, schedule: str, target: Target, receive: Callable[[Storage], None]) -> None:
        self._specialization = assignment.prepare(schedule, target)
        self._assignment = assignment
        self._receive = receive

    def __call__(self) -> None:
        """Compute, and give the tensor its values."""
        self._assignment.check_operands()
        self._receive(self._specialization.run(self._assignment.operands))

    @property
    def source(self) -> str:
        """The C, in the user's names."""
        return self._specialization.stages.source

    def show(self, stage: str) -> str:
        """The kernel at one stage: notation, concrete, loops or c."""
        return self._specialization.stages.show(stage)

    def explain(self) -> str:
        """Who drives each loop, which races there are, what is converted, and where the result goes."""
        return self._specialization.explain()
