"""Kernels of assignments: ``y[i] = A[i, j] * x[j]`` and ``y.schedule().compile()`` give one that knows its operands and its result."""

from __future__ import annotations

from typing import Any

from sparseloom.calls.kernel import Kernel
from sparseloom.notation.contents import variables_in
from sparseloom.notation.printer import show
from sparseloom.notation.terms import reopen
from sparseloom.targets.target import Target
from sparseloom.tensor.assignment import TensorSchedule, compile_with
from sparseloom.tensor.tensor import Tensor


class AssignedKernel(Kernel):
    """The kernel of an assignment under a schedule. Called on nothing, it fills the tensor that was assigned to from its own operands.

    It is pickled without them, as a kernel like any other.
    """

    def __init__(self, schedule: TensorSchedule, target: Target) -> None:
        assignment = schedule.assignment
        statement = reopen(assignment.statement)
        result, own = statement.lhs.tensor, {var.name for var in variables_in(statement.rhs)}
        formats = {name: storage.format for name, storage in assignment.operands.items()}
        sizes = {name: size for name, size in assignment.sizes.items() if name not in own}
        options = (result.format, result.stored_dtype, None, sizes, target.name, schedule.text)
        super().__init__(statement, show(statement), formats, *options)
        self._assignment = assignment
        self._receive = schedule.receive
        self.specialized(assignment.operands)

    def __call__(self, /, *args: Any, out: Any = None, **named: Any) -> Tensor:
        """Run on these operands; on none, compute the assignment anew from its own, and give the tensor its values."""
        if args or named or out is not None:
            return super().__call__(*args, out=out, **named)
        self._assignment.check_operands()
        operands = self._assignment.operands
        filled: Tensor = self._receive(self.specialized(operands).run(operands))
        return filled

    def explore(self, /, *args: Any, port: int = 0, browser: bool = True, **named: Any) -> Any:
        """Open the explorer on these operands; on none, on those of the assignment."""
        given = named if args or named else dict(self._assignment.operands)
        return super().explore(*args, port=port, browser=browser, **given)


compile_with(AssignedKernel)
